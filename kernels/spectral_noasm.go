//go:build !(amd64 && gc && !noasm)

package kernels

func spectralMaxF32(x []float32, r int) uint32 { return spectralMaxF32Generic(x, r) }

func spectralCopyF32(a, x []float32, r int, scale float32) { spectralCopyF32Generic(a, x, r, scale) }

func spectralMirrorF32(a []float32, ld int) { spectralMirrorF32Generic(a, ld) }

func spectralRowF32(row, v, y, w []float32, skip int, tau float32) (diag, norm2 float32) {
	return spectralRowF32Generic(row, v, y, w, skip, tau)
}

func spectralReflectF32(c, v []float32, tau float32) { spectralReflectF32Generic(c, v, tau) }

func spectralUpdateF32(a []float32, ld, row, step, rows, col, end int, v, w, u, y []float32) {
	spectralUpdateF32Generic(a, ld, row, step, rows, col, end, v, w, u, y)
}

func spectralForwardF64(p *spectralProblem, k *resolventCoefficients, lo, hi int) {
	spectralForwardF64Generic(p, k, lo, hi)
}

func spectralBackwardF64(p *spectralProblem, k *resolventCoefficients, lo, hi int) {
	spectralBackwardF64Generic(p, k, lo, hi)
}
