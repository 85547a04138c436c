package trainerbench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/bench/report"
	"github.com/dpmf-go/dpmf/trainer"
)

// ratings makes a small matrix in which some items are liked by everybody and the others by few.
func ratings(t *testing.T) *dataset.Ratings {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var triples []dataset.Triple
	for u := range 200 {
		for i := range 60 {
			if rng.IntN(60) > i/2+10 {
				value := 1 + rng.IntN(5)
				if i < 20 {
					value = 4 + rng.IntN(2)
				}
				triples = append(triples, dataset.Triple{User: int32(u), Item: int32(i), Value: float32(value)})
			}
		}
	}
	r, err := dataset.New(200, 60, triples, dataset.BuildOptions{Scale: dataset.Scale{Min: 1, Max: 5, Step: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func params() Params {
	return Params{Rank: 4, Iterations: 2, Threads: 2, Seed: 1, Repeats: 1, Epsilons: []float64{1, math.Inf(1)}, Delta: 1e-3}
}

// TestRunDeliversEveryTrainer checks that each line of the table trains, is measured, and says whom it protects.
func TestRunDeliversEveryTrainer(t *testing.T) {
	var trained, base []report.Trainer
	err := Run(context.Background(), ratings(t), withQuality(), params(), Observer{
		Trained:  func(r report.Trainer) { trained = append(trained, r) },
		Baseline: func(r report.Trainer) { base = append(base, r) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range withQuality() {
		n := 0
		for _, r := range trained {
			if r.Name != x.Name || r.Protocol != string(x.Protocol) {
				continue
			}
			n++
			if r.Iterations != 2 || r.Rank != 4 || !(r.IterationSeconds > 0) || !(r.RatingsPerSecond > 0) || r.Privacy == "" || r.Config == nil || r.MemoryBytes <= 0 || r.TunedOn == "" || r.Repeats != 1 {
				t.Errorf("incomplete row %+v", r)
			}
			if private := x.Private && r.Target.Finite(); private != r.Epsilon.Finite() || private != (r.Unit != "none") && x.Private {
				t.Errorf("%s: target ε %v, proved ε %v for %q", r.Name, r.Target, r.Epsilon, r.Unit)
			}
			if r.SeededNoise != r.Epsilon.Finite() || r.SeededNoise != strings.Contains(r.Privacy, "WARNING: the noise came from a seed") {
				t.Errorf("%s, ε=%v: seeded noise is %v, but the model says %q", r.Name, r.Epsilon, r.SeededNoise, r.Privacy)
			}
			if r.Epsilon.Finite() && r.Epsilon > r.Target*(1+1e-9) {
				t.Errorf("%s proves ε=%v, more than the %v asked for", r.Name, r.Epsilon, r.Target)
			}
		}
		want := 1
		if x.Private {
			want = len(params().Epsilons)
		}
		if n != want {
			t.Errorf("%s, %s: %d rows, want %d", x.Name, x.Protocol, n, want)
		}
	}
	for _, r := range append(trained, base...) {
		names := []string{"rmse"}
		if r.Protocol == string(Implicit) {
			names = []string{"recall@20", "recall@50", "ndcg@100"}
		}
		for _, name := range names {
			if v, ok := r.Metrics[name]; !ok || !(v > 0) {
				t.Errorf("%s, %s: %s is %v", r.Name, r.Protocol, name, v)
			}
		}
	}
	if len(base) != 3 {
		t.Errorf("%d baselines, want 3", len(base))
	}
}

func TestRunDeliversWhatWasInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := params()
	p.Iterations = 100_000
	var rows []report.Trainer
	err := Run(ctx, ratings(t), withQuality(), p, Observer{
		Iteration: func(x trainer.Progress) {
			if x.Iteration == 3 {
				cancel()
			}
		},
		Trained: func(r report.Trainer) { rows = append(rows, r) },
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want context.Canceled", err)
	}
	if len(rows) != 1 || rows[0].Iterations < 3 || !(rows[0].IterationSeconds > 0) || len(rows[0].Metrics) != 0 {
		t.Errorf("rows %+v, want one with its iterations and without metrics", rows)
	}
}

// small is a hand-made split of three users and four items.
func small(t *testing.T, triples ...dataset.Triple) *dataset.Ratings {
	t.Helper()
	r, err := dataset.New(3, 4, triples, dataset.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBaselineErrors(t *testing.T) {
	train := small(t, dataset.Triple{User: 0, Item: 0, Value: 2}, dataset.Triple{User: 1, Item: 0, Value: 4}, dataset.Triple{User: 2, Item: 1, Value: 3})
	test := small(t, dataset.Triple{User: 0, Item: 1, Value: 5}, dataset.Triple{User: 1, Item: 3, Value: 2})
	for name, c := range map[string]struct {
		model ratingPredictor
		want  float64
	}{
		"global mean": {globalMean(train), math.Sqrt((4 + 1) / 2.)}, // 3 everywhere
		"item mean":   {itemMeans(train), math.Sqrt((4 + 1) / 2.)},  // item 1: 3, item 3: no rating, 3
	} {
		got, err := rmse(context.Background(), 2, c.model, test)
		if err != nil || math.Abs(float64(got["rmse"])-c.want) > 1e-6 {
			t.Errorf("%s: %v, %v; want %v", name, got["rmse"], err, c.want)
		}
	}
}

func TestRankingByHand(t *testing.T) {
	users := dataset.HeldOut{
		Users:  []int32{1},
		FoldIn: small(t, dataset.Triple{User: 1, Item: 0, Value: 1}),
		Target: small(t, dataset.Triple{User: 1, Item: 1, Value: 1}, dataset.Triple{User: 1, Item: 3, Value: 1}),
	}
	// Without item 0 the ranking is 2, 1, 3: the targets are second and third.
	score := func(_ []int32, _ []float32, out []float32) error {
		copy(out, []float32{9, 3, 5, 1})
		return nil
	}
	got, err := ranking(context.Background(), 1, score, users)
	if err != nil {
		t.Fatal(err)
	}
	want := (1/math.Log2(3) + 1/math.Log2(4)) / (1 + 1/math.Log2(3))
	if got["recall@20"] != 1 || math.Abs(float64(got["ndcg@100"])-want) > 1e-12 {
		t.Errorf("%v, want recall 1 and NDCG %v", got, want)
	}
	failing := func([]int32, []float32, []float32) error { return errors.New("no factors") }
	if _, err := ranking(context.Background(), 2, failing, users); err == nil || err.Error() != "no factors" {
		t.Errorf("error %v, want the scorer's", err)
	}
}

// TestQualityDoesNotDependOnThreads compares bits.
func TestQualityDoesNotDependOnThreads(t *testing.T) {
	var metrics []map[string]report.Number
	for _, threads := range []int{1, 3} {
		p := params()
		p.Threads = threads
		list, err := Select("als", "explicit,implicit")
		if err != nil {
			t.Fatal(err)
		}
		if err := Run(context.Background(), ratings(t), list, p, Observer{Trained: func(r report.Trainer) { metrics = append(metrics, r.Metrics) }}); err != nil {
			t.Fatal(err)
		}
	}
	for k := range metrics[:2] {
		for name, v := range metrics[k] {
			if metrics[k+2][name] != v {
				t.Errorf("%s is %v with one thread and %v with three", name, v, metrics[k+2][name])
			}
		}
	}
}

func TestSelect(t *testing.T) {
	names := func(list []Trainer) (s []string) {
		for _, x := range list {
			s = append(s, x.Name+" "+string(x.Protocol))
		}
		return s
	}
	for _, c := range []struct{ trainers, protocols, want string }{
		{"none", "all", ""},
		{"all", "none", ""},
		{"als", "explicit", "als explicit"},
		{"DPALS, als", "implicit", "als implicit,dpals implicit"},
		{"als", "all", "als speed,als explicit,als implicit"},
	} {
		list, err := Select(c.trainers, c.protocols)
		if got := strings.Join(names(list), ","); err != nil || got != c.want {
			t.Errorf("Select(%q, %q) = %q, %v; want %q", c.trainers, c.protocols, got, err, c.want)
		}
	}
	for _, c := range [][2]string{{"svd", "all"}, {"als", "leave-one-out"}} {
		if _, err := Select(c[0], c[1]); err == nil || !strings.Contains(err.Error(), "choose from") {
			t.Errorf("Select(%q, %q): %v, want an error that lists the choices", c[0], c[1], err)
		}
	}
}

func TestPlanCoversEveryTrainer(t *testing.T) {
	plan := Plan(ratings(t), Trainers, params())
	for _, x := range withQuality() {
		if !slices.ContainsFunc(plan, func(m report.Memory) bool {
			return strings.HasPrefix(m.What, x.Name+" "+string(x.Protocol)) && m.Bytes > 0 && !m.Shared
		}) {
			t.Errorf("no plan for %s, %s in %+v", x.Name, x.Protocol, plan)
		}
	}
	// Of the ranks of one trainer the largest counts.
	p := params()
	p.Rank = 0
	for _, m := range Plan(ratings(t), Trainers, p) {
		want := "r=64"
		if m.Phase == string(Speed) {
			want = "r=128"
		}
		if !m.Shared && !strings.HasSuffix(m.What, want) {
			t.Errorf("planned for %q, want %s", m.What, want)
		}
	}
}

// withQuality lists the trainers whose protocols measure quality.
func withQuality() []Trainer {
	return slices.DeleteFunc(slices.Clone(Trainers), func(t Trainer) bool { return t.Protocol == Speed })
}

// TestSpeedProtocol times ALS and DPALS on all ratings at the same rank, DPALS at the smallest ε only, and once however
// many repeats there are.
func TestSpeedProtocol(t *testing.T) {
	data, p := ratings(t), params()
	p.Epsilons, p.Repeats = []float64{5, 2}, 3
	list, err := Select("all", "speed")
	if err != nil {
		t.Fatal(err)
	}
	var rows []report.Trainer
	if err := Run(context.Background(), data, list, p, Observer{Trained: func(r report.Trainer) { rows = append(rows, r) }}); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Name != "als" || rows[1].Name != "dpals" || rows[1].Target != 2 {
		t.Fatalf("rows %+v, want als and dpals at ε = 2", rows)
	}
	for _, r := range rows {
		if r.Protocol != "speed" || r.Rank != p.Rank || r.TrainRatings != data.NumRatings() || !(r.IterationSeconds > 0) || len(r.Metrics) != 0 {
			t.Errorf("row %+v", r)
		}
	}
}
