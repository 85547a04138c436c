//go:build amd64 && gc && !noasm

package kernels

func scaleF32(a float32, x []float32) { scaleF32Generic(a, x) }
