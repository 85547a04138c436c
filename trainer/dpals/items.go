package dpals

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/privacy"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/internal/normal"
)

// streamPool keeps noise streams between items.
type streamPool struct{ pool sync.Pool }

func (p *streamPool) get(n *privacy.Noise, release uint32, iteration int, item int) *privacy.Stream {
	if s, ok := p.pool.Get().(*privacy.Stream); ok {
		s.Reset(n, release, uint32(iteration), uint64(item))
		return s
	}
	return n.Stream(release, uint32(iteration), uint64(item))
}

func (p *streamPool) put(s *privacy.Stream) { p.pool.Put(s) }

// itemHalf gathers what items may use; itemStep sets how they are solved.
func (r *run) itemHalf() *normal.Half {
	targets := r.itemTargets()
	h := &normal.Half{
		Rank: r.Rank, Rows: r.train.NumItems(), Table: r.model.UserFactors,
		Neighbours: func(i int) []int32 { users, _ := r.parts.of(i); return users },
		Targets:    func(i int, out []float32) { copy(out, targets[i]) },
	}
	if r.parts.weighted {
		h.Weights = func(i int, weights []float32) {
			users, _ := r.parts.of(i)
			r.parts.weights(i, users, weights)
		}
	}
	return h
}

// itemTargets centres and clips the ratings that item steps may use, by item. They
// are the same in every iteration.
func (r *run) itemTargets() [][]float32 {
	targets := make([][]float32, r.train.NumItems())
	total := 0
	for i := range targets {
		users, _ := r.parts.of(i)
		total += len(users)
	}
	all := make([]float32, total)
	for i := range targets {
		users, values := r.parts.of(i)
		targets[i], all = all[:len(users):len(users)], all[len(users):]
		if r.Loss.Kind == trainer.Explicit {
			r.model.Offsets.ItemResiduals(i, users, values, targets[i])
			trainer.ClipRatings(targets[i], r.model.FoldIn.ClipBound)
			continue
		}
		copy(targets[i], values)
		r.Loss.Targets(targets[i])
	}
	return targets
}

// itemStep releases the noisy statistics of iteration t and solves the items from them. The
// ledger is written before the noise is drawn, so that it never shows less than was released.
func (r *run) itemStep(ctx context.Context, h *normal.Half, t int) error {
	if err := r.checkClip(); err != nil {
		return err
	}
	if r.noise != nil {
		if err := r.record(r.releases.Gram); err != nil {
			return err
		}
		if err := r.record(r.releases.RHS); err != nil {
			return err
		}
	}
	global, err := r.globalGram(ctx, t)
	if err != nil {
		return err
	}
	if r.noise == nil {
		h.Background = global
	}
	h.Solve = func(i int, w *normal.Workspace, x []float32) (normal.RowLoss, error) {
		if !r.frequent[i] {
			clear(x)
			return normal.RowLoss{}, nil
		}
		if r.noise == nil {
			return r.solveExactly(h, i, w, x)
		}
		return normal.RowLoss{}, r.solvePrivately(i, t, global, w, x)
	}
	_, err = h.Run(ctx, r.Workers, r.model.ItemFactors)
	return err
}

// checkClip verifies ‖u‖ ≤ Γ for the factors as they will be summed.
func (r *run) checkClip() error {
	if math.IsInf(r.Clip, 1) {
		return nil
	}
	for u := range r.train.NumUsers() {
		if n := squaredNorm(r.model.UserVector(u)); !(n <= r.Clip*r.Clip) {
			return fmt.Errorf("internal error: the factors of user %d have norm %v, above the clip %v; nothing was released", u, math.Sqrt(n), r.Clip)
		}
	}
	return nil
}

// globalGram is a0·K̃ with K̃ = UᵀU + symmetric noise of scale s0Γ², or nil without
// a background.
func (r *run) globalGram(ctx context.Context, t int) ([]float32, error) {
	weight := r.Loss.BackgroundWeight()
	if weight == 0 {
		return nil, nil
	}
	k, err := normal.FullGram(ctx, r.Workers, r.model.UserFactors, r.Rank, 1)
	if err != nil {
		return nil, err
	}
	if r.noise != nil {
		if err := r.record(r.releases.Global); err != nil {
			return nil, err
		}
		r.noise.Stream(streamGlobal, uint32(t), 0).AddSymmetric(k, r.Rank, kernels.Stride(r.Rank), r.releases.Global.Noise)
		if r.Projection == Separate {
			if err := projectPSD(k, r.Rank); err != nil {
				return nil, err
			}
		}
	}
	kernels.ScaleF32(float32(weight), k)
	return k, nil
}

// solveExactly is the item step of plain ALS.
func (r *run) solveExactly(h *normal.Half, i int, w *normal.Workspace, x []float32) (normal.RowLoss, error) {
	ids := h.Neighbours(i)
	if len(ids) == 0 {
		clear(x)
		return normal.RowLoss{}, nil
	}
	return w.SolveRidge(r.Rank, r.ItemRidge.At(float64(len(ids))), x, func() {
		in := kernels.GramInput{Table: h.Table, Rank: r.Rank, Rows: ids, Weights: w.Weights, Targets: w.Targets}
		w.Accumulate(&in, h.Background)
	})
}

// solvePrivately adds noise to the accumulated equations of item i and solves
// v = f(H̃ + a0·K̃ + λρ·I)·b̃ with f(x) = 1/max(x, λρ): from the noise on, everything is
// post-processing.
func (r *run) solvePrivately(i, t int, global []float32, w *normal.Workspace, x []float32) error {
	ld := kernels.Stride(r.Rank)
	s := r.streams.get(r.noise, streamItem, t, i)
	s.AddSymmetric(w.Gram, r.Rank, ld, r.releases.Gram.Noise)
	s.AddVector(w.RHS[:r.Rank], r.releases.RHS.Noise)
	r.streams.put(s)

	if r.Projection == Separate {
		if err := projectPSD(w.Gram, r.Rank); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	if global != nil {
		kernels.AxpyF32(1, global, w.Gram)
	}
	ridge := r.ItemRidge.At(r.counts[i])
	if err := w.SolveSpectral(r.Rank, ridge, ridge, x); err != nil {
		return fmt.Errorf("item %d: %w", i, err)
	}
	return nil
}
