package eval_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpmf-go/dpmf/eval"
	"pgregory.net/rapid"
)

// matrix is a Matrix of literal rows.
type matrix struct {
	items  int
	ids    [][]int32
	values [][]float32
}

func (m matrix) NumUsers() int { return len(m.ids) }
func (m matrix) NumItems() int { return m.items }
func (m matrix) User(user int) ([]int32, []float32) {
	return m.ids[user], m.values[user]
}

// randomMatrix has each rating with the given probability, and some users with
// none.
func randomMatrix(users, items int, density float64, seed uint64) matrix {
	generator := rand.New(rand.NewPCG(seed, 0))
	m := matrix{items: items, ids: make([][]int32, users), values: make([][]float32, users)}
	for user := range users {
		if user%7 == 3 {
			continue
		}
		for item := range items {
			if generator.Float64() < density {
				m.ids[user] = append(m.ids[user], int32(item))
				m.values[user] = append(m.values[user], float32(1+generator.IntN(5)))
			}
		}
	}
	return m
}

// predict is an arbitrary fixed prediction.
func predict(user, item int) float32 {
	return 3 + float32(math.Sin(float64(user*31+item*17)))
}

// batch predicts the same, a user at a time.
type batch struct{ eval.PredictorFunc }

func (b batch) PredictItems(user int, items []int32, out []float32) {
	for i, item := range items {
		out[i] = b.PredictorFunc(user, int(item))
	}
}

func near(got, want float64) bool {
	return math.Abs(got-want) <= 1e-12*max(1, math.Abs(want))
}

func TestErrorsByHand(t *testing.T) {
	test := matrix{3, [][]int32{{0, 2}, {}, {1}}, [][]float32{{1, 5}, {}, {3}}}
	always3 := eval.PredictorFunc(func(int, int) float32 { return 3.5 })
	// Errors 2.5, −1.5, 0.5: mean 0.5, squares 8.75, variance 8.75/3 − 0.25.
	got := eval.Measure(always3, test)
	if got.Count != 3 || !near(got.RMSE, math.Sqrt(8.75/3)) || !near(got.MAE, 1.5) || !near(got.Mean, 0.5) || !near(got.Variance, 8.75/3-0.25) {
		t.Errorf("%+v", got)
	}
	if eval.RMSE(always3, test) != got.RMSE || eval.MAE(always3, test) != got.MAE {
		t.Error("RMSE and MAE differ from Measure")
	}
}

func TestErrorsOfNothing(t *testing.T) {
	for _, empty := range []matrix{{}, {items: 2, ids: [][]int32{{}, {}}, values: [][]float32{{}, {}}}} {
		got := eval.Measure(eval.PredictorFunc(predict), empty)
		if got.Count != 0 || !math.IsNaN(got.RMSE) || !math.IsNaN(got.MAE) || !math.IsNaN(got.Mean) || !math.IsNaN(got.Variance) {
			t.Errorf("%+v", got)
		}
	}
	nan := eval.PredictorFunc(func(user, item int) float32 { return float32(math.NaN()) })
	if got := eval.RMSE(nan, randomMatrix(10, 10, 0.5, 1)); !math.IsNaN(got) {
		t.Errorf("NaN predictions gave RMSE %v", got)
	}
}

func TestErrorsAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randomMatrix(rapid.IntRange(1, 900).Draw(t, "users"), rapid.IntRange(1, 40).Draw(t, "items"), rapid.Float64Range(0.01, 1).Draw(t, "density"), rapid.Uint64().Draw(t, "seed"))
		offset := rapid.SampledFrom([]float64{0, 1, 1e4}).Draw(t, "offset")
		predictor := eval.PredictorFunc(func(user, item int) float32 { return predict(user, item) + float32(offset) })
		var errors []float64
		for user := range m.ids {
			for i, item := range m.ids[user] {
				errors = append(errors, float64(predictor(user, int(item)))-float64(m.values[user][i]))
			}
		}
		if len(errors) == 0 {
			return
		}
		n := float64(len(errors))
		var sum, squares, absolute, deviations float64
		for _, e := range errors {
			sum += e
			squares += e * e
			absolute += math.Abs(e)
		}
		for _, e := range errors {
			deviations += (e - sum/n) * (e - sum/n)
		}
		got := eval.Measure(predictor, m)
		if got.Count != len(errors) || !near(got.RMSE, math.Sqrt(squares/n)) || !near(got.MAE, absolute/n) || !near(got.Mean, sum/n) || math.Abs(got.Variance-deviations/n) > 1e-9*deviations/n {
			t.Fatalf("%+v; brute force %v, %v, %v, %v", got, math.Sqrt(squares/n), absolute/n, sum/n, deviations/n)
		}
		for _, workers := range []int{1, 3} {
			if again := eval.Measure(predictor, m, eval.Workers(workers)); again != got {
				t.Fatalf("%d workers: %+v, want %+v", workers, again, got)
			}
		}
		if again := eval.Measure(batch{predictor}, m); again != got {
			t.Fatalf("in batches: %+v, want %+v", again, got)
		}
	})
}

func TestKLGauge(t *testing.T) {
	// ½(2/4 + (1−3)²/4 − 1 + ln 2).
	got := eval.KLGauge(eval.Errors{Mean: 1, Variance: 2}, eval.Errors{Mean: 3, Variance: 4})
	if want := 0.5 * (0.5 + 1 - 1 + math.Ln2); !near(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	same := eval.Errors{Mean: 0.3, Variance: 1.7}
	if got := eval.KLGauge(same, same); got != 0 {
		t.Errorf("equal errors gave %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.Custom(func(t *rapid.T) eval.Errors {
			return eval.Errors{Mean: rapid.Float64Range(-3, 3).Draw(t, "mean"), Variance: rapid.Float64Range(0.01, 10).Draw(t, "variance")}
		})
		if got := eval.KLGauge(draw.Draw(t, "train"), draw.Draw(t, "test")); got < -1e-15 {
			t.Fatalf("a divergence of %v", got)
		}
	})
	empty := eval.Measure(eval.PredictorFunc(predict), matrix{})
	if got := eval.KLGauge(empty, same); !math.IsNaN(got) {
		t.Errorf("no training ratings gave %v", got)
	}
}

// lists is a Ranker of literal lists.
func lists(all [][]int32) eval.Ranker {
	return func(user, k int, top []int32) []int32 {
		return append(top, all[user][:min(k, len(all[user]))]...)
	}
}

func TestRankByHand(t *testing.T) {
	heldOut := matrix{6, [][]int32{{1, 4}, {}, {0}}, make([][]float32, 3)}
	ranker := lists([][]int32{{4, 2, 1}, {5}, {3, 2}})
	got, err := eval.Rank(ranker, heldOut, []int{1, 3})
	if err != nil {
		t.Fatal(err)
	}
	if got.Users != 2 || got.Skipped != 1 {
		t.Errorf("%+v", got)
	}
	ideal := 1 + 1/math.Log2(3)
	want := []eval.Cutoff{
		// Lists 4 and 3: one hit of one possible, none of one.
		{K: 1, Recall: 0.5, Precision: 0.5, NDCG: 0.5, HitRate: 0.5, Coverage: 2.0 / 6},
		// Lists 4 2 1 and 3 2: two hits of two at ranks 1 and 3, none. The
		// skipped user's item 5 is not covered.
		{K: 3, Recall: 0.5, Precision: 2.0 / 6, NDCG: (1 + 0.5) / ideal / 2, HitRate: 0.5, Coverage: 4.0 / 6},
	}
	for i, w := range want {
		g := got.At[i]
		if g.K != w.K || !near(g.Recall, w.Recall) || !near(g.Precision, w.Precision) || !near(g.NDCG, w.NDCG) || !near(g.HitRate, w.HitRate) || !near(g.Coverage, w.Coverage) {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
	if recall, err := eval.Recall(ranker, heldOut, 3); err != nil || recall != got.At[1].Recall {
		t.Errorf("Recall %v, %v", recall, err)
	}
	if ndcg, err := eval.NDCG(ranker, heldOut, 3); err != nil || ndcg != got.At[1].NDCG {
		t.Errorf("NDCG %v, %v", ndcg, err)
	}
}

func TestRankAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.IntRange(1, 60).Draw(t, "items")
		heldOut := randomMatrix(rapid.IntRange(1, 700).Draw(t, "users"), items, rapid.Float64Range(0.02, 0.5).Draw(t, "density"), rapid.Uint64().Draw(t, "seed"))
		salt := rapid.Uint64().Draw(t, "salt")
		list := func(user, k int) []int32 {
			generator := rand.New(rand.NewPCG(salt, uint64(user)))
			order := make([]int32, items)
			for i, item := range generator.Perm(items) {
				order[i] = int32(item)
			}
			return order[:min(k, items, 5+user%20)] // some lists are short
		}
		ranker := func(user, k int, top []int32) []int32 { return append(top, list(user, k)...) }
		cutoffs := rapid.SliceOfN(rapid.IntRange(1, 80), 1, 3).Draw(t, "cutoffs")
		got, err := eval.Rank(ranker, heldOut, cutoffs)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range cutoffs {
			var recall, precision, ndcg, hitRate, users float64
			covered := map[int32]bool{}
			for user, relevant := range heldOut.ids {
				if len(relevant) == 0 {
					continue
				}
				users++
				hits, gain, best := 0, 0.0, 0.0
				for rank, item := range list(user, k) {
					covered[item] = true
					if slices.Contains(relevant, item) {
						hits++
						gain += 1 / math.Log2(float64(rank)+2)
					}
				}
				for rank := range min(k, len(relevant)) {
					best += 1 / math.Log2(float64(rank)+2)
				}
				recall += float64(hits) / float64(min(k, len(relevant)))
				precision += float64(hits) / float64(k)
				ndcg += gain / best
				if hits > 0 {
					hitRate++
				}
			}
			if got.Users != int(users) || got.Users+got.Skipped != heldOut.NumUsers() {
				t.Fatalf("%d users and %d skipped, want %v of %d", got.Users, got.Skipped, users, heldOut.NumUsers())
			}
			c := got.At[i]
			if users == 0 {
				if !math.IsNaN(c.Recall) || !math.IsNaN(c.NDCG) {
					t.Fatalf("no user gave %+v", c)
				}
				continue
			}
			if c.K != k || !near(c.Recall, recall/users) || !near(c.Precision, precision/users) || !near(c.NDCG, ndcg/users) || !near(c.HitRate, hitRate/users) || !near(c.Coverage, float64(len(covered))/float64(items)) {
				t.Fatalf("got %+v, want %v %v %v %v", c, recall/users, precision/users, ndcg/users, hitRate/users)
			}
		}
		for _, workers := range []int{1, 3} {
			again, err := eval.Rank(ranker, heldOut, cutoffs, eval.Workers(workers))
			if err != nil || got.Users > 0 && fmt.Sprint(again) != fmt.Sprint(got) {
				t.Fatalf("%d workers: %+v, %v, want %+v", workers, again, err, got)
			}
			for i := range again.At {
				if math.Float64bits(again.At[i].NDCG) != math.Float64bits(got.At[i].NDCG) {
					t.Fatalf("%d workers change the last bits", workers)
				}
			}
		}
	})
}

func TestRankErrors(t *testing.T) {
	heldOut := matrix{4, [][]int32{{1}, {2, 3}}, make([][]float32, 2)}
	good := lists([][]int32{{0, 1}, {2, 0}})
	for name, c := range map[string]struct {
		ranker  eval.Ranker
		heldOut matrix
		cutoffs []int
		phrase  string
	}{
		"no cutoff":      {good, heldOut, nil, "no cutoff"},
		"cutoff 0":       {good, heldOut, []int{2, 0}, "cutoff of 0"},
		"long list":      {func(int, int, []int32) []int32 { return []int32{0, 1, 2} }, heldOut, []int{2}, "user 0 3 items"},
		"twice":          {lists([][]int32{{0, 1}, {2, 2}}), heldOut, []int{2}, "user 1 item 2 twice"},
		"no such item":   {lists([][]int32{{0, 4}, {2}}), heldOut, []int{2}, "item 4"},
		"negative item":  {lists([][]int32{{-1}, {2}}), heldOut, []int{2}, "item -1"},
		"held out twice": {good, matrix{4, [][]int32{{1}, {2, 2}}, make([][]float32, 2)}, []int{2}, "held-out item 2 twice"},
		"held out 4":     {good, matrix{4, [][]int32{{4}, {2}}, make([][]float32, 2)}, []int{2}, "held-out item 4"},
	} {
		_, err := eval.Rank(c.ranker, c.heldOut, c.cutoffs)
		if err == nil || !strings.Contains(err.Error(), c.phrase) {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.cutoffs) == 1 {
			if _, err := eval.Recall(c.ranker, c.heldOut, 2); err == nil {
				t.Errorf("%s: Recall gave no error", name)
			}
			if _, err := eval.NDCG(c.ranker, c.heldOut, 2); err == nil {
				t.Errorf("%s: NDCG gave no error", name)
			}
		}
	}
}
