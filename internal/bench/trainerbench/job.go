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

// job is one line of the results: a trainer with its hyper-parameters, a rank, and a budget if it is private. It
// is trained once per seed.
type job struct {
	title  string
	name   string // of the trainer
	rank   int
	target float64 // ε; noTarget without privacy
	tuned  string  // where the hyper-parameters were chosen
	check  func(items int) error
	plan   func(train *dataset.Ratings) trainer.MemoryPlan
	train  func(ctx context.Context, train *dataset.Ratings, seed uint64, progress func(trainer.Progress)) (*trainer.Model, error)
}

// noTarget is the ε of a trainer without privacy.
var noTarget = math.Inf(1)

// jobs lists what is run on a protocol for data of that many users, in order.
func jobs(trainers []Trainer, protocol Protocol, p Params, users int) []job {
	var list []job
	for _, t := range trainers {
		if t.Protocol != protocol {
			continue
		}
		targets := []float64{noTarget}
		if t.Private {
			targets = p.Epsilons
		}
		for _, epsilon := range targets {
			for _, j := range t.jobs(p, users, epsilon) {
				j.name, j.target = t.Name, epsilon
				j.title = fmt.Sprintf("%s %s r=%d", t.Name, protocol, j.rank)
				if t.Private {
					j.title = fmt.Sprintf("%s %s ε=%g r=%d", t.Name, protocol, epsilon, j.rank)
				}
				list = append(list, j)
			}
		}
	}
	return list
}

// Check finds, before any work, a configuration that a trainer would refuse when its turn comes, such as a budget that
// cannot be met, for data of that many users and items.
func Check(trainers []Trainer, p Params, users, items int) error {
	if err := p.Validate(); err != nil {
		return err
	}
	for _, protocol := range protocols {
		for _, j := range jobs(trainers, protocol, p, users) {
			if err := j.check(items); err != nil {
				text := strings.TrimPrefix(err.Error(), j.name+": ")
				return fmt.Errorf("%s: %s", j.title, strings.TrimPrefix(text, "privacy: "))
			}
		}
	}
	return nil
}

func alsExplicit(p Params, _ int, _ float64) []job {
	return []job{alsJob(p)(explicitALS(p.rankOrUsual()))}
}

func alsImplicit(p Params, users int, _ float64) []job {
	return []job{alsJob(p)(implicitALS(users, p.rankOrUsual()))}
}

// alsSpeed and dpalsSpeed time iterations on all ratings. DPALS does it with adaptive weights on all items and, of the
// budgets, at the smallest, where noise makes most matrices indefinite.
func alsSpeed(p Params, _ int, _ float64) (list []job) {
	for _, rank := range speedRanks(p) {
		c, _ := explicitALS(rank)
		c.Iterations = speedIterations
		list = append(list, alsJob(p)(c, ""))
	}
	return list
}

func dpalsSpeed(p Params, _ int, epsilon float64) (list []job) {
	if epsilon > slices.Min(p.Epsilons) {
		return nil
	}
	for _, rank := range speedRanks(p) {
		c, _ := explicitDPALS(privacy.Budget{Epsilon: epsilon, Delta: p.Delta})
		c.Iterations = speedIterations
		p := p
		p.Rank = rank
		list = append(list, dpalsJobs(p)(c, "")...)
	}
	return list
}

func alsJob(p Params) func(c als.Config, tuned string) job {
	return func(c als.Config, tuned string) job {
		c.Workers = p.Threads
		if p.Iterations > 0 {
			c.Iterations = p.Iterations
		}
		return job{
			rank: c.Rank, tuned: tuned,
			check: func(int) error { return c.Validate() },
			plan:  func(train *dataset.Ratings) trainer.MemoryPlan { return als.Plan(train, c) },
			train: func(ctx context.Context, train *dataset.Ratings, seed uint64, progress func(trainer.Progress)) (*trainer.Model, error) {
				c := c
				c.Seed, c.Progress = seed, progress
				return als.Train(ctx, train, c)
			},
		}
	}
}

func dpalsExplicit(p Params, _ int, epsilon float64) []job {
	return dpalsJobs(p)(explicitDPALS(privacy.Budget{Epsilon: epsilon, Delta: p.Delta}))
}

func dpalsImplicit(p Params, users int, epsilon float64) []job {
	return dpalsJobs(p)(implicitDPALS(users, privacy.Budget{Epsilon: epsilon, Delta: p.Delta}))
}

func dpalsJobs(p Params) func(c dpals.Config, tuned string) []job {
	return func(c dpals.Config, tuned string) (list []job) {
		c.Workers = p.Threads
		if p.Iterations > 0 {
			c.Iterations = p.Iterations
		}
		for _, rank := range ranks(p, c.Rank) {
			c := c
			c.Rank = rank
			list = append(list, job{
				rank: rank, tuned: tuned,
				check: c.Check,
				plan:  func(train *dataset.Ratings) trainer.MemoryPlan { return dpals.Plan(train, c) },
				train: func(ctx context.Context, train *dataset.Ratings, seed uint64, progress func(trainer.Progress)) (*trainer.Model, error) {
					c := c
					// Noise from the seed makes the figures reproducible; the model says that it must not be released.
					c.Seed, c.NoiseSeed, c.Progress = seed, &seed, progress
					return dpals.Train(ctx, train, c)
				},
			})
		}
		return list
	}
}
