package kernelbench

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/dpmf-go/dpmf/kernels"
)

var gramFloors = map[int]float64{32: .44, 64: .57, 128: .64}

// gramIndices is the length of the list of random rows, long enough that no row of a table is favoured and that the
// list is not learned by the branch predictor or a prefetcher.
const gramIndices = 1 << 20

// gramCase gathers as many random rows as a mean user has ratings, and other rows at every call. Useful operations are
// those of one triangle: r(r+1) per row.
func gramCase(r int) benchCase {
	return benchCase{
		kernel: "GramF32", size: rankSize(r), unit: "GFLOP/s", limit: "fma",
		floor: floor{share: gramFloors[r], avx2Share: .75},
		prepare: func(e *env) (*subject, error) {
			rng := e.rng(1)
			table := normal(rng, e.items*r)
			n := min(max(e.perUser, 1), gramIndices/2)
			rows := make([]int32, max(n, gramIndices/n*n))
			for k := range rows {
				rows[k] = int32(rng.IntN(e.items))
			}
			targets := normal(rng, n)
			stride := kernels.Stride(r)
			gram, rhs := make([]float32, stride*stride), make([]float32, stride)
			work := make([]float32, kernels.GramWorkLen(r))
			at := 0
			next := func() []int32 {
				if at += n; at >= len(rows) {
					at = 0
				}
				return rows[at:][:n]
			}
			current := next()
			return &subject{
				work: float64(n) * float64(r) * float64(r+1),
				run: together(func() {
					following := next()
					clear(gram)
					kernels.GramF32(gram, rhs, &kernels.GramInput{Table: table, Rank: r, Rows: current, Targets: targets, Next: following}, work)
					current = following
				}),
				library: "gonum Syrk",
				other:   together(syrk(table, r, n, next)),
			}, nil
		},
	}
}

// syrk does the same with a BLAS written in Go: copy the rows into a block, then one symmetric rank-n update. It has no right-hand side to compute.
func syrk(table []float32, r, n int, next func() []int32) func() {
	packed := make([]float32, n*r)
	c := blas32.Symmetric{N: r, Stride: r, Data: make([]float32, r*r), Uplo: blas.Upper}
	a := blas32.General{Rows: n, Cols: r, Stride: r, Data: packed}
	return func() {
		for k, row := range next() {
			copy(packed[k*r:][:r], table[int(row)*r:][:r])
		}
		blas32.Syrk(blas.Trans, 1, a, 0, c)
	}
}
