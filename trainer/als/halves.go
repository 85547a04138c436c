package als

import (
	"context"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/internal/normal"
)

// UserHalf is the half-step that solves a model's users against its items. Other trainers
// whose user step is plain ridge regression build on it.
func UserHalf(train *dataset.Ratings, m *trainer.Model, loss trainer.Loss, ridge trainer.Ridge) *normal.Half {
	h := &normal.Half{
		Rank: m.Rank, Rows: train.NumUsers(), Table: m.ItemFactors,
		Neighbours: func(u int) []int32 { items, _ := train.User(u); return items },
		Targets: func(u int, targets []float32) {
			items, values := train.User(u)
			if loss.Kind == trainer.Explicit {
				m.Offsets.UserResiduals(u, items, values, targets)
				trainer.ClipRatings(targets, m.FoldIn.ClipBound)
				return
			}
			copy(targets, values)
			loss.Targets(targets)
		},
	}
	if loss.Weighted() {
		h.Weights = func(u int, weights []float32) { _, values := train.User(u); loss.Weights(values, weights) }
	}
	solveRidge(h, ridge, train.UserCount)
	return h
}

// itemHalf is UserHalf with the sides exchanged.
func (r *run) itemHalf() *normal.Half {
	train, m, loss := r.train, r.model, r.Loss
	h := &normal.Half{
		Rank: m.Rank, Rows: train.NumItems(), Table: m.UserFactors,
		Neighbours: func(i int) []int32 { users, _ := train.Item(i); return users },
		Targets: func(i int, targets []float32) {
			users, values := train.Item(i)
			if loss.Kind == trainer.Explicit {
				m.Offsets.ItemResiduals(i, users, values, targets)
				return
			}
			copy(targets, values)
			loss.Targets(targets)
		},
	}
	if loss.Weighted() {
		h.Weights = func(i int, weights []float32) { _, values := train.Item(i); loss.Weights(values, weights) }
	}
	solveRidge(h, r.ItemRidge, train.ItemCount)
	return h
}

// solveRidge makes the half solve its rows as ridge regressions.
func solveRidge(h *normal.Half, ridge trainer.Ridge, count func(int) int) {
	h.Solve = func(i int, w *normal.Workspace, x []float32) (normal.RowLoss, error) {
		n := count(i)
		if n == 0 {
			clear(x) // the right-hand side is zero
			return normal.RowLoss{}, nil
		}
		return w.SolveRidge(h.Rank, ridge.At(float64(n)), x, func() {
			in := kernels.GramInput{Table: h.Table, Rank: h.Rank, Rows: h.Neighbours(i), Weights: w.Weights, Targets: w.Targets}
			w.Accumulate(&in, h.Background)
		})
	}
}

// Background computes a half-step's background Gram matrix from its present table, if
// the loss has one.
func Background(ctx context.Context, h *normal.Half, loss trainer.Loss, workers int) (err error) {
	if weight := loss.BackgroundWeight(); weight > 0 {
		h.Background, err = normal.FullGram(ctx, workers, h.Table, h.Rank, float32(weight))
	}
	return err
}

// Penalty is Σ_u λρ_u‖u‖² over a model's users.
func Penalty(train *dataset.Ratings, m *trainer.Model, ridge trainer.Ridge) float64 {
	var sum float64
	for u := range train.NumUsers() {
		x := m.UserVector(u)
		sum += float64(float64(ridge.At(float64(train.UserCount(u)))) * float64(kernels.DotF32(x, x)))
	}
	return sum
}
