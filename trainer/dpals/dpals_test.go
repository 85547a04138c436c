package dpals

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/kerneltest"
	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/privacy"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/als"
)

func mustTrain(t testing.TB, r *dataset.Ratings, c Config) *trainer.Model {
	t.Helper()
	m, err := Train(context.Background(), r, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// variants are private configurations that together use every option.
func variants() map[string]Config {
	v := map[string]Config{
		"explicit adaptive":  privateConfig(Adaptive, trainer.Explicit),
		"explicit uniform":   privateConfig(Uniform, trainer.Explicit),
		"explicit tail":      privateConfig(Tail, trainer.Explicit),
		"implicit adaptive":  privateConfig(Adaptive, trainer.Unobserved),
		"implicit uniform":   privateConfig(Uniform, trainer.Unobserved),
		"explicit mid-scale": privateConfig(Adaptive, trainer.Explicit),
		"explicit separate":  privateConfig(Adaptive, trainer.Explicit),
		"implicit separate":  privateConfig(Tail, trainer.Unobserved),
	}
	change := func(name string, f func(c *Config)) { c := v[name]; f(&c); v[name] = c }
	change("explicit mid-scale", func(c *Config) { c.Centring, c.CountExponent = CentreMidScale, -0.5 })
	change("explicit separate", func(c *Config) { c.Projection = Separate })
	change("implicit separate", func(c *Config) { c.Projection = Separate })
	c := v["explicit tail"]
	c.Centring, c.CentreNoise, c.RHSRatio, c.Loss.Background = CentrePrivateMean, 9, 0.8, 0.1
	v["explicit private mean with background"] = c
	return v
}

// The noisy item step, recomputed in float64 from the exact statistics, the ledger's noise scales and
// the streams numbered (release, iteration, item).
func TestItemStepAgainstOracle(t *testing.T) {
	for name, c := range variants() {
		t.Run(name, func(t *testing.T) {
			data := smallRatings(t, 60, 40, 3)
			r, err := newRun(data, c)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.prepare(context.Background()); err != nil {
				t.Fatal(err)
			}
			noise := privacy.NewSeededNoise(privacy.Seed(*c.NoiseSeed))
			exactCounts := countItems(data, c.CountItems, c.Seed)
			noise.Stream(streamCounts, 0, 0).AddVector64(exactCounts, c.CountNoise)
			for i, n := range exactCounts {
				if r.counts[i] != max(1, n) {
					t.Fatalf("item %d has the noisy count %v, want %v", i, r.counts[i], max(1, n))
				}
			}
			for iteration := 1; iteration <= c.Iterations; iteration++ {
				seen := transcript{counts: r.counts, items: slices.Clone(r.model.ItemFactors), offset: r.model.Offsets}
				exact := answers(t, data, c, seen)
				if _, err := r.runUsers(context.Background(), r.userHalf(c.Clip)); err != nil {
					t.Fatal(err)
				}
				if err := r.itemStep(context.Background(), r.itemHalf(), iteration); err != nil {
					t.Fatal(err)
				}
				global := mat.NewSymDense(c.Rank, nil)
				if c.Loss.Background > 0 {
					noise.Stream(streamGlobal, uint32(iteration), 0).AddSymmetric(exact.global, c.Rank, kernels.Stride(c.Rank), r.releases.Global.Noise)
					global = symmetric(exact.global, c.Rank)
					if c.Projection == Separate {
						global = positivePart(global)
					}
					global.ScaleSym(c.Loss.Background, global)
				}
				for i := range data.NumItems() {
					got := r.model.ItemVector(i)
					if !r.frequent[i] {
						for _, v := range got {
							if math.Float32bits(v) != 0 {
								t.Fatalf("item %d is not frequent but has the factors %v", i, got)
							}
						}
						continue
					}
					stream := noise.Stream(streamItem, uint32(iteration), uint64(i))
					stream.AddSymmetric(exact.grams[i], c.Rank, kernels.Stride(c.Rank), r.releases.Gram.Noise)
					stream.AddVector(exact.rhs[i][:c.Rank], r.releases.RHS.Noise)
					gram := symmetric(exact.grams[i], c.Rank)
					if c.Projection == Separate {
						gram = positivePart(gram)
					}
					gram.AddSym(gram, global)
					ridge := c.ItemRidge.Lambda * math.Pow(r.counts[i]+1, c.ItemRidge.Exponent)
					want := project(gram, exact.rhs[i], ridge)
					for k := range got {
						if math.Abs(float64(got[k])-want.AtVec(k)) > 2e-4*(1+mat.Norm(want, 2)) {
							t.Fatalf("iteration %d, item %d: %v, want %v", iteration, i, got, mat.Formatted(want.T()))
						}
					}
				}
			}
		})
	}
}

func symmetric(a []float32, r int) *mat.SymDense {
	s := mat.NewSymDense(r, nil)
	for i := range r {
		for j := i; j < r; j++ {
			s.SetSym(i, j, float64(a[i*kernels.Stride(r)+j]))
		}
	}
	return s
}

// spectral is Σ f(λ)·q·qᵀ.
func spectral(s *mat.SymDense, f func(float64) float64) *mat.SymDense {
	var e mat.EigenSym
	if !e.Factorize(s, true) {
		panic("no eigenvalues")
	}
	var q mat.Dense
	e.VectorsTo(&q)
	out := mat.NewSymDense(s.SymmetricDim(), nil)
	for k, v := range e.Values(nil) {
		out.SymRankOne(out, f(v), q.ColView(k))
	}
	return out
}

func positivePart(s *mat.SymDense) *mat.SymDense {
	return spectral(s, func(x float64) float64 { return max(x, 0) })
}

// project is f(gram + ridge·I)·b with f(x) = 1/max(x, ridge).
func project(gram *mat.SymDense, rhs []float32, ridge float64) *mat.VecDense {
	r := gram.SymmetricDim()
	b, x := mat.NewVecDense(r, nil), mat.NewVecDense(r, nil)
	for k := range r {
		gram.SetSym(k, k, gram.At(k, k)+ridge)
		b.SetVec(k, float64(rhs[k]))
	}
	x.MulVec(spectral(gram, func(v float64) float64 { return 1 / max(v, ridge) }), b)
	return x
}

func TestStreamNumbersAreDistinct(t *testing.T) {
	streams := []uint32{streamCounts, streamCentreSum, streamCentreCount, streamGlobal, streamItem}
	slices.Sort(streams)
	if len(slices.Compact(slices.Clone(streams))) != len(streams) {
		t.Errorf("two releases share a stream: %v", streams)
	}
	// Neither do iterations and items of one release share one: no two draws are equal.
	n := privacy.NewSeededNoise(privacy.Seed(1))
	draws := map[float64]bool{}
	for _, s := range streams {
		for iteration := range uint32(4) {
			for item := range uint64(4) {
				x := []float64{0}
				n.Stream(s, iteration, item).AddVector64(x, 1)
				draws[x[0]] = true
			}
		}
	}
	if len(draws) != len(streams)*16 {
		t.Errorf("%d different draws from %d streams", len(draws), len(streams)*16)
	}
}

func TestSameBitsForAnyWorkersAndTier(t *testing.T) {
	data := smallRatings(t, 150, 70, 4)
	for name, c := range variants() {
		c.Rank = 19
		var first *trainer.Model
		var objective []float64
		t.Run(name, func(t *testing.T) {
			kerneltest.EachTier(t, func(t *testing.T) {
				for _, workers := range []int{1, 2, 3, 8} {
					var seen []float64
					c.Workers = workers
					c.Progress = func(p trainer.Progress) { seen = append(seen, p.Objective, p.TrainRMSE) }
					m := mustTrain(t, data, c)
					if first == nil {
						first, objective = m, seen
					}
					sameBits(t, "item factors", m.ItemFactors, first.ItemFactors)
					sameBits(t, "user factors", m.UserFactors, first.UserFactors)
					if m.Offsets.Global != first.Offsets.Global || !slices.Equal(seen, objective) {
						t.Errorf("%d workers: offset %v, progress %v; want %v, %v", workers, m.Offsets.Global, seen, first.Offsets.Global, objective)
					}
				}
			})
		})
	}
}

func TestWithoutSeedRunsDiffer(t *testing.T) {
	data := smallRatings(t, 50, 30, 5)
	c := privateConfig(Adaptive, trainer.Explicit)
	c.NoiseSeed = nil
	a, b := mustTrain(t, data, c), mustTrain(t, data, c)
	if slices.Equal(a.ItemFactors, b.ItemFactors) {
		t.Error("two runs with noise from the operating system are equal")
	}
	if a.Ledger.Source().Seeded() || strings.Contains(a.Privacy(), "seed") {
		t.Errorf("the ledger speaks of a seed: %s", a.Privacy())
	}
	seed := uint64(1)
	c.NoiseSeed = &seed
	if text := mustTrain(t, data, c).Privacy(); !strings.Contains(text, "WARNING: the noise came from a seed") {
		t.Errorf("a seeded run does not say so: %s", text)
	}
}

// Without noise, limits and bounds DPALS is ALS, to the bit. The scale is symmetric about 0, so that
// centring subtracts nothing.
func TestWithoutPrivacyItIsALS(t *testing.T) {
	list := triples(smallRatings(t, 80, 50, 6), -1)
	for k := range list {
		list[k].Value -= 3
	}
	data, err := dataset.New(80, 50, list, dataset.BuildOptions{Scale: dataset.Scale{Min: -2, Max: 2, Step: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, loss := range []trainer.Loss{{Kind: trainer.Explicit}, {Kind: trainer.Explicit, Background: 0.2}, {Kind: trainer.Unobserved, Background: 0.1}} {
		for _, projection := range []Projection{Joint, Separate} {
			c := Config{
				Rank: 7, Iterations: 3, Budget: privacy.Budget{Epsilon: math.Inf(1), Delta: 1e-5}, Loss: loss,
				UserRidge: trainer.Ridge{Lambda: 0.5, Exponent: 0.5}, ItemRidge: trainer.Ridge{Lambda: 2},
				InitStd: 0.2, Seed: 3, Clip: math.Inf(1), RatingBound: math.Inf(1), Limit: Unlimited,
				Projection: projection, CountItems: 1, FrequentFraction: 1,
			}
			if loss.Kind == trainer.Explicit {
				c.Centring = CentreMidScale
			}
			got := mustTrain(t, data, c)
			want, err := als.Train(context.Background(), data, als.Config{
				Rank: 7, Iterations: 3, Loss: loss, UserRidge: c.UserRidge, ItemRidge: c.ItemRidge, InitStd: 0.2, Seed: 3,
			})
			if err != nil {
				t.Fatal(err)
			}
			sameBits(t, "item factors", got.ItemFactors, want.ItemFactors)
			sameBits(t, "user factors", got.UserFactors, want.UserFactors)
			for u := range data.NumUsers() {
				if got.Predict(u, 3) != want.Predict(u, 3) {
					t.Errorf("user %d: prediction %v, ALS %v", u, got.Predict(u, 3), want.Predict(u, 3))
				}
			}
			if text := got.Privacy(); !strings.HasPrefix(text, "No privacy guarantee") {
				t.Errorf("without noise the model claims: %s", text)
			}
			path := filepath.Join(t.TempDir(), "m")
			if err := got.Save(path); err != nil {
				t.Fatal(err)
			}
			if _, err := trainer.Load(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestMidScaleIsSubtractedAndAddedBack(t *testing.T) {
	data := smallRatings(t, 40, 30, 6)
	list := triples(data, -1)
	for k := range list {
		list[k].Value -= 3
	}
	centred, err := dataset.New(40, 30, list, dataset.BuildOptions{Scale: dataset.Scale{Min: -2, Max: 2, Step: 1}})
	if err != nil {
		t.Fatal(err)
	}
	c := privateConfig(Adaptive, trainer.Explicit)
	c.Centring = CentreMidScale
	a, b := mustTrain(t, data, c), mustTrain(t, centred, c)
	sameBits(t, "item factors", a.ItemFactors, b.ItemFactors)
	if a.Offsets.Global != 3 || b.Offsets.Global != 0 {
		t.Errorf("offsets %v and %v", a.Offsets.Global, b.Offsets.Global)
	}
	c.ScaleMin, c.ScaleMax = 0, 10
	if m := mustTrain(t, data, c); m.Offsets.Global != 5 || m.ClampMin != 0 || m.ClampMax != 10 {
		t.Errorf("a given scale was not used: offset %v, clamp %v to %v", m.Offsets.Global, m.ClampMin, m.ClampMax)
	}
}

func TestInfrequentItemsArePredictedByTheBase(t *testing.T) {
	data := smallRatings(t, 60, 40, 7)
	c := privateConfig(Adaptive, trainer.Explicit)
	c.FrequentFraction = 0.31
	m := mustTrain(t, data, c)
	zero := 0
	for i := range m.NumItems() {
		if slices.ContainsFunc(m.ItemVector(i), func(v float32) bool { return v != 0 }) {
			continue
		}
		zero++
		for u := range m.NumUsers() {
			items, values := data.User(u)
			var sum float64
			for _, v := range values {
				sum += float64(v) - 3
			}
			want := 3 + sum/(float64(len(items))+c.Shrinkage)
			if got := float64(m.Predict(u, i)); math.Abs(got-want) > 1e-6 {
				t.Errorf("user %d, item %d without factors: %v, want the user's mean %v", u, i, got, want)
			}
		}
	}
	if want := 40 - int(math.Ceil(0.31*40)); zero != want {
		t.Errorf("%d items without factors, want %d", zero, want)
	}
}

func TestLedger(t *testing.T) {
	data := smallRatings(t, 60, 40, 8)
	for name, c := range variants() {
		for _, budget := range []privacy.Budget{{Epsilon: 2, Delta: 1e-3}, {Epsilon: 20, Delta: 1e-6}} {
			c.Budget, c.CountNoise, c.Iterations = budget, 40, 3
			if c.CentreNoise > 0 {
				c.CentreNoise = 20
			}
			m := mustTrain(t, data, c)
			if !m.Ledger.Sealed() || m.Ledger.Unit() != privacy.UserLevel || m.Ledger.TargetDelta() != budget.Delta {
				t.Errorf("%s: ledger %v", name, m.Ledger)
			}
			if e := m.Ledger.Epsilon(budget.Delta); !(e <= budget.Epsilon && e > 0.98*budget.Epsilon) {
				t.Errorf("%s: the ledger shows ε = %v of %v", name, e, budget.Epsilon)
			}
			root := math.Sqrt(float64(c.ItemsPerUser))
			type entry struct {
				sensitivity float64
				count       int
			}
			want := map[string]entry{
				"item counts":           {math.Sqrt(float64(c.CountItems)), 1},
				"item Gram matrices":    {root * c.Clip * c.Clip, 3},
				"item right-hand sides": {root * c.Clip * c.RatingBound, 3},
			}
			if c.Loss.Background > 0 {
				want["global Gram matrix"] = entry{c.Clip * c.Clip, 3}
			}
			if c.CentreNoise > 0 {
				want["sum of the users' clipped means"] = entry{c.RatingBound, 1}
				want["number of users"] = entry{1, 1}
			}
			for _, r := range m.Ledger.Releases() {
				w, ok := want[r.Name]
				if !ok || math.Abs(r.Sensitivity-w.sensitivity) > 1e-12 || r.Count != w.count || !(r.Noise > 0) {
					t.Errorf("%s: release %+v, want %+v", name, r, w)
				}
				delete(want, r.Name)
			}
			if len(want) > 0 {
				t.Errorf("%s: releases missing in the ledger: %v", name, want)
			}
		}
	}
}

// The printed ε is that of the ledger, whatever the configuration says.
func TestEpsilonComesFromTheLedger(t *testing.T) {
	c := privateConfig(Adaptive, trainer.Explicit)
	m := mustTrain(t, smallRatings(t, 60, 40, 8), c)
	if !strings.HasPrefix(m.Privacy(), "Differential privacy: ε = 5 at δ = 0.001.") {
		t.Errorf("%s", m.Privacy())
	}
	if strings.Contains(string(m.Config), "psilon") {
		t.Errorf("the configuration in the model names a budget: %s", m.Config)
	}
	b, err := json.Marshal(m.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	var ledger map[string]any
	if err := json.Unmarshal(b, &ledger); err != nil {
		t.Fatal(err)
	}
	for _, r := range ledger["releases"].([]any) {
		release := r.(map[string]any)
		release["noise"] = release["noise"].(float64) / 2
	}
	if b, err = json.Marshal(ledger); err != nil {
		t.Fatal(err)
	}
	var tampered privacy.Ledger
	if err := json.Unmarshal(b, &tampered); err != nil {
		t.Fatal(err)
	}
	m.Ledger = &tampered
	if e := tampered.Epsilon(1e-3); e < 10 || strings.Contains(m.Privacy(), "ε = 5 ") {
		t.Errorf("with half the noise the ledger shows ε = %v:\n%s", e, m.Privacy())
	}
}

func TestNewUserEqualsStored(t *testing.T) {
	data := smallRatings(t, 60, 45, 9)
	for name, c := range variants() {
		m := mustTrain(t, data, c)
		path := filepath.Join(t.TempDir(), "model")
		if err := m.Save(path); err != nil {
			t.Fatal(err)
		}
		public, err := trainer.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for u := range data.NumUsers() {
			items, values := data.User(u)
			for _, model := range []*trainer.Model{m, public} {
				n, err := model.NewUser(items, values)
				if err != nil {
					t.Fatal(err)
				}
				sameBits(t, name, n.Vector, m.UserVector(u))
				if model.PredictNew(n, 7) != m.Predict(u, 7) || !slices.Equal(model.RecommendNew(n, 9), m.Recommend(u, 9)) {
					t.Fatalf("%s: user %d: predictions of the new user differ", name, u)
				}
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
		{func(c *Config) { c.Budget.Epsilon = 0 }, "epsilon"},
		{func(c *Config) { c.Budget.Epsilon = -1 }, "epsilon"},
		{func(c *Config) { c.Budget.Epsilon = nan }, "epsilon"},
		{func(c *Config) { c.Budget.Delta = 0 }, "delta"},
		{func(c *Config) { c.Budget.Delta = 1 }, "delta"},
		{func(c *Config) { c.Budget.Delta = nan }, "delta"},
		{func(c *Config) { c.Rank = 0 }, "rank"},
		{func(c *Config) { c.Rank = math.MaxInt }, "rank"},
		{func(c *Config) { c.Iterations = 0 }, "iterations"},
		{func(c *Config) { c.Loss.Kind = "" }, "loss"},
		{func(c *Config) { c.Loss = trainer.Loss{Kind: trainer.Confidence, Alpha: 1} }, "confidence"},
		{func(c *Config) { c.Loss.Background = -1 }, "background"},
		{func(c *Config) { c.UserRidge.Lambda = 0 }, "user ridge"},
		{func(c *Config) { c.ItemRidge.Lambda = nan }, "item ridge"},
		{func(c *Config) { c.InitStd = 0 }, "initial factors"},
		{func(c *Config) { c.Clip = 0 }, "clip"},
		{func(c *Config) { c.Clip = inf }, "clip"},
		{func(c *Config) { c.Clip = nan }, "clip"},
		{func(c *Config) { c.Clip = 1e-140 }, "clip"},
		{func(c *Config) { c.Clip = 1e140 }, "clip"},
		{func(c *Config) { c.RatingBound = 1e-300 }, "rating bound"},
		{func(c *Config) { c.CountNoise = 1e300 }, "count noise"},
		{func(c *Config) { c.RHSRatio = 1e-300 }, "noise ratios"},
		{func(c *Config) { c.RatingBound = 0 }, "rating bound"},
		{func(c *Config) { c.RatingBound = inf }, "rating bound"},
		{func(c *Config) { c.Loss.Kind, c.Centring, c.RatingBound = trainer.Unobserved, "", 0.5 }, "rating bound"},
		{func(c *Config) { c.Centring = "median" }, "median"},
		{func(c *Config) { c.Loss.Kind = trainer.Unobserved }, "centring"},
		{func(c *Config) { c.ScaleMin, c.ScaleMax = 5, 1 }, "scale"},
		{func(c *Config) { c.ScaleMax = float32(nan) }, "scale"},
		{func(c *Config) { c.ScaleMax = float32(inf) }, "scale"},
		{func(c *Config) { c.Loss.Kind, c.Centring, c.ScaleMax = trainer.Unobserved, "", 5 }, "scale"},
		{func(c *Config) { c.Shrinkage = -1 }, "shrinkage"},
		{func(c *Config) { c.Shrinkage = inf }, "shrinkage"},
		{func(c *Config) { c.Centring = CentrePrivateMean }, "centre noise"},
		{func(c *Config) { c.CentreNoise = 3 }, "centre noise"},
		{func(c *Config) { c.Centring, c.CentreNoise = CentrePrivateMean, inf }, "centre noise"},
		{func(c *Config) { c.Projection = "" }, "projection"},
		{func(c *Config) { c.Limit = "" }, "limit"},
		{func(c *Config) { c.Limit, c.CountExponent = Unlimited, 0 }, "limit"},
		{func(c *Config) { c.ItemsPerUser = 0 }, "items per user"},
		{func(c *Config) { c.Limit, c.CountExponent = Tail, -0.5 }, "count exponent"},
		{func(c *Config) { c.CountExponent = nan }, "count exponent"},
		{func(c *Config) { c.CountExponent = -3 }, "count exponent"},
		{func(c *Config) { c.CountItems = 0 }, "count items"},
		{func(c *Config) { c.CountNoise = 0 }, "count noise"},
		{func(c *Config) { c.CountNoise = inf }, "count noise"},
		{func(c *Config) { c.FrequentFraction = 0 }, "frequent fraction"},
		{func(c *Config) { c.FrequentFraction = 1.01 }, "frequent fraction"},
		{func(c *Config) { c.FrequentFraction = nan }, "frequent fraction"},
		{func(c *Config) { c.GramRatio = -1 }, "noise ratios"},
		{func(c *Config) { c.RHSRatio = nan }, "noise ratios"},
		{func(c *Config) { c.GlobalRatio = inf }, "noise ratios"},
		{func(c *Config) { c.GlobalRatio = 1 }, "global noise ratio"},
		{func(c *Config) { c.Workers = -1 }, "workers"},
		// Impossible budgets are found when the noise is calibrated.
		{func(c *Config) { c.CountNoise = 0.1 }, "item counts already take"},
		{func(c *Config) { c.Centring, c.CentreNoise = CentrePrivateMean, 0.01 }, "already take"},
	} {
		config := Defaults(privacy.Budget{Epsilon: 1, Delta: 1e-5})
		config.Limit, config.CountExponent = Adaptive, -0.25
		config.Centring, config.CentreNoise = CentreUserMean, 0
		c.change(&config)
		m, err := Train(context.Background(), smallRatings(t, 9, 9, 1), config)
		if m != nil || err == nil {
			t.Errorf("%+v was accepted", config)
		} else if text := err.Error(); !strings.Contains(text, c.names) || !strings.HasPrefix(text, "dpals: ") || strings.Contains(text, "\n") {
			t.Errorf("error %q does not name %q in one line", text, c.names)
		}
	}
	for _, e := range []float64{0.1, 1, 2, 5, 10, 20, 100, inf} {
		budget := privacy.Budget{Epsilon: e, Delta: 1e-5}
		for _, c := range []Config{Defaults(budget), ImplicitDefaults(8, budget)} {
			if err := c.Validate(); err != nil {
				t.Errorf("defaults for ε = %v: %v", e, err)
			}
			if _, err := c.privacyPlan(1000).Calibrate(budget); err != nil {
				t.Errorf("defaults for ε = %v: %v", e, err)
			}
		}
	}
}

func TestNoRatings(t *testing.T) {
	r := smallRatings(t, 9, 9, 1)
	if _, err := Train(context.Background(), r.Above(99), privateConfig(Tail, trainer.Explicit)); err == nil || !strings.Contains(err.Error(), "no ratings") {
		t.Errorf("error %v", err)
	}
}

func TestMaxMemory(t *testing.T) {
	r := smallRatings(t, 50, 40, 2)
	for name, c := range variants() {
		c.MaxMemory = Plan(r, c).Total()
		if _, err := Train(context.Background(), r, c); err != nil {
			t.Errorf("%s: as much memory as planned: %v", name, err)
		}
		c.MaxMemory--
		if _, err := Train(context.Background(), r, c); err == nil || !strings.Contains(err.Error(), "MB are allowed") {
			t.Errorf("%s: one byte less than planned: error %v", name, err)
		}
	}
}

func TestCancel(t *testing.T) {
	r := smallRatings(t, 400, 300, 7)
	before := r.ContentSHA256()
	cause := errors.New("interrupted")
	for name, c := range variants() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		if _, err := Train(ctx, r, c); !errors.Is(err, cause) {
			t.Errorf("%s: cancelled before the start: error %v", name, err)
		}
		ctx, cancel = context.WithCancelCause(context.Background())
		c.Iterations, c.Rank = 5000, 8
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

func TestConfigKeepsFiniteBounds(t *testing.T) {
	c := privateConfig(Adaptive, trainer.Explicit)
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Config
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	back.Budget, back.NoiseSeed = c.Budget, c.NoiseSeed
	if !configsEqual(back, c) {
		t.Errorf("%+v became %+v", c, back)
	}
	c.Clip, c.RatingBound = math.Inf(1), math.Inf(1)
	if b, err = json.Marshal(c); err != nil || strings.Contains(string(b), `"clip"`) || strings.Contains(string(b), `"rating_bound"`) {
		t.Errorf("infinite bounds: %s, error %v", b, err)
	}
}

func configsEqual(a, b Config) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return slices.Equal(x, y) && a.Clip == b.Clip && a.RatingBound == b.RatingBound && a.Rank == b.Rank && a.Limit == b.Limit
}

// The largest and smallest numbers that Validate lets through give a model or an error, never a panic.
func TestExtremeSettings(t *testing.T) {
	data := smallRatings(t, 30, 20, 3)
	for _, x := range []float64{smallestBound, largestBound} {
		for name, change := range map[string]func(c *Config){
			"clip":         func(c *Config) { c.Clip = x },
			"rating bound": func(c *Config) { c.RatingBound = x },
			"both":         func(c *Config) { c.Clip, c.RatingBound = x, x },
			"count noise":  func(c *Config) { c.CountNoise = max(30, x) },
			"Gram noise":   func(c *Config) { c.GramRatio = x },
			"RHS noise":    func(c *Config) { c.RHSRatio = x },
			"ridge":        func(c *Config) { c.ItemRidge.Lambda, c.UserRidge.Lambda = x*x*x, x*x*x },
			"small ε":      func(c *Config) { c.Budget.Epsilon, c.CountNoise = 1e-9, 1e12 },
			"init":         func(c *Config) { c.InitStd = x },
		} {
			for _, projection := range []Projection{Joint, Separate} {
				c := privateConfig(Adaptive, trainer.Explicit)
				c.Projection = projection
				change(&c)
				m, err := Train(context.Background(), data, c)
				if err != nil {
					t.Logf("%s at %v: %v", name, x, err)
					continue
				}
				if e := m.Ledger.Epsilon(c.Budget.Delta); e > c.Budget.Epsilon {
					t.Errorf("%s at %v: the ledger shows ε = %v", name, x, e)
				}
			}
		}
	}
}

func TestProjectPSD(t *testing.T) {
	r, ld := 3, kernels.Stride(3)
	a := make([]float32, ld*ld)
	// Eigenvalues 3, −1 (in the plane of the first two axes) and −2.
	a[0], a[1], a[ld+1], a[2*ld+2] = 1, 2, 1, -2
	if err := projectPSD(a, r); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[int]float64{0: 1.5, 1: 1.5, ld + 1: 1.5, 2: 0, ld + 2: 0, 2*ld + 2: 0} {
		if math.Abs(float64(a[k])-want) > 1e-6 {
			t.Errorf("element %d,%d is %v, want %v", k/ld, k%ld, a[k], want)
		}
	}
}

// What progress reports for an iteration is the loss of the users who were solved against its items.
func TestProgress(t *testing.T) {
	data := smallRatings(t, 60, 40, 8)
	c := privateConfig(Adaptive, trainer.Explicit)
	c.Iterations, c.RatingBound = 3, 9 // no rating is clipped
	var last trainer.Progress
	calls := 0
	c.Progress = func(p trainer.Progress) {
		if calls++; p.Iteration != calls || p.Iterations != 3 {
			t.Errorf("call %d reports iteration %d of %d", calls, p.Iteration, p.Iterations)
		}
		last = p
	}
	m := mustTrain(t, data, c)
	m.ClampMin, m.ClampMax = 0, 0
	squared := math.Pow(rmse(m, data), 2) * float64(data.NumRatings())
	if math.Abs(last.TrainRMSE-rmse(m, data)) > 1e-4 {
		t.Errorf("training RMSE %v, directly evaluated %v", last.TrainRMSE, rmse(m, data))
	}
	if want := squared + als.Penalty(data, m, c.UserRidge); math.Abs(last.Objective-want) > 1e-3*want || calls != 3 {
		t.Errorf("objective %v after %d calls, directly evaluated %v", last.Objective, calls, want)
	}
}

// TestScaleReadOffRatingsIsRefused: the least and the greatest rating are statistics like any other.
func TestScaleReadOffRatingsIsRefused(t *testing.T) {
	triples := []dataset.Triple{{User: 0, Item: 0, Value: 1}, {User: 1, Item: 0, Value: 4}, {User: 1, Item: 1, Value: 2}}
	private, err := dataset.New(2, 2, triples, dataset.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := privateConfig(Adaptive, trainer.Explicit)
	c.ScaleMin, c.ScaleMax = 0, 0
	half, _ := private.SplitRandom(0.7, 1)
	for _, data := range []*dataset.Ratings{private, half} {
		if _, err := Train(context.Background(), data, c); err == nil || !strings.Contains(err.Error(), "ScaleMin") {
			t.Errorf("error %v, want a refusal that names ScaleMin", err)
		}
	}
	c.ScaleMin, c.ScaleMax = 1, 5
	if _, err := Train(context.Background(), private, c); err != nil {
		t.Error(err)
	}
	public, err := dataset.New(2, 2, triples, dataset.BuildOptions{Scale: dataset.Scale{Min: 1, Max: 5}})
	if err != nil {
		t.Fatal(err)
	}
	c.ScaleMin, c.ScaleMax = 0, 0
	if _, err := Train(context.Background(), public, c); err != nil {
		t.Error(err)
	}
}
