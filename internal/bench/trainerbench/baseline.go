package trainerbench

import (
	"context"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/bench/report"
)

// baseline is a predictor that learns nothing but averages and counts.
type baseline struct {
	name    string
	measure func(ctx context.Context, s *Split, threads int) (map[string]report.Number, error)
}

var baselines = map[Protocol][]baseline{
	Explicit: {
		{"global mean", func(ctx context.Context, s *Split, threads int) (map[string]report.Number, error) {
			return rmse(ctx, threads, globalMean(s.Train), s.Test)
		}},
		{"item mean", func(ctx context.Context, s *Split, threads int) (map[string]report.Number, error) {
			return rmse(ctx, threads, itemMeans(s.Train), s.Test)
		}},
	},
	Implicit: {
		{"popularity", func(ctx context.Context, s *Split, threads int) (map[string]report.Number, error) {
			return ranking(ctx, threads, newPopularity(s.Train).scores, s.Users)
		}},
	},
}

// offset predicts a rating from averages alone.
type offset struct {
	global float32
	item   []float32 // nil: the global mean for every item
}

func (o offset) PredictItems(_ int, items []int32, out []float32) {
	for k, i := range items {
		out[k] = o.global
		if o.item != nil {
			out[k] = o.item[i]
		}
	}
}

func globalMean(train *dataset.Ratings) offset { return offset{global: float32(train.Mean())} }

// itemMeans predicts the mean of the item, or of everything for an item without ratings.
func itemMeans(train *dataset.Ratings) offset {
	o := globalMean(train)
	o.item = make([]float32, train.NumItems())
	for i := range o.item {
		o.item[i] = o.global
		if _, values := train.Item(i); len(values) > 0 {
			sum := 0.0
			for _, v := range values {
				sum += float64(v)
			}
			o.item[i] = float32(sum / float64(len(values)))
		}
	}
	return o
}

// popularity ranks the items by their number of training ratings, the same for everybody.
type popularity []float32

func newPopularity(train *dataset.Ratings) popularity {
	p := make(popularity, train.NumItems())
	for i := range p {
		p[i] = float32(train.ItemCount(i))
	}
	return p
}

func (p popularity) scores(_ []int32, _ []float32, out []float32) error {
	copy(out, p)
	return nil
}
