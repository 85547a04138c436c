package kernels

import "math"

// smallestNorm2 is the squared length below which the rest of a row counts as
// zero. Relative to a matrix whose largest element is near 1 the error is far
// below rounding, and above it neither the square nor its inverse leaves the
// normal range.
const smallestNorm2 = 0x1p-90

// tridiagonalize reduces the full symmetric matrix in p.a to T = QᵀAQ with
// diagonal d and off-diagonal e, Q = H(0)·H(1)·…·H(r-3), H(i) = I - tau[i]·v(i)·v(i)ᵀ,
// and replaces c by Qᵀc. Row i of p.a ends as v(i), whose first i+1 elements are
// zero. The matrix is read and written once per reflection: the update by one
// reflection and the product with the next vector happen together.
//
//	v = w = y = 0
//	for i < r-1:
//	    finish row i (spectralRowF32): w from y = A·v and v; y = 0; row i updated; d[i]; norm² of the rest of it
//	    choose the reflection H(i) that maps the rest of row i to e[i]
//	    c = H(i)·c (spectralReflectF32)
//	    rows below i updated by v, w; y = their product with v(i) (spectralUpdateF32)
//
// Golub & Van Loan, Matrix Computations, section 8.3.1.
func (p *spectralProblem) tridiagonalize() {
	r, ld := p.r, p.ld
	clear(p.y)
	clear(p.w)
	v, vTau := p.y, float32(0) // no reflection before the first row
	for i := 0; i < r-1; i++ {
		start := i &^ (lane - 1)
		row := p.a[i*ld+start : (i+1)*ld]
		diag, norm2 := spectralRowF32(row, v[start:], p.y[start:], p.w[start:], i-start, vTau)
		p.d[i] = diag
		if i == 0 {
			v = p.w // zero as well, and y is about to be written
		}
		next := &p.a[i*ld+i+1]
		if i == r-2 {
			p.e[i] = *next
			break
		}

		p.e[i], p.tau[i] = 0, 0
		if norm2 >= smallestNorm2 {
			norm := float32(math.Sqrt(float64(norm2)))
			first := *next
			p.tau[i] = 1 / (norm2 + float32(norm*float32(math.Abs(float64(first)))))
			if first >= 0 {
				norm = -norm
			}
			p.e[i] = norm
			*next = first - norm
		} else {
			clear(row)
		}

		start = (i + 1) &^ (lane - 1)
		u := p.a[i*ld : (i+1)*ld]
		if p.tau[i] != 0 {
			spectralReflectF32(p.c[start:], u[start:], p.tau[i])
		}
		p.update(i+1, start, v, u)
		v, vTau = u, p.tau[i]
	}

	last := r - 1
	p.d[last] = fma32(-v[last], p.w[last], fma32(-p.w[last], v[last], p.a[last*ld+last]))
	p.e[last] = 0
}

// update runs spectralUpdateF32 over rows first to r-1 and columns from start, in
// pieces that bound one call. Every other reflection goes through the rows
// backwards: it then starts with what the one before left in the cache.
func (p *spectralProblem) update(first, start int, v, u []float32) {
	backwards := first%2 == 0
	for col := start; col < p.ld; col += updateColumns {
		end := min(col+updateColumns, p.ld)
		for done := 0; done < p.r-first; done += updateRows {
			rows := min(updateRows, p.r-first-done)
			row, step := first+done, 1
			if backwards {
				row, step = p.r-1-done, -1
			}
			spectralUpdateF32(p.a, p.ld, row, step, rows, col, end, v, p.w, u, p.y)
		}
	}
}

const (
	updateColumns = 128 // what AVX-512 holds in registers
	updateRows    = 256
)

// applyReflections replaces c by Qc.
func (p *spectralProblem) applyReflections() {
	for i := p.r - 3; i >= 0; i-- {
		if p.tau[i] != 0 {
			start := (i + 1) &^ (lane - 1)
			spectralReflectF32(p.c[start:], p.a[i*p.ld+start:(i+1)*p.ld], p.tau[i])
		}
	}
}
