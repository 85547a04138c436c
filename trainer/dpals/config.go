package dpals

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/privacy"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/internal/normal"
)

// Limit is how one user's influence on all items together is bounded: the weights
// w_ij of her ratings satisfy Σ_j w_ij² ≤ ItemsPerUser.
type Limit string

const (
	// Adaptive uses every rating, with weights that favour rare items:
	// w_ij = √(k·c̃_j^2e / Σ_j' c̃_j'^2e).
	Adaptive Limit = "adaptive"
	// Uniform uses at most k ratings of each user, drawn at random.
	Uniform Limit = "uniform"
	// Tail uses the k ratings of each user whose items have the least noisy counts.
	Tail Limit = "tail"
	// Unlimited uses every rating with weight 1; only without privacy (ε = ∞).
	Unlimited Limit = "unlimited"
)

// Projection is where indefinite noisy matrices are made definite.
type Projection string

const (
	// Joint applies f(X) = 1/max(X, floor) to the whole matrix X = H̃_j + a0·K̃ + λρ_j·I.
	Joint Projection = "joint"
	// Separate projects H̃_j and K̃ to positive semidefinite matrices one by one before the ridge is
	// added, as the published implementation does. Without a background weight the two are the same
	// function. With one, on ML-1M at rank 16, their recall@20 differs by less than the spread over seeds at
	// ε = 5 and 20 and by 0.004 in favour of Separate at ε = 1; but it needs full eigendecompositions, which are
	// some forty times slower. Hence Joint is the default.
	Separate Projection = "separate"
)

// Centring is what is subtracted from explicit ratings before they are clipped.
type Centring string

const (
	// CentreMidScale subtracts the middle of the rating scale, a public constant.
	CentreMidScale Centring = "mid-scale"
	// CentreUserMean subtracts, after the middle of the scale, each user's own shrunk mean, which
	// stays with the user and so costs nothing under joint differential privacy.
	CentreUserMean Centring = "user mean"
	// CentrePrivateMean subtracts a global mean released with noise.
	CentrePrivateMean Centring = "private mean"
)

// Config is what a private training run depends on. Start from Defaults or
// ImplicitDefaults. Every value in it is taken as public: choose them without looking at the
// training ratings, or the guarantee does not cover the choice.
type Config struct {
	Rank       int            `json:"rank"`
	Iterations int            `json:"iterations"` // T: item steps; a last user step follows
	Budget     privacy.Budget `json:"-"`
	Loss       trainer.Loss   `json:"loss"` // explicit or unobserved
	UserRidge  trainer.Ridge  `json:"user_ridge"`
	ItemRidge  trainer.Ridge  `json:"item_ridge"` // with Exponent ≠ 0, ρ is taken at the noisy count
	InitStd    float64        `json:"init_std"`
	Seed       uint64         `json:"seed"` // of initial factors and samples, not of the noise

	Clip        float64  `json:"clip"`         // Γ, bound on the norm of a user's factors
	RatingBound float64  `json:"rating_bound"` // Γ_M, bound on |centred rating|
	Centring    Centring `json:"centring"`     // explicit loss only

	// ScaleMin and ScaleMax bound the ratings; their middle is what Centring calls
	// mid-scale, and predictions are clamped to them. Both 0 takes them from the data set, which is right only
	// where its scale is public, as that of a named data set. For a scale that was read off the
	// ratings (see dataset.Ratings.Scale) the guarantee does not cover it: give the bounds here.
	ScaleMin float32 `json:"scale_min,omitempty"`
	ScaleMax float32 `json:"scale_max,omitempty"`

	Shrinkage   float64    `json:"shrinkage"`    // of user means
	CentreNoise float64    `json:"centre_noise"` // noise multiplier of the private mean
	Limit       Limit      `json:"limit"`
	Projection  Projection `json:"projection"`

	ItemsPerUser  int     `json:"items_per_user"` // k
	CountExponent float64 `json:"count_exponent"` // e, for Adaptive

	CountItems       int     `json:"count_items"`       // k_c: items per user that are counted
	CountNoise       float64 `json:"count_noise"`       // s_c, standard deviation of the noise on a count
	FrequentFraction float64 `json:"frequent_fraction"` // β: share of items, by noisy count, that get factors

	// Noise multipliers relative to each other: s1 on Gram matrices, s2 on
	// right-hand sides, s0 on the global Gram matrix. 0 means 1.
	GramRatio   float64 `json:"gram_ratio,omitempty"`
	RHSRatio    float64 `json:"rhs_ratio,omitempty"`
	GlobalRatio float64 `json:"global_ratio,omitempty"`

	// NoiseSeed makes the noise reproducible, for tests and benchmarks only: whoever
	// knows it can remove the noise, and Model.Privacy says so. Nil draws the key
	// from the operating system.
	NoiseSeed *uint64 `json:"-"`

	Workers   int                    `json:"-"` // 0 means all CPUs; never changes the result
	MaxMemory int64                  `json:"-"` // bytes; 0 means no limit
	Progress  func(trainer.Progress) `json:"-"` // called once per iteration; see trainer.Progress on what it may show
}

// MarshalJSON writes the hyper-parameters. A bound of +Inf, which JSON cannot hold, is left out.
func (c Config) MarshalJSON() ([]byte, error) {
	type plain Config
	bounded := struct {
		plain
		Clip        *float64 `json:"clip,omitempty"`
		RatingBound *float64 `json:"rating_bound,omitempty"`
	}{plain: plain(c)}
	if !math.IsInf(c.Clip, 1) {
		bounded.Clip = &c.Clip
	}
	if !math.IsInf(c.RatingBound, 1) {
		bounded.RatingBound = &c.RatingBound
	}
	return json.Marshal(bounded)
}

// Defaults is a configuration for explicit ratings on a scale of about five and data of the size of MovieLens 1M,
// with rank, iterations and noise that suit the budget's ε. The values were tuned on MovieLens 1M
// itself; no ε covers that choice. There (random 80/10/10 splits, δ = 1/6040, mean of five) the test RMSE is
// 0.968, 0.928, 0.914 and 0.901 for ε = 1, 5, 10 and 20; the exact item means give 0.980, ALS without privacy 0.855.
func Defaults(budget privacy.Budget) Config {
	c := Config{
		Budget: budget, Rank: 4, Iterations: 4,
		Loss:      trainer.Loss{Kind: trainer.Explicit},
		UserRidge: trainer.Ridge{Lambda: 1.2}, ItemRidge: trainer.Ridge{Lambda: 25, Exponent: 0.25},
		InitStd: 0.07, Clip: 1, RatingBound: 1.6,
		Centring: CentreUserMean, Shrinkage: 70,
		Limit: Adaptive, CountExponent: -0.25, ItemsPerUser: 70, Projection: Joint,
		CountItems: 20, CountNoise: max(6, 75/budget.Epsilon), FrequentFraction: 1,
		GramRatio: 2.3,
	}
	switch {
	case budget.Epsilon < 3: // one factor: little more than private item means, scaled for each user
		c.Rank, c.Iterations, c.InitStd = 1, 2, 0.012
		c.UserRidge.Lambda, c.ItemRidge = 0.08, trainer.Ridge{Lambda: 530}
		c.Shrinkage, c.ItemsPerUser, c.CountExponent, c.GramRatio = 30, 100, 0, 3.5
	case budget.Epsilon < 8:
		c.Rank, c.InitStd = 2, 0.012
		c.UserRidge.Lambda, c.ItemRidge.Lambda, c.ItemsPerUser = 0.28, 62, 50
	case budget.Epsilon < 15:
		c.UserRidge.Lambda, c.ItemRidge.Lambda = 0.9, 40
	}
	return c
}

// ImplicitDefaults is a configuration for implicit feedback and data of the size of MovieLens 1M, with
// the given rank: 64 where ε is 5 or more, 16 below. The values were tuned on MovieLens 1M itself; no ε covers that
// choice. There (ratings above 3.5, 600 held-out users, δ = 1/6040, mean of three splits) Recall@20 is
// 0.236, 0.296, 0.316 and 0.339 for ε = 1, 5, 10 and 20; the popularity list gives 0.167, ALS without privacy 0.365.
// Chien et al. 2021 publish choices for MovieLens 20M.
func ImplicitDefaults(rank int, budget privacy.Budget) Config {
	c := Config{
		Budget: budget, Rank: rank, Iterations: 3,
		Loss:      trainer.Loss{Kind: trainer.Unobserved, Background: 0.35},
		UserRidge: trainer.Ridge{Lambda: 1.2}, ItemRidge: trainer.Ridge{Lambda: 60},
		InitStd: 0.15, Clip: 0.29, RatingBound: 1,
		Limit: Adaptive, CountExponent: -0.25, ItemsPerUser: 100, Projection: Joint,
		CountItems: 50, CountNoise: max(10, 200/budget.Epsilon), FrequentFraction: 0.2,
		GramRatio: 1.75,
	}
	switch {
	case budget.Epsilon < 3:
		c.Loss.Background, c.UserRidge.Lambda, c.ItemRidge.Lambda = 1.3, 4.5, 44
		c.InitStd, c.Clip, c.GramRatio = 0.23, 0.08, 3.85
		c.CountExponent, c.CountItems, c.FrequentFraction = 0, 100, 0.1
	case budget.Epsilon < 8:
		c.Iterations, c.ItemRidge.Lambda, c.InitStd = 2, 84, 0.09
		c.Loss.Background, c.ItemsPerUser, c.CountItems, c.FrequentFraction = 0.4, 30, 100, 0.1
	}
	return c
}

// Bounds and noise scales lie in this range: wide beyond any use, and within what float32 sums and the
// grid of the noise can hold.
const (
	smallestBound = 1e-12
	largestBound  = 1e12
)

// Validate reports what is wrong with the configuration, or nil.
func (c *Config) Validate() error {
	if err := c.Budget.Validate(); err != nil {
		return fmt.Errorf("dpals: %w", err)
	}
	positive := func(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
	usable := func(x float64) bool { return x >= smallestBound && x <= largestBound }
	usableOrZero := func(x float64) bool { return x == 0 || usable(x) }
	notNegative := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	unlimited := func(bound float64) bool { return math.IsInf(bound, 1) && !c.Budget.IsPrivate() }
	explicit := c.Loss.Kind == trainer.Explicit
	switch {
	case c.Rank < 1 || c.Rank > trainer.MaxRank:
		return fmt.Errorf("dpals: rank is %d: it must lie between 1 and %d", c.Rank, trainer.MaxRank)
	case c.Iterations < 1:
		return fmt.Errorf("dpals: iterations is %d: it must be at least 1", c.Iterations)
	case c.Loss.Kind == trainer.Confidence:
		return fmt.Errorf("dpals: the confidence loss has unbounded weights: use the %s loss", trainer.Unobserved)
	case !positive(c.InitStd):
		return fmt.Errorf("dpals: standard deviation of the initial factors is %v: it must be positive and finite", c.InitStd)
	case !usable(c.Clip) && !unlimited(c.Clip):
		return fmt.Errorf("dpals: clip is %v: the bound on a user's factors must lie between %g and %g", c.Clip, smallestBound, largestBound)
	case !usable(c.RatingBound) && !unlimited(c.RatingBound):
		return fmt.Errorf("dpals: rating bound is %v: it must lie between %g and %g", c.RatingBound, smallestBound, largestBound)
	case !explicit && !(c.RatingBound >= 1):
		return fmt.Errorf("dpals: rating bound is %v, but the targets of the %s loss are 1: use 1", c.RatingBound, c.Loss.Kind)
	case explicit && c.Centring != CentreMidScale && c.Centring != CentreUserMean && c.Centring != CentrePrivateMean:
		return fmt.Errorf("dpals: unknown centring %q: use %q, %q or %q", c.Centring, CentreMidScale, CentreUserMean, CentrePrivateMean)
	case !explicit && c.Centring != "":
		return errors.New("dpals: centring is for explicit ratings: leave it empty for the unobserved loss")
	case math.IsNaN(float64(c.ScaleMin)) || math.IsNaN(float64(c.ScaleMax)) || math.IsInf(float64(c.ScaleMin), 0) || math.IsInf(float64(c.ScaleMax), 0) || c.ScaleMin > c.ScaleMax:
		return fmt.Errorf("dpals: the rating scale goes from %v to %v: it needs finite bounds in ascending order", c.ScaleMin, c.ScaleMax)
	case !explicit && (c.ScaleMin != 0 || c.ScaleMax != 0):
		return errors.New("dpals: a rating scale is for explicit ratings: leave it out for the unobserved loss")
	case !notNegative(c.Shrinkage):
		return fmt.Errorf("dpals: shrinkage is %v: it must be finite and not negative", c.Shrinkage)
	case !usableOrZero(c.CentreNoise):
		return fmt.Errorf("dpals: centre noise is %v: it must be 0 or lie between %g and %g", c.CentreNoise, smallestBound, largestBound)
	case (c.Centring == CentrePrivateMean && c.Budget.IsPrivate()) != (c.CentreNoise > 0):
		return fmt.Errorf("dpals: centre noise is %v with centring %q and ε %v: a private mean needs it positive, anything else leaves it 0", c.CentreNoise, c.Centring, c.Budget.Epsilon)
	case c.Projection != Joint && c.Projection != Separate:
		return fmt.Errorf("dpals: unknown projection %q: use %q or %q", c.Projection, Joint, Separate)
	case c.Limit != Adaptive && c.Limit != Uniform && c.Limit != Tail && c.Limit != Unlimited:
		return fmt.Errorf("dpals: unknown limit %q: use %q, %q, %q or (without privacy) %q", c.Limit, Adaptive, Uniform, Tail, Unlimited)
	case c.Limit == Unlimited && c.Budget.IsPrivate():
		return errors.New("dpals: without a limit per user there is no finite sensitivity: choose adaptive, uniform or tail, or ε = ∞")
	case c.Limit != Unlimited && c.ItemsPerUser < 1:
		return fmt.Errorf("dpals: items per user is %d: it must be at least 1", c.ItemsPerUser)
	case c.Limit != Adaptive && c.CountExponent != 0:
		return fmt.Errorf("dpals: count exponent is %v, but the limit %q has none: leave it 0", c.CountExponent, c.Limit)
	case math.IsNaN(c.CountExponent) || math.Abs(c.CountExponent) > 2:
		return fmt.Errorf("dpals: count exponent is %v: it must lie between -2 and 2", c.CountExponent)
	case c.CountItems < 1:
		return fmt.Errorf("dpals: count items is %d: it must be at least 1", c.CountItems)
	case !usableOrZero(c.CountNoise) || (c.Budget.IsPrivate() && c.CountNoise == 0):
		return fmt.Errorf("dpals: count noise is %v: it must lie between %g and %g", c.CountNoise, smallestBound, largestBound)
	case !(c.FrequentFraction > 0 && c.FrequentFraction <= 1):
		return fmt.Errorf("dpals: frequent fraction is %v: it must lie in (0, 1]", c.FrequentFraction)
	case !usableOrZero(c.GramRatio), !usableOrZero(c.RHSRatio), !usableOrZero(c.GlobalRatio):
		return fmt.Errorf("dpals: noise ratios are %v, %v, %v: they must be 0 or lie between %g and %g", c.GramRatio, c.RHSRatio, c.GlobalRatio, smallestBound, largestBound)
	case c.GlobalRatio != 0 && c.Loss.Background == 0:
		return fmt.Errorf("dpals: global noise ratio is %v, but without a background weight there is no global Gram matrix: leave it 0", c.GlobalRatio)
	case c.Workers < 0:
		return fmt.Errorf("dpals: workers is %d: use 0 for all CPUs", c.Workers)
	}
	if err := c.Loss.Validate(); err != nil {
		return fmt.Errorf("dpals: loss: %w", err)
	}
	if err := c.UserRidge.Validate(); err != nil {
		return fmt.Errorf("dpals: user ridge: %w", err)
	}
	if err := c.ItemRidge.Validate(); err != nil {
		return fmt.Errorf("dpals: item ridge: %w", err)
	}
	return nil
}

// Check reports what would keep a training run on that many items from starting, or nil: what Validate
// reports, and a budget that cannot be met, such as one that the noise on the counts alone exceeds. It looks at no ratings.
func (c *Config) Check(items int) error {
	if err := c.Validate(); err != nil {
		return err
	}
	_, err := c.calibrate(items)
	return err
}

// calibrate finds the noise that meets the budget; without privacy there is none.
func (c *Config) calibrate(items int) (privacy.DPALSReleases, error) {
	if !c.Budget.IsPrivate() {
		return privacy.DPALSReleases{}, nil
	}
	releases, err := c.privacyPlan(items).Calibrate(c.Budget)
	if err != nil {
		return privacy.DPALSReleases{}, fmt.Errorf("dpals: %w", err)
	}
	return releases, nil
}

// privacyPlan is what the run will release.
func (c *Config) privacyPlan(items int) privacy.DPALSPlan {
	p := privacy.DPALSPlan{
		Iterations: c.Iterations, Items: c.frequent(items), Rank: c.Rank,
		Clip: c.Clip, RatingBound: c.RatingBound, ItemBudget: float64(c.ItemsPerUser),
		GramRatio: c.GramRatio, RHSRatio: c.RHSRatio,
		CountBudget: c.CountItems, CountNoise: c.CountNoise, CentreNoise: c.CentreNoise,
	}
	if c.Limit != Adaptive {
		p.ItemsPerUser = c.ItemsPerUser
	}
	if c.Loss.Background > 0 {
		p.GlobalRatio = 1
		if c.GlobalRatio > 0 {
			p.GlobalRatio = c.GlobalRatio
		}
	}
	return p
}

// frequent is ⌈β·items⌉.
func (c *Config) frequent(items int) int {
	return min(items, int(math.Ceil(c.FrequentFraction*float64(items))))
}

// Plan says how much memory Train will need besides the ratings.
func Plan(train *dataset.Ratings, c Config) trainer.MemoryPlan {
	var p trainer.MemoryPlan
	degree := 0
	for i := range train.NumItems() {
		degree = max(degree, train.ItemCount(i))
	}
	for u := range train.NumUsers() {
		degree = max(degree, train.UserCount(u))
	}
	p.Add("user factors", 4*int64(train.NumUsers())*int64(c.Rank))
	p.Add("item factors", 4*int64(train.NumItems())*int64(c.Rank))
	p.Add("targets of item steps", 4*int64(train.NumRatings())+24*int64(train.NumItems()))
	p.Add("means and weights", 8*int64(train.NumUsers()+train.NumItems()))
	if c.Limit == Uniform || c.Limit == Tail {
		sampled := min(int64(train.NumRatings()), int64(train.NumUsers())*int64(min(c.ItemsPerUser, train.NumItems())))
		perUser := int64(24) // slice header of the list of a user's positions
		p.Add("sampled ratings", 16*sampled+perUser*int64(train.NumUsers()))
	}
	if c.Loss.BackgroundWeight() > 0 {
		p.Add("Gram matrix over all rows", normal.FullGramBytes(c.Rank, max(train.NumUsers(), train.NumItems())))
	}
	p.Add("workers", int64(normal.Workers(c.Workers))*normal.WorkspaceBytes(c.Rank, degree))
	return p
}
