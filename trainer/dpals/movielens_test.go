package dpals

import (
	"math"
	"slices"
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

// Recall@20 under strong generalization: the private model must beat the exact popularity list at every ε.
func TestMovieLensRecall(t *testing.T) {
	r := ml1m(t).Implicit(3.5, 5)
	split, err := r.StrongGeneralization(600, 600, 0.8, 1)
	if err != nil {
		t.Fatal(err)
	}
	popular := split.Train.ItemsByCount()
	recall := func(recommend func(items []int32, values []float32) []int32) float64 {
		var sum float64
		for _, u := range split.Test.Users {
			items, values := split.Test.FoldIn.User(int(u))
			target, _ := split.Test.Target.User(int(u))
			hits := 0
			for _, i := range recommend(items, values) {
				if slices.Contains(target, i) {
					hits++
				}
			}
			sum += float64(hits) / float64(min(20, len(target)))
		}
		return sum / float64(len(split.Test.Users))
	}
	baseline := recall(func(items []int32, _ []float32) []int32 {
		var top []int32
		for _, i := range popular {
			if !slices.Contains(items, i) && len(top) < 20 {
				top = append(top, i)
			}
		}
		return top
	})
	last := baseline
	for _, v := range []struct {
		epsilon float64
		rank    int
	}{{1, 16}, {5, 64}, {20, 64}} {
		if kernels.Tier() == "generic" {
			v.rank = 16
		}
		c := ImplicitDefaults(v.rank, privacy.Budget{Epsilon: v.epsilon, Delta: 1. / 6040})
		seed := uint64(1)
		c.NoiseSeed = &seed
		m := mustTrain(t, split.Train, c)
		got := recall(func(items []int32, values []float32) []int32 {
			user, err := m.NewUser(items, values)
			if err != nil {
				t.Fatal(err)
			}
			var top []int32
			for _, s := range m.RecommendNew(user, 20) {
				top = append(top, int32(s.Item))
			}
			return top
		})
		t.Logf("ε = %v, rank %d: Recall@20 %.4f; popularity list %.4f", v.epsilon, v.rank, got, baseline)
		if got < last+0.01 {
			t.Errorf("ε = %v: Recall@20 is %.4f, want more than the %.4f of less budget or the popularity list", v.epsilon, got, last)
		}
		last = got
	}
}
