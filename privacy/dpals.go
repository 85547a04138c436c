package privacy

import (
	"fmt"
	"math"
)

// A DPALSPlan says what one run of private alternating least squares (Chien et
// al. 2021, with corrected sensitivities) is going to release. Units of
// protection are users (add/remove).
type DPALSPlan struct {
	// Iterations is T ≥ 1. Each releases the item Gram matrices, the
	// right-hand sides and, if GlobalRatio > 0, the global Gram matrix.
	Iterations int
	// Items and Rank give the shapes: Items matrices of Rank × Rank.
	Items, Rank int
	// Clip is Γ, the bound on ‖u‖; RatingBound is Γ_M, the bound on |rating|.
	Clip, RatingBound float64
	// ItemBudget is B₂ ≥ max over users of Σ_j w_ij² (k for k items of weight
	// 1, and for adaptive weights).
	ItemBudget float64
	// ItemsPerUser bounds how many items one user contributes to in an
	// iteration: k when k are sampled; 0 means all, as with adaptive weights.
	ItemsPerUser int
	// GramRatio, RHSRatio and GlobalRatio are s1, s2 and s0 relative to σ. 0
	// means 1 for the first two; for GlobalRatio it means that no global Gram
	// matrix is released.
	// OptimalScales finds good ratios.
	GramRatio, RHSRatio, GlobalRatio float64
	// CountBudget is k_c, the items a user is counted for; CountNoise is s_c.
	// No counts are released when CountBudget is 0.
	CountBudget int
	CountNoise  float64
	// CentreNoise is the noise multiplier of a private global mean: a clipped
	// average for each user is summed (sensitivity Γ_M) and the users are
	// counted (sensitivity 1), each with CentreNoise times its sensitivity. 0
	// means that no mean is released.
	CentreNoise float64
}

// DPALSReleases are the releases of a DPALSPlan with calibrated noise, each
// with Count 1: record Gram, RHS and Global once per iteration, the others
// once. One that the plan leaves out is the zero Release (its Name is empty).
// Release.Noise is the standard deviation in the units of the query, so it is
// the scale to hand to Stream.AddSymmetric (Gram, Global) and AddVector (the
// others).
type DPALSReleases struct {
	// Sigma is the common noise multiplier σ, 0 without privacy.
	Sigma float64
	// Gram is s1·Γ² on Σ w·u·uᵀ of every item, RHS s2·Γ·Γ_M on Σ w·m·u of
	// every item, Global s0·Γ² on UᵀU.
	Gram, RHS, Global Release
	// Counts is s_c on the number of users of every item. CentreSum and
	// CentreCount are the two parts of the private mean.
	Counts, CentreSum, CentreCount Release
}

// Validate reports what is wrong with the plan, or nil.
func (p DPALSPlan) Validate() error {
	positive := func(name string, value float64) error {
		if !(value > 0) || math.IsInf(value, 1) {
			return fmt.Errorf("privacy: DPALS plan: %s is %v: it must be positive and finite", name, value)
		}
		return nil
	}
	notNegative := func(name string, value float64) error {
		if !(value >= 0) || math.IsInf(value, 1) {
			return fmt.Errorf("privacy: DPALS plan: %s is %v: it must be finite and not negative", name, value)
		}
		return nil
	}
	for _, check := range []error{
		positive("number of iterations", float64(p.Iterations)),
		positive("number of items", float64(p.Items)),
		positive("rank", float64(p.Rank)),
		positive("clip", p.Clip),
		positive("rating bound", p.RatingBound),
		positive("item budget", p.ItemBudget),
		notNegative("items per user", float64(p.ItemsPerUser)),
		notNegative("Gram noise ratio", p.GramRatio),
		notNegative("right-hand side noise ratio", p.RHSRatio),
		notNegative("global noise ratio", p.GlobalRatio),
		notNegative("count budget", float64(p.CountBudget)),
		notNegative("count noise", p.CountNoise),
		notNegative("centre noise", p.CentreNoise),
	} {
		if check != nil {
			return check
		}
	}
	return nil
}

// Calibrate finds the least σ for which all releases of the plan together stay
// within the budget,
//
//	μ² = T·(B₂/s1² + B₂/s2² + 1/s0²) + k_c/s_c² + 2/s_m² ≤ μ*(ε, δ)²
//
// with s_l = σ·ratio_l, and returns them. Sensitivities are widened by the grid,
// and the sampler's allowance is set aside, as in Release and Ledger.Epsilon.
// For ε = +Inf every noise is 0. It is an error if plan or budget are not
// valid, if counts are released with CountNoise 0 under a finite ε, or if
// counts and mean alone exceed the budget.
func (p DPALSPlan) Calibrate(b Budget) (DPALSReleases, error) {
	if err := p.Validate(); err != nil {
		return DPALSReleases{}, err
	}
	if err := b.Validate(); err != nil {
		return DPALSReleases{}, err
	}
	if b.IsPrivate() && p.CountBudget > 0 && p.CountNoise == 0 {
		return DPALSReleases{}, fmt.Errorf("privacy: DPALS plan: item counts are released without noise: set the count noise")
	}
	var out DPALSReleases
	plan, slots := p.planned(&out)
	sigma, releases, err := Calibrate(b, plan)
	if err != nil {
		return DPALSReleases{}, err
	}
	out.Sigma = sigma
	for i, slot := range slots {
		*slot = releases[i]
		slot.Count = 1
	}
	return out, nil
}

// planned lists the releases and, beside each, its place in out.
func (p DPALSPlan) planned(out *DPALSReleases) (plan []Planned, slots []*Release) {
	add := func(slot *Release, name string, count int, sensitivity, scale, noise float64, coordinates int64) {
		plan = append(plan, Planned{Scale: scale, Release: Release{
			Name: name, Mechanism: Gaussian, Sensitivity: sensitivity, Noise: noise,
			Count: count, Coordinates: coordinates,
		}})
		slots = append(slots, slot)
	}
	items := p.Items
	if p.ItemsPerUser > 0 {
		items = min(items, p.ItemsPerUser)
	}
	rank := int64(p.Rank)
	budget := math.Sqrt(p.ItemBudget)
	add(&out.Gram, "item Gram matrices", p.Iterations, budget*p.Clip*p.Clip,
		orOne(p.GramRatio)*p.Clip*p.Clip, 0, int64(items)*rank*rank)
	add(&out.RHS, "item right-hand sides", p.Iterations, budget*p.Clip*p.RatingBound,
		orOne(p.RHSRatio)*p.Clip*p.RatingBound, 0, int64(items)*rank)
	if p.GlobalRatio > 0 {
		add(&out.Global, "global Gram matrix", p.Iterations, p.Clip*p.Clip,
			p.GlobalRatio*p.Clip*p.Clip, 0, rank*rank)
	}
	if p.CountBudget > 0 {
		// Counts are integers, which a power-of-two grid step ≤ 1 holds
		// exactly, but coordinates are given so that the draws are counted.
		// Items does not bound them: all items of the catalogue are counted,
		// and Items are those chosen by these counts.
		add(&out.Counts, "item counts", 1, math.Sqrt(float64(p.CountBudget)),
			0, p.CountNoise, int64(p.CountBudget))
	}
	if p.CentreNoise > 0 {
		add(&out.CentreSum, "sum of the users' clipped means", 1, p.RatingBound,
			0, p.CentreNoise*p.RatingBound, 1)
		add(&out.CentreCount, "number of users", 1, 1, 0, p.CentreNoise, 1)
	}
	return plan, slots
}

// orOne reads 0 as "not given".
func orOne(ratio float64) float64 {
	if ratio == 0 {
		return 1
	}
	return ratio
}
