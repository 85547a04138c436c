package trainerbench

import (
	"slices"

	"github.com/dpmf-go/dpmf/privacy"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/als"
	"github.com/dpmf-go/dpmf/trainer/dpals"
)

// This file is the one place where hyper-parameters depend on the data set. They are looked up by its number of users
// only, which is public, and were chosen on the data that each choice names. No ε covers choosing: where the data at
// hand are those it was done on, the model knows more about them than its ε says, and the results print that name
// beside ε.

// manyUsers separates data sets like MovieLens 1M (6,040 users) from those like MovieLens 20M (138,493); it lies half-way
// between the two on a logarithmic scale.
const manyUsers = 30_000

// Where hyper-parameters were chosen.
const (
	tunedRatings1M    = "ML-1M ratings"
	tunedUsers1M      = "ML-1M validation users"
	tunedPublished20M = "published, ML-20M"
)

// usualRank is that of the trainers without privacy. DPALS runs at it too, so that speed can be compared.
const usualRank = 64

// ranks are those that DPALS runs at: the one that was asked for, or else ALS's and the one that suits the budget.
func ranks(p Params, own int) []int {
	if p.Rank > 0 {
		return []int{p.Rank}
	}
	return slices.Compact([]int{usualRank, own})
}

func (p Params) rankOrUsual() int {
	if p.Rank > 0 {
		return p.Rank
	}
	return usualRank
}

func explicitALS(rank int) (c als.Config, tuned string) { return als.Defaults(rank), tunedRatings1M }

func implicitALS(users, rank int) (c als.Config, tuned string) {
	c = als.ImplicitDefaults(rank)
	if users < manyUsers {
		return c, tunedUsers1M
	}
	// The reference implementation without privacy (SPEC §2).
	c.Loss.Background = 0.2
	c.UserRidge.Lambda, c.ItemRidge.Lambda = 40, 40
	return c, tunedPublished20M
}

// explicitDPALS trains all items with adaptive weights.
func explicitDPALS(budget privacy.Budget) (c dpals.Config, tuned string) {
	return dpals.Defaults(budget), tunedRatings1M
}

func implicitDPALS(users int, budget privacy.Budget) (c dpals.Config, tuned string) {
	c = dpals.ImplicitDefaults(usualRank, budget)
	if users >= manyUsers {
		return c, tunedPublished20M
	}
	// With some twenty times fewer users the noise is the same and the signal as much weaker: fewer factors and steps. There
	// are only a seventh of the items, so that a larger share of them has enough ratings.
	c.Rank, c.Iterations = 16, 3
	switch {
	case budget.Epsilon < 5:
		c.Iterations = 2
	case budget.Epsilon >= 15:
		c.Rank = 64
	case budget.Epsilon >= 8:
		c.Rank = 32
	}
	c.Loss.Background = 0.4
	c.UserRidge, c.ItemRidge = trainer.Ridge{Lambda: 10}, trainer.Ridge{Lambda: 10}
	c.Clip, c.FrequentFraction = 0.1, 0.2
	return c, tunedUsers1M
}
