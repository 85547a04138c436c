package als_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/als"
)

func TestScratch(t *testing.T) {
	r, err := dataset.OpenFile(context.Background(), "../../../shared/data/ml-1m/ratings.dat", dataset.Options{NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, rank := range []int{16, 32, 64} {
		for _, e := range []float64{0.5, 1} {
			for _, l := range []float64{.5, 1, 2, 0.02, 0.05, .08} {
				if (e == .5) != (l >= .5) {
					continue
				}
				for _, mean := range []trainer.Means{{Global: true}, {Global: true, Item: true, User: true, Shrinkage: 5}} {
					train, test := r.SplitRandom(.8, 1)
					c := als.Defaults(rank)
					c.Iterations = 12
					c.Means = mean
					c.UserRidge = trainer.Ridge{Lambda: l, Exponent: e}
					c.ItemRidge = c.UserRidge
					var last trainer.Progress
					c.Progress = func(p trainer.Progress) { last = p }
					m, err := als.Train(context.Background(), train, c)
					if err != nil {
						t.Fatal(err)
					}
					var sse float64
					for u := range test.NumUsers() {
						items, values := test.User(u)
						out := make([]float32, len(items))
						m.PredictUser(u, items, out)
						for k := range out {
							sse += float64((out[k] - values[k]) * (out[k] - values[k]))
						}
					}
					fmt.Fprintf(os.Stderr, "r=%d p=%v lambda=%v mean=%v: test %.4f train %.4f time/iter %v\n", rank, e, l, mean.Item, math.Sqrt(sse/float64(test.NumRatings())), last.TrainRMSE, last.UserTime+last.ItemTime)
				}
			}
		}
	}
}
