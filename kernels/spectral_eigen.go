package kernels

import "math"

// solveByEigenvectors solves by a full eigendecomposition in float64, for floors
// that float32 cannot resolve next to the largest elements. b / floor may leave the
// range of float32 before it is unscaled.
// It returns the number of eigenvalues below the floor.
func (p *spectralProblem) solveByEigenvectors() (below int) {
	r, z := p.r, p.matrix
	for i := range r {
		for j := i; j < r; j++ {
			v := float64(p.x[i*p.ld+j]) * float64(p.scale)
			z[i*r+j], z[j*r+i] = v, v
		}
	}
	p.loadRightHandSide()
	householderF64(z, p.diag, p.other)
	qlF64(z, p.diag, p.other)

	// Rows of z are eigenvectors; p.other becomes the coefficients of the result.
	for k := range r {
		dot := 0.0
		for i, v := range z[k*r : (k+1)*r] {
			dot += float64(v * float64(p.c[i]))
		}
		if p.diag[k] < p.floor {
			below++
		}
		p.other[k] = dot / max(p.diag[k], p.floor)
	}
	sum := p.diag // no longer needed
	clear(sum)
	for k, s := range p.other {
		for i, v := range z[k*r : (k+1)*r] {
			sum[i] += float64(s * v)
		}
	}
	for i, v := range sum {
		p.b[i] = float32(v * p.unscale)
	}
	return below
}

// householderF64 reduces the full symmetric matrix a (row-major, order len(d)) to
// tridiagonal form with diagonal d and off-diagonal e[0:n-1], and replaces a by
// Qᵀ, where a = Q·T·Qᵀ.
func householderF64(a, d, e []float64) {
	n := len(d)
	row := func(i int) []float64 { return a[i*n : (i+1)*n] }
	for k := 0; k < n-1; k++ {
		v := row(k)[k+1:]
		d[k] = row(k)[k]
		largest := 0.0
		for _, x := range v[min(1, len(v)):] {
			largest = max(largest, math.Abs(x))
		}
		if largest == 0 { // already tridiagonal here
			e[k] = v[0]
			clear(v)
			row(k)[k] = 0
			continue
		}
		// v = x - β·e₁, scaled to length √2, so that the reflection is I - v·vᵀ.
		largest = max(largest, math.Abs(v[0]))
		norm2 := 0.0
		for i := range v {
			v[i] /= largest
			norm2 += float64(v[i] * v[i])
		}
		norm := math.Sqrt(norm2)
		beta := -math.Copysign(norm, v[0])
		e[k] = beta * largest
		scale := 1 / math.Sqrt(norm2+float64(norm*math.Abs(v[0])))
		v[0] -= beta
		for i := range v {
			v[i] *= scale
		}
		row(k)[k] = 1 // a reflection is stored here

		// w = A·v - ½(vᵀAv)·v in the free part of e; A -= v·wᵀ + w·vᵀ.
		w := e[k+1 : n]
		half := 0.0
		for i := range v {
			s := 0.0
			for j, x := range row(k + 1 + i)[k+1:] {
				s += float64(x * v[j])
			}
			w[i] = s
			half += float64(s * v[i])
		}
		half *= 0.5
		for i := range v {
			w[i] -= float64(half * v[i])
		}
		for i := range v {
			for j, x := range row(k + 1 + i)[k+1:] {
				row(k + 1 + i)[k+1+j] = x - float64(float64(v[i]*w[j])+float64(w[i]*v[j]))
			}
		}
	}
	d[n-1] = row(n - 1)[n-1]
	e[n-1] = 0

	// Qᵀ = H(n-2)·…·H(0), built from the last reflection up: when H(k) joins, rows
	// and columns after k hold the product of the later ones.
	row(n - 1)[n-1] = 1
	for k := n - 2; k >= 0; k-- {
		v := row(k)[k+1:]
		if row(k)[k] != 0 {
			for i := k + 1; i < n; i++ {
				q := row(i)[k+1:]
				s := 0.0
				for j, x := range q {
					s += float64(x * v[j])
				}
				for j := range q {
					q[j] -= float64(s * v[j])
				}
			}
		}
		clear(row(k))
		row(k)[k] = 1
		for i := k + 1; i < n; i++ {
			row(i)[k] = 0
		}
	}
}

// qlF64 turns the tridiagonal matrix d, e into its eigenvalues d by the implicit QL
// method with Wilkinson's shift and applies its rotations to the rows of z, so that
// row k of z ends as the eigenvector of d[k]. e[len(d)-1] is scratch.
//
// Golub & Van Loan, Matrix Computations, section 8.3.5.
func qlF64(z, d, e []float64) {
	n := len(d)
	const epsilon = 0x1p-53
	for l := range n {
		for range 60 { // three or four do in practice
			m := l
			for m < n-1 && math.Abs(e[m]) > epsilon*(math.Abs(d[m])+math.Abs(d[m+1])) && math.Abs(e[m]) > 0x1p-900 {
				m++
			}
			if m == l {
				break
			}
			g := (d[l+1] - d[l]) / (2 * e[l])
			shift := e[l] / (g + math.Copysign(math.Hypot(g, 1), g))
			g = d[m] - d[l] + shift
			s, c, lower := 1.0, 1.0, 0.0
			for i := m - 1; i >= l; i-- {
				f, b := float64(s*e[i]), float64(c*e[i])
				h := math.Hypot(f, g)
				e[i+1] = h
				if h == 0 { // the matrix splits here
					d[i+1] -= lower
					e[m] = 0
					break
				}
				s, c = f/h, g/h
				g = d[i+1] - lower
				h = float64((d[i]-g)*s) + float64(2*c*b)
				lower = float64(s * h)
				d[i+1] = g + lower
				g = float64(c*h) - b
				upper, under := z[i*n:(i+1)*n], z[(i+1)*n:(i+2)*n]
				for k, u := range under {
					v := upper[k]
					under[k] = float64(s*v) + float64(c*u)
					upper[k] = float64(c*v) - float64(s*u)
				}
				if i == l {
					d[l] -= lower
					e[l] = g
					e[m] = 0
				}
			}
		}
	}
}
