package kernels

import (
	"fmt"
	"math"
	"unsafe"
)

// SpectralSolveF32 replaces b by f(X)·b, where f maps every eigenvalue x of the
// symmetric matrix X of order r ≥ 1 (package comment: symmetric matrices) to
// 1/max(x, floor). It is the solution of the system whose matrix is X with all
// eigenvalues below floor raised to floor, the projection that a noisy normal
// matrix needs:
//
//	s = the power of two that brings the largest |X[i][j]| into [½, 1); X = s·X, floor = s·floor
//	t = likewise for the largest |b[i]|;                              b = t·b
//	if floor > r·max|X|: return b/floor                    every eigenvalue is below
//	if Cholesky of X - max(floor, 2⁻¹⁶)·I succeeds: return X⁻¹·b      none is below
//	if floor < 2⁻¹⁶: return f(X)·b by an eigendecomposition in float64
//	X = Q·T·Qᵀ with T tridiagonal, by Householder reflections; c = Qᵀ·b
//	c = f(T)·c, by a rational function of T with 32 pairs of poles
//	return Q·c
//
// all multiplied by s/t at the end. The files spectral_tridiagonal.go and
// spectral_resolvent.go give the order of operations of the last two steps.
//
// The cost does not depend on the number of eigenvalues below floor, unless it is
// zero. The float64 step computes eigenvectors and takes about 70 times as long; only
// a floor below 2⁻¹⁶ of the largest element, with an X that is not
// clearly positive definite, leads there.
//
// It returns the number of eigenvalues below floor: 0 if the Cholesky
// factorization succeeded, otherwise by a Sturm count of T. An eigenvalue within
// rounding of floor (a few 2⁻²⁴·‖X‖) may be counted on either side; f is
// continuous there, so the solution does not depend on it.
//
// Accuracy: ‖error‖ ≤ 2⁻²⁴·(10 + √r)·(1 + ‖X‖/floor)·‖b‖/floor, in Euclidean and
// spectral norms. X and floor are used as given, so ‖X‖/floor is the condition number
// of the problem whenever an eigenvalue reaches the floor.
//
// x and work have at least Stride(r)² and SpectralWorkLen(r) elements, b at least
// Stride(r); they must not overlap. x is not changed; work holds nothing that
// matters before or after. The error says that floor is not a positive finite
// number, or which element of X or b is NaN or infinite; b is then unchanged.
func SpectralSolveF32(x, b []float32, r int, floor float32, work []float32) (below int, err error) {
	x, b, work = spectralArgs(x, b, r, work)
	if !(floor > 0) || math.IsInf(float64(floor), 1) {
		return 0, fmt.Errorf("kernels: SpectralSolveF32: floor is %v, it must be positive and finite", floor)
	}
	maxX := spectralMaxF32(x, r)
	maxB := uint32(0)
	for _, v := range b[:r] {
		maxB = max(maxB, math.Float32bits(v)&^signBit)
	}
	if maxX >= infBits || maxB >= infBits {
		return 0, spectralNotFinite(x, b, r)
	}

	p := spectralProblem{r: r, ld: Stride(r), x: x, b: b[:r]}
	p.layout(work)
	up := scaleExponent(maxX)
	p.scale = math.Float32frombits(uint32(127+up) << 23)
	p.floor = math.Ldexp(float64(floor), up)
	upB := scaleExponent(maxB)
	p.scaleB = math.Float32frombits(uint32(127+upB) << 23)
	p.unscale = math.Ldexp(1, up-upB)

	switch {
	case p.floor > float64(r)*float64(math.Float32frombits(maxX))*float64(p.scale):
		for i, v := range p.b {
			p.b[i] = float32(float64(v) / float64(floor))
		}
		return r, nil
	case p.solveAboveFloor():
		return 0, nil
	case p.floor < smallestFloor:
		return p.solveByEigenvectors(), nil
	default:
		return p.solveByTridiagonal(), nil
	}
}

// SpectralWorkLen is the number of float32 that SpectralSolveF32 needs as scratch
// for a matrix of order r.
func SpectralWorkLen(r int) int {
	ld := Stride(r)
	fast := ld*ld + tridiagonalVectors*ld + 2*(resolventVectors+4*poles)*ld + 2*resolventState
	slow := tridiagonalVectors*ld + 2*(r*r+2*r)
	return alignment - 1 + max(fast, slow)
}

const (
	signBit = 1 << 31
	infBits = 0x7f800000 // of +Inf; larger patterns without sign are NaN

	// smallestFloor, relative to the largest |X[i][j]|, divides the float32 path
	// from the float64 one: below it ‖X‖/floor times the rounding error of float32
	// leaves too few digits.
	smallestFloor = 0x1p-16

	// alignment in float32 of the matrix inside work: a cache line, so that no row
	// of whole vectors crosses one more line than it must.
	alignment = 16

	tridiagonalVectors = 6 // c, d, e, tau, w, y
	resolventVectors   = 4 // alpha, beta, beta2, rhs, in float64
)

// spectralProblem is one call of SpectralSolveF32: the scaled problem and its
// pieces of the caller's scratch.
type spectralProblem struct {
	r, ld int
	x     []float32 // the caller's X
	b     []float32 // the caller's right-hand side
	scale float32   // power of two: the matrix worked on is scale·X
	floor float64   // floor of the scaled matrix

	scaleB  float32 // power of two: the right-hand side worked on is scaleB·b
	unscale float64 // power of two: from the solution of the scaled problem to that of the caller's

	a                   []float32 // ld×ld: scale·X, then the Householder vectors
	c                   []float32 // right-hand side, scaled; finally the solution
	d, e                []float32 // diagonal and off-diagonal of T
	tau, w, y           []float32
	alpha, beta         []float64 // (T - floor·I)/m: diagonal and off-diagonal
	beta2, rhs          []float64 // beta squared, c
	factors             []float64 // 4·poles per row of T
	state               []float64
	matrix, diag, other []float64 // the float64 path's r×r matrix and vectors, over a
}

// layout cuts work into its pieces.
func (p *spectralProblem) layout(work []float32) {
	if rest := uintptr(unsafe.Pointer(&work[0])) / 4 % alignment; rest != 0 {
		work = work[alignment-rest:]
	}
	take := func(n int) []float32 {
		v := work[:n:n]
		work = work[n:]
		return v
	}
	ld := p.ld
	p.c, p.d, p.e, p.tau, p.w, p.y = take(ld), take(ld), take(ld), take(ld), take(ld), take(ld)

	doubles := unsafe.Slice((*float64)(unsafe.Pointer(&work[0])), len(work)/2)
	takeDoubles := func(n int) []float64 {
		v := doubles[:n:n]
		doubles = doubles[n:]
		return v
	}
	r := p.r
	p.matrix, p.diag, p.other = doubles[:r*r], doubles[r*r:r*r+r], doubles[r*r+r:r*r+2*r]
	p.a = take(ld * ld)
	doubles = doubles[ld*ld/2:]
	p.alpha, p.beta, p.beta2, p.rhs = takeDoubles(ld), takeDoubles(ld), takeDoubles(ld), takeDoubles(ld)
	p.factors = takeDoubles(4 * poles * ld)
	p.state = takeDoubles(resolventState)
}

// solveAboveFloor handles the case that every eigenvalue exceeds the floor: then
// f(X) is the inverse. It reports whether that is the case.
func (p *spectralProblem) solveAboveFloor() bool {
	spectralCopyF32(p.a, p.x, p.r, p.scale)
	shift := max(float32(p.floor), smallestFloor)
	for i := range p.r {
		p.a[i*p.ld+i] -= shift
		if !(p.a[i*p.ld+i] > 0) {
			return false
		}
	}
	if CholeskyF32(p.a, p.r) >= 0 {
		return false
	}
	spectralCopyF32(p.a, p.x, p.r, p.scale)
	p.loadRightHandSide()
	if CholeskySolveF32(p.a, p.c, p.r) >= 0 {
		return false
	}
	p.storeSolution()
	return true
}

// loadRightHandSide sets c to the scaled b.
func (p *spectralProblem) loadRightHandSide() {
	for i, v := range p.b {
		p.c[i] = v * p.scaleB
	}
	clear(p.c[p.r:])
}

// solveByTridiagonal handles the general case.
func (p *spectralProblem) solveByTridiagonal() (below int) {
	spectralCopyF32(p.a, p.x, p.r, p.scale)
	spectralMirrorF32(p.a, p.ld)
	p.loadRightHandSide()
	p.tridiagonalize()
	below = p.applyToTridiagonal()
	p.applyReflections()
	p.storeSolution()
	return below
}

// storeSolution sets the caller's b to the unscaled c.
func (p *spectralProblem) storeSolution() {
	for i := range p.b {
		p.b[i] = float32(float64(p.c[i]) * p.unscale)
	}
}

// scaleExponent is the k for which 2^k brings the float32 with the bits given into
// [½, 1), as far as 2^k is a normal float32.
func scaleExponent(bits uint32) int {
	if bits == 0 {
		return 0
	}
	_, e := math.Frexp(float64(math.Float32frombits(bits)))
	return max(-126, min(127, -e))
}

// spectralArgs checks the sizes and returns the parts in use.
func spectralArgs(x, b []float32, r int, work []float32) (matrix, vector, scratch []float32) {
	if r < 1 {
		panic(fmt.Sprintf("kernels: SpectralSolveF32: the order is %d, it must be at least 1", r))
	}
	ld := Stride(r)
	if len(x) < ld*ld {
		panic(fmt.Sprintf("kernels: SpectralSolveF32: x has %d elements, order %d needs %d", len(x), r, ld*ld))
	}
	if len(b) < ld {
		panic(fmt.Sprintf("kernels: SpectralSolveF32: b has %d elements, order %d needs %d", len(b), r, ld))
	}
	if n := SpectralWorkLen(r); len(work) < n {
		panic(fmt.Sprintf("kernels: SpectralSolveF32: work has %d elements, order %d needs %d", len(work), r, n))
	}
	return x[:ld*ld], b[:ld], work[:SpectralWorkLen(r)]
}

// spectralNotFinite names the first element that is NaN or infinite.
func spectralNotFinite(x, b []float32, r int) error {
	ld := Stride(r)
	for i := range r {
		for j := i; j < r; j++ {
			if v := x[i*ld+j]; math.Float32bits(v)&^signBit >= infBits {
				return fmt.Errorf("kernels: SpectralSolveF32: element (%d, %d) of X is %v", i, j, v)
			}
		}
	}
	for i, v := range b[:r] {
		if math.Float32bits(v)&^signBit >= infBits {
			return fmt.Errorf("kernels: SpectralSolveF32: element %d of b is %v", i, v)
		}
	}
	return nil
}
