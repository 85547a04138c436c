package trainerbench

import (
	"context"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/bench/report"
	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/trainer"
)

// ratingPredictor is what the explicit protocol asks of a model.
type ratingPredictor interface {
	PredictUser(user int, items []int32, out []float32)
}

// userBlock users are handled between two looks at the context.
const userBlock = 256

// rmse is the root mean squared error over all test ratings. The result does not depend on the number of threads.
func rmse(ctx context.Context, threads int, model ratingPredictor, test *dataset.Ratings) (map[string]report.Number, error) {
	sums := make([]float64, blocks(test.NumUsers()))
	err := eachBlock(ctx, threads, test.NumUsers(), func(block, from, to int) error {
		var out []float32
		for u := from; u < to; u++ {
			items, values := test.User(u)
			out = slices.Grow(out[:0], len(items))[:len(items)]
			model.PredictUser(u, items, out)
			for k, v := range values {
				d := float64(v - out[k])
				sums[block] += float64(d * d)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	total := 0.0
	for _, s := range sums {
		total += s
	}
	return map[string]report.Number{"rmse": report.Number(math.Sqrt(total / float64(test.NumRatings())))}, nil
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

// Cut-offs of the ranking metrics.
const (
	recallShort, recallLong, gainDepth = 20, 50, 100
)

// ranking averages Recall@20, Recall@50 and NDCG@100 over the held-out users. Recall@k is the part of
// min(k, held-out items) found among the first k; items folded in are not ranked.
func ranking(ctx context.Context, threads int, score scorer, users dataset.HeldOut) (map[string]report.Number, error) {
	type sum struct{ short, long, gain float64 }
	sums := make([]sum, blocks(len(users.Users)))
	items := users.FoldIn.NumItems()
	err := eachBlock(ctx, threads, len(users.Users), func(block, from, to int) error {
		scores := make([]float32, items)
		depth := min(gainDepth, items)
		ids, values := make([]int32, depth), make([]float32, depth)
		scratch := new(kernels.TopKScratch)
		for _, u := range users.Users[from:to] {
			known, ratings := users.FoldIn.User(int(u))
			target, _ := users.Target.User(int(u))
			if err := score(known, ratings, scores); err != nil {
				return err
			}
			n := kernels.TopKF32(ids, values, scores, known, scratch)
			s := &sums[block]
			s.short += recall(ids[:n], target, recallShort)
			s.long += recall(ids[:n], target, recallLong)
			s.gain += gain(ids[:n], target)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var total sum
	for _, s := range sums {
		total.short += s.short
		total.long += s.long
		total.gain += s.gain
	}
	n := float64(len(users.Users))
	return map[string]report.Number{
		"recall@20": report.Number(total.short / n),
		"recall@50": report.Number(total.long / n),
		"ndcg@100":  report.Number(total.gain / n),
	}, nil
}

func recall(ranked, target []int32, k int) float64 {
	hits := 0
	for _, i := range ranked[:min(k, len(ranked))] {
		if _, ok := slices.BinarySearch(target, i); ok {
			hits++
		}
	}
	return float64(hits) / float64(min(k, len(target)))
}

// gain is the normalized discounted cumulative gain with binary relevance.
func gain(ranked, target []int32) float64 {
	found, best := 0.0, 0.0
	for rank, i := range ranked {
		if _, ok := slices.BinarySearch(target, i); ok {
			found += 1 / math.Log2(float64(rank+2))
		}
	}
	for rank := range min(gainDepth, len(target)) {
		best += 1 / math.Log2(float64(rank+2))
	}
	return found / best
}

func blocks(n int) int { return (n + userBlock - 1) / userBlock }

// eachBlock runs f over all blocks of n users on the given number of threads.
func eachBlock(ctx context.Context, threads, n int, f func(block, from, to int) error) error {
	g, work := errgroup.WithContext(ctx)
	g.SetLimit(threads)
	for block := range blocks(n) {
		if work.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := work.Err(); err != nil {
				return err
			}
			return f(block, block*userBlock, min((block+1)*userBlock, n))
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
