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
	// The published implementation without privacy (Chien et al. 2021).
	c.Loss.Background = 0.2
	c.UserRidge.Lambda, c.ItemRidge.Lambda = 40, 40
	return c, tunedPublished20M
}

// explicitDPALS trains all items with adaptive weights.
func explicitDPALS(budget privacy.Budget) (c dpals.Config, tuned string) {
	return dpals.Defaults(budget), tunedRatings1M
}

// implicitDPALS takes the published hyper-parameters for adaptive weights with e = −1/3 (Chien et al. 2021) where there are many users.
func implicitDPALS(users int, budget privacy.Budget) (c dpals.Config, tuned string) {
	if users < manyUsers {
		rank := 64
		if budget.Epsilon < 5 {
			rank = 16
		}
		return dpals.ImplicitDefaults(rank, budget), tunedUsers1M
	}
	c = dpals.ImplicitDefaults(usualRank, budget)
	c.CountExponent, c.ItemsPerUser, c.CountItems, c.FrequentFraction = -1./3, 100, 100, 0.1
	c.GramRatio, c.InitStd = 1, 0.1
	lambda := 30.0
	switch {
	case budget.Epsilon >= 20:
		c.Iterations, c.CountNoise, c.Loss.Background, c.Clip = 5, 10, 0.1, 0.2
	case budget.Epsilon >= 5:
		c.Iterations, c.CountNoise, c.Loss.Background, c.Clip = 4, 40, 0.3, 0.15
		lambda = 40
	default:
		c.Iterations, c.CountNoise, c.Loss.Background, c.Clip = 3, 200, 0.4, 0.05
	}
	c.UserRidge, c.ItemRidge = trainer.Ridge{Lambda: lambda}, trainer.Ridge{Lambda: lambda}
	return c, tunedPublished20M
}

// speedIterations is enough for a median.
const speedIterations = 3

// speedRanks are those that iterations are timed at.
func speedRanks(p Params) []int {
	if p.Rank > 0 {
		return []int{p.Rank}
	}
	return []int{64, 128}
}
