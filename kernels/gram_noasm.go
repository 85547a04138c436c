//go:build !(amd64 && gc && !noasm)

package kernels

func gramF32(gram, rhs, table []float32, r int, b *gramRows, work []float32) {
	gramF32Generic(gram, rhs, table, r, b, work)
}
