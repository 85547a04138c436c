package privacy

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestCalibrateSigmaTable(t *testing.T) {
	table := map[int][4]float64{
		50:  {37.3, 8.92, 5.00, 2.90},
		100: {52.8, 12.6, 7.07, 4.10},
		200: {74.6, 17.8, 10.0, 5.80},
		500: {118, 28.2, 15.8, 9.17},
	}
	for product, row := range table {
		for i, epsilon := range []float64{1, 5, 10, 20} {
			plan := DPALSPlan{Iterations: 5, Items: 1000, Rank: 8, Clip: 0.5, RatingBound: 2, ItemBudget: float64(product) / 5, ItemsPerUser: product / 5}
			releases, err := plan.Calibrate(Budget{epsilon, 1e-5})
			if err != nil {
				t.Fatal(err)
			}
			// The table has three digits.
			if got := releases.Sigma; math.Abs(got/row[i]-1) > 0.0051 || fmt.Sprintf("%.3g", got) != fmt.Sprintf("%.3g", row[i]) {
				t.Errorf("kT=%d ε=%v: σ = %.5g, want %.3g", product, epsilon, got, row[i])
			}
			// Closed form, which knows no grid.
			mu, _ := Budget{epsilon, 1e-5}.Mu()
			if want := math.Sqrt(2*float64(product)) / mu; releases.Sigma < want || releases.Sigma > want*(1+1e-5) {
				t.Errorf("kT=%d ε=%v: σ = %v, closed form %v", product, epsilon, releases.Sigma, want)
			}
			if releases.Global.Name != "" || releases.Counts.Name != "" || releases.CentreSum.Name != "" {
				t.Errorf("releases that the plan leaves out: %+v", releases)
			}
		}
	}
}

// ledgerOf records a run of the plan the way a trainer would.
func ledgerOf(t interface{ Fatal(...any) }, plan DPALSPlan, releases DPALSReleases, delta float64) *Ledger {
	ledger, err := NewLedger(UserLevel, delta, NewSeededNoise(Seed(1)).Source())
	if err != nil {
		t.Fatal(err)
	}
	record := func(r Release) {
		if r.Name == "" {
			return
		}
		if err := ledger.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	record(releases.CentreSum)
	record(releases.CentreCount)
	record(releases.Counts)
	for range plan.Iterations {
		record(releases.Global)
		record(releases.Gram)
		record(releases.RHS)
	}
	ledger.Seal()
	return ledger
}

func TestCalibrateStaysWithinBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := DPALSPlan{
			Iterations:   rapid.IntRange(1, 20).Draw(t, "iterations"),
			Items:        rapid.IntRange(1, 30000).Draw(t, "items"),
			Rank:         rapid.IntRange(1, 128).Draw(t, "rank"),
			Clip:         logUniform(-2, 2).Draw(t, "clip"),
			RatingBound:  logUniform(-2, 2).Draw(t, "bound"),
			ItemBudget:   logUniform(0, 3).Draw(t, "item budget"),
			ItemsPerUser: rapid.IntRange(0, 100).Draw(t, "items per user"),
			GramRatio:    rapid.SampledFrom([]float64{0, 0.5, 1, 3}).Draw(t, "s1"),
			RHSRatio:     rapid.SampledFrom([]float64{0, 0.5, 1, 3}).Draw(t, "s2"),
			GlobalRatio:  rapid.SampledFrom([]float64{0, 0.1, 1, 3}).Draw(t, "s0"),
			CountBudget:  rapid.IntRange(0, 100).Draw(t, "count budget"),
			CountNoise:   200,
			CentreNoise:  rapid.SampledFrom([]float64{0, 100}).Draw(t, "centre"),
		}
		budget := Budget{logUniform(0, 1.5).Draw(t, "epsilon"), logUniform(-9, -3).Draw(t, "delta")}
		releases, err := plan.Calibrate(budget)
		if err != nil {
			t.Fatal(err)
		}
		ledger := ledgerOf(t, plan, releases, budget.Delta)
		got := ledger.Epsilon(budget.Delta)
		if got > budget.Epsilon || got < budget.Epsilon*(1-1e-4) {
			t.Fatalf("calibrated for ε = %v, the ledger says %v", budget.Epsilon, got)
		}
		// The formula for μ², grid left aside.
		s1, s2 := releases.Gram.Noise/(plan.Clip*plan.Clip), releases.RHS.Noise/(plan.Clip*plan.RatingBound)
		sum := plan.ItemBudget/(s1*s1) + plan.ItemBudget/(s2*s2)
		if plan.GlobalRatio > 0 {
			s0 := releases.Global.Noise / (plan.Clip * plan.Clip)
			sum += 1 / (s0 * s0)
		}
		sum *= float64(plan.Iterations)
		if plan.CountBudget > 0 {
			sum += float64(plan.CountBudget) / (200 * 200)
		}
		if plan.CentreNoise > 0 {
			sum += 2 / (plan.CentreNoise * plan.CentreNoise)
		}
		if mu := ledger.Mu(); !near(mu, math.Sqrt(sum), 1e-2) || mu < math.Sqrt(sum) {
			t.Fatalf("μ = %v, the formula gives %v", mu, math.Sqrt(sum))
		}
	})
}

func TestCalibrateWithoutPrivacy(t *testing.T) {
	plan := DPALSPlan{Iterations: 3, Items: 10, Rank: 4, Clip: 1, RatingBound: 1, ItemBudget: 5, GlobalRatio: 1, CountBudget: 5, CentreNoise: 7}
	releases, err := plan.Calibrate(Budget{math.Inf(1), 1e-5})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Release{releases.Gram, releases.RHS, releases.Global, releases.Counts, releases.CentreSum, releases.CentreCount} {
		if r.Noise != 0 || r.Name == "" || r.Count != 1 {
			t.Errorf("%+v", r)
		}
	}
	ledger := ledgerOf(t, plan, releases, 1e-5)
	if got := ledger.Epsilon(1e-5); !math.IsInf(got, 1) || ledger.Private() {
		t.Errorf("ε = %v without noise", got)
	}
}

// Counts cover the whole catalogue, of which Items are only the frequent ones: with fewer of those than the count budget, a
// user still moves as many counts as the budget says.
func TestCountsAreNotBoundedByFrequentItems(t *testing.T) {
	plan := DPALSPlan{Iterations: 3, Items: 10, Rank: 4, Clip: 1, RatingBound: 1, ItemBudget: 5, CountBudget: 100, CountNoise: 200}
	releases, err := plan.Calibrate(Budget{5, 1e-5})
	if err != nil {
		t.Fatal(err)
	}
	if got := releases.Counts.Coordinates; got != 100 {
		t.Errorf("a user is said to move %d counts, want 100", got)
	}
}

func TestCalibrateErrors(t *testing.T) {
	good := DPALSPlan{Iterations: 3, Items: 10, Rank: 4, Clip: 1, RatingBound: 1, ItemBudget: 5}
	if _, err := good.Calibrate(Budget{1, 1e-5}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*DPALSPlan){
		"iterations":   func(p *DPALSPlan) { p.Iterations = 0 },
		"items":        func(p *DPALSPlan) { p.Items = -1 },
		"rank":         func(p *DPALSPlan) { p.Rank = 0 },
		"clip":         func(p *DPALSPlan) { p.Clip = math.NaN() },
		"bound":        func(p *DPALSPlan) { p.RatingBound = math.Inf(1) },
		"item budget":  func(p *DPALSPlan) { p.ItemBudget = 0 },
		"ratio":        func(p *DPALSPlan) { p.GramRatio = -1 },
		"free counts":  func(p *DPALSPlan) { p.CountBudget = 1 },
		"loud counts":  func(p *DPALSPlan) { p.CountBudget, p.CountNoise = 100, 1 },
		"centre noise": func(p *DPALSPlan) { p.CentreNoise = 0.01 },
	} {
		plan := good
		change(&plan)
		if _, err := plan.Calibrate(Budget{1, 1e-5}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := good.Calibrate(Budget{0, 1e-5}); err == nil {
		t.Error("an invalid budget passed")
	}
	release := Release{Name: "x", Mechanism: Gaussian, Sensitivity: 1, Count: 1}
	for name, plan := range map[string][]Planned{
		"nothing":       nil,
		"nothing to do": {{Release: Release{Name: "x", Mechanism: Gaussian, Sensitivity: 1, Count: 1, Noise: 100}}},
		"bad scale":     {{Release: release, Scale: math.NaN()}},
		"bad release":   {{Release: Release{Name: "x"}, Scale: 1}},
		"fixed at zero": {{Release: release}, {Release: release, Scale: 1}},
	} {
		if _, _, err := Calibrate(Budget{1, 1e-5}, plan); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// More draws than the sampler's allowance lets ε bear.
	many := release
	many.Coordinates = math.MaxInt64
	if _, _, err := Calibrate(Budget{1, 1e-5}, []Planned{{Release: many, Scale: 1}}); err == nil {
		t.Error("an impossible allowance passed")
	}
}

// The stated optimum beats its neighbours at equal μ.
func TestOptimalScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "releases")
		draw := rapid.SliceOfN(logUniform(-2, 2), n, n)
		sensitivities, costs := draw.Draw(t, "sensitivities"), draw.Draw(t, "costs")
		scales, err := OptimalScales(sensitivities, costs)
		if err != nil {
			t.Fatal(err)
		}
		cost := func(scales []float64) float64 {
			var mu2, total float64
			for l, s := range scales {
				mu2 += sensitivities[l] * sensitivities[l] / (s * s)
				total += costs[l] * s * s
			}
			return total * mu2 // scale-free: cost at μ = 1
		}
		best := cost(scales)
		for l := range scales {
			for _, factor := range []float64{0.9, 1.1} {
				other := append([]float64(nil), scales...)
				other[l] *= factor
				if cost(other) < best*(1-1e-12) {
					t.Fatalf("changing scale %d by %v lowers the cost from %v to %v", l, factor, best, cost(other))
				}
			}
		}
	})
	for _, c := range [][2][]float64{{{1}, {1, 2}}, {{0}, {1}}, {{1}, {-1}}, {{1}, {math.Inf(1)}}, {{math.NaN()}, {1}}} {
		if _, err := OptimalScales(c[0], c[1]); err == nil {
			t.Errorf("OptimalScales(%v) gave no error", c)
		}
	}
}
