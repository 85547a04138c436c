// Package als trains factorizations by alternating least squares: explicit
// ratings (Zhou et al. 2008) and implicit feedback in two forms (Hu, Koren &
// Volinsky 2008; the unobserved-weight form of Rendle et al. 2021).
//
// It has no privacy. Package dpals trains the same objectives under differential privacy.
package als

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/internal/normal"
)

// Config is what a training run depends on. Start from Defaults.
type Config struct {
	Rank       int           `json:"rank"`
	Iterations int           `json:"iterations"` // of user half plus item half; a last user half follows
	Loss       trainer.Loss  `json:"loss"`
	UserRidge  trainer.Ridge `json:"user_ridge"`
	ItemRidge  trainer.Ridge `json:"item_ridge"`
	Means      trainer.Means `json:"means"`    // subtracted first; explicit loss only
	NoClamp    bool          `json:"no_clamp"` // explicit predictions may leave the rating scale
	InitStd    float64       `json:"init_std"` // of the normal initial item factors
	Seed       uint64        `json:"seed"`

	Workers   int                    `json:"-"` // 0 means all CPUs; never changes the result
	MaxMemory int64                  `json:"-"` // bytes; 0 means no limit
	Progress  func(trainer.Progress) `json:"-"` // called after every iteration
}

// Defaults is a good explicit configuration: global mean subtracted, regularization growing with the
// square root of a row's ratings and slowly with the rank. On MovieLens 1M (random 80/20 splits, mean of
// five) it gives a test RMSE of 0.854 at rank 16 and 0.860 at rank 64.
func Defaults(rank int) Config {
	ridge := trainer.Ridge{Lambda: 0.75 * math.Pow(float64(max(rank, 1)), 0.12), Exponent: 0.5}
	return Config{
		Rank: rank, Iterations: 15,
		Loss:      trainer.Loss{Kind: trainer.Explicit},
		UserRidge: ridge, ItemRidge: ridge,
		Means:   trainer.Means{Global: true},
		InitStd: 0.1,
	}
}

// ImplicitDefaults is a good implicit configuration: the unobserved-weight form. On MovieLens 1M
// (ratings above 3.5, 600 held-out users) it gives a Recall@20 of 0.365 at rank 64, where the popularity list
// has 0.167. Larger data want more regularization: the published choice for MovieLens 20M is 40 with a0 = 0.2.
func ImplicitDefaults(rank int) Config {
	c := Defaults(rank)
	c.Loss = trainer.Loss{Kind: trainer.Unobserved, Background: 0.3}
	c.UserRidge = trainer.Ridge{Lambda: 10}
	c.ItemRidge = trainer.Ridge{Lambda: 10}
	c.Means = trainer.Means{}
	return c
}

// Validate reports what is wrong with the configuration, or nil.
func (c *Config) Validate() error {
	switch {
	case c.Rank < 1 || c.Rank > trainer.MaxRank:
		return fmt.Errorf("als: rank is %d: it must lie between 1 and %d", c.Rank, trainer.MaxRank)
	case c.Iterations < 1:
		return fmt.Errorf("als: iterations is %d: it must be at least 1", c.Iterations)
	case !(c.InitStd > 0) || math.IsInf(c.InitStd, 1):
		return fmt.Errorf("als: standard deviation of the initial factors is %v: it must be positive and finite", c.InitStd)
	case !(c.Means.Shrinkage >= 0) || math.IsInf(c.Means.Shrinkage, 1):
		return fmt.Errorf("als: shrinkage of the means is %v: it must be finite and not negative", c.Means.Shrinkage)
	case c.Workers < 0:
		return fmt.Errorf("als: workers is %d: use 0 for all CPUs", c.Workers)
	}
	if err := c.Loss.Validate(); err != nil {
		return fmt.Errorf("als: loss: %w", err)
	}
	if c.Loss.Kind != trainer.Explicit && (c.Means.Global || c.Means.Item || c.Means.User) {
		return errors.New("als: means are subtracted from explicit ratings only: leave them out for implicit losses")
	}
	if err := c.UserRidge.Validate(); err != nil {
		return fmt.Errorf("als: user ridge: %w", err)
	}
	if err := c.ItemRidge.Validate(); err != nil {
		return fmt.Errorf("als: item ridge: %w", err)
	}
	return nil
}

// Plan says how much memory Train will need besides the ratings.
func Plan(train *dataset.Ratings, c Config) trainer.MemoryPlan {
	var p trainer.MemoryPlan
	degree := 0
	for u := range train.NumUsers() {
		degree = max(degree, train.UserCount(u))
	}
	for i := range train.NumItems() {
		degree = max(degree, train.ItemCount(i))
	}
	p.Add("user factors", 4*int64(train.NumUsers())*int64(c.Rank))
	p.Add("item factors", 4*int64(train.NumItems())*int64(c.Rank))
	p.Add("means", 4*int64(train.NumUsers()+train.NumItems()))
	if c.Loss.BackgroundWeight() > 0 {
		p.Add("Gram matrix over all rows", normal.FullGramBytes(c.Rank, max(train.NumUsers(), train.NumItems())))
	}
	p.Add("workers", int64(normal.Workers(c.Workers))*normal.WorkspaceBytes(c.Rank, degree))
	return p
}

// Train fits the factors. It returns an error for a bad configuration, an empty data set, too
// little memory, or the context's cause soon after ctx is done.
func Train(ctx context.Context, train *dataset.Ratings, c Config) (*trainer.Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if train.NumRatings() == 0 {
		return nil, errors.New("als: the training data hold no ratings")
	}
	if err := Plan(train, c).Check(c.MaxMemory); err != nil {
		return nil, fmt.Errorf("als: %w", err)
	}
	config, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("als: encode the configuration: %w", err)
	}
	m := &trainer.Model{
		Algorithm: "als", Config: config, Rank: c.Rank,
		UserFactors: make([]float32, train.NumUsers()*c.Rank),
		ItemFactors: InitialFactors(train.NumItems(), c.Rank, c.InitStd, c.Seed),
		Offsets:     trainer.FitOffsets(train, c.Means),
		FoldIn:      trainer.FoldIn{Loss: c.Loss, Ridge: c.UserRidge, UserMean: c.Means.User, Shrinkage: c.Means.Shrinkage},
		UserIDs:     train.UserIDs(), ItemIDs: train.ItemIDs(), Seen: train,
	}
	if c.Loss.Kind == trainer.Explicit && !c.NoClamp {
		m.ClampMin, m.ClampMax, _ = train.Scale()
	}
	r := run{Config: &c, train: train, model: m}
	if err := r.iterate(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// InitialFactors draws rows × rank normal values with the given standard deviation. The
// same seed gives the same bits.
func InitialFactors(rows, rank int, std float64, seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 0x414c53))
	v := make([]float32, rows*rank)
	for i := range v {
		v[i] = float32(std * rng.NormFloat64())
	}
	return v
}

type run struct {
	*Config
	train *dataset.Ratings
	model *trainer.Model
}

func (r *run) iterate(ctx context.Context) error {
	start := time.Now()
	users, items := UserHalf(r.train, r.model, r.Loss, r.UserRidge), r.itemHalf()
	for t := 1; t <= r.Iterations; t++ {
		began := time.Now()
		if err := Background(ctx, users, r.Loss, r.Workers); err != nil {
			return err
		}
		if _, err := users.Run(ctx, r.Workers, r.model.UserFactors); err != nil {
			return fmt.Errorf("als: iteration %d, users: %w", t, err)
		}
		middle := time.Now()
		if err := Background(ctx, items, r.Loss, r.Workers); err != nil {
			return err
		}
		loss, err := items.Run(ctx, r.Workers, r.model.ItemFactors)
		if err != nil {
			return fmt.Errorf("als: iteration %d, items: %w", t, err)
		}
		if r.Progress != nil {
			end := time.Now()
			r.Progress(r.progress(t, loss, end.Sub(start), middle.Sub(began), end.Sub(middle)))
		}
	}
	return r.finish(ctx, users)
}

// finish solves the users once more, so that stored users and those that
// Model.NewUser makes from the same ratings are equal.
func (r *run) finish(ctx context.Context, users *normal.Half) error {
	if err := Background(ctx, users, r.Loss, r.Workers); err != nil {
		return err
	}
	if _, err := users.Run(ctx, r.Workers, r.model.UserFactors); err != nil {
		return fmt.Errorf("als: last user step: %w", err)
	}
	return nil
}

// progress completes the item half's loss with the penalty of the user factors.
func (r *run) progress(t int, loss normal.RowLoss, elapsed, user, item time.Duration) trainer.Progress {
	p := trainer.Progress{Iteration: t, Iterations: r.Iterations, Elapsed: elapsed, UserTime: user, ItemTime: item}
	_, _, ratings := r.train.CSR()
	p.Objective = loss.Objective + Penalty(r.train, r.model, r.UserRidge) - r.Loss.Excess(ratings)
	if r.Loss.Kind == trainer.Explicit && r.Loss.Background == 0 {
		p.TrainRMSE = math.Sqrt(max(0, loss.Squared) / float64(r.train.NumRatings()))
	}
	return p
}
