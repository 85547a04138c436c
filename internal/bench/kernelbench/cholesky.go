package kernelbench

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/dpmf-go/dpmf/kernels"
)

var choleskyMicros = map[int]float64{64: 4.5, 128: 17}

// choleskyCase factors the Gram matrix of 2r random rows plus a ridge, and solves one system. Restoring the matrix,
// which the factor overwrites, is not part of the time.
func choleskyCase(r int) benchCase {
	return benchCase{
		kernel: "CholeskySolveF32", size: rankSize(r), unit: "µs", limit: "fma",
		floor: floor{micros: choleskyMicros[r], avx2Share: .5},
		prepare: func(e *env) (*subject, error) {
			stride := kernels.Stride(r)
			size := stride * stride
			matrix, rhs := positiveDefinite(e, r)
			batch := max(1, 8192/size) // copies that fit a first-level cache together
			a, b := make([]float32, batch*size), make([]float32, batch*stride)
			restore := func() {
				for k := range batch {
					copy(a[k*size:], matrix)
					copy(b[k*stride:], rhs)
				}
			}
			restore()
			if column := kernels.CholeskySolveF32(a[:size], b[:stride], r); column >= 0 {
				return nil, fmt.Errorf("the test matrix of order %d: %w", r, kernels.NotPositiveDefinite(column))
			}

			wide := widen(matrix, r, stride)
			var factor mat.Cholesky
			x := mat.NewVecDense(r, nil)
			right := mat.NewVecDense(r, nil)
			for i := range r {
				right.SetVec(i, float64(rhs[i]))
			}
			cube := float64(r) * float64(r) * float64(r)
			return &subject{
				work: cube/3 + 2*float64(r)*float64(r),
				run: restored(batch, restore, func(k int) {
					kernels.CholeskySolveF32(a[k*size:][:size], b[k*stride:][:stride], r)
				}),
				library: "gonum Cholesky f64",
				other: together(func() {
					if !factor.Factorize(wide) {
						panic("kernelbench: gonum cannot factor a positive definite matrix")
					}
					if err := factor.SolveVecTo(x, right); err != nil {
						panic(err)
					}
				}),
			}, nil
		},
	}
}

// positiveDefinite is a Gram matrix of 2r random rows plus the identity, and a right-hand side.
func positiveDefinite(e *env, r int) (matrix, rhs []float32) {
	rng := e.rng(2)
	stride := kernels.Stride(r)
	matrix, rhs = make([]float32, stride*stride), make([]float32, stride)
	table := normal(rng, 2*r*r)
	rows := make([]int32, 2*r)
	for k := range rows {
		rows[k] = int32(k)
	}
	in := kernels.GramInput{Table: table, Rank: r, Rows: rows, Targets: normal(rng, 2*r)}
	kernels.GramF32(matrix, rhs, &in, make([]float32, kernels.GramWorkLen(r)))
	for i := range r {
		matrix[i*stride+i]++
	}
	return matrix, rhs
}

// widen copies the upper triangle into gonum's float64 form.
func widen(matrix []float32, r, stride int) *mat.SymDense {
	wide := mat.NewSymDense(r, nil)
	for i := range r {
		for j := i; j < r; j++ {
			wide.SetSym(i, j, float64(matrix[i*stride+j]))
		}
	}
	return wide
}
