package normal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
	"github.com/dpmf-go/dpmf/kernels"
)

// problem is a random half-step: rows with lists of neighbours, some of them empty, some
// longer than a packed block of the Gram kernel.
type problem struct {
	rank, rows int
	table      []float32
	ids        [][]int32
	targets    [][]float32
	weights    [][]float32 // nil: unweighted
	background []float32   // storage of package kernels; nil: none
	ridge      []float32   // of each row
}

func newProblem(rng *rand.Rand, rank, rows int, weighted, background bool) *problem {
	others := 40 + rng.IntN(200)
	p := &problem{rank: rank, rows: rows, table: make([]float32, others*rank)}
	for i := range p.table {
		p.table[i] = float32(rng.NormFloat64())
	}
	for range rows {
		n := rng.IntN(others)
		if rng.IntN(4) == 0 {
			n = 0
		}
		ids := make([]int32, n)
		for k, o := range rng.Perm(others)[:n] {
			ids[k] = int32(o)
		}
		slices.Sort(ids)
		targets, weights := make([]float32, n), make([]float32, n)
		for k := range ids {
			targets[k] = float32(rng.NormFloat64())
			weights[k] = float32(rng.ExpFloat64())
			if rng.IntN(8) == 0 {
				weights[k] = 0
			}
		}
		p.ids = append(p.ids, ids)
		p.targets = append(p.targets, targets)
		if weighted {
			p.weights = append(p.weights, weights)
		}
		p.ridge = append(p.ridge, float32(0.5+5*rng.Float64()))
	}
	if background {
		gram, err := FullGram(context.Background(), 2, p.table, rank, 0.25)
		if err != nil {
			panic(err)
		}
		p.background = gram
	}
	return p
}

func (p *problem) half() *Half {
	h := &Half{
		Rank: p.rank, Rows: p.rows, Table: p.table, Background: p.background,
		Neighbours: func(i int) []int32 { return p.ids[i] },
		Targets: func(i int, targets []float32) {
			if len(p.ids[i]) == 0 {
				panic("Targets was called for a row without neighbours")
			}
			copy(targets, p.targets[i])
		},
	}
	if p.weights != nil {
		h.Weights = func(i int, weights []float32) { copy(weights, p.weights[i]) }
	}
	h.Solve = func(i int, w *Workspace, x []float32) (RowLoss, error) {
		return w.SolveRidge(p.rank, p.ridge[i], x, func() {
			in := kernels.GramInput{Table: p.table, Rank: p.rank, Rows: p.ids[i], Weights: w.Weights, Targets: w.Targets}
			w.Accumulate(&in, p.background)
		})
	}
	return h
}

func (p *problem) weight(i, k int) float64 {
	if p.weights == nil {
		return 1
	}
	return float64(p.weights[i][k])
}

func (p *problem) row(o int32) *mat.VecDense {
	x := mat.NewVecDense(p.rank, nil)
	for a := range p.rank {
		x.SetVec(a, float64(p.table[int(o)*p.rank+a]))
	}
	return x
}

// backgroundMatrix is Σ over the whole table of ¼·t·tᵀ, summed here in float64.
func (p *problem) backgroundMatrix() *mat.SymDense {
	g := mat.NewSymDense(p.rank, nil)
	if p.background != nil {
		for o := range len(p.table) / p.rank {
			g.SymRankOne(g, 0.25, p.row(int32(o)))
		}
	}
	return g
}

// solve is the brute force: normal equations and a direct evaluation of the loss in float64.
func (p *problem) solve(t *testing.T, i int, background *mat.SymDense) (x *mat.VecDense, loss func(x *mat.VecDense) RowLoss) {
	a := mat.NewSymDense(p.rank, nil)
	a.CopySym(background)
	b := mat.NewVecDense(p.rank, nil)
	for k, o := range p.ids[i] {
		w, row := p.weight(i, k), p.row(o)
		a.SymRankOne(a, w, row)
		b.AddScaledVec(b, w*float64(p.targets[i][k]), row)
	}
	for c := range p.rank {
		a.SetSym(c, c, a.At(c, c)+float64(p.ridge[i]))
	}
	x = mat.NewVecDense(p.rank, nil)
	if err := x.SolveVec(a, b); err != nil {
		t.Fatal(err)
	}
	return x, func(x *mat.VecDense) RowLoss {
		squared := mat.Inner(x, background, x)
		for k, o := range p.ids[i] {
			d := float64(p.targets[i][k]) - mat.Dot(x, p.row(o))
			squared += p.weight(i, k) * d * d
		}
		return RowLoss{squared, squared + float64(p.ridge[i])*mat.Dot(x, x)}
	}
}

// awkwardRanks are all ranks around the first two vector widths, and one beyond.
func awkwardRanks() []int {
	ranks := []int{48}
	for r := 1; r <= 33; r++ {
		ranks = append(ranks, r)
	}
	return ranks
}

func TestHalfAgainstBruteForce(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, rank := range awkwardRanks() {
			for variant := range 4 {
				p := newProblem(rng, rank, 1+rng.IntN(40), variant&1 == 1, variant&2 == 2)
				out := make([]float32, p.rows*rank)
				for i := range out {
					out[i] = float32(math.NaN()) // every element must be written
				}
				got, err := p.half().Run(context.Background(), 2, out)
				if err != nil {
					t.Fatal(err)
				}
				background := p.backgroundMatrix()
				var want RowLoss
				for i := range p.rows {
					x, loss := p.solve(t, i, background)
					l := loss(x)
					want.Squared += l.Squared
					want.Objective += l.Objective
					for c := range rank {
						if d := math.Abs(float64(out[i*rank+c]) - x.AtVec(c)); !(d <= 2e-4*(1+math.Abs(x.AtVec(c)))) {
							t.Fatalf("rank %d, variant %d, row %d, component %d: %v, want %v", rank, variant, i, c, out[i*rank+c], x.AtVec(c))
						}
					}
				}
				for _, v := range []struct {
					name      string
					got, want float64
				}{{"squared", got.Squared, want.Squared}, {"objective", got.Objective, want.Objective}} {
					if math.Abs(v.got-v.want) > 1e-4*(1+want.Objective) {
						t.Fatalf("rank %d, variant %d: %s loss %v, directly evaluated %v", rank, variant, v.name, v.got, v.want)
					}
				}
			}
		}
	})
}

func TestEmptyRowsAreZero(t *testing.T) {
	p := newProblem(rand.New(rand.NewPCG(3, 4)), 7, 5, true, true)
	for i := range p.ids {
		p.ids[i], p.targets[i], p.weights[i] = nil, nil, nil
	}
	out := []float32{0: 1, 34: 1}
	loss, err := p.half().Run(context.Background(), 1, out)
	if err != nil || loss != (RowLoss{}) {
		t.Fatalf("loss %v, error %v", loss, err)
	}
	for k, v := range out {
		if math.Float32bits(v) != 0 {
			t.Fatalf("element %d is %v, want +0", k, v)
		}
	}
	if loss, err := (&Half{Rank: 7}).Run(context.Background(), 3, nil); err != nil || loss != (RowLoss{}) {
		t.Fatalf("no rows at all: loss %v, error %v", loss, err)
	}
}

func TestSameBitsForAnyWorkersAndTier(t *testing.T) {
	p := newProblem(rand.New(rand.NewPCG(5, 6)), 19, 300, true, true)
	var first []float32
	var firstLoss RowLoss
	kerneltest.EachTier(t, func(t *testing.T) {
		for _, workers := range []int{0, 1, 2, 3, 8, 500} {
			gram, err := FullGram(context.Background(), workers, p.table, p.rank, 0.25)
			if err != nil {
				t.Fatal(err)
			}
			p.background = gram
			out := make([]float32, p.rows*p.rank)
			loss, err := p.half().Run(context.Background(), workers, out)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first, firstLoss = out, loss
			}
			if loss != firstLoss {
				t.Errorf("%d workers: loss %v, want %v", workers, loss, firstLoss)
			}
			for k := range out {
				if math.Float32bits(out[k]) != math.Float32bits(first[k]) {
					t.Fatalf("%d workers: element %d is %v, want %v", workers, k, out[k], first[k])
				}
			}
		}
	})
}

func TestFullGram(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{0, 1, 15, 16, 17, 333} {
		for _, r := range []int{1, 5, 16, 33} {
			table := make([]float32, n*r)
			for i := range table {
				table[i] = float32(rng.NormFloat64())
			}
			got, err := FullGram(context.Background(), 3, table, r, 0.5)
			if err != nil {
				t.Fatal(err)
			}
			for a := range r {
				for c := a; c < r; c++ {
					var want float64
					for i := range n {
						want += 0.5 * float64(table[i*r+a]) * float64(table[i*r+c])
					}
					if d := math.Abs(float64(got[a*kernels.Stride(r)+c]) - want); d > 1e-5*float64(n+1) {
						t.Fatalf("n=%d r=%d: element %d,%d is off by %v", n, r, a, c, d)
					}
				}
			}
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := FullGram(ctx, 2, make([]float32, 64), 4, 1); !errors.Is(err, cause) {
		t.Errorf("cancelled: error %v", err)
	}
}

// TestSolveRidgeFallback builds equations whose Cholesky factorization fails by rounding: many copies of nearly
// the same row, and a ridge far below the rounding error of the Gram matrix.
func TestSolveRidgeFallback(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		taken := 0
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(9, seed))
			const r, n = 6, 50
			table := make([]float32, n*r)
			for i := range table {
				table[i] = float32(100 + 100*float64(i%r)) // rank one
			}
			rows, targets := make([]int32, n), make([]float32, n)
			for i := range rows {
				rows[i] = int32(i)
				targets[i] = float32(1 + rng.NormFloat64())
			}
			w := NewWorkspace(r)
			w.Targets = targets
			in := kernels.GramInput{Table: table, Rank: r, Rows: rows, Targets: targets}
			w.Accumulate(&in, nil)
			refilled := false
			x := make([]float32, r)
			const ridge = 1e-3
			loss, err := w.SolveRidge(r, ridge, x, func() { refilled = true; w.Accumulate(&in, nil) })
			if err != nil {
				t.Fatal(err)
			}
			if !refilled {
				continue
			}
			taken++
			// The exact solution lies along the one row direction d: x = d·Σm/(n‖d‖²+ridge).
			var sum, norm float64
			for i := range targets {
				sum += float64(targets[i])
			}
			for a := range r {
				norm += float64(table[a]) * float64(table[a])
			}
			var squared float64
			for a := range r {
				want := float64(table[a]) * sum / (n*norm + ridge)
				// An error of the matrix of 2⁻²⁴‖A‖ moves the prediction, not each component, by little.
				squared += float64(table[a]) * (float64(x[a]) - want)
			}
			if prediction := sum * norm / (n*norm + ridge); math.Abs(squared) > 1e-3*math.Abs(prediction) {
				t.Errorf("seed %d: the solution predicts %v off %v", seed, squared, prediction)
			}
			for a := range r {
				if math.IsNaN(float64(x[a])) || math.Abs(float64(x[a])-float64(table[a])*sum/(n*norm)) > 0.05 {
					t.Errorf("seed %d: component %d is %v", seed, a, x[a])
				}
			}
			var direct float64
			for i := range targets {
				var prediction float64
				for a := range r {
					prediction += float64(table[i*r+a]) * float64(x[a])
				}
				d := float64(targets[i]) - prediction
				direct += d * d
			}
			if math.Abs(loss.Squared-direct) > 1e-3*direct {
				t.Errorf("seed %d: squared loss %v, directly evaluated %v", seed, loss.Squared, direct)
			}
		}
		if taken == 0 {
			t.Fatal("the fallback was never taken: the test has lost its subject")
		}
		t.Logf("taken %d times of 20", taken)
	})
}

func TestSolveRidgeSingular(t *testing.T) {
	w := NewWorkspace(3) // zero equations
	_, err := w.SolveRidge(3, 0, make([]float32, 3), func() { t.Error("refilled without a ridge") })
	if err == nil {
		t.Fatal("zero equations without a ridge were solved")
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		w := NewWorkspace(3)
		refill := func() { clear(w.Gram); clear(w.RHS); w.Gram[0], w.RHS[1] = bad, bad }
		refill()
		x := make([]float32, 3)
		if _, err := w.SolveRidge(3, 1, x, refill); err == nil && !slices.ContainsFunc(x, func(v float32) bool { return v != v }) {
			t.Errorf("equations with %v were solved: %v", bad, x)
		}
	}
}

func TestSolveSpectralIsRidgeWhenDefinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	for _, r := range awkwardRanks() {
		p := newProblem(rng, r, 1, false, true)
		for len(p.ids[0]) == 0 {
			p = newProblem(rng, r, 1, false, true)
		}
		in := kernels.GramInput{Table: p.table, Rank: r, Rows: p.ids[0], Targets: p.targets[0]}
		w := NewWorkspace(r)
		w.Targets = p.targets[0]
		x, y := make([]float32, r), make([]float32, r)
		w.Accumulate(&in, p.background)
		if _, err := w.SolveRidge(r, 2, x, nil); err != nil {
			t.Fatal(err)
		}
		w.Accumulate(&in, p.background)
		if err := w.SolveSpectral(r, 2, 2, y); err != nil {
			t.Fatal(err)
		}
		for a := range r {
			if math.Abs(float64(x[a]-y[a])) > 1e-4 {
				t.Fatalf("rank %d: component %d is %v by Cholesky, %v by the spectral solve", r, a, x[a], y[a])
			}
		}
	}
}

func TestCancel(t *testing.T) {
	p := newProblem(rand.New(rand.NewPCG(12, 13)), 4, 5000, false, false)
	cause := errors.New("the user changed her mind")
	for _, after := range []int{0, 1, 100} {
		ctx, cancel := context.WithCancelCause(context.Background())
		h := p.half()
		solve, solved := h.Solve, 0
		h.Solve = func(i int, w *Workspace, x []float32) (RowLoss, error) {
			if solved++; solved > after {
				cancel(cause)
			}
			return solve(i, w, x)
		}
		if after == 0 {
			cancel(cause)
		}
		_, err := h.Run(ctx, 1, make([]float32, p.rows*p.rank))
		if !errors.Is(err, cause) {
			t.Fatalf("cancelled after %d rows: error %v, want the context's cause", after, err)
		}
		if solved > after+2*chunkRows {
			t.Errorf("cancelled after %d rows, but %d were solved", after, solved)
		}
		cancel(nil)
	}
}

func TestErrorOfARowStopsTheRun(t *testing.T) {
	p := newProblem(rand.New(rand.NewPCG(14, 15)), 4, 2000, false, false)
	h := p.half()
	bad := errors.New("row 70 is bad")
	h.Solve = func(i int, w *Workspace, x []float32) (RowLoss, error) {
		if i == 70 {
			return RowLoss{}, fmt.Errorf("row %d: %w", i, bad)
		}
		return RowLoss{}, nil
	}
	for _, workers := range []int{1, 4} {
		if _, err := h.Run(context.Background(), workers, make([]float32, p.rows*p.rank)); !errors.Is(err, bad) {
			t.Errorf("%d workers: error %v", workers, err)
		}
	}
}

func TestWorkspaceOfAnotherRankIsNotReused(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 17))
	for range 20 {
		for _, rank := range []int{3, 40, 17, 16} {
			p := newProblem(rng, rank, 40, rank%2 == 0, false)
			if _, err := p.half().Run(context.Background(), 2, make([]float32, p.rows*rank)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
