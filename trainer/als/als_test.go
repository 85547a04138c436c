package als

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/kerneltest"
	"github.com/dpmf-go/dpmf/trainer"
)

func TestSameBitsForAnyWorkersAndTier(t *testing.T) {
	r := smallRatings(t, 150, 90, 5)
	for name, c := range allLosses(17) {
		c.Iterations = 2
		var first *trainer.Model
		var objective []float64
		t.Run(name, func(t *testing.T) {
			kerneltest.EachTier(t, func(t *testing.T) {
				for _, workers := range []int{1, 2, 3, 8} {
					var seen []float64
					c.Workers = workers
					c.Progress = func(p trainer.Progress) { seen = append(seen, p.Objective, p.TrainRMSE) }
					m, err := Train(context.Background(), r, c)
					if err != nil {
						t.Fatal(err)
					}
					if first == nil {
						first, objective = m, seen
					}
					sameBits(t, "user factors", m.UserFactors, first.UserFactors)
					sameBits(t, "item factors", m.ItemFactors, first.ItemFactors)
					if !slices.Equal(seen, objective) {
						t.Errorf("%d workers: progress %v, want %v", workers, seen, objective)
					}
				}
			})
		})
	}
}

func TestSeedsDiffer(t *testing.T) {
	a, b := InitialFactors(3, 2, 0.1, 1), InitialFactors(3, 2, 0.1, 2)
	if slices.Equal(a, b) {
		t.Error("two seeds gave the same initial factors")
	}
}

// A user made by NewUser from the ratings of a stored one has her factors, to the bit.
func TestNewUserEqualsStored(t *testing.T) {
	r := smallRatings(t, 60, 45, 6)
	for name, c := range allLosses(9) {
		c.Iterations = 2
		m, err := Train(context.Background(), r, c)
		if err != nil {
			t.Fatal(err)
		}
		for u := range r.NumUsers() { // user 0 has no ratings
			items, values := r.User(u)
			items, values = slices.Clone(items), slices.Clone(values)
			slices.Reverse(items) // any order will do
			slices.Reverse(values)
			n, err := m.NewUser(items, values)
			if err != nil {
				t.Fatalf("%s: user %d: %v", name, u, err)
			}
			sameBits(t, name, n.Vector, m.UserVector(u))
			for i := range m.NumItems() {
				if got, want := m.PredictNew(n, i), m.Predict(u, i); math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("%s: user %d, item %d: new user gets %v, stored one %v", name, u, i, got, want)
				}
			}
			if got, want := m.RecommendNew(n, 10), m.Recommend(u, 10); !slices.Equal(got, want) {
				t.Fatalf("%s: user %d: new user is recommended %v, stored one %v", name, u, got, want)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		change func(c *Config)
		names  string
	}{
		{func(c *Config) { c.Rank = 0 }, "rank"},
		{func(c *Config) { c.Rank = -5 }, "rank"},
		{func(c *Config) { c.Rank = math.MaxInt }, "rank"},
		{func(c *Config) { c.Iterations = 0 }, "iterations"},
		{func(c *Config) { c.InitStd = 0 }, "initial factors"},
		{func(c *Config) { c.InitStd = nan }, "initial factors"},
		{func(c *Config) { c.InitStd = inf }, "initial factors"},
		{func(c *Config) { c.Means.Shrinkage = -1 }, "shrinkage"},
		{func(c *Config) { c.Means.Shrinkage = nan }, "shrinkage"},
		{func(c *Config) { c.Means.Shrinkage = inf }, "shrinkage"},
		{func(c *Config) { c.Workers = -1 }, "workers"},
		{func(c *Config) { c.UserRidge.Lambda = 0 }, "user ridge"},
		{func(c *Config) { c.UserRidge.Lambda = nan }, "user ridge"},
		{func(c *Config) { c.UserRidge.Exponent = nan }, "user ridge"},
		{func(c *Config) { c.UserRidge.Exponent = 5 }, "exponent"},
		{func(c *Config) { c.ItemRidge.Lambda = inf }, "item ridge"},
		{func(c *Config) { c.ItemRidge.Constant = -1 }, "constant"},
		{func(c *Config) { c.Loss.Kind = "" }, "loss"},
		{func(c *Config) { c.Loss.Kind = "huber" }, "huber"},
		{func(c *Config) { c.Loss.Background = -1 }, "background"},
		{func(c *Config) { c.Loss.Background = inf }, "background"},
		{func(c *Config) { c.Loss.Alpha = 2 }, "alpha"},
		{func(c *Config) { c.Loss = trainer.Loss{Kind: trainer.Confidence}; c.Means = trainer.Means{} }, "alpha"},
		{func(c *Config) {
			c.Loss = trainer.Loss{Kind: trainer.Confidence, Alpha: nan}
			c.Means = trainer.Means{}
		}, "alpha"},
		{func(c *Config) {
			c.Loss = trainer.Loss{Kind: trainer.Confidence, Alpha: 1, Background: 1}
			c.Means = trainer.Means{}
		}, "background"},
		{func(c *Config) { c.Loss = trainer.Loss{Kind: trainer.Unobserved} }, "means"},
	} {
		config := Defaults(4)
		c.change(&config)
		m, err := Train(context.Background(), smallRatings(t, 9, 9, 1), config)
		if m != nil || err == nil {
			t.Errorf("%+v was accepted", config)
		} else if text := err.Error(); !strings.Contains(text, c.names) || !strings.HasPrefix(text, "als: ") || strings.Contains(text, "\n") {
			t.Errorf("error %q does not name %q in one line", text, c.names)
		}
	}
	for _, c := range []Config{Defaults(16), ImplicitDefaults(16)} {
		if err := c.Validate(); err != nil {
			t.Errorf("defaults: %v", err)
		}
	}
}

func TestNoRatings(t *testing.T) {
	r := smallRatings(t, 9, 9, 1)
	if _, err := Train(context.Background(), r.Above(99), Defaults(4)); err == nil || !strings.Contains(err.Error(), "no ratings") {
		t.Errorf("error %v", err)
	}
}

func TestMaxMemory(t *testing.T) {
	r := smallRatings(t, 50, 40, 2)
	c := Defaults(8)
	c.MaxMemory = Plan(r, c).Total()
	if _, err := Train(context.Background(), r, c); err != nil {
		t.Errorf("as much memory as planned: %v", err)
	}
	c.MaxMemory--
	if _, err := Train(context.Background(), r, c); err == nil || !strings.Contains(err.Error(), "MB are allowed") {
		t.Errorf("one byte less than planned: error %v", err)
	}
}

func TestCancel(t *testing.T) {
	r := smallRatings(t, 400, 300, 7)
	before := r.ContentSHA256()
	cause := errors.New("interrupted")

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if _, err := Train(ctx, r, Defaults(4)); !errors.Is(err, cause) {
		t.Errorf("cancelled before the start: error %v", err)
	}

	for name, c := range map[string]Config{"explicit": Defaults(32), "implicit": ImplicitDefaults(32)} {
		ctx, cancel := context.WithCancelCause(context.Background())
		c.Iterations = 1 << 30
		var cancelled time.Time
		c.Progress = func(p trainer.Progress) {
			if p.Iteration == 2 {
				cancelled = time.Now()
				cancel(cause)
			}
		}
		m, err := Train(ctx, r, c)
		if m != nil || !errors.Is(err, cause) {
			t.Errorf("%s: model %v, error %v", name, m, err)
		}
		if d := time.Since(cancelled); d > 2*time.Second {
			t.Errorf("%s: returned %v after the cancellation", name, d)
		}
	}
	if r.ContentSHA256() != before {
		t.Error("training changed the caller's data")
	}
}

func TestTrainingLeavesDataAlone(t *testing.T) {
	r := smallRatings(t, 40, 30, 8)
	before := r.ContentSHA256()
	for name, c := range allLosses(3) {
		c.Iterations = 1
		if _, err := Train(context.Background(), r, c); err != nil {
			t.Fatal(err)
		}
		if r.ContentSHA256() != before {
			t.Fatalf("%s: training changed the caller's data", name)
		}
	}
}

// Ratings as large as float32 holds must give an error or a model, never a panic.
func TestExtremeRatings(t *testing.T) {
	for _, v := range []float32{math.MaxFloat32, 1e30, 1e-40, 0} {
		var triples []dataset.Triple
		for u := range int32(5) {
			for i := range int32(4) {
				triples = append(triples, dataset.Triple{User: u, Item: i, Value: v * float32(1-2*int(u+i)%2)})
			}
		}
		r, err := dataset.New(5, 4, triples, dataset.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range allLosses(3) {
			if m, err := Train(context.Background(), r, c); err == nil {
				m.Recommend(1, 3)
			}
		}
	}
}
