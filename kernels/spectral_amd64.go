//go:build amd64 && gc && !noasm

package kernels

import (
	"github.com/dpmf-go/dpmf/asm"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

// spectralRows bounds the work of one pass over a triangle: so many elements
// are read in some tens of microseconds even from memory.
func spectralRows(ld int) int { return max(lane, (1<<16)/ld&^(lane-1)) }

func spectralMaxF32(x []float32, r int) uint32 {
	if !cpu.HasAVX2 {
		return spectralMaxF32Generic(x, r)
	}
	ld, m := Stride(r), uint32(0)
	for i, rows := 0, spectralRows(ld); i < r; i += rows {
		if end := min(i+rows, r); cpu.HasAVX512 {
			m = max(m, asm.SpectralMaxF32AVX512(&x[i*ld], ld, i, end, r))
		} else {
			m = max(m, asm.SpectralMaxF32AVX2(&x[i*ld], ld, i, end, r))
		}
	}
	return m
}

func spectralCopyF32(a, x []float32, r int, scale float32) {
	if !cpu.HasAVX2 {
		spectralCopyF32Generic(a, x, r, scale)
		return
	}
	ld := Stride(r)
	for i, rows := 0, spectralRows(ld); i < ld; i += rows {
		if end := min(i+rows, ld); cpu.HasAVX512 {
			asm.SpectralCopyF32AVX512(&a[i*ld], &x[i*ld], ld, i, end, r, scale)
		} else {
			asm.SpectralCopyF32AVX2(&a[i*ld], &x[i*ld], ld, i, end, r, scale)
		}
	}
}

func spectralMirrorF32(a []float32, ld int) {
	if !cpu.HasAVX2 {
		spectralMirrorF32Generic(a, ld)
		return
	}
	for i, rows := 0, spectralRows(ld); i < ld; i += rows {
		if n := min(rows, ld-i); cpu.HasAVX512 {
			asm.SpectralMirrorF32AVX512(&a[0], ld, i, n)
		} else {
			asm.SpectralMirrorF32AVX2(&a[0], ld, i, n)
		}
	}
}

func spectralRowF32(row, v, y, w []float32, skip int, tau float32) (diag, norm2 float32) {
	switch {
	case cpu.HasAVX512:
		return asm.SpectralRowF32AVX512(&row[0], &v[0], &y[0], &w[0], len(row), skip, tau)
	case cpu.HasAVX2:
		return asm.SpectralRowF32AVX2(&row[0], &v[0], &y[0], &w[0], len(row), skip, tau)
	default:
		return spectralRowF32Generic(row, v, y, w, skip, tau)
	}
}

func spectralReflectF32(c, v []float32, tau float32) {
	switch {
	case cpu.HasAVX512:
		asm.SpectralReflectF32AVX512(&c[0], &v[0], len(v), tau)
	case cpu.HasAVX2:
		asm.SpectralReflectF32AVX2(&c[0], &v[0], len(v), tau)
	default:
		spectralReflectF32Generic(c, v, tau)
	}
}

func spectralUpdateF32(a []float32, ld, row, step, rows, col, end int, v, w, u, y []float32) {
	switch {
	case cpu.HasAVX512:
		asm.SpectralUpdateF32AVX512(&a[row*ld+col], step*ld, step, step*rows, end-col, &v[col], &w[col], &y[col], &v[row], &w[row], &u[row])
	case cpu.HasAVX2:
		asm.SpectralUpdateF32AVX2(&a[row*ld+col], step*ld, step, step*rows, end-col, &v[col], &w[col], &y[col], &v[row], &w[row], &u[row])
	default:
		spectralUpdateF32Generic(a, ld, row, step, rows, col, end, v, w, u, y)
	}
}

func spectralForwardF64(p *spectralProblem, k *resolventCoefficients, lo, hi int) {
	factors := p.factors[4*poles*lo : 4*poles*hi]
	switch {
	case cpu.HasAVX512:
		asm.SpectralForwardF64AVX512(&p.alpha[lo], &p.beta[lo], &p.beta2[lo], &p.rhs[lo], hi-lo, &factors[0], &k.pole[0], &p.state[0])
	case cpu.HasAVX2:
		for j := 0; j < poles; j += polesAVX2 {
			asm.SpectralForwardF64AVX2(&p.alpha[lo], &p.beta[lo], &p.beta2[lo], &p.rhs[lo], hi-lo, &factors[j], &k.pole[j], &p.state[j])
		}
	default:
		spectralForwardF64Generic(p, k, lo, hi)
	}
}

func spectralBackwardF64(p *spectralProblem, k *resolventCoefficients, lo, hi int) {
	factors := p.factors[4*poles*lo : 4*poles*hi]
	last := 4 * poles * (hi - lo - 1)
	switch {
	case cpu.HasAVX512:
		asm.SpectralBackwardF64AVX512(&p.rhs[hi-1], hi-lo, &factors[last], &k.rho[0], &p.state[0])
	case cpu.HasAVX2:
		for j := 0; j < poles; j += polesAVX2 {
			asm.SpectralBackwardF64AVX2(hi-lo, &factors[last+j], &k.rho[j], &p.state[j])
		}
		asm.SpectralSumF64AVX2(&p.rhs[lo], hi-lo, &factors[0])
	default:
		spectralBackwardF64Generic(p, k, lo, hi)
	}
}

// polesAVX2 is the number of poles whose state fits AVX2's registers.
const polesAVX2 = 8
