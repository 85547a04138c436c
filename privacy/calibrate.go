package privacy

import (
	"fmt"
	"math"
)

// A Planned release is one that a trainer is going to make. Its noise is fixed,
// or grows with the common multiplier σ that Calibrate looks for.
type Planned struct {
	// Release is what will be recorded. With Coordinates > 0 the noise is
	// drawn on GridFor(noise), and Calibrate sets Grid accordingly.
	Release Release
	// Scale is the noise at σ = 1: Release.Noise becomes σ·Scale. 0 leaves
	// Release.Noise as it is.
	Scale float64
}

// at returns the release for one σ.
func (p Planned) at(sigma float64) Release {
	r := p.Release
	if p.Scale > 0 {
		r.Noise = sigma * p.Scale
	}
	if r.Coordinates > 0 {
		r.Grid = GridFor(r.Noise).Step()
	}
	return r
}

// Calibrate returns the smallest multiplier σ, to a relative 1e-9, for which
// the planned releases together stay within the budget, and the releases with
// their noise filled in. It asks the same functions that a Ledger uses, grid
// and sampler allowances included, so a ledger with these releases never shows
// more than b.Epsilon at b.Delta. For ε = +Inf it returns σ = 0 and releases
// without noise, whether their noise was fixed or not.
//
// It is an error if the budget or a release is not valid, if nothing scales
// with σ, or if the releases with fixed noise alone exceed the budget.
func Calibrate(b Budget, plan []Planned) (sigma float64, releases []Release, err error) {
	if err := b.Validate(); err != nil {
		return 0, nil, err
	}
	at := func(sigma float64) []Release {
		list := make([]Release, len(plan))
		for i, p := range plan {
			list[i] = p.at(sigma)
		}
		return list
	}
	var fixed []Release
	for _, p := range plan {
		if !(p.Scale >= 0) || math.IsInf(p.Scale, 1) {
			return 0, nil, fmt.Errorf("privacy: release %q: relative noise is %v: it must be finite and not negative", p.Release.Name, p.Scale)
		}
		if err := p.at(1).Validate(); err != nil {
			return 0, nil, err
		}
		if p.Scale == 0 {
			fixed = append(fixed, p.at(1))
		}
	}
	if !b.IsPrivate() {
		releases = at(0)
		for i := range releases {
			releases[i].Noise, releases[i].Grid = 0, 0
		}
		return 0, releases, nil
	}
	if len(fixed) == len(plan) {
		return 0, nil, fmt.Errorf("privacy: none of the %d planned releases has noise to calibrate", len(plan))
	}
	if len(fixed) > 0 {
		if spent := epsilonOf(fixed, b.Delta); spent >= b.Epsilon {
			return 0, nil, fmt.Errorf("privacy: %s already take ε = %.4g of the %v at δ = %v: give it more noise or raise the budget", names(fixed), spent, b.Epsilon, b.Delta)
		}
	}
	// ε falls as σ grows, except where the grid's step doubles and the widening
	// jumps by a part in 10⁴; the σ returned is one that was itself found
	// within the budget, so that costs a little noise at most. The margin covers
	// the order in which a ledger adds the same releases.
	target := b.Epsilon * (1 - 1e-13)
	within := func(sigma float64) bool { return epsilonOf(at(sigma), b.Delta) <= target }
	high := 1.0
	for !within(high) {
		if high *= 2; high > 0x1p200 {
			return 0, nil, fmt.Errorf("privacy: no noise multiplier brings %s and the rest within %v: the allowance for %d releases on a grid exceeds it", names(at(1)), b, len(plan))
		}
	}
	low := high / 2
	for within(low) && low > 0x1p-200 {
		high, low = low, low/2
	}
	for high-low > 1e-10*high {
		if middle := (low + high) / 2; within(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high, at(high), nil
}

// names lists releases for an error message.
func names(releases []Release) string {
	text := ""
	for i, r := range releases {
		if i > 0 {
			text += ", "
		}
		text += r.Name
	}
	return text
}

// OptimalScales returns noise scales s_l, up to a common factor, that minimise
// Σ cost_l·s_l² for a given μ² = Σ (Δ_l/s_l)²: s_l² ∝ Δ_l/√cost_l. Both lists
// must have one positive, finite entry for each release; otherwise it is an
// error. Multiply by σ from Calibrate (as Planned.Scale).
func OptimalScales(sensitivities, costs []float64) ([]float64, error) {
	if len(sensitivities) != len(costs) {
		return nil, fmt.Errorf("privacy: %d sensitivities but %d costs: one of each is needed for every release", len(sensitivities), len(costs))
	}
	scales := make([]float64, len(costs))
	for l, cost := range costs {
		if !(cost > 0) || math.IsInf(cost, 1) || !(sensitivities[l] > 0) || math.IsInf(sensitivities[l], 1) {
			return nil, fmt.Errorf("privacy: release %d has sensitivity %v and cost %v: both must be positive and finite", l, sensitivities[l], cost)
		}
		scales[l] = math.Sqrt(sensitivities[l] / math.Sqrt(cost))
	}
	return scales, nil
}
