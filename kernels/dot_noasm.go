//go:build !(amd64 && gc && !noasm)

package kernels

func dotF32(lanes *[dotLanes]float32, x, y []float32) float32 { return dotF32Generic(lanes, x, y) }
