package trainerbench

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/dpmf-go/dpmf/internal/bench/report"
)

func collect(rows *[]report.Trainer) func(report.Trainer) {
	return func(r report.Trainer) { *rows = report.Put(*rows, r) }
}

// TestRepeatsAreTheRunsOfSuccessiveSeeds runs each seed alone and compares.
func TestRepeatsAreTheRunsOfSuccessiveSeeds(t *testing.T) {
	data := ratings(t)
	run := func(seed uint64, repeats int) (trained, base []report.Trainer) {
		p := params()
		p.Seed, p.Repeats = seed, repeats
		if err := Run(context.Background(), data, withQuality(), p, Observer{Trained: collect(&trained), Baseline: collect(&base)}); err != nil {
			t.Fatal(err)
		}
		return trained, base
	}
	together, base := run(1, 2)
	first, firstBase := run(1, 1)
	second, secondBase := run(2, 1)
	together, first, second = append(together, base...), append(first, firstBase...), append(second, secondBase...)
	if len(together) != len(first) || len(first) != len(second) {
		t.Fatalf("%d, %d and %d rows", len(together), len(first), len(second))
	}
	different := false
	for k, row := range together {
		if row.Repeats != 2 || !row.SameRun(first[k]) || !row.SameRun(second[k]) {
			t.Errorf("row %d: %d repeats of %s r=%d", k, row.Repeats, row.Name, row.Rank)
		}
		for name, mean := range row.Metrics {
			a, b := first[k].Metrics[name], second[k].Metrics[name]
			different = different || a != b
			if math.Abs(float64(mean-(a+b)/2)) > 1e-12 || row.MetricsMin[name] != min(a, b) || row.MetricsMax[name] != max(a, b) {
				t.Errorf("%s %s: %v (%v–%v) of %v and %v", row.Name, name, mean, row.MetricsMin[name], row.MetricsMax[name], a, b)
			}
		}
	}
	if !different {
		t.Error("the seeds make no difference")
	}
}

// TestInterruptedRepeatKeepsTheOthers delivers the quality of the repeats before.
func TestInterruptedRepeatKeepsTheOthers(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := params()
	p.Repeats = 3
	list, err := Select("als", "explicit")
	if err != nil {
		t.Fatal(err)
	}
	var rows []report.Trainer
	err = Run(ctx, ratings(t), list, p, Observer{
		Step: func(name string) {
			if name == "als explicit r=4, repeat 2 of 3, quality" {
				cancel()
			}
		},
		Trained: collect(&rows),
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want context.Canceled", err)
	}
	if len(rows) != 1 || rows[0].Repeats != 1 || rows[0].Iterations != 2 || !(rows[0].Metrics["rmse"] > 0) || rows[0].MetricsMin["rmse"] != rows[0].MetricsMax["rmse"] {
		t.Errorf("rows %+v, want one with the quality of the first repeat", rows)
	}
}

func TestTallyByHand(t *testing.T) {
	var tl tally
	tl.add(outcome{
		row: report.Trainer{Rank: 4, TrainRatings: 100, Privacy: "first"}, users: []float64{1, 2}, items: []float64{1, 2}, whole: []float64{2, 4},
		training: 7 * time.Second, evaluation: time.Second, metrics: map[string]report.Number{"rmse": 0.8},
	})
	tl.add(outcome{
		row: report.Trainer{Rank: 4, TrainRatings: 200, Privacy: "second"}, users: []float64{5, 5}, items: []float64{3, 5}, whole: []float64{8, 10},
		training: 19 * time.Second, evaluation: 3 * time.Second, metrics: map[string]report.Number{"rmse": 0.9},
	})
	tl.add(outcome{row: report.Trainer{Rank: 4, TrainRatings: 150}, users: []float64{3}, items: []float64{3}, whole: []float64{6}, training: 6 * time.Second})
	row := tl.row()
	if row.Repeats != 2 || row.Iterations != 2 || row.Privacy != "second" || row.TrainRatings != 150 {
		t.Errorf("%d repeats of %d iterations, %d ratings, %q", row.Repeats, row.Iterations, row.TrainRatings, row.Privacy)
	}
	if row.IterationSeconds != 6 || row.IterationMin != 2 || row.IterationMax != 10 || row.UserSeconds != 3 || row.RatingsPerSecond != 25 {
		t.Errorf("times %+v", row)
	}
	if row.TotalSeconds != 13 || row.EvalSeconds != 2 {
		t.Errorf("training %v s, evaluation %v s: the interrupted repeat must not count", row.TotalSeconds, row.EvalSeconds)
	}
}
