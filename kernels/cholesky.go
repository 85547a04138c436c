package kernels

import "fmt"

// NotPositiveDefiniteError reports the column at which a Cholesky factorization
// met a pivot that is not greater than zero.
type NotPositiveDefiniteError struct {
	Column int // 0-based
}

func (e *NotPositiveDefiniteError) Error() string {
	return fmt.Sprintf("the matrix is not positive definite at column %d: add a larger ridge, or remove the directions without data", e.Column)
}

// NotPositiveDefinite turns the column that CholeskyF32 or CholeskySolveF32
// returned into an error: nil for -1, else a *NotPositiveDefiniteError.
func NotPositiveDefinite(column int) error {
	if column < 0 {
		return nil
	}
	return &NotPositiveDefiniteError{Column: column}
}

// CholeskySolveF32 solves A·x = b for a symmetric positive definite A of order
// r ≥ 1 (package comment: symmetric matrices). a holds A, of which only the
// upper triangle is read, and becomes the factor U with A = UᵀU; b becomes x:
//
//	for i < r:
//	    for k < i, j ≥ i: A[i][j] = fma(-U[k][i], U[k][j], A[i][j])   k ascending
//	    for k < i:        b[i]    = fma(-U[k][i], y[k], b[i])         k ascending
//	    if !(A[i][i] > 0): return i
//	    U[i][i] = sqrt(A[i][i]);  inv = 1/U[i][i]
//	    for j > i: U[i][j] = A[i][j]·inv
//	    y[i] = b[i]·inv
//	CholeskySolveFactoredF32's second half, which turns y into x
//
// It returns -1, or the column (0-based) at which A is not positive definite: the
// first whose pivot is not greater than zero, or is NaN. a and b then hold
// unspecified values. NotPositiveDefinite makes an error of it.
//
// NaN anywhere in A's upper triangle ends in a pivot that fails, and so does an
// infinity off the diagonal. A diagonal element of +Inf is a legal pivot; it fixes
// its x[i] at zero as long as the rest is finite. NaN and Inf in b propagate into x as in
// IEEE arithmetic. a has at least Stride(r)² elements, b at least Stride(r), and
// they must not overlap. One call of the assembly stays below 100 µs up to r of
// about 800; larger orders work.
func CholeskySolveF32(a, b []float32, r int) (column int) {
	a, b = choleskyArgs("CholeskySolveF32", a, b, r)
	return choleskySolveF32(a, b, r)
}

// CholeskyF32 factors A = UᵀU in place, without a right-hand side: it leaves in a
// the U that CholeskySolveF32 would, bit for bit, and returns the same column.
func CholeskyF32(a []float32, r int) (column int) {
	a = choleskyMatrix("CholeskyF32", a, r)
	return choleskyF32(a, r)
}

// CholeskySolveFactoredF32 solves UᵀU·x = b with the factor U that CholeskyF32 or
// CholeskySolveF32 left in a; b becomes x. The bits are those CholeskySolveF32
// gives. With L = 16 virtual lanes and blocks of 16 rows:
//
//	inv[i] = 1/U[i][i]
//	for i < r:
//	    for k < i: b[i] = fma(-U[k][i], y[k], b[i])   k ascending
//	    y[i] = b[i]·inv[i]
//	for i = r-1 … 0, with e the end of its block (the multiple of 16 above i):
//	    sum  = Σ U[i][j]·x[j] over e ≤ j < r: lane j mod 16 takes its j in
//	           descending order, lane = fma(U[i][j], x[j], lane), from zero
//	    z    = y[i] - sum
//	    for j = min(e, r)-1 … i+1: z = fma(-U[i][j], x[j], z)
//	    x[i] = z·inv[i]
//
// For a well-posed system the relative error of x in the Euclidean norm stays below
// (r+1)·2⁻²⁴·κ₂(A), which the tests check against float64.
//
// a keeps U (its scratch part may change). The sizes are those of
// CholeskySolveF32. A factor with zeros or NaN on its diagonal gives infinities or
// NaN as IEEE arithmetic does.
func CholeskySolveFactoredF32(a, b []float32, r int) {
	a, b = choleskyArgs("CholeskySolveFactoredF32", a, b, r)
	choleskySolveFactoredF32(a, b, r)
}

// choleskyMatrix checks the order and returns the Stride(r)² elements in use.
func choleskyMatrix(name string, a []float32, r int) []float32 {
	if r < 1 {
		panic(fmt.Sprintf("kernels: %s: the order is %d, it must be at least 1", name, r))
	}
	size := Stride(r) * Stride(r)
	if len(a) < size {
		panic(fmt.Sprintf("kernels: %s: a has %d elements, order %d needs %d", name, len(a), r, size))
	}
	return a[:size]
}

// choleskyArgs checks the sizes and returns the parts in use.
func choleskyArgs(name string, a, b []float32, r int) (matrix, vector []float32) {
	a = choleskyMatrix(name, a, r)
	if len(b) < Stride(r) {
		panic(fmt.Sprintf("kernels: %s: b has %d elements, order %d needs %d", name, len(b), r, Stride(r)))
	}
	return a, b[:Stride(r)]
}
