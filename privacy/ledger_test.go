package privacy

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func newTestLedger(t *testing.T, unit Unit, delta float64, source Source) *Ledger {
	t.Helper()
	ledger, err := NewLedger(unit, delta, source)
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

func mustRecord(t *testing.T, ledger *Ledger, releases ...Release) {
	t.Helper()
	for _, r := range releases {
		if err := ledger.Record(r); err != nil {
			t.Fatal(err)
		}
	}
}

var systemSource = NewNoise().Source()

func gaussianRelease(name string, sensitivity, noise float64, count int) Release {
	return Release{Name: name, Mechanism: Gaussian, Sensitivity: sensitivity, Noise: noise, Count: count}
}

func laplaceRelease(name string, sensitivity, noise float64, count int) Release {
	return Release{Name: name, Mechanism: Laplace, Sensitivity: sensitivity, Noise: noise, Count: count}
}

func TestLedgerComposition(t *testing.T) {
	ledger := newTestLedger(t, UserLevel, 1e-5, systemSource)
	mustRecord(t, ledger, gaussianRelease("a", 3, 10, 4), gaussianRelease("b", 1, 1.25, 1))
	// μ² = 4·0.3² + 0.8² = 1.
	if got := ledger.Mu(); !near(got, 1, 1e-14) {
		t.Errorf("μ = %v, want 1", got)
	}
	if got := ledger.Epsilon(1e-5); math.Abs(got-4.3772) > 5e-5 {
		t.Errorf("ε = %v, want 4.3772", got)
	}
	// Laplace adds its ε: 2·(1/4) + 3/6 = 1.
	mustRecord(t, ledger, laplaceRelease("c", 1, 4, 2), laplaceRelease("d", 3, 6, 1))
	if got := ledger.Epsilon(1e-5); math.Abs(got-5.3772) > 5e-5 {
		t.Errorf("mixed ε = %v, want 5.3772", got)
	}
	pure := newTestLedger(t, RatingValue, 0, systemSource)
	mustRecord(t, pure, laplaceRelease("c", 1, 4, 2), laplaceRelease("d", 3, 6, 1))
	if got := pure.Epsilon(0); !near(got, 1, 1e-12) || pure.Mu() != 0 {
		t.Errorf("pure ε = %v, want 1", got)
	}
}

func TestLedgerSubsampled(t *testing.T) {
	release := Release{Name: "gradients", Mechanism: SubsampledGaussian, Sensitivity: 2, Noise: 2.2, Count: 1000, SamplingRate: 0.01}
	ledger := newTestLedger(t, UserLevel, 1e-5, systemSource)
	mustRecord(t, ledger, release)
	epsilon := ledger.Epsilon(1e-5)
	full := release
	full.SamplingRate = 1
	if whole := epsilonOf([]Release{full}, 1e-5); !(epsilon < whole/10) {
		t.Errorf("sampling 1 %% took ε only from %v to %v", whole, epsilon)
	}
	// A Gaussian release beside it costs something, and less than alone plus alone.
	extra := gaussianRelease("counts", 1, 10, 1)
	mustRecord(t, ledger, extra)
	both := ledger.Epsilon(1e-5)
	if alone := epsilonOf([]Release{extra}, 1e-5); !(both > epsilon && both < epsilon+alone+0.1) {
		t.Errorf("ε = %v with, %v without, %v alone", both, epsilon, alone)
	}
}

func TestLedgerClaimsNothingWithoutGround(t *testing.T) {
	inf := math.Inf(1)
	noise := gaussianRelease("sums", 1, 1, 1)
	for name, ledger := range map[string]*Ledger{
		"zero":     {},
		"empty":    newTestLedger(t, UserLevel, 1e-5, systemSource),
		"no unit":  {unit: NoUnit, delta: 1e-5, source: systemSource, releases: []Release{noise}},
		"no noise": {unit: UserLevel, delta: 1e-5, source: systemSource, releases: []Release{noise, gaussianRelease("exact sums", 1, 0, 1)}},
		"δ = 0":    {unit: UserLevel, source: systemSource, releases: []Release{noise}},
	} {
		if got := ledger.Epsilon(ledger.TargetDelta()); got != inf || ledger.Private() {
			t.Errorf("%s: ε = %v", name, got)
		}
		text := ledger.String()
		if !strings.HasPrefix(text, "No privacy guarantee: ") || strings.Contains(text, "Protected:") {
			t.Errorf("%s: %s", name, text)
		}
	}
	ledger := newTestLedger(t, UserLevel, 1e-5, systemSource)
	mustRecord(t, ledger, noise)
	for _, delta := range []float64{0, 1, -1, math.NaN()} {
		if got := ledger.Epsilon(delta); got != inf {
			t.Errorf("ε = %v at δ = %v", got, delta)
		}
	}
	mustRecord(t, ledger, gaussianRelease("exact sums", 1, 0, 1))
	if got := ledger.Mu(); got != inf {
		t.Errorf("μ = %v with a release without noise", got)
	}
}

func TestLedgerGridAllowances(t *testing.T) {
	plain := gaussianRelease("sums", 1, 10, 1)
	rounded := plain
	rounded.Grid, rounded.Coordinates = 0.25, 16
	if got := rounded.WidenedSensitivity(); got != 2 {
		t.Errorf("widened sensitivity %v, want 1 + 0.25·√16", got)
	}
	first := rounded
	first.RoundedFirst = true
	if got := first.WidenedSensitivity(); got != 1 {
		t.Errorf("sensitivity %v, want 1 for contributions rounded first", got)
	}
	laplace := laplaceRelease("sums", 1, 10, 1)
	laplace.Grid, laplace.Coordinates = 0.25, 16
	if got := laplace.WidenedSensitivity(); got != 5 {
		t.Errorf("widened L1 sensitivity %v, want 1 + 0.25·16", got)
	}
	// 2³⁰ draws cost 2·2³⁰·2⁻⁴⁶ in ε.
	first.Coordinates = 1 << 30
	got := epsilonOf([]Release{first}, 1e-5) - epsilonOf([]Release{plain}, 1e-5)
	if want := 0x1p-15; got < want || got > 1.5*want {
		t.Errorf("the sampler's allowance is %v, want %v and what e^η·δ adds", got, want)
	}
}

func TestLedgerRecord(t *testing.T) {
	ledger := newTestLedger(t, UserLevel, 1e-5, systemSource)
	a, b := gaussianRelease("a", 1, 2, 1), gaussianRelease("b", 1, 3, 1)
	mustRecord(t, ledger, a, b, a, b, a)
	changed := a
	changed.Noise = 4
	mustRecord(t, ledger, changed, a)
	a3, b2 := a, b
	a3.Count, b2.Count = 3, 2
	if got, want := ledger.Releases(), []Release{a3, b2, changed, a}; !reflect.DeepEqual(got, want) {
		t.Errorf("releases %+v, want %+v", got, want)
	}
	ledger.Releases()[0].Noise = 1e9
	if ledger.Releases()[0].Noise != 2 {
		t.Error("the ledger can be changed through Releases")
	}
	full := a
	full.Count = math.MaxInt32
	mustRecord(t, ledger, full)
	if n := len(ledger.Releases()); n != 5 {
		t.Errorf("a count near overflow was merged: %d entries", n)
	}
	ledger.Seal()
	if err := ledger.Record(a); !errors.Is(err, ErrSealed) || !ledger.Sealed() {
		t.Errorf("a sealed ledger answered %v", err)
	}
	silent := newTestLedger(t, UserLevel, 1e-5, Source{})
	if err := silent.Record(a); err == nil {
		t.Error("noise without a source was recorded")
	}
	mustRecord(t, silent, gaussianRelease("exact", 1, 0, 1))
}

func TestReleaseValidate(t *testing.T) {
	good := Release{Name: "x", Mechanism: SubsampledGaussian, Sensitivity: 1, Noise: 1, Count: 1, SamplingRate: 0.5, Grid: 0.1, Coordinates: 3, RoundedFirst: true}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	ledger := newTestLedger(t, UserLevel, 1e-5, systemSource)
	for name, change := range map[string]func(*Release){
		"name":              func(r *Release) { r.Name = "" },
		"mechanism 0":       func(r *Release) { r.Mechanism = 0 },
		"mechanism 4":       func(r *Release) { r.Mechanism = 4 },
		"sensitivity 0":     func(r *Release) { r.Sensitivity = 0 },
		"sensitivity NaN":   func(r *Release) { r.Sensitivity = math.NaN() },
		"sensitivity Inf":   func(r *Release) { r.Sensitivity = math.Inf(1) },
		"noise":             func(r *Release) { r.Noise = -1 },
		"noise NaN":         func(r *Release) { r.Noise = math.NaN() },
		"noise Inf":         func(r *Release) { r.Noise = math.Inf(1) },
		"count":             func(r *Release) { r.Count = 0 },
		"rate 0":            func(r *Release) { r.SamplingRate = 0 },
		"rate 2":            func(r *Release) { r.SamplingRate = 2 },
		"rate for Gaussian": func(r *Release) { r.Mechanism = Gaussian },
		"grid":              func(r *Release) { r.Grid = -1 },
		"grid NaN":          func(r *Release) { r.Grid = math.NaN() },
		"coordinates":       func(r *Release) { r.Coordinates = -1 },
		"no coordinates":    func(r *Release) { r.Coordinates = 0 },
		"no grid":           func(r *Release) { r.Grid = 0 },
	} {
		bad := good
		change(&bad)
		if bad.Validate() == nil || ledger.Record(bad) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := NewLedger(Unit(9), 1e-5, systemSource); err == nil {
		t.Error("an unknown unit passed")
	}
	for _, delta := range []float64{-1, 1, math.NaN()} {
		if _, err := NewLedger(UserLevel, delta, systemSource); err == nil {
			t.Errorf("δ = %v passed", delta)
		}
	}
	for _, source := range []Source{{CallerSeed: "00"}, {Generator: "g", CallerSeed: "00"}, {Generator: "g", CallerSeed: strings.Repeat("x", 64)}} {
		if _, err := NewLedger(UserLevel, 1e-5, source); err == nil {
			t.Errorf("%+v passed", source)
		}
	}
}

func TestLedgerText(t *testing.T) {
	plan := DPALSPlan{Iterations: 3, Items: 100, Rank: 8, Clip: 0.5, RatingBound: 2, ItemBudget: 40, CountBudget: 40, CountNoise: 200}
	releases, err := plan.Calibrate(Budget{1, 1e-5})
	if err != nil {
		t.Fatal(err)
	}
	ledger := ledgerOf(t, plan, releases, 1e-5) // seeded
	text := ledger.String()
	for _, phrase := range []string{
		"ε = 1 at δ = 1e-05", "one user with all of her ratings", "adding or removing one user",
		"item Gram matrices, 3 times: sensitivity 1.58114 (L2), Gaussian noise of standard deviation",
		"item counts, once: sensitivity 6.32456 (L2), Gaussian noise of standard deviation 200",
		"WARNING: the noise came from a seed that the caller gave", "for tests and benchmarks only", "AES-256",
		"whoever knows the seed can remove the noise", "rounded to a grid", "Rounding widens the sensitivity",
		"rounding errors inside the floating-point sums", "hyper-parameters", "training again", "which items exist", "the range of the ratings", "a user's own recommendations",
	} {
		if !strings.Contains(text, phrase) {
			t.Errorf("missing %q in\n%s", phrase, text)
		}
	}
	if strings.Contains(text, "Training has not ended") {
		t.Error("a sealed ledger says that training goes on")
	}

	ledger = newTestLedger(t, RatingValue, 1e-5, systemSource)
	sampled := Release{Name: "steps", Mechanism: SubsampledGaussian, Sensitivity: 1, Noise: 1, Count: 2, SamplingRate: 0.01}
	integer := Release{Name: "sums", Mechanism: Gaussian, Sensitivity: 1, Noise: 1, Count: 1, Grid: 1e-3, Coordinates: 5, RoundedFirst: true}
	mustRecord(t, ledger, laplaceRelease("averages", 4, 40, 1), sampled, integer)
	text = ledger.String()
	for _, phrase := range []string{
		"the value of one rating", "(L1), Laplace noise of scale 40", "taking part with probability 0.01",
		"keyed by the operating system", "Training has not ended", "rounded towards zero",
	} {
		if !strings.Contains(text, phrase) {
			t.Errorf("missing %q in\n%s", phrase, text)
		}
	}
	if strings.Contains(text, "WARNING") || strings.Contains(text, "floating-point sums") {
		t.Errorf("warns without reason:\n%s", text)
	}

	exact := newTestLedger(t, UserLevel, 1e-5, Source{})
	mustRecord(t, exact, gaussianRelease("item Gram matrices", 1, 0, 3))
	for _, phrase := range []string{"No privacy guarantee: item Gram matrices left the trainer without noise", "no noise", "none was drawn"} {
		if !strings.Contains(exact.String(), phrase) {
			t.Errorf("missing %q in\n%s", phrase, exact)
		}
	}
}

func TestUpward(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 1: "1", 0.99999999999: "1", 1.00001: "1.0001", 4.37721: "4.3773", 12.34561: "12.346", 1e-7: "1e-07", 999.999: "1000",
	} {
		if got := upward(value); got != want {
			t.Errorf("upward(%v) = %s, want %s", value, got, want)
		}
	}
}

func randomRelease() *rapid.Generator[Release] {
	return rapid.Custom(func(t *rapid.T) Release {
		r := Release{
			Name:        rapid.StringN(1, 20, 80).Draw(t, "name"),
			Mechanism:   rapid.SampledFrom([]Mechanism{Gaussian, Laplace, SubsampledGaussian}).Draw(t, "mechanism"),
			Sensitivity: logUniform(-3, 3).Draw(t, "sensitivity"),
			Noise:       rapid.SampledFrom([]float64{0, 1, 123.456, 1e-300, 1e300}).Draw(t, "noise"),
			Count:       rapid.IntRange(1, 100).Draw(t, "count"),
		}
		if r.Mechanism == SubsampledGaussian {
			r.SamplingRate = rapid.Float64Range(1e-6, 1).Draw(t, "rate")
		}
		if rapid.Bool().Draw(t, "gridded") {
			r.Grid = 0x1p-20
			r.Coordinates = rapid.Int64Range(1, math.MaxInt64).Draw(t, "coordinates")
			r.RoundedFirst = rapid.Bool().Draw(t, "rounded first")
		}
		return r
	})
}

func TestLedgerJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := rapid.SampledFrom([]Source{systemSource, NewSeededNoise(Seed(7)).Source()}).Draw(t, "source")
		unit := rapid.SampledFrom([]Unit{NoUnit, UserLevel, RatingValue}).Draw(t, "unit")
		ledger, err := NewLedger(unit, rapid.SampledFrom([]float64{0, 1e-5, 0.5}).Draw(t, "delta"), source)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rapid.SliceOfN(randomRelease(), 0, 5).Draw(t, "releases") {
			if err := ledger.Record(r); err != nil {
				t.Fatal(err)
			}
		}
		if rapid.Bool().Draw(t, "sealed") {
			ledger.Seal()
		}
		data, err := json.Marshal(ledger)
		if err != nil {
			t.Fatal(err)
		}
		var read Ledger
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		if !reflect.DeepEqual(&read, ledger) {
			t.Fatalf("read %+v, wrote %+v", read, ledger)
		}
		if read.String() != ledger.String() {
			t.Fatal("the texts differ")
		}
	})
}

func TestLedgerJSONRefusals(t *testing.T) {
	good := `{"schema":1,"unit":"user add/remove","delta":1e-5,"source":{"generator":"g"},"sealed":true,"releases":[{"name":"x","mechanism":"gaussian","sensitivity":1,"noise":2,"count":3}]}`
	var ledger Ledger
	if err := json.Unmarshal([]byte(good), &ledger); err != nil {
		t.Fatal(err)
	}
	before := ledger.String()
	for _, edit := range [][2]string{
		{`"schema":1`, `"schema":2`},
		{`"user add/remove"`, `"household"`},
		{`1e-5`, `1`},
		{`1e-5`, `-1`},
		{`"generator":"g"`, `"generator":""`},
		{`"generator":"g"`, `"generator":"g","caller_seed":"12"`},
		{`"sealed":true`, `"closed":true`},
		{`"gaussian"`, `"cauchy"`},
		{`"sensitivity":1`, `"sensitivity":0`},
		{`"noise":2`, `"noise":-2`},
		{`"noise":2`, `"noise":1e999`},
		{`"count":3`, `"count":0`},
		{`"count":3`, `"count":1.5`},
		{`"name":"x"`, `"name":""`},
		{`"releases":[`, `"releases":[null,`},
		{`{"schema"`, `[{"schema"`},
	} {
		bad := strings.Replace(good, edit[0], edit[1], 1)
		if bad == good {
			t.Fatalf("the edit %v changes nothing", edit)
		}
		if err := ledger.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%v passed", edit)
		}
	}
	if err := ledger.UnmarshalJSON([]byte(good + "{}")); err == nil {
		t.Error("a second object passed")
	}
	if ledger.String() != before {
		t.Error("a refused ledger changed the receiver")
	}
	if _, err := json.Marshal(&Ledger{unit: 9, delta: 0.5}); err == nil {
		t.Error("an invalid ledger was written")
	}
}

func FuzzLedgerJSON(f *testing.F) {
	f.Add([]byte(`{"schema":1,"unit":"user add/remove","delta":1e-5,"source":{"generator":"g"},"sealed":true,"releases":[{"name":"x","mechanism":"gaussian","sensitivity":1,"noise":2,"count":3,"grid":0.5,"coordinates":7}]}`))
	f.Add([]byte(`{"schema":1,"unit":"rating value","delta":0,"source":{"generator":"g","caller_seed":"0000000000000000000000000000000000000000000000000000000000000000"},"sealed":false,"releases":[{"name":"x","mechanism":"laplace","sensitivity":1e308,"noise":1e-308,"count":3},{"name":"y","mechanism":"subsampled gaussian","sensitivity":1,"noise":0.001,"count":3,"sampling_rate":1e-300}]}`))
	f.Add([]byte(`{"schema":1,"unit":"none","delta":0,"source":{},"sealed":true,"releases":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var ledger Ledger
		if json.Unmarshal(data, &ledger) != nil {
			return
		}
		// What is accepted can be written, read and described, and claims no
		// impossible ε.
		written, err := json.Marshal(&ledger)
		if err != nil {
			t.Fatalf("accepted, but not written: %v", err)
		}
		var again Ledger
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("written, but not accepted: %v", err)
		}
		if !reflect.DeepEqual(ledger, again) {
			t.Fatalf("%+v became %+v", ledger, again)
		}
		if epsilon := ledger.Epsilon(ledger.TargetDelta()); !(epsilon >= 0) {
			t.Fatalf("ε = %v", epsilon)
		}
		if !strings.HasPrefix(ledger.String(), "No privacy guarantee") == math.IsInf(ledger.Epsilon(ledger.TargetDelta()), 1) {
			t.Fatalf("the text contradicts ε = %v: %s", ledger.Epsilon(ledger.TargetDelta()), ledger.String())
		}
	})
}
