package trainerbench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/privacy"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/als"
	"github.com/dpmf-go/dpmf/trainer/dpals"
)

// A Trainer is one line of the list of trainers: an algorithm with its configuration for one protocol.
type Trainer struct {
	Name     string
	Protocol Protocol
	Private  bool // runs once per ε
	prepare  func(train *dataset.Ratings, p Params, epsilon float64) (job, error)
}

// Trainers lists what bench can train. A new trainer adds one line per protocol.
var Trainers = []Trainer{
	{"als", Explicit, false, alsExplicit},
	{"als", Implicit, false, alsImplicit},
	{"dpals", Explicit, true, dpalsExplicit},
	{"dpals", Implicit, true, dpalsImplicit},
}

// job is one training run, ready to start.
type job struct {
	rank  int
	plan  trainer.MemoryPlan
	train func(ctx context.Context, progress func(trainer.Progress)) (*trainer.Model, error)
}

// Names lists the trainers, without repetition, in the order of the table.
func Names() []string {
	var names []string
	for _, t := range Trainers {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Select reads a comma-separated list of trainer names, "all" or "none", and of protocols, "all" included.
func Select(trainers, protocols string) ([]Trainer, error) {
	names, err := words(trainers, Names(), "trainer")
	if err != nil {
		return nil, err
	}
	kinds, err := words(protocols, []string{string(Explicit), string(Implicit)}, "protocol")
	if err != nil {
		return nil, err
	}
	var list []Trainer
	for _, t := range Trainers {
		if slices.Contains(names, t.Name) && slices.Contains(kinds, string(t.Protocol)) {
			list = append(list, t)
		}
	}
	return list, nil
}

func words(list string, known []string, what string) ([]string, error) {
	switch strings.ToLower(strings.TrimSpace(list)) {
	case "all":
		return known, nil
	case "none", "":
		return nil, nil
	}
	var chosen []string
	for word := range strings.SplitSeq(list, ",") {
		word = strings.ToLower(strings.TrimSpace(word))
		if !slices.Contains(known, word) {
			return nil, fmt.Errorf("unknown %s %q: choose from %s, all or none", what, word, strings.Join(known, ", "))
		}
		chosen = append(chosen, word)
	}
	return chosen, nil
}

func alsExplicit(train *dataset.Ratings, p Params, _ float64) (job, error) {
	return alsJob(train, p, als.Defaults(p.Rank))
}

// alsImplicit has the ridge and background weight of the reference implementation without privacy (SPEC §2).
func alsImplicit(train *dataset.Ratings, p Params, _ float64) (job, error) {
	c := als.ImplicitDefaults(p.Rank)
	c.Loss.Background = 0.2
	c.UserRidge.Lambda, c.ItemRidge.Lambda = 40, 40
	return alsJob(train, p, c)
}

func alsJob(train *dataset.Ratings, p Params, c als.Config) (job, error) {
	c.Seed, c.Workers, c.MaxMemory = p.Seed, p.Threads, p.MaxMemory
	if p.Iterations > 0 {
		c.Iterations = p.Iterations
	}
	if err := c.Validate(); err != nil {
		return job{}, err
	}
	return job{c.Rank, als.Plan(train, c), func(ctx context.Context, progress func(trainer.Progress)) (*trainer.Model, error) {
		c.Progress = progress
		return als.Train(ctx, train, c)
	}}, nil
}

// dpalsExplicit trains all items with adaptive weights.
func dpalsExplicit(train *dataset.Ratings, p Params, epsilon float64) (job, error) {
	c := dpals.Defaults(privacy.Budget{Epsilon: epsilon, Delta: p.Delta})
	c.Rank = p.Rank
	return dpalsJob(train, p, c)
}

// dpalsImplicit has the published hyper-parameters.
func dpalsImplicit(train *dataset.Ratings, p Params, epsilon float64) (job, error) {
	return dpalsJob(train, p, dpals.ImplicitDefaults(p.Rank, privacy.Budget{Epsilon: epsilon, Delta: p.Delta}))
}

func dpalsJob(train *dataset.Ratings, p Params, c dpals.Config) (job, error) {
	c.Seed, c.Workers, c.MaxMemory = p.Seed, p.Threads, p.MaxMemory
	if p.Iterations > 0 {
		c.Iterations = p.Iterations
	}
	if err := c.Validate(); err != nil {
		return job{}, err
	}
	return job{c.Rank, dpals.Plan(train, c), func(ctx context.Context, progress func(trainer.Progress)) (*trainer.Model, error) {
		c.Progress = progress
		return dpals.Train(ctx, train, c)
	}}, nil
}

// noTarget is the ε of a trainer without privacy.
var noTarget = math.Inf(1)
