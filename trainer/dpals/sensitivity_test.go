package dpals

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/privacy"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/internal/normal"
)

// triples lists all ratings but those of one user (-1: of none).
func triples(r *dataset.Ratings, without int) []dataset.Triple {
	var list []dataset.Triple
	for u := range r.NumUsers() {
		if u == without {
			continue
		}
		items, values := r.User(u)
		for k, i := range items {
			list = append(list, dataset.Triple{User: int32(u), Item: i, Value: values[k]})
		}
	}
	return list
}

func build(t testing.TB, users, items int, list []dataset.Triple) *dataset.Ratings {
	t.Helper()
	r, err := dataset.New(users, items, list, dataset.BuildOptions{Scale: dataset.Scale{Min: 1, Max: 5, Step: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// adversarial is a small data set whose first users are as harmful as the input format allows.
func adversarial(t testing.TB) *dataset.Ratings {
	const users, items = 40, 60
	list := triples(smallRatings(t, users, items, 2), -1)
	list = slices.DeleteFunc(list, func(x dataset.Triple) bool { return x.User < 6 })
	for i := range int32(items) {
		list = append(list,
			dataset.Triple{User: 0, Item: i, Value: 5},                    // every item, highest rating
			dataset.Triple{User: 1, Item: i, Value: float32(1 + 4*(i%2))}, // every item, extremes in turn
		)
		if i < 7 {
			list = append(list, dataset.Triple{User: 2, Item: i, Value: 1}) // few ratings, all lowest
		}
	}
	list = append(list, dataset.Triple{User: 3, Item: 31, Value: 5}) // one rating
	// User 4 has none. User 5 has a single one, of an item that nobody else has.
	list = slices.DeleteFunc(list, func(x dataset.Triple) bool { return x.Item == 59 && x.User > 5 })
	list = append(list, dataset.Triple{User: 5, Item: 59, Value: 1})
	return build(t, users, items, list)
}

// transcript is what an observer has seen before an item step: noisy counts and item factors.
type transcript struct {
	counts []float64
	items  []float32
	offset trainer.Offsets
}

// statistics are the exact answers that an item step adds noise to.
type statistics struct {
	grams, rhs [][]float32 // by item
	global     []float32
	users      []float32
}

// answers runs the user step and the accumulation of the item step on data, given the transcript.
func answers(t *testing.T, data *dataset.Ratings, c Config, seen transcript) statistics {
	t.Helper()
	r, err := newRun(data, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.centre(); err != nil {
		t.Fatal(err)
	}
	r.model.Offsets.Global = seen.offset.Global
	r.counts = seen.counts
	r.frequent = frequentItems(r.counts, r.Config.frequent(data.NumItems()))
	r.parts = r.contributions()
	if err := r.parts.checkBudget(data.NumItems(), data.NumUsers(), c.ItemsPerUser); err != nil {
		t.Fatal(err)
	}
	copy(r.model.ItemFactors, seen.items)
	if _, err := r.runUsers(context.Background(), r.userHalf(c.Clip)); err != nil {
		t.Fatal(err)
	}
	if err := r.checkClip(); err != nil {
		t.Fatal(err)
	}
	s := statistics{grams: make([][]float32, data.NumItems()), rhs: make([][]float32, data.NumItems()), users: r.model.UserFactors}
	h := r.itemHalf()
	h.Solve = func(i int, w *normal.Workspace, x []float32) (normal.RowLoss, error) {
		if r.frequent[i] {
			s.grams[i], s.rhs[i] = slices.Clone(w.Gram), slices.Clone(w.RHS)
		}
		return normal.RowLoss{}, nil
	}
	if _, err := h.Run(context.Background(), 2, r.model.ItemFactors); err != nil {
		t.Fatal(err)
	}
	if s.global, err = normal.FullGram(context.Background(), 1, r.model.UserFactors, c.Rank, 1); err != nil {
		t.Fatal(err)
	}
	return s
}

// frobenius is the squared Frobenius distance of two symmetric matrices in the storage of package kernels.
func frobenius(a, b []float32, r int) float64 {
	var sum float64
	for i, ld := 0, kernels.Stride(r); i < r; i++ {
		for j := i; j < r; j++ {
			d := float64(a[i*ld+j]) - float64(b[i*ld+j])
			if i != j {
				sum += d * d // its mirror image
			}
			sum += d * d
		}
	}
	return sum
}

func distances(s, without statistics, r int) (gram, rhs, global float64) {
	for i := range s.grams {
		if s.grams[i] == nil {
			continue
		}
		gram += frobenius(s.grams[i], without.grams[i], r)
		for k := range r {
			d := float64(s.rhs[i][k]) - float64(without.rhs[i][k])
			rhs += d * d
		}
	}
	return math.Sqrt(gram), math.Sqrt(rhs), math.Sqrt(frobenius(s.global, without.global, r))
}

// privateConfig is a small run with noise in everything.
func privateConfig(limit Limit, loss trainer.LossKind) Config {
	c := Defaults(privacy.Budget{Epsilon: 5, Delta: 1e-3})
	c.Rank, c.Iterations = 5, 2
	c.ItemsPerUser, c.CountItems, c.CountNoise, c.FrequentFraction = 12, 9, 30, 0.8
	c.UserRidge, c.ItemRidge = trainer.Ridge{Lambda: 1e-3}, trainer.Ridge{Lambda: 3, Exponent: 0.25}
	c.Limit, c.CountExponent = limit, 0
	c.Clip, c.RatingBound, c.GramRatio = 0.7, 1.25, 1.5
	c.Loss = trainer.Loss{Kind: loss}
	if loss == trainer.Unobserved {
		c.Loss.Background, c.Centring, c.RatingBound, c.GlobalRatio, c.Shrinkage = 0.05, "", 1, 2, 0
	}
	seed := uint64(42)
	c.NoiseSeed = &seed
	return c
}

// The item statistics with and without each user, on the same transcript, differ by no more
// than the sensitivities that the noise is made for.
func TestSensitivities(t *testing.T) {
	data := adversarial(t)
	rng := rand.New(rand.NewPCG(8, 9))
	for _, loss := range []trainer.LossKind{trainer.Explicit, trainer.Unobserved} {
		for _, limit := range []Limit{Adaptive, Uniform, Tail} {
			for _, exponent := range []float64{0, -0.25, -1, 0.5} {
				if exponent != 0 && limit != Adaptive {
					continue
				}
				c := privateConfig(limit, loss)
				c.CountExponent = exponent
				t.Run(fmt.Sprintf("%s, %s, e = %v", loss, limit, exponent), func(t *testing.T) {
					r, err := newRun(data, c)
					if err != nil {
						t.Fatal(err)
					}
					var worst [3]float64
					for trial := range 2 {
						seen := transcript{counts: make([]float64, data.NumItems()), items: make([]float32, data.NumItems()*c.Rank)}
						seen.offset.Global = 3
						for i := range seen.counts {
							seen.counts[i] = max(1, 30*rng.NormFloat64())
						}
						for k := range seen.items {
							seen.items[k] = float32([]float64{0.05, 1}[trial] * rng.NormFloat64())
						}
						with := answers(t, data, c, seen)
						for u := range 16 {
							without := answers(t, build(t, data.NumUsers(), data.NumItems(), triples(data, u)), c, seen)
							gram, rhs, global := distances(with, without, c.Rank)
							for k, x := range []struct {
								name     string
								distance float64
								release  privacy.Release
							}{{"Gram matrices", gram, r.releases.Gram}, {"right-hand sides", rhs, r.releases.RHS}, {"global Gram matrix", global, r.releases.Global}} {
								if x.release.Name == "" {
									continue
								}
								// Sums of float32 round: a few 2⁻²⁴ of the sums themselves.
								if x.distance > x.release.Sensitivity+1e-5 {
									t.Errorf("user %d moves the %s by %v, above the sensitivity %v", u, x.name, x.distance, x.release.Sensitivity)
								}
								worst[k] = max(worst[k], x.distance/x.release.Sensitivity)
							}
						}
					}
					t.Logf("largest share of the sensitivity: Gram %.3f, right-hand side %.3f, global %.3f", worst[0], worst[1], worst[2])
					if worst[0] < 0.99 || worst[1] < 0.7 {
						t.Error("the adversarial users are too tame: nothing came near the sensitivity")
					}
				})
			}
		}
	}
}

func TestWeightsStayWithinTheLimit(t *testing.T) {
	data := adversarial(t)
	for _, limit := range []Limit{Adaptive, Uniform, Tail} {
		for _, k := range []int{1, 3, 12, 1000} {
			for _, e := range []float64{0, -0.25, -1. / 3, -0.5, -2, 2} {
				if e != 0 && limit != Adaptive {
					continue
				}
				c := privateConfig(limit, trainer.Explicit)
				c.ItemsPerUser, c.CountExponent = k, e
				r, err := newRun(data, c)
				if err != nil {
					t.Fatal(err)
				}
				if err := r.prepare(context.Background()); err != nil {
					t.Fatal(err)
				}
				spent, rated := make([]float64, data.NumUsers()), make([]int, data.NumUsers())
				for i := range data.NumItems() {
					users, values := r.parts.of(i)
					if !r.frequent[i] && len(users) > 0 {
						t.Fatalf("item %d is not frequent but has contributions", i)
					}
					weights := make([]float32, len(users))
					for k := range weights {
						weights[k] = 1
					}
					if r.parts.weighted {
						r.parts.weights(i, users, weights)
					}
					for n, u := range users {
						if v, ok := data.Value(int(u), i); !ok || v != values[n] {
							t.Fatalf("user %d, item %d: rating %v, in the data %v", u, i, values[n], v)
						}
						spent[u] += float64(weights[n]) * float64(weights[n])
						rated[u]++
					}
				}
				for u, s := range spent {
					if s > float64(k) {
						t.Errorf("%s, k = %d, e = %v: user %d has Σw² = %v", limit, k, e, u, s)
					}
					frequent := 0
					items, _ := data.User(u)
					for _, i := range items {
						if r.frequent[i] {
							frequent++
						}
					}
					switch {
					case limit == Adaptive && (rated[u] != frequent || frequent > 0 && s < float64(k)*(1-1e-4)):
						t.Errorf("adaptive, k = %d, e = %v: user %d uses %d of %d ratings with Σw² = %v", k, e, u, rated[u], frequent, s)
					case limit != Adaptive && rated[u] != min(k, frequent):
						t.Errorf("%s, k = %d: user %d uses %d of %d ratings", limit, k, u, rated[u], frequent)
					}
				}
			}
		}
	}
}

func TestTailKeepsTheRarest(t *testing.T) {
	data := build(t, 1, 6, []dataset.Triple{{Item: 0, Value: 1}, {Item: 1, Value: 2}, {Item: 2, Value: 3}, {Item: 4, Value: 5}})
	counts, frequent := []float64{9, 2, 5, 1, 2, 1}, []bool{true, true, true, true, true, false}
	s := sampledContributions(data, counts, frequent, 2, Tail, 1)
	for i, want := range []int{0, 1, 0, 0, 1, 0} {
		if users, _ := s.of(i); len(users) != want {
			t.Errorf("item %d has %d ratings, want %d", i, len(users), want)
		}
	}
}

func TestUniformSampleIsUniform(t *testing.T) {
	const n, k, trials = 10, 3, 30000
	var hits [n]int
	var scratch []int
	for u := range trials {
		scratch = chooseUniform(userStream(7, purposeLimit, u), n, k, scratch)
		if len(scratch) != k || !slices.IsSorted(scratch) {
			t.Fatalf("sample %v", scratch)
		}
		for _, p := range scratch {
			hits[p]++
		}
	}
	// Each count is binomial with mean 9000 and standard deviation 79.
	for p, h := range hits {
		if math.Abs(float64(h)-trials*k/n) > 5*79 {
			t.Errorf("position %d was drawn %d times, want about %d", p, h, trials*k/n)
		}
	}
}

func TestCountSensitivity(t *testing.T) {
	data := adversarial(t)
	for _, k := range []int{1, 9, 1000} {
		with := countItems(data, k, 3)
		for u := range data.NumUsers() {
			without := countItems(build(t, data.NumUsers(), data.NumItems(), triples(data, u)), k, 3)
			var sum float64
			for i := range with {
				sum += (with[i] - without[i]) * (with[i] - without[i])
			}
			if want := float64(min(k, data.UserCount(u))); sum != want {
				t.Errorf("k_c = %d: user %d moves the counts by √%v, want √%v", k, u, sum, want)
			}
		}
	}
}

func TestCentreSensitivity(t *testing.T) {
	data := adversarial(t)
	c := privateConfig(Adaptive, trainer.Explicit)
	c.Centring, c.CentreNoise, c.RatingBound = CentrePrivateMean, 5, 1.5
	means := func(data *dataset.Ratings) (sum, count float64) {
		r, err := newRun(data, c)
		if err != nil {
			t.Fatal(err)
		}
		r.model.Offsets.Global = 3
		s, n := r.clippedMeans()
		return s[0], n[0]
	}
	sum, count := means(data)
	largest := 0.
	for u := range data.NumUsers() {
		s, n := means(build(t, data.NumUsers(), data.NumItems(), triples(data, u)))
		largest = max(largest, math.Abs(s-sum))
		if math.Abs(s-sum) > c.RatingBound+1e-12 || math.Abs(n-count) > 1 {
			t.Errorf("user %d moves the sum by %v and the count by %v", u, s-sum, n-count)
		}
	}
	if math.Abs(largest-c.RatingBound) > 1e-12 {
		t.Errorf("the most extreme user moves the sum by %v, want the bound %v", largest, c.RatingBound)
	}
	// The released mean is that of the noisy parts.
	r, err := newRun(data, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.centre(); err != nil {
		t.Fatal(err)
	}
	noisy := []float64{sum}
	users := []float64{count}
	n := privacy.NewSeededNoise(privacy.Seed(*c.NoiseSeed))
	n.Stream(streamCentreSum, 0, 0).AddVector64(noisy, c.CentreNoise*c.RatingBound)
	n.Stream(streamCentreCount, 0, 0).AddVector64(users, c.CentreNoise)
	if want := 3 + noisy[0]/max(1, users[0]); math.Abs(float64(r.model.Offsets.Global)-want) > 1e-6 || noisy[0] == sum || users[0] == count {
		t.Errorf("private mean %v, want %v", r.model.Offsets.Global, want)
	}
}

func TestClipNorm(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 2000 {
		x := make([]float32, 1+rng.IntN(40))
		scale := math.Exp(20 * rng.NormFloat64())
		for k := range x {
			x[k] = float32(scale * rng.NormFloat64())
		}
		before, bound := slices.Clone(x), math.Exp(3*rng.NormFloat64())
		norm := math.Sqrt(squaredNorm(x))
		clipNorm(x, bound)
		after := math.Sqrt(squaredNorm(x))
		switch {
		case after > bound/(1+0x1p-21):
			t.Fatalf("norm %v was clipped to %v, bound %v: no room for rounding", norm, after, bound)
		case norm < bound*(1-1e-6) && !slices.Equal(x, before):
			t.Fatalf("norm %v is within the bound %v but was changed", norm, bound)
		case norm > bound && after < bound*(1-1e-5) && bound > 1e-30:
			t.Fatalf("norm %v was clipped to %v, far below the bound %v", norm, after, bound)
		}
	}
}

func TestChecksStopBadSums(t *testing.T) {
	data := adversarial(t)
	r, err := newRun(data, privateConfig(Adaptive, trainer.Explicit))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	released := len(r.ledger.Releases())
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), 0.71} {
		r.model.UserFactors[7] = bad
		if err := r.itemStep(context.Background(), r.itemHalf(), 1); err == nil {
			t.Errorf("a user with a factor of %v was summed", bad)
		}
		if len(r.ledger.Releases()) != released {
			t.Error("something was released")
		}
	}
	for _, bad := range []float32{float32(math.NaN()), 100} {
		r.parts.user[2] = bad
		if err := r.parts.checkBudget(data.NumItems(), data.NumUsers(), r.ItemsPerUser); err == nil {
			t.Errorf("a user weight of %v passed the check", bad)
		}
	}
}
