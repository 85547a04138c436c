// Package normal runs half-steps of alternating least squares: with the factors
// of one side fixed, every row of the other side is the solution of its own r×r
// normal equations (Chien et al. 2021, equations 1 and 2).
package normal

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/dpmf-go/dpmf/kernels"
)

// A Half is one half-step. Its rows are users or items; "other" is the fixed side.
type Half struct {
	Rank  int
	Rows  int
	Table []float32 // other side's factors, row-major, Rank columns

	// Neighbours returns the other-side indices that row i is observed with. The
	// slice must stay valid and unchanged during the run.
	Neighbours func(i int) []int32
	// Targets writes the targets of row i's neighbours; it is not called when
	// there are none.
	Targets func(i int, targets []float32)
	// Weights writes the weights of row i's neighbours. Nil means all ones.
	Weights func(i int, weights []float32)

	// Background is added to every Gram matrix before accumulation (for example
	// a0·VᵀV), in the storage of package kernels. Nil means zero.
	Background []float32

	// Solve turns the accumulated equations of row i into its solution x. It runs
	// concurrently for different rows, each with a Workspace of its own. Rows without neighbours are
	// solved as well: their equations are Background and zero.
	Solve func(i int, w *Workspace, x []float32) (RowLoss, error)
}

// RowLoss is what one row contributes to the loss after its solution.
type RowLoss struct {
	Squared   float64 // Σ weight·(target − prediction)²
	Objective float64 // the same with the row's penalties
}

// Workspace is the memory of one worker.
type Workspace struct {
	Gram, RHS []float32 // accumulated; Solve may overwrite both
	Targets   []float32 // of the current row
	Weights   []float32 // of the current row; nil if unweighted
	scratch   []float32
	copyRHS   []float32
	spectral  []float32
}

// chunkRows is the number of rows a worker takes at a time. Losses are summed
// within a chunk and then over chunks in order, so that the sum does not depend on
// the number of workers.
const chunkRows = 32

// Workers returns n, or the number of usable CPUs if n is not positive.
func Workers(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// WorkspaceBytes is the memory of one worker for rank r and rows with up to
// degree neighbours.
func WorkspaceBytes(r, degree int) int64 {
	s := int64(kernels.Stride(r))
	perRating := int64(3) // target and weight, each with the spare half that resize allots
	return 4 * (s*s + 2*s + int64(kernels.GramWorkLen(r)) + int64(kernels.SpectralWorkLen(r)) + perRating*int64(degree))
}

// Run solves all rows into out (Rows × Rank), on the given number of workers. The
// result does not depend on that number. It stops with the context's cause soon after ctx
// is done; out is then partly written.
func (h *Half) Run(ctx context.Context, workers int, out []float32) (RowLoss, error) {
	chunks := (h.Rows + chunkRows - 1) / chunkRows
	losses := make([]RowLoss, chunks)
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(Workers(workers), chunks) {
		group.Go(func() error {
			w := getWorkspace(h.Rank)
			defer pool.Put(w)
			for {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				c := int(next.Add(1)) - 1
				if c >= chunks {
					return nil
				}
				for i := c * chunkRows; i < min((c+1)*chunkRows, h.Rows); i++ {
					loss, err := h.row(i, w, out[i*h.Rank:][:h.Rank])
					if err != nil {
						return err
					}
					losses[c].Squared += loss.Squared
					losses[c].Objective += loss.Objective
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return RowLoss{}, err
	}
	var total RowLoss
	for _, l := range losses {
		total.Squared += l.Squared
		total.Objective += l.Objective
	}
	return total, nil
}

// row accumulates and solves one row.
func (h *Half) row(i int, w *Workspace, x []float32) (RowLoss, error) {
	ids := h.Neighbours(i)
	w.Targets = resize(w.Targets, len(ids))
	if h.Weights != nil {
		w.Weights = resize(w.Weights, len(ids))
	} else {
		w.Weights = nil
	}
	if len(ids) > 0 {
		h.Targets(i, w.Targets)
		if h.Weights != nil {
			h.Weights(i, w.Weights)
		}
	}
	in := kernels.GramInput{Table: h.Table, Rank: h.Rank, Rows: ids, Weights: w.Weights, Targets: w.Targets}
	if i+1 < h.Rows {
		next := h.Neighbours(i + 1)
		in.Next = next[:min(len(next), 64)]
	}
	w.Accumulate(&in, h.Background)
	return h.Solve(i, w, x)
}

// Accumulate sets Gram and RHS to background (nil: zero) plus the given rows.
func (w *Workspace) Accumulate(in *kernels.GramInput, background []float32) {
	if background != nil {
		copy(w.Gram, background)
	} else {
		clear(w.Gram)
	}
	clear(w.RHS)
	kernels.GramF32(w.Gram, w.RHS, in, w.scratch)
}

func resize(x []float32, n int) []float32 {
	if cap(x) < n {
		x = make([]float32, n, n+n/2)
	}
	return x[:n]
}

// pool keeps workspaces between half-steps. One of another rank is replaced.
var pool sync.Pool

func getWorkspace(r int) *Workspace {
	if w, ok := pool.Get().(*Workspace); ok && len(w.RHS) == kernels.Stride(r) {
		return w
	}
	return NewWorkspace(r)
}

// NewWorkspace allocates the memory of one worker for rank r.
func NewWorkspace(r int) *Workspace {
	s := kernels.Stride(r)
	return &Workspace{
		Gram: make([]float32, s*s), RHS: make([]float32, s), copyRHS: make([]float32, s),
		scratch: make([]float32, kernels.GramWorkLen(r)), spectral: make([]float32, kernels.SpectralWorkLen(r)),
	}
}
