package als

import (
	"context"
	"slices"
	"testing"

	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/trainer"
)

// The mean over five random 80/20 splits must be what Defaults promises; published figures for
// plain matrix factorization are 0.857 to 0.865.
func TestMovieLensRMSE(t *testing.T) {
	r := ml1m(t)
	for _, c := range []struct {
		rank, seeds int
		limit       float64
	}{{16, 5, 0.8565}, {64, 2, 0.863}} {
		if kernels.Tier() == "generic" {
			c.seeds = 1
			if c.rank > 16 {
				continue
			}
		}
		var sum float64
		low, high := 9., 0.
		for seed := range c.seeds {
			train, test := r.SplitRandom(0.8, uint64(seed))
			config := Defaults(c.rank)
			config.Seed = uint64(seed)
			m, err := Train(context.Background(), train, config)
			if err != nil {
				t.Fatal(err)
			}
			x := rmse(m, test)
			sum += x
			low, high = min(low, x), max(high, x)
		}
		mean := sum / float64(c.seeds)
		t.Logf("rank %d: test RMSE %.4f (%.4f to %.4f over %d splits)", c.rank, mean, low, high, c.seeds)
		if mean > c.limit {
			t.Errorf("rank %d: test RMSE %.4f, want at most %v", c.rank, mean, c.limit)
		}
	}
}

// Recall@20 under strong generalization must be far above that of the popularity list.
func TestMovieLensRecall(t *testing.T) {
	r := ml1m(t).Implicit(3.5, 5)
	split, err := r.StrongGeneralization(600, 600, 0.8, 1)
	if err != nil {
		t.Fatal(err)
	}
	rank := 64
	if kernels.Tier() == "generic" {
		rank = 16
	}
	c := ImplicitDefaults(rank)
	confidence := c
	confidence.Loss = trainer.Loss{Kind: trainer.Confidence, Alpha: 1}
	confidence.UserRidge.Lambda, confidence.ItemRidge.Lambda = 20, 20
	popular := split.Train.ItemsByCount()
	for name, c := range map[string]Config{"unobserved": c, "confidence": confidence} {
		m, err := Train(context.Background(), split.Train, c)
		if err != nil {
			t.Fatal(err)
		}
		var recall, popularity float64
		for _, u := range split.Test.Users {
			history, values := split.Test.FoldIn.User(int(u))
			target, _ := split.Test.Target.User(int(u))
			user, err := m.NewUser(history, values)
			if err != nil {
				t.Fatal(err)
			}
			var top []int32
			for _, s := range m.RecommendNew(user, 20) {
				top = append(top, int32(s.Item))
			}
			recall += recallAt20(top, target)
			top = top[:0]
			for _, i := range popular {
				if _, seen := slices.BinarySearch(history, i); !seen && len(top) < 20 {
					top = append(top, i)
				}
			}
			popularity += recallAt20(top, target)
		}
		n := float64(len(split.Test.Users))
		t.Logf("%s, rank %d: Recall@20 %.4f, popularity list %.4f", name, rank, recall/n, popularity/n)
		if recall < 1.5*popularity {
			t.Errorf("%s: Recall@20 is %.4f, that of the popularity list %.4f", name, recall/n, popularity/n)
		}
	}
}

// recallAt20 is |top ∩ target| / min(20, |target|); target ascends.
func recallAt20(top, target []int32) float64 {
	hits := 0
	for _, i := range top {
		if _, ok := slices.BinarySearch(target, i); ok {
			hits++
		}
	}
	return float64(hits) / float64(min(20, len(target)))
}
