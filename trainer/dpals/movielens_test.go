package dpals

import (
	"math"
	"testing"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/privacy"
)

// itemMeanRMSE is the error of predicting an item's mean training rating, without privacy.
func itemMeanRMSE(train, test *dataset.Ratings) float64 {
	var sum float64
	for i := range test.NumItems() {
		prediction := train.Mean()
		if _, values := train.Item(i); len(values) > 0 {
			prediction = 0
			for _, v := range values {
				prediction += float64(v) / float64(len(values))
			}
		}
		_, values := test.Item(i)
		for _, v := range values {
			sum += (float64(v) - prediction) * (float64(v) - prediction)
		}
	}
	return math.Sqrt(sum / float64(test.NumRatings()))
}

// More budget must not make the model worse, and from ε = 1 on it must beat the item means, which have no privacy at all.
func TestMovieLensQuality(t *testing.T) {
	r := ml1m(t)
	seeds := uint64(3)
	if kernels.Tier() == "generic" {
		seeds = 1
	}
	type figure struct{ mean, low, high float64 }
	var figures []figure
	var baseline float64
	budgets := []float64{1, 5, 10, 20}
	for _, epsilon := range budgets {
		f := figure{low: math.Inf(1)}
		baseline = 0
		for seed := range seeds {
			train, _, test := r.SplitRandom3(0.8, 0.1, seed)
			c := Defaults(privacy.Budget{Epsilon: epsilon, Delta: 1. / 6040})
			c.Seed, c.NoiseSeed = seed, &seed
			m := mustTrain(t, train, c)
			if e := m.Ledger.Epsilon(1. / 6040); e > epsilon || e < 0.98*epsilon {
				t.Errorf("ε = %v of %v was spent", e, epsilon)
			}
			x := rmse(m, test)
			f.mean += x / float64(seeds)
			f.low, f.high = min(f.low, x), max(f.high, x)
			baseline += itemMeanRMSE(train, test) / float64(seeds)
		}
		t.Logf("ε = %v: test RMSE %.4f (%.4f to %.4f over %d splits); item means %.4f", epsilon, f.mean, f.low, f.high, seeds, baseline)
		figures = append(figures, f)
	}
	for k, f := range figures {
		if f.mean > baseline {
			t.Errorf("ε = %v: test RMSE %.4f, but the item means give %.4f", budgets[k], f.mean, baseline)
		}
		if k > 0 && f.mean > figures[k-1].mean+(f.high-f.low) {
			t.Errorf("test RMSE rises from %.4f at ε = %v to %.4f at ε = %v", figures[k-1].mean, budgets[k-1], f.mean, budgets[k])
		}
	}
}
