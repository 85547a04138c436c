package trainerbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/bench/report"
	"github.com/dpmf-go/dpmf/trainer"
)

// Observer hears what happens during Run, in order and from one goroutine at a time. Nil functions are not called.
type Observer struct {
	// Step is called before each piece of work.
	Step func(name string)
	// Iteration is called after each iteration of a training run.
	Iteration func(p trainer.Progress)
	// Baseline and Trained receive results as they come, and again whenever another repeat has made one more
	// precise (report.Trainer.SameRun tells). A run that was interrupted is delivered too, if at least one iteration was
	// finished; its metrics are those of the repeats before, if any.
	Baseline func(report.Trainer)
	Trained  func(report.Trainer)
}

// Run makes one split per protocol and repeat, and runs the trainers on it. When ctx is done it returns its error within a
// fraction of an iteration, or of a split.
func Run(ctx context.Context, data *dataset.Ratings, trainers []Trainer, p Params, o Observer) error {
	for _, protocol := range protocols {
		if list := jobs(trainers, protocol, p, data.NumUsers()); len(list) > 0 {
			if err := runProtocol(ctx, data, protocol, list, p, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func runProtocol(ctx context.Context, data *dataset.Ratings, protocol Protocol, list []job, p Params, o Observer) error {
	if protocol == Speed {
		p.Repeats = 1 // another seed takes the same time
	}
	references, trained := make([]tally, len(baselines[protocol])), make([]tally, len(list))
	for repeat := range p.Repeats {
		suffix := ""
		if p.Repeats > 1 {
			suffix = fmt.Sprintf(", repeat %d of %d", repeat+1, p.Repeats)
		}
		seed := p.Seed + uint64(repeat)
		step(o, fmt.Sprintf("split for the %s protocol%s", protocol, suffix))
		split, err := MakeSplit(data, protocol, seed)
		if err != nil {
			return fmt.Errorf("the %s protocol cannot run on these data: %w", protocol, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		step(o, fmt.Sprintf("baselines of the %s protocol%s", protocol, suffix))
		for k, b := range baselines[protocol] {
			outcome, err := split.measureBaseline(ctx, b, p.Threads)
			if err != nil {
				return err
			}
			deliver(o.Baseline, &references[k], outcome)
		}
		for k, j := range list {
			outcome, err := split.run(ctx, j, p.Threads, seed, suffix, o)
			if len(outcome.whole) > 0 && (err == nil || errors.Is(err, ctx.Err())) {
				deliver(o.Trained, &trained[k], outcome)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func deliver(to func(report.Trainer), t *tally, o outcome) {
	t.add(o)
	if to != nil {
		to(t.row())
	}
}

func step(o Observer, name string) {
	if o.Step != nil {
		o.Step(name)
	}
}

var none = report.Number(math.NaN())

// row is a report row with everything that does not depend on the training.
func (s *Split) row(name string, rank, threads int) report.Trainer {
	return report.Trainer{
		Name: name, Rank: rank, Threads: threads, Protocol: string(s.Protocol),
		Synthetic: s.Train.Info().Synthetic, TrainRatings: s.Train.NumRatings(), TestUsers: len(s.Users.Users),
		Metrics: map[string]report.Number{}, Unit: "none",
		IterationSeconds: none, IterationMin: none, IterationMax: none, UserSeconds: none, ItemSeconds: none,
		RatingsPerSecond: none, TotalSeconds: none, EvalSeconds: none, Epsilon: none, Delta: none, Target: none,
	}
}

func (s *Split) measureBaseline(ctx context.Context, b baseline, threads int) (outcome, error) {
	o := outcome{row: s.row(b.name, 0, threads)}
	o.row.Privacy = "No privacy guarantee: exact averages and counts."
	began := time.Now()
	var err error
	o.metrics, err = b.measure(ctx, s, threads)
	o.evaluation = time.Since(began)
	return o, err
}

// run trains once and measures the model.
func (s *Split) run(ctx context.Context, j job, threads int, seed uint64, suffix string, observe Observer) (outcome, error) {
	title := j.title + suffix
	step(observe, title)
	o := outcome{row: s.row(j.name, j.rank, threads)}
	o.row.TunedOn, o.row.MemoryBytes = j.tuned, j.plan(s.Train).Total()
	if !math.IsInf(j.target, 1) {
		o.row.Target = report.Number(j.target)
	}

	began := time.Now()
	model, err := j.train(ctx, s.Train, seed, func(progress trainer.Progress) {
		user, item := progress.UserTime.Seconds(), progress.ItemTime.Seconds()
		o.users, o.items, o.whole = append(o.users, user), append(o.items, item), append(o.whole, user+item)
		if observe.Iteration != nil {
			observe.Iteration(progress)
		}
	})
	o.training = time.Since(began)
	if err != nil {
		if ctx.Err() != nil {
			return o, ctx.Err()
		}
		return o, fmt.Errorf("%s: %w", title, err)
	}
	describe(&o.row, model)
	if s.Protocol == Speed {
		return o, nil
	}

	step(observe, title+", quality")
	began = time.Now()
	o.metrics, err = s.quality(ctx, threads, model)
	o.evaluation = time.Since(began)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: quality: %w", title, err)
	}
	return o, err
}

func (s *Split) quality(ctx context.Context, threads int, model *trainer.Model) (map[string]report.Number, error) {
	if s.Protocol == Implicit {
		return ranking(ctx, threads, newUserScorer(model), s.Users)
	}
	return rmse(ctx, threads, model, s.Test)
}

// describe copies what the model says about itself. ε is what its ledger proves, not what was asked for.
func describe(row *report.Trainer, model *trainer.Model) {
	row.Config = model.Config
	row.Privacy = model.Privacy()
	if model.Ledger == nil {
		return
	}
	row.SeededNoise = model.Ledger.Source().Seeded()
	if delta := model.Ledger.TargetDelta(); model.Ledger.Private() {
		row.Epsilon, row.Delta = report.Number(model.Ledger.Epsilon(delta)), report.Number(delta)
		row.Unit = model.Ledger.Unit().String()
	}
}
