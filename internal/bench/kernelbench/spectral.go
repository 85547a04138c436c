package kernelbench

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/dpmf-go/dpmf/kernels"
)

var spectralMicros = map[int]float64{64: 42, 128: 170}

// spectralFloor is the ridge below which eigenvalues are raised.
const spectralFloor = 1

// spectralCase solves with a matrix of which a given percentage of the eigenvalues lie below the floor, half of those
// below zero, as noise leaves the normal equations of an item with few ratings. Useful operations are those of the
// tridiagonal reduction and of applying its reflections to one vector.
func spectralCase(percent int) func(r int) benchCase {
	return func(r int) benchCase {
		c := benchCase{
			kernel: "SpectralSolveF32", size: fmt.Sprintf("%s, %d%% below", rankSize(r), percent), unit: "µs", limit: "fma",
			floor:   floor{avx2Share: .5},
			prepare: func(e *env) (*subject, error) { return spectralSubject(e, r, percent) },
		}
		if percent == 8 {
			c.floor.micros = spectralMicros[r]
		}
		return c
	}
}

func spectralSubject(e *env, r, percent int) (*subject, error) {
	const batch = 16
	stride := kernels.Stride(r)
	below := max(1, r*percent/100)
	wide := indefinite(e, r, below)
	matrix := make([]float32, stride*stride)
	for i := range r {
		for j := i; j < r; j++ {
			matrix[i*stride+j] = float32(wide.At(i, j))
		}
	}
	rhs := normal(e.rng(7), stride)
	work := make([]float32, kernels.SpectralWorkLen(r))
	b := make([]float32, batch*stride)
	restore := func() {
		for k := range batch {
			copy(b[k*stride:], rhs)
		}
	}
	restore()
	if found, err := kernels.SpectralSolveF32(matrix, b[:stride], r, spectralFloor, work); err != nil || found != below {
		return nil, fmt.Errorf("the test matrix of order %d has %d eigenvalues below the floor, want %d (%v)", r, found, below, err)
	}
	right := mat.NewVecDense(r, nil)
	for i := range r {
		right.SetVec(i, float64(rhs[i]))
	}
	cube := float64(r) * float64(r) * float64(r)
	return &subject{
		work: 4*cube/3 + 4*float64(r)*float64(r),
		run: restored(batch, restore, func(k int) {
			if _, err := kernels.SpectralSolveF32(matrix, b[k*stride:][:stride], r, spectralFloor, work); err != nil {
				panic(err)
			}
		}),
		library: "gonum EigenSym f64",
		other:   together(eigenSolve(wide, right)),
	}, nil
}

// eigenSolve does the same by the full eigendecomposition.
func eigenSolve(wide *mat.SymDense, right *mat.VecDense) func() {
	r := wide.SymmetricDim()
	var vectors mat.Dense
	values := make([]float64, r)
	coefficients, x := mat.NewVecDense(r, nil), mat.NewVecDense(r, nil)
	return func() {
		var eigen mat.EigenSym
		if !eigen.Factorize(wide, true) {
			panic("kernelbench: gonum cannot decompose a symmetric matrix")
		}
		eigen.Values(values)
		eigen.VectorsTo(&vectors)
		coefficients.MulVec(vectors.T(), right)
		for i, v := range values {
			coefficients.SetVec(i, coefficients.AtVec(i)/max(v, spectralFloor))
		}
		x.MulVec(&vectors, coefficients)
	}
}

// indefinite is Q·diag(λ)·Qᵀ with random orthogonal Q: below eigenvalues from -1 to 1 times the floor, the others from 2
// to 100 times it, evenly in the logarithm.
func indefinite(e *env, r, below int) *mat.SymDense {
	rng := e.rng(8)
	noise := mat.NewDense(r, r, nil)
	for i := range r {
		for j := range r {
			noise.Set(i, j, rng.NormFloat64())
		}
	}
	var qr mat.QR
	qr.Factorize(noise)
	var q, scaled, full mat.Dense
	qr.QTo(&q)
	scaled.CloneFrom(&q)
	for j := range r {
		value := spectralFloor * (-1 + 1.9*float64(j)/float64(below))
		if j >= below {
			value = spectralFloor * 2 * math.Pow(50, float64(j-below)/float64(max(1, r-below-1)))
		}
		for i := range r {
			scaled.Set(i, j, scaled.At(i, j)*value)
		}
	}
	full.Mul(&scaled, q.T())
	wide := mat.NewSymDense(r, nil)
	for i := range r {
		for j := i; j < r; j++ {
			wide.SetSym(i, j, (full.At(i, j)+full.At(j, i))/2)
		}
	}
	return wide
}
