package trainerbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/bench/report"
	"github.com/dpmf-go/dpmf/internal/bench/stat"
	"github.com/dpmf-go/dpmf/trainer"
)

// Observer hears what happens during Run, in order and from one goroutine at a time. Nil functions are not called.
type Observer struct {
	// Step is called before each piece of work.
	Step func(name string)
	// Iteration is called after each iteration of a training run.
	Iteration func(p trainer.Progress)
	// Baseline and Trained receive results as they come. A run that was interrupted is delivered too, without
	// metrics, if at least one iteration was finished.
	Baseline func(report.Trainer)
	Trained  func(report.Trainer)
}

// Run makes one split per protocol and runs the trainers on it. When ctx is done it returns its error within a
// fraction of an iteration, or of a split.
func Run(ctx context.Context, data *dataset.Ratings, trainers []Trainer, p Params, o Observer) error {
	for _, protocol := range []Protocol{Explicit, Implicit} {
		var list []Trainer
		for _, t := range trainers {
			if t.Protocol == protocol {
				list = append(list, t)
			}
		}
		if len(list) == 0 {
			continue
		}
		if err := runProtocol(ctx, data, protocol, list, p, o); err != nil {
			return err
		}
	}
	return nil
}

func runProtocol(ctx context.Context, data *dataset.Ratings, protocol Protocol, list []Trainer, p Params, o Observer) error {
	step(o, fmt.Sprintf("split for the %s protocol", protocol))
	split, err := MakeSplit(data, protocol, p.Seed)
	if err != nil {
		return fmt.Errorf("the %s protocol cannot run on these data: %w", protocol, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	step(o, fmt.Sprintf("baselines of the %s protocol", protocol))
	if err := baselines(ctx, split, p, o); err != nil {
		return err
	}
	for _, t := range list {
		for _, epsilon := range t.targets(p) {
			row, err := split.run(ctx, t, p, epsilon, o)
			if row.Iterations > 0 && o.Trained != nil && (err == nil || errors.Is(err, ctx.Err())) {
				o.Trained(row)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// targets lists the budgets a trainer runs with.
func (t Trainer) targets(p Params) []float64 {
	if t.Private {
		return p.Epsilons
	}
	return []float64{noTarget}
}

func (t Trainer) title(epsilon float64) string {
	if t.Private {
		return fmt.Sprintf("%s %s ε=%g", t.Name, t.Protocol, epsilon)
	}
	return fmt.Sprintf("%s %s", t.Name, t.Protocol)
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

func baselines(ctx context.Context, s *Split, p Params, o Observer) error {
	add := func(name string, measure func() (map[string]report.Number, error)) error {
		row := s.row(name, 0, p.Threads)
		began := time.Now()
		metrics, err := measure()
		if err != nil {
			return err
		}
		row.Metrics, row.EvalSeconds = metrics, seconds(time.Since(began))
		row.Privacy = "No privacy guarantee: exact averages and counts."
		if o.Baseline != nil {
			o.Baseline(row)
		}
		return nil
	}
	if s.Protocol == Implicit {
		return add("popularity", func() (map[string]report.Number, error) {
			return ranking(ctx, p.Threads, newPopularity(s.Train).scores, s.Users)
		})
	}
	if err := add("global mean", func() (map[string]report.Number, error) {
		return rmse(ctx, p.Threads, globalMean(s.Train), s.Test)
	}); err != nil {
		return err
	}
	return add("item mean", func() (map[string]report.Number, error) {
		return rmse(ctx, p.Threads, itemMeans(s.Train), s.Test)
	})
}

// run trains once and measures the model.
func (s *Split) run(ctx context.Context, t Trainer, p Params, epsilon float64, o Observer) (report.Trainer, error) {
	title := t.title(epsilon)
	step(o, title)
	job, err := t.prepare(s.Train, p, epsilon)
	if err != nil {
		return report.Trainer{}, fmt.Errorf("%s: %w", title, err)
	}
	row := s.row(t.Name, job.rank, p.Threads)
	row.MemoryBytes = job.plan.Total()
	if t.Private {
		row.Target = report.Number(epsilon)
	}

	var users, items, whole []float64
	began := time.Now()
	model, err := job.train(ctx, func(progress trainer.Progress) {
		u, i := progress.UserTime.Seconds(), progress.ItemTime.Seconds()
		users, items, whole = append(users, u), append(items, i), append(whole, u+i)
		if o.Iteration != nil {
			o.Iteration(progress)
		}
	})
	row.TotalSeconds = seconds(time.Since(began))
	row.Iterations = len(whole)
	setTimes(&row, users, items, whole)
	if err != nil {
		if ctx.Err() != nil {
			return row, ctx.Err()
		}
		return row, fmt.Errorf("%s: %w", title, err)
	}
	describe(&row, model)

	step(o, title+", quality")
	began = time.Now()
	row.Metrics, err = s.quality(ctx, p.Threads, model)
	row.EvalSeconds = seconds(time.Since(began))
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: quality: %w", title, err)
	}
	return row, err
}

func (s *Split) quality(ctx context.Context, threads int, model *trainer.Model) (map[string]report.Number, error) {
	if s.Protocol == Implicit {
		return ranking(ctx, threads, newUserScorer(model), s.Users)
	}
	return rmse(ctx, threads, model, s.Test)
}

func setTimes(row *report.Trainer, users, items, whole []float64) {
	iteration := stat.SpreadOf(whole)
	row.IterationSeconds = report.Number(iteration.Median)
	row.IterationMin, row.IterationMax = report.Number(iteration.Min), report.Number(iteration.Max)
	row.UserSeconds, row.ItemSeconds = report.Number(stat.SpreadOf(users).Median), report.Number(stat.SpreadOf(items).Median)
	row.RatingsPerSecond = report.Number(float64(row.TrainRatings) / iteration.Median)
}

// describe copies what the model says about itself. ε is what its ledger proves, not what was asked for.
func describe(row *report.Trainer, model *trainer.Model) {
	row.Config = model.Config
	row.Privacy = model.Privacy()
	if model.Ledger == nil {
		return
	}
	if delta := model.Ledger.TargetDelta(); model.Ledger.Private() {
		row.Epsilon, row.Delta = report.Number(model.Ledger.Epsilon(delta)), report.Number(delta)
		row.Unit = model.Ledger.Unit().String()
	}
}

func seconds(d time.Duration) report.Number { return report.Number(d.Seconds()) }
