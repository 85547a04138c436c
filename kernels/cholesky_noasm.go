//go:build !(amd64 && gc && !noasm)

package kernels

func choleskySolveF32(a, b []float32, r int) int { return choleskySolveF32Generic(a, b, r) }

func choleskyF32(a []float32, r int) int { return choleskyF32Generic(a, r) }

func choleskySolveFactoredF32(a, b []float32, r int) { choleskySolveFactoredF32Generic(a, b, r) }
