package kernelbench

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/dpmf-go/dpmf/kernels"
)

// scoreCase scores every item for one user: the table is read once.
func scoreCase(r int) benchCase {
	return benchCase{
		kernel: "ScoreF32", size: rankSize(r) + ", all items", unit: "GB/s", limit: "read", floor: floor{avx2Share: .5},
		prepare: func(e *env) (*subject, error) {
			rng := e.rng(5)
			table, x, scores := normal(rng, e.items*r), normal(rng, r), make([]float32, e.items)
			a := blas32.General{Rows: e.items, Cols: r, Stride: r, Data: table}
			return &subject{
				work: 4 * float64(e.items) * float64(r), read: table,
				run:     together(func() { kernels.ScoreF32(scores, table, x, r) }),
				library: "gonum Gemv",
				other:   together(func() { blas32.Gemv(blas.NoTrans, 1, a, vector(x), 0, vector(scores)) }),
			}, nil
		},
	}
}

// scoreRowsCase predicts what the mean user has rated: random rows of the table, others at every call.
func scoreRowsCase(r int) benchCase {
	return benchCase{
		kernel: "ScoreRowsF32", size: rankSize(r) + ", one user", unit: "GB/s", limit: "read", floor: floor{avx2Share: .5},
		prepare: func(e *env) (*subject, error) {
			rng := e.rng(8)
			table, x := normal(rng, e.items*r), normal(rng, r)
			n := max(e.perUser, 1)
			rows, scores := make([]int32, 1000*n), make([]float32, n)
			for k := range rows {
				rows[k] = int32(rng.IntN(e.items))
			}
			turn := 0
			return &subject{
				work: 4 * float64(n) * float64(r), read: table,
				run: together(func() {
					turn = (turn + 1) % 1000
					kernels.ScoreRowsF32(scores, table, x, r, rows[turn*n:][:n])
				}),
			}, nil
		},
	}
}

// topkCase selects k of all items, without those the mean user has rated. It cycles through score lists, since the
// branches of one list could be learned.
func topkCase(k int) benchCase {
	const lists = 16
	return benchCase{
		kernel: "TopKF32", size: fmt.Sprintf("k=%d, all items", k), unit: "µs", limit: "read", floor: floor{avx2Share: .5},
		prepare: func(e *env) (*subject, error) {
			rng := e.rng(6)
			scores := normal(rng, lists*e.items)
			exclude := make([]int32, min(e.perUser, e.items))
			for i := range exclude {
				exclude[i] = int32(rng.IntN(e.items))
			}
			slices.Sort(exclude)
			ids, values := make([]int32, k), make([]float32, k)
			scratch := new(kernels.TopKScratch)
			turn := 0
			return &subject{
				work: 4 * float64(e.items), read: scores[:e.items],
				run: together(func() {
					turn = (turn + 1) % lists
					kernels.TopKF32(ids, values, scores[turn*e.items:][:e.items], exclude, scratch)
				}),
			}, nil
		},
	}
}
