//go:build amd64 && gc && !noasm

package kernels

import (
	"github.com/dpmf-go/dpmf/asm"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

func choleskySolveF32(a, b []float32, r int) int {
	if !cpu.HasAVX2 {
		return choleskySolveF32Generic(a, b, r)
	}
	ld := Stride(r)
	choleskyPad(a, b, r)
	step := choleskyFactorRows(ld)
	for from := 0; from < ld; from += step {
		to := min(from+step, ld)
		column := -1
		if cpu.HasAVX512 {
			column = asm.CholeskySolveRowsF32AVX512(&a[0], &b[0], ld, from, to)
		} else {
			column = asm.CholeskySolveRowsF32AVX2(&a[0], &b[0], ld, from, to)
		}
		if column >= 0 {
			return column
		}
	}
	choleskyBackward(a, b, r)
	return -1
}

func choleskyF32(a []float32, r int) int {
	if !cpu.HasAVX2 {
		return choleskyF32Generic(a, r)
	}
	ld := Stride(r)
	choleskyPad(a, nil, r)
	step := choleskyFactorRows(ld)
	for from := 0; from < ld; from += step {
		to := min(from+step, ld)
		column := -1
		if cpu.HasAVX512 {
			column = asm.CholeskyRowsF32AVX512(&a[0], ld, from, to)
		} else {
			column = asm.CholeskyRowsF32AVX2(&a[0], ld, from, to)
		}
		if column >= 0 {
			return column
		}
	}
	return -1
}

func choleskySolveFactoredF32(a, b []float32, r int) {
	if !cpu.HasAVX2 {
		choleskySolveFactoredF32Generic(a, b, r)
		return
	}
	ld := Stride(r)
	choleskyPad(a, b, r)
	step := choleskySolveRows(ld)
	for from := 0; from < ld; from += step {
		to := min(from+step, ld)
		if cpu.HasAVX512 {
			asm.CholeskyForwardF32AVX512(&a[0], &b[0], ld, from, to)
		} else {
			asm.CholeskyForwardF32AVX2(&a[0], &b[0], ld, from, to)
		}
	}
	choleskyBackward(a, b, r)
}

func choleskyBackward(a, b []float32, r int) {
	ld := Stride(r)
	clear(b[r:]) // an infinity in b has made NaN of the padding
	step := choleskySolveRows(ld)
	for to := ld; to > 0; to -= step {
		from := max(to-step, 0)
		if cpu.HasAVX512 {
			asm.CholeskyBackwardF32AVX512(&a[0], &b[0], ld, from, to)
		} else {
			asm.CholeskyBackwardF32AVX2(&a[0], &b[0], ld, from, to)
		}
	}
}

// choleskyPad extends a of order r, and b if there is one, to the order
// Stride(r) by the unit matrix and by zeros, which change no other element.
func choleskyPad(a, b []float32, r int) {
	ld := Stride(r)
	if r == ld {
		return
	}
	for i := range r {
		row := a[i*ld+r : i*ld+ld]
		for j := range row {
			row[j] = 0
		}
	}
	for i := r; i < ld; i++ {
		row := a[i*ld+i : i*ld+ld]
		clear(row)
		row[0] = 1
	}
	if b != nil {
		clear(b[r:])
	}
}

// choleskyFactorRows is the number of rows that one call may factor: the longest
// 16 rows take 8·ld² floating-point operations, and a call some tens of
// microseconds.
func choleskyFactorRows(ld int) int { return 16 * max(1, 1<<19/(ld*ld)) }

// choleskySolveRows is the number of rows for one call of a triangular solve.
func choleskySolveRows(ld int) int { return 16 * max(1, 1<<13/ld) }
