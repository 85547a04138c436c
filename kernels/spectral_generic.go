package kernels

import "math"

// spectralMaxF32Generic returns the largest bit pattern, without sign, in the
// upper triangle of X: the bits of max|X[i][j]|, or at least infBits if an element
// is NaN or infinite.
func spectralMaxF32Generic(x []float32, r int) uint32 {
	ld := Stride(r)
	m := uint32(0)
	for i := range r {
		for _, v := range x[i*ld+i : i*ld+r] {
			m = max(m, math.Float32bits(v)&^signBit)
		}
	}
	return m
}

// spectralCopyF32Generic sets a, in each of its ld rows from the block of 16
// columns with the diagonal on, to scale·X in the upper triangle and to +0 elsewhere.
func spectralCopyF32Generic(a, x []float32, r int, scale float32) {
	ld := Stride(r)
	for i := range ld {
		for j := i &^ (lane - 1); j < ld; j++ {
			v := float32(0)
			if i <= j && j < r {
				v = x[i*ld+j] * scale
			}
			a[i*ld+j] = v
		}
	}
}

// spectralMirrorF32Generic copies the upper triangle of the ld×ld matrix a onto
// the lower one. The blocks of 16×16 on the diagonal must be +0 below it.
func spectralMirrorF32Generic(a []float32, ld int) {
	for i := range ld {
		for j := range i {
			a[i*ld+j] = a[j*ld+i]
		}
	}
}

// spectralLanes is the number of virtual lanes of the sums in spectralRowF32 and
// spectralReflectF32.
const spectralLanes = 32

// spectralSum adds lanes by halving.
func spectralSum(s *[spectralLanes]float32) float32 {
	for n := spectralLanes / 2; n > 0; n /= 2 {
		for i := range n {
			s[i] += s[i+n]
		}
	}
	return s[0]
}

// spectralRowF32Generic finishes one row of the tridiagonalization. All slices
// start at the same column, have a multiple of 16 elements, and their elements before
// skip < 16 count as zero. y is the product of the matrix, before the update by
// v, with v; v belongs to I - tau·v·vᵀ. Sums have L = 32 lanes, counted from the
// slices' start:
//
//	s = Σ v[j]·y[j] over j ≥ skip, lane = fma(v[j], y[j], lane)
//	h = (0.5·tau)·(tau·s)
//	w[j] = fma(-h, v[j], tau·y[j])                           for j ≥ skip, else +0
//	row[j] = fma(-v[skip], w[j], fma(-w[skip], v[j], row[j]))    for j ≥ skip
//	diag = row[skip];  row[j] = +0 for j ≤ skip
//	norm2 = Σ row[j]² over j > skip, lane = fma(row[j], row[j], lane)
//	y[j] = +0
//
// No two may overlap, except that v and y may be the same if all are zero.
func spectralRowF32Generic(row, v, y, w []float32, skip int, tau float32) (diag, norm2 float32) {
	var s [spectralLanes]float32
	for j := skip; j < len(row); j++ {
		s[j%spectralLanes] = fma32(v[j], y[j], s[j%spectralLanes])
	}
	h := float32(0.5*tau) * float32(tau*spectralSum(&s))
	for j := range row {
		w[j] = 0
		if j >= skip {
			w[j] = fma32(-h, v[j], float32(tau*y[j]))
		}
	}
	for j := skip; j < len(row); j++ {
		row[j] = fma32(-v[skip], w[j], fma32(-w[skip], v[j], row[j]))
	}
	diag = row[skip]
	clear(row[:skip+1])
	s = [spectralLanes]float32{}
	for j := skip + 1; j < len(row); j++ {
		s[j%spectralLanes] = fma32(row[j], row[j], s[j%spectralLanes])
	}
	clear(y[:len(row)])
	return diag, spectralSum(&s)
}

// spectralReflectF32Generic applies I - tau·v·vᵀ to c, which has the length of v, a
// multiple of 16. With L = 32 lanes:
//
//	g = tau·Σ v[j]·c[j], lane = fma(v[j], c[j], lane)
//	c[j] = fma(-g, v[j], c[j])
func spectralReflectF32Generic(c, v []float32, tau float32) {
	var s [spectralLanes]float32
	for j, x := range v {
		s[j%spectralLanes] = fma32(x, c[j], s[j%spectralLanes])
	}
	g := tau * spectralSum(&s)
	for j, x := range v {
		c[j] = fma32(-g, x, c[j])
	}
}

// spectralUpdateF32Generic updates columns col to end-1 (multiples of 16) of the rows
// row, row+step, … of the matrix a, whose rows are ld apart, and multiplies them by
// the next vector; step is 1 or -1:
//
//	for i = row, row+step, … (rows of them), col ≤ j < end:
//	    a[i][j] = fma(-v[i], w[j], fma(-w[i], v[j], a[i][j]))
//	    y[j] = fma(a[i][j], u[i], y[j])
func spectralUpdateF32Generic(a []float32, ld, row, step, rows, col, end int, v, w, u, y []float32) {
	for i := row; i != row+step*rows; i += step {
		vi, wi, ui := -v[i], -w[i], u[i]
		for j := col; j < end; j++ {
			x := fma32(vi, w[j], fma32(wi, v[j], a[i*ld+j]))
			a[i*ld+j] = x
			y[j] = fma32(x, ui, y[j])
		}
	}
}

// resolventState is the number of float64 that spectralForwardF64 and
// spectralBackwardF64 carry from one call to the next.
const resolventState = 4 * poles

// spectralForwardF64Generic eliminates rows lo to hi-1 of (t - i·pole_j)·x = rhs for all
// poles. Per row and pole, with the state s, f (complex, zero before row 0):
//
//	q  = (alpha - Re s) - i·(pole + Im s)         the pivot; ν is minus its imaginary part
//	inv = 1/fma(ν, ν, Re q·Re q)
//	p  = Re q·inv + i·ν·inv                       1/q
//	z  = p·(rhs - f):  Re = fma(Im f, Im p, Re y·Re p), Im = fma(-Im f, Re p, Re y·Im p), Re y = rhs - Re f
//	factors = beta·p, z
//	s  = (beta2·Re q)·inv + i·(beta2·ν)·inv;  f = beta·z
func spectralForwardF64Generic(p *spectralProblem, k *resolventCoefficients, lo, hi int) {
	state := p.state[:resolventState]
	for i := lo; i < hi; i++ {
		alpha, beta, beta2, rhs := p.alpha[i], p.beta[i], p.beta2[i], p.rhs[i]
		factors := p.factors[4*poles*i : 4*poles*(i+1)]
		for j := range poles {
			sRe, sIm, fRe, fIm := state[j], state[poles+j], state[2*poles+j], state[3*poles+j]
			qRe, nu := alpha-sRe, k.pole[j]+sIm
			inv := 1 / math.FMA(nu, nu, qRe*qRe)
			pRe, pIm := qRe*inv, nu*inv
			yRe := rhs - fRe
			zRe := math.FMA(fIm, pIm, yRe*pRe)
			zIm := math.FMA(-fIm, pRe, yRe*pIm)
			factors[j], factors[poles+j], factors[2*poles+j], factors[3*poles+j] = beta*pRe, beta*pIm, zRe, zIm
			state[j] = float64(float64(beta2*qRe) * inv)
			state[poles+j] = float64(float64(beta2*nu) * inv)
			state[2*poles+j] = float64(beta * zRe)
			state[3*poles+j] = float64(beta * zIm)
		}
	}
}

// spectralBackwardF64Generic substitutes backwards through rows hi-1 to lo and replaces
// rhs by the sum over the poles of Re(rho·x). Per row and pole, x the state:
//
//	Re x = fma(Im l, Im x, fma(-Re l, Re x, Re z));  Im x = fma(-Im l, Re x, fma(-Re l, Im x, Im z))
//	t[j] = fma(-Im rho, Im x, Re rho·Re x)
//
// and t is summed as ((t[j] + t[j+8]) + t[j+16]) + t[j+24] for j < 8, then by halving.
func spectralBackwardF64Generic(p *spectralProblem, k *resolventCoefficients, lo, hi int) {
	state := p.state[:2*poles]
	for i := hi - 1; i >= lo; i-- {
		factors := p.factors[4*poles*i : 4*poles*(i+1)]
		var t [poles]float64
		for j := range poles {
			lRe, lIm, zRe, zIm := factors[j], factors[poles+j], factors[2*poles+j], factors[3*poles+j]
			xRe, xIm := state[j], state[poles+j]
			state[j] = math.FMA(lIm, xIm, math.FMA(-lRe, xRe, zRe))
			state[poles+j] = math.FMA(-lIm, xRe, math.FMA(-lRe, xIm, zIm))
			t[j] = math.FMA(-k.rho[poles+j], state[poles+j], k.rho[j]*state[j])
		}
		for j := range 8 {
			t[j] = ((t[j] + t[j+8]) + t[j+16]) + t[j+24]
		}
		for n := 4; n > 0; n /= 2 {
			for j := range n {
				t[j] += t[j+n]
			}
		}
		p.rhs[i] = t[0]
	}
}
