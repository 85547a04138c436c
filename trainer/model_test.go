package trainer

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/eval"
	"github.com/dpmf-go/dpmf/internal/kerneltest"
	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/privacy"
)

// shape says which optional parts a random model has.
type shape struct {
	users, items, rank                    int
	itemOffsets, userOffsets, userFactors bool
	textIDs, private, clamped, background bool
}

func randomModel(t testing.TB, s shape, seed uint64) *Model {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	normals := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return x
	}
	m := &Model{
		Algorithm: "als", Config: json.RawMessage(`{"rank":3}`), Rank: s.rank,
		ItemFactors: normals(s.items * s.rank), Offsets: Offsets{Global: float32(rng.NormFloat64())},
		FoldIn:  FoldIn{Loss: Loss{Kind: Explicit}, Ridge: Ridge{Lambda: 0.5, Exponent: 0.25, Constant: 3}, Shrinkage: 2},
		ItemIDs: dataset.IdentityIDs(s.items),
	}
	if s.background {
		m.FoldIn.Loss.Background = 0.5
	}
	if s.textIDs {
		m.ItemIDs = textIDs(t, "item", s.items)
	}
	if s.itemOffsets {
		m.Offsets.Item = normals(s.items)
	}
	if s.userFactors {
		m.UserFactors = normals(s.users * s.rank)
		m.UserIDs = dataset.IdentityIDs(s.users)
		if s.textIDs {
			m.UserIDs = textIDs(t, "user", s.users)
		}
		if s.userOffsets {
			m.Offsets.User = normals(s.users)
			m.FoldIn.UserMean = true
		}
	}
	if s.clamped {
		m.ClampMin, m.ClampMax = -1, 1.5
	}
	if s.private {
		m.Algorithm, m.Ledger = "dpals", testLedger(t)
		m.FoldIn.ClipBound = 1.25
	}
	return m
}

func testLedger(t testing.TB) *privacy.Ledger {
	t.Helper()
	l, err := privacy.NewLedger(privacy.UserLevel, 1e-5, privacy.NewNoise().Source())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Record(privacy.Release{Name: "item counts", Mechanism: privacy.Gaussian, Sensitivity: 3, Noise: 7, Count: 2}); err != nil {
		t.Fatal(err)
	}
	l.Seal()
	return l
}

func textIDs(t testing.TB, prefix string, n int) *dataset.IDs {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + " " + strings.Repeat("é", i%3) + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
	}
	d, err := dataset.NewIDs(names)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// seen is a small matrix in which user u rated the items u, u+2, u+4, …
func seen(t testing.TB, users, items int) *dataset.Ratings {
	t.Helper()
	var triples []dataset.Triple
	for u := range users {
		for i := u; i < items; i += 2 {
			triples = append(triples, dataset.Triple{User: int32(u), Item: int32(i), Value: 1})
		}
	}
	r, err := dataset.New(users, items, triples, dataset.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPredictItemsHasTheBitsOfPredict(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		for variant := range 16 {
			for _, rank := range []int{1, 7, 16, 33, 64} {
				m := randomModel(t, shape{users: 3, items: 50, rank: rank, userFactors: true,
					itemOffsets: variant&1 > 0, userOffsets: variant&2 > 0, clamped: variant&4 > 0, private: variant&8 > 0}, uint64(rank))
				items := []int32{49, 0, 7, 7, 3}
				out := make([]float32, len(items))
				for u := range 3 {
					m.PredictItems(u, items, out)
					for k, i := range items {
						if got := m.Predict(u, int(i)); math.Float32bits(got) != math.Float32bits(out[k]) {
							t.Fatalf("variant %d, rank %d: Predict gives %v, PredictItems %v", variant, rank, got, out[k])
						}
					}
				}
			}
		}
	})
}

func TestPredictIsBasePlusProduct(t *testing.T) {
	m := randomModel(t, shape{users: 4, items: 9, rank: 5, userFactors: true, itemOffsets: true, userOffsets: true}, 1)
	for u := range 4 {
		for i := range 9 {
			want := float64(m.Offsets.Global) + float64(m.Offsets.Item[i]) + float64(m.Offsets.User[u])
			for k := range 5 {
				want += float64(m.UserFactors[u*5+k]) * float64(m.ItemFactors[i*5+k])
			}
			if got := float64(m.Predict(u, i)); math.Abs(got-want) > 1e-5 {
				t.Errorf("user %d, item %d: %v, want %v", u, i, got, want)
			}
			m.ClampMin, m.ClampMax = -0.5, 0.5
			if got := float64(m.Predict(u, i)); math.Abs(got-min(max(want, -0.5), 0.5)) > 1e-5 {
				t.Errorf("clamped, user %d, item %d: %v", u, i, got)
			}
			m.ClampMin, m.ClampMax = 0, 0
		}
	}
	for _, p := range [][2]int{{-1, 0}, {4, 0}, {0, -1}, {0, 9}, {math.MaxInt, math.MaxInt}, {math.MinInt, 0}} {
		if x := m.Predict(p[0], p[1]); x == x {
			t.Errorf("user %d, item %d, outside the model: %v, want NaN", p[0], p[1], x)
		}
	}
	if x := m.PredictNew(&User{Vector: make([]float32, 5)}, 9); x == x {
		t.Errorf("new user, item outside the model: %v, want NaN", x)
	}
}

func TestRecommendIsTheOrderOfPredict(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		const users, items = 5, 130
		m := randomModel(t, shape{users: users, items: items, rank: 9, userFactors: true, itemOffsets: true, userOffsets: true}, 2)
		m.Seen = seen(t, users, items)
		copy(m.ItemVector(11), m.ItemVector(8)) // a tie
		m.Offsets.Item[11] = m.Offsets.Item[8]
		for u := range users {
			var want []Scored
			for i := range items {
				if _, rated := m.Seen.Value(u, i); !rated {
					want = append(want, Scored{i, m.Predict(u, i)})
				}
			}
			slices.SortStableFunc(want, func(a, b Scored) int {
				switch {
				case a.Score > b.Score:
					return -1
				case a.Score < b.Score:
					return 1
				}
				return 0
			})
			for _, k := range []int{-1, 0, 1, 20, len(want), items, 10 * kernels.TopKMax, math.MaxInt} {
				got := m.Recommend(u, k)
				if !slices.Equal(got, want[:max(0, min(k, len(want)))]) {
					t.Fatalf("user %d, k = %d: %v, want %v", u, k, got, want)
				}
			}
		}
	})
}

func TestRecommendMoreThanTheKernelSelects(t *testing.T) {
	items := kernels.TopKMax + 500
	m := randomModel(t, shape{users: 2, items: items, rank: 3, userFactors: true}, 4)
	m.ItemFactors[30] = float32(math.NaN()) // item 10 is never recommended
	exclude := []int32{5, 3, 3, 900}
	all := m.RecommendExcluding(1, items, exclude)
	if len(all) != items-4 {
		t.Fatalf("%d items, want %d", len(all), items-4)
	}
	if top := m.RecommendExcluding(1, 700, exclude); !slices.Equal(top, all[:700]) {
		t.Error("sorting and selecting give different lists")
	}
	for n, s := range all {
		if slices.Contains(exclude, int32(s.Item)) || s.Item == 10 {
			t.Fatalf("item %d was to be left out", s.Item)
		}
		if n > 0 && all[n-1].Score < s.Score {
			t.Fatalf("place %d is better than the one before", n)
		}
	}
	if !slices.Equal(exclude, []int32{5, 3, 3, 900}) {
		t.Error("the caller's list was changed")
	}
}

func TestRecommendUnknownUser(t *testing.T) {
	m := randomModel(t, shape{users: 3, items: 10, rank: 2, userFactors: true}, 3)
	for _, u := range []int{-1, 3, math.MaxInt, math.MinInt} {
		if got := m.Recommend(u, 5); got != nil {
			t.Errorf("user %d: %v", u, got)
		}
		if got := m.RecommendExcluding(u, 5, nil); got != nil {
			t.Errorf("user %d: %v", u, got)
		}
	}
	m.UserFactors = nil
	if got := m.Recommend(0, 5); got != nil {
		t.Errorf("no stored users: %v", got)
	}
	if x := m.Predict(0, 0); x == x {
		t.Errorf("no stored users: prediction %v, want NaN", x)
	}
}

// TestRecommendAfterClose closes a mapped matrix that the model still refers to.
func TestRecommendAfterClose(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ratings.csv")
	if err := os.WriteFile(path, []byte("0,0,4\n0,1,3\n1,1,5\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var ratings *dataset.Ratings
	for range 2 { // the second time from the cache
		var err error
		if ratings, err = dataset.OpenFile(context.Background(), path, dataset.Options{CacheDir: filepath.Join(dir, "cache")}); err != nil {
			t.Fatal(err)
		}
	}
	m := &Model{Algorithm: "als", Rank: 1, UserFactors: []float32{1, 2}, ItemFactors: []float32{1, 3}, Seen: ratings}
	if got := m.Recommend(1, 2); len(got) != 1 || got[0].Item != 0 {
		t.Errorf("user 1, who rated item 1, is recommended %v", got)
	}
	if err := ratings.Close(); err != nil {
		t.Fatal(err)
	}
	if got := m.Recommend(1, 2); len(got) != 2 {
		t.Errorf("without the training ratings user 1 is recommended %v, want both items", got)
	}
}

func TestRecommendationsAreClampedAfterTheyAreOrdered(t *testing.T) {
	m := &Model{Algorithm: "als", Rank: 1, UserFactors: []float32{1}, ItemFactors: []float32{7, 9, 8, 1}, ClampMin: 1, ClampMax: 5,
		ItemIDs: dataset.IdentityIDs(4), UserIDs: dataset.IdentityIDs(1)}
	want := []Scored{{1, 5}, {2, 5}, {0, 5}, {3, 1}}
	if got := m.Recommend(0, 9); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSimilarItems(t *testing.T) {
	m := randomModel(t, shape{users: 1, items: 60, rank: 6, userFactors: true}, 5)
	clear(m.ItemVector(7)) // no factors
	for k := range 6 {     // tiny and parallel to item 3; squares underflow in float32
		m.ItemVector(9)[k] = m.ItemVector(3)[k] * 1e-30
	}
	cosine := func(a, b int) float64 {
		var ab, aa, bb float64
		for k := range 6 {
			x, y := float64(m.ItemVector(a)[k]), float64(m.ItemVector(b)[k])
			ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
		}
		return ab / math.Sqrt(aa*bb)
	}
	for _, item := range []int{0, 3, 59} {
		got, err := m.SimilarItems(item, 60)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 58 { // neither itself nor item 7
			t.Fatalf("%d items, want 58", len(got))
		}
		for n, s := range got {
			if s.Item == item || s.Item == 7 {
				t.Errorf("item %d is in its own list, or one without factors is", s.Item)
			}
			if want := cosine(item, s.Item); math.Abs(float64(s.Score)-want) > 1e-6 {
				t.Errorf("items %d and %d: cosine %v, want %v", item, s.Item, s.Score, want)
			}
			if n > 0 && got[n-1].Score < s.Score {
				t.Errorf("place %d is better than the one before", n)
			}
		}
	}
	if got, _ := m.SimilarItems(3, 1); len(got) != 1 || got[0].Item != 9 || math.Abs(float64(got[0].Score)-1) > 1e-6 {
		t.Errorf("most similar to item 3: %v, want item 9 with cosine 1", got)
	}
	if got, err := m.SimilarItems(7, 5); err != nil || len(got) != 0 {
		t.Errorf("an item without factors is similar to %v, error %v", got, err)
	}
	for _, item := range []int{-1, 60} {
		if _, err := m.SimilarItems(item, 5); err == nil {
			t.Errorf("item %d: no error", item)
		}
	}
}

func TestNewUserRefusesBadHistories(t *testing.T) {
	m := randomModel(t, shape{users: 1, items: 10, rank: 3, userFactors: true}, 6)
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		items  []int32
		values []float32
		names  string
	}{
		{[]int32{1}, nil, "1 items but 0 ratings"},
		{[]int32{10}, []float32{1}, "item 10"},
		{[]int32{-1}, []float32{1}, "item -1"},
		{[]int32{2, 1, 2}, []float32{1, 2, 3}, "item 2 is rated twice"},
		{[]int32{3}, []float32{nan}, "NaN"},
		{[]int32{3}, []float32{inf}, "-Inf"},
	} {
		if u, err := m.NewUser(c.items, c.values); u != nil || err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%v, %v: error %v, want one about %q", c.items, c.values, err, c.names)
		}
	}
	items, values := []int32{5, 2}, []float32{1, 2}
	if _, err := m.NewUser(items, values); err != nil || !slices.Equal(items, []int32{5, 2}) || !slices.Equal(values, []float32{1, 2}) {
		t.Errorf("the caller's history was changed to %v, %v (error %v)", items, values, err)
	}
	u, err := m.NewUser(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.PredictNew(u, 4); got != m.Offsets.Global {
		t.Errorf("a user without ratings is predicted %v, want the base %v", got, m.Offsets.Global)
	}
}

func TestScoresNew(t *testing.T) {
	m := randomModel(t, shape{users: 1, items: 40, rank: 4, userFactors: true, userOffsets: true, itemOffsets: true}, 7)
	u, err := m.NewUser([]int32{3, 1}, []float32{2, -1})
	if err != nil {
		t.Fatal(err)
	}
	scores := make([]float32, 40)
	m.ScoresNew(u, scores)
	for i, s := range scores {
		if p := m.PredictNew(u, i); math.Float32bits(p) != math.Float32bits(s) {
			t.Errorf("item %d: score %v, prediction %v", i, s, p)
		}
	}
	for _, s := range m.RecommendNew(u, 40) {
		if s.Item == 1 || s.Item == 3 {
			t.Errorf("item %d of her history was recommended", s.Item)
		}
	}
}

func TestPrivacyText(t *testing.T) {
	m := randomModel(t, shape{users: 1, items: 4, rank: 2, userFactors: true}, 8)
	if text := m.Privacy(); text != "No privacy guarantee: als computes the model from exact ratings." {
		t.Error(text)
	}
	m = randomModel(t, shape{users: 1, items: 4, rank: 2, userFactors: true, private: true}, 8)
	for _, want := range []string{"Differential privacy: ε = ", "δ = 1e-05", "Protected: ", "item counts, 2 times: sensitivity 3", "standard deviation 7", "Not covered"} {
		if text := m.Privacy(); !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestLossValidate(t *testing.T) {
	for _, l := range []Loss{{Kind: Explicit}, {Kind: Explicit, Background: 2}, {Kind: Unobserved}, {Kind: Confidence, Alpha: 3}} {
		if err := l.Validate(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if w := (Loss{Kind: Confidence, Alpha: 3}).BackgroundWeight(); w != 1 {
		t.Errorf("background weight of the confidence loss is %v", w)
	}
	ratings := []float32{2, 0, -1}
	weights := make([]float32, 3)
	l := Loss{Kind: Confidence, Alpha: 3}
	l.Weights(ratings, weights)
	excess := l.Excess(ratings)
	l.Targets(ratings)
	if !slices.Equal(weights, []float32{6, 0, 0}) || !slices.Equal(ratings, []float32{7. / 6, 0, 0}) || math.Abs(excess-7./6) > 1e-15 {
		t.Errorf("weights %v, targets %v, excess %v", weights, ratings, excess)
	}
}

func TestRidge(t *testing.T) {
	if got := (Ridge{Lambda: 2}).At(99); got != 2 {
		t.Errorf("constant ridge: %v", got)
	}
	if got := (Ridge{Lambda: 2, Exponent: 0.5}).At(99); got != 20 {
		t.Errorf("square root: %v", got)
	}
	if got := (Ridge{Lambda: 2, Exponent: 1, Constant: 50}).At(99); got != 4 {
		t.Errorf("linear with a constant: %v", got)
	}
}

func TestMemoryPlan(t *testing.T) {
	var p MemoryPlan
	p.Add("a", 1_500_000).Add("b", 500_000)
	if p.Total() != 2_000_000 || p.String() != "a 1.5 MB + b 0.5 MB = 2.0 MB" {
		t.Errorf("%d, %q", p.Total(), p)
	}
	for limit, fine := range map[int64]bool{0: true, -1: true, 2_000_000: true, 1_999_999: false} {
		if err := p.Check(limit); (err == nil) != fine {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

func TestOffsetsOfOneUserAndItem(t *testing.T) {
	r := seen(t, 4, 7)
	for bits := range 8 {
		o := FitOffsets(r, Means{Global: bits&1 > 0, Item: bits&2 > 0, User: bits&4 > 0, Shrinkage: 1})
		for u := range 4 {
			items, values := r.User(u)
			byUser := make([]float32, len(items))
			o.UserResiduals(u, items, values, byUser)
			for k, i := range items {
				var byItem [4]float32
				users, ratings := r.Item(int(i))
				o.ItemResiduals(int(i), users, ratings, byItem[:len(users)])
				at, _ := slices.BinarySearch(users, int32(u))
				if math.Float32bits(byUser[k]) != math.Float32bits(byItem[at]) || byUser[k] != values[k]-o.Base(u, int(i)) {
					t.Errorf("means %03b, user %d, item %d: residual %v by user, %v by item", bits, u, i, byUser[k], byItem[at])
				}
			}
		}
	}
}

// Evaluation predicts a user's items at once when a model can.
var _ eval.BatchPredictor = (*Model)(nil)
