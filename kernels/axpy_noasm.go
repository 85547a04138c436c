//go:build !(amd64 && gc && !noasm)

package kernels

func axpyF32(a float32, x, y []float32) { axpyF32Generic(a, x, y) }
