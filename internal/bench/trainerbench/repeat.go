package trainerbench

import (
	"math"
	"time"

	"github.com/dpmf-go/dpmf/internal/bench/report"
	"github.com/dpmf-go/dpmf/internal/bench/stat"
)

// outcome is what one training run with one seed gave.
type outcome struct {
	row                  report.Trainer // without what a tally fills in
	users, items, whole  []float64      // seconds of each iteration: its halves, and both
	training, evaluation time.Duration
	metrics              map[string]report.Number // nil: the run was interrupted
}

// tally puts the repeats of one run together: times over the iterations of all of them, quality over those
// that were finished.
type tally struct {
	last     report.Trainer
	outcomes []outcome
}

func (t *tally) add(o outcome) {
	if len(t.outcomes) == 0 || o.metrics != nil {
		t.last = o.row // an interrupted repeat says nothing about privacy
	}
	t.outcomes = append(t.outcomes, o)
}

// row is the line of the results so far.
func (t *tally) row() report.Trainer {
	row := t.last
	var users, items, whole, ratings, training, evaluation []float64
	values := map[string][]float64{}
	for _, o := range t.outcomes {
		users, items, whole = append(users, o.users...), append(items, o.items...), append(whole, o.whole...)
		row.Iterations = max(row.Iterations, len(o.whole))
		ratings = append(ratings, float64(o.row.TrainRatings))
		if o.metrics == nil && len(t.outcomes) > 1 {
			continue // an interrupted repeat would shorten the mean time
		}
		training = append(training, o.training.Seconds())
		if o.metrics == nil {
			continue
		}
		evaluation = append(evaluation, o.evaluation.Seconds())
		row.Repeats++
		for name, v := range o.metrics {
			values[name] = append(values[name], float64(v))
		}
	}
	iteration := stat.SpreadOf(whole)
	row.IterationSeconds = report.Number(iteration.Median)
	row.IterationMin, row.IterationMax = report.Number(iteration.Min), report.Number(iteration.Max)
	row.UserSeconds, row.ItemSeconds = report.Number(stat.SpreadOf(users).Median), report.Number(stat.SpreadOf(items).Median)
	row.TrainRatings = int(math.Round(stat.Mean(ratings)))
	row.RatingsPerSecond = report.Number(stat.Mean(ratings) / iteration.Median)
	row.EvalSeconds = report.Number(stat.Mean(evaluation))
	row.TotalSeconds = none
	if row.Rank > 0 {
		row.TotalSeconds = report.Number(stat.Mean(training))
	}
	row.Metrics, row.MetricsMin, row.MetricsMax = map[string]report.Number{}, map[string]report.Number{}, map[string]report.Number{}
	for name, list := range values {
		spread := stat.SpreadOf(list)
		row.Metrics[name] = report.Number(stat.Mean(list))
		row.MetricsMin[name], row.MetricsMax[name] = report.Number(spread.Min), report.Number(spread.Max)
	}
	return row
}
