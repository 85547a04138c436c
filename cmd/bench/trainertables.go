package main

import (
	"fmt"
	"io"
	"math"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/dpmf-go/dpmf/internal/bench/report"
)

// printTrainers prints the speed on all ratings and then two tables for each protocol: quality beside what it costs in
// privacy, and speed.
func printTrainers(w io.Writer, r *report.Report) {
	printSpeed(w, r, "all ratings", ofProtocol(r.Trainers, "speed"))
	for _, p := range []struct {
		protocol string
		metrics  []string
	}{
		{"explicit", []string{"rmse"}}, {"implicit", []string{"recall@20", "recall@50", "ndcg@100"}},
	} {
		trained := ofProtocol(r.Trainers, p.protocol)
		printQuality(w, r, p.protocol, p.metrics, ofProtocol(r.Baselines, p.protocol), trained)
		printSpeed(w, r, p.protocol+" protocol", trained)
	}
}

func ofProtocol(list []report.Trainer, protocol string) (rows []report.Trainer) {
	for _, row := range list {
		if row.Protocol == protocol {
			rows = append(rows, row)
		}
	}
	return rows
}

func printQuality(w io.Writer, r *report.Report, protocol string, metrics []string, baselines, trained []report.Trainer) {
	if len(baselines)+len(trained) == 0 {
		return
	}
	title := fmt.Sprintf("Trainers, %s protocol: quality", protocol)
	fewest, most, seeded := math.MaxInt, 0, false
	for _, row := range append(baselines, trained...) {
		fewest, most, seeded = min(fewest, row.Repeats), max(most, row.Repeats), seeded || row.SeededNoise
	}
	caption := "rmse: root mean squared error over all test ratings; less is better.\n"
	if protocol == "implicit" {
		held := trained
		if len(held) == 0 {
			held = baselines
		}
		title += fmt.Sprintf(", %s held-out test users", thousands(held[0].TestUsers))
		caption = "recall, ndcg: of the part of the test users' items that was not folded in; more is better.\n"
	}
	if most > 1 {
		title += ", mean (min–max) of "
		if fewest < most {
			title += "up to "
		}
		title += fmt.Sprintf("%d seeds", most)
	}
	t := newTable(r, title)
	header := table.Row{"trainer", "rank"}
	for _, name := range metrics {
		header = append(header, name)
	}
	t.AppendHeader(append(header, "ε", "δ", "protected", "tuned on"))
	for _, row := range baselines {
		t.AppendRow(qualityRow(row, metrics))
	}
	t.AppendSeparator()
	for _, row := range trained {
		t.AppendRow(qualityRow(row, metrics))
	}
	caption += "ε and δ: of one training run, proved by the ledger of what it released; ∞ is no guarantee.\n" +
		"tuned on: what the hyper-parameters were chosen on. No ε covers that choice."
	if seeded {
		caption += "\nBenchmark noise, drawn from --seed so that the same command gives the same figures: not for release, since whoever knows\n" +
			"the seed can take the noise away, and ε holds against nobody who does."
	}
	t.SetColumnConfigs(rightAligned(2, 3+len(metrics)))
	t.SetCaption("%s", caption)
	render(w, t)
}

func qualityRow(row report.Trainer, metrics []string) table.Row {
	cells := table.Row{row.Name, rankOf(row)}
	for _, name := range metrics {
		cells = append(cells, row.Quality(name))
	}
	delta := ""
	if row.Delta.Finite() {
		delta = fmt.Sprintf("%.2g", float64(row.Delta))
	}
	return append(cells, row.EpsilonText(), delta, row.Unit, row.TunedOn)
}

func rankOf(row report.Trainer) any {
	if row.Rank == 0 {
		return ""
	}
	return row.Rank
}

func printSpeed(w io.Writer, r *report.Report, what string, trained []report.Trainer) {
	if len(trained) == 0 {
		return
	}
	t := newTable(r, fmt.Sprintf("Trainers, %s: speed, %d threads", what, r.Machine.Threads))
	t.AppendHeader(table.Row{"trainer", "rank", "ε", "iterations", "s/iteration (min–max)", "× als", "users", "items", "ratings/s", "training s"})
	for _, row := range trained {
		t.AppendRow(table.Row{
			row.Name, row.Rank, row.EpsilonText(), row.Iterations,
			fmt.Sprintf("%.3f (%.3f–%.3f)", float64(row.IterationSeconds), float64(row.IterationMin), float64(row.IterationMax)),
			timesALS(trained, row), fmt.Sprintf("%.3f", float64(row.UserSeconds)), fmt.Sprintf("%.3f", float64(row.ItemSeconds)),
			number(row.RatingsPerSecond/1e6) + " M", blankNumber(row.TotalSeconds),
		})
	}
	t.SetColumnConfigs(rightAligned(2, 3, 4, 6, 7, 8, 9, 10))
	t.SetCaption("%s", "users, items: seconds of the two halves of an iteration. Medians; training s: a whole run, the last user step included.\n"+
		"× als: an iteration's time over that of als at the same rank.")
	render(w, t)
}

// timesALS is how many times as long as ALS an iteration at the same rank takes.
func timesALS(trained []report.Trainer, row report.Trainer) string {
	for _, other := range trained {
		if other.Name == "als" && other.Rank == row.Rank && row.Name != "als" {
			return fmt.Sprintf("%.2f", float64(row.IterationSeconds)/float64(other.IterationSeconds))
		}
	}
	return ""
}
