package trainerbench

import (
	"context"
	"sync"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/eval"
	"github.com/dpmf-go/dpmf/internal/bench/report"
	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/trainer"
)

// ratingPredictor is what the explicit protocol asks of a model.
type ratingPredictor interface {
	PredictItems(user int, items []int32, out []float32)
}

// rmse is the root mean squared error over all test ratings.
func rmse(ctx context.Context, threads int, model ratingPredictor, test *dataset.Ratings) (map[string]report.Number, error) {
	value := eval.RMSE(stoppable{ctx, model}, test, eval.Workers(threads))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return map[string]report.Number{"rmse": report.Number(value)}, nil
}

// stoppable predicts nothing more once its context is done; the result is then thrown away.
type stoppable struct {
	ctx   context.Context
	model ratingPredictor
}

func (s stoppable) PredictItems(user int, items []int32, out []float32) {
	if s.ctx.Err() == nil {
		s.model.PredictItems(user, items, out)
	}
}

func (s stoppable) Predict(user, item int) float32 {
	var out [1]float32
	s.PredictItems(user, []int32{int32(item)}, out[:])
	return out[0]
}

// scorer writes the scores of all items for a user with the given history.
type scorer func(items []int32, values []float32, out []float32) error

// newUserScorer folds a user in without retraining.
func newUserScorer(m *trainer.Model) scorer {
	return func(items []int32, values []float32, out []float32) error {
		u, err := m.NewUser(items, values)
		if err != nil {
			return err
		}
		m.ScoresNew(u, out)
		return nil
	}
}

// ranking is the mean Recall@20, Recall@50 and NDCG@100 of the held-out users. Items folded in are not ranked.
func ranking(ctx context.Context, threads int, score scorer, users dataset.HeldOut) (map[string]report.Number, error) {
	r := &ranker{ctx: ctx, score: score, foldIn: users.FoldIn}
	got, err := eval.Rank(r.rank, users.Target, []int{20, 50, 100}, eval.Workers(threads))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case r.err != nil:
		return nil, r.err
	case err != nil:
		return nil, err
	}
	return map[string]report.Number{
		"recall@20": report.Number(got.At[0].Recall),
		"recall@50": report.Number(got.At[1].Recall),
		"ndcg@100":  report.Number(got.At[2].NDCG),
	}, nil
}

// ranker makes top lists from scores. It is used by several goroutines.
type ranker struct {
	ctx     context.Context
	score   scorer
	foldIn  *dataset.Ratings
	buffers sync.Pool

	once sync.Once
	err  error // the first of score
}

type rankBuffers struct {
	scores, values []float32
	scratch        kernels.TopKScratch
}

func (r *ranker) rank(user, k int, top []int32) []int32 {
	if r.ctx.Err() != nil {
		return top
	}
	b, ok := r.buffers.Get().(*rankBuffers)
	if !ok {
		b = &rankBuffers{scores: make([]float32, r.foldIn.NumItems()), values: make([]float32, k)}
	}
	defer r.buffers.Put(b)
	known, values := r.foldIn.User(user)
	if err := r.score(known, values, b.scores); err != nil {
		r.once.Do(func() { r.err = err })
		return top
	}
	ids := append(top, make([]int32, k)...)
	return ids[:kernels.TopKF32(ids, b.values[:k], b.scores, known, &b.scratch)]
}
