package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

// The charts are SVG in the page itself. A chart library would need its script, a megabyte of minified JavaScript, either
// from the network, which a report must not depend on, or as a copy in this repository, which nobody could review.

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": showNumber, "percent": func(n Number) string { return showNumber(100*n) + " %" },
	"kernelCharts": kernelCharts, "trainerCharts": trainerCharts,
	"metric": func(t Trainer, name string) string {
		if _, ok := t.Metrics[name]; ok {
			return t.Quality(name)
		}
		return ""
	},
	"megabytes": func(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) },
}).Parse(pageText))

// WriteHTML writes the report as one page that needs nothing else: no script, no network.
func WriteHTML(w io.Writer, r *Report) error {
	// A template that fails half-way must not leave half a page.
	var b bytes.Buffer
	if err := page.Execute(&b, r); err != nil {
		return fmt.Errorf("the page cannot be made: %w", err)
	}
	_, err := b.WriteTo(w)
	return err
}

func showNumber(n Number) string {
	if !n.Finite() {
		return "–"
	}
	return fmt.Sprintf("%.4g", float64(n))
}

// bar is one bar of a chart.
type bar struct {
	Label, Class    string
	Value, Min, Max float64 // Min and Max are drawn as a whisker if they differ
	Text            string
}

// kernelCharts draws, for each kernel and unit, one group of bars per size, a bar per tier.
func kernelCharts(r *Report) template.HTML {
	var b strings.Builder
	for at := 0; at < len(r.Kernels); {
		name, unit := r.Kernels[at].Name, r.Kernels[at].Unit
		var bars []bar
		for ; at < len(r.Kernels) && r.Kernels[at].Name == name && r.Kernels[at].Unit == unit; at++ {
			k := r.Kernels[at]
			bars = append(bars, bar{
				Label: k.Size + ", " + k.Tier, Class: tierClass(k.Tier),
				Value: float64(k.Rate), Min: float64(k.Min), Max: float64(k.Max),
				Text: fmt.Sprintf("%s %s, %.0f %% of %s", showNumber(k.Rate), unit, 100*float64(k.Share), k.ShareOf),
			})
		}
		better := "more is better"
		if unit == "µs" {
			better = "less is better, on a logarithmic scale"
		}
		drawBars(&b, fmt.Sprintf("%s, %s (%s)", name, unit, better), bars, unit == "µs")
	}
	return template.HTML(b.String())
}

// trainerCharts draws quality and time per iteration of everything on each protocol.
func trainerCharts(r *Report) template.HTML {
	var b strings.Builder
	for _, c := range []struct{ protocol, metric, better string }{
		{"speed", "", ""}, {"explicit", "rmse", "less is better"}, {"implicit", "recall@20", "more is better"},
	} {
		var quality, speed []bar
		for _, list := range [][]Trainer{r.Baselines, r.Trainers} {
			for _, t := range list {
				if t.Protocol != c.protocol {
					continue
				}
				label := t.Name
				if t.Rank > 0 {
					label += fmt.Sprintf(", r=%d", t.Rank)
				}
				if t.Epsilon.Finite() {
					label += fmt.Sprintf(", ε=%.3g", float64(t.Epsilon))
				}
				if v, ok := t.Metrics[c.metric]; ok && v.Finite() {
					quality = append(quality, bar{
						Label: label, Class: protection(t), Value: float64(v), Min: float64(t.MetricsMin[c.metric]), Max: float64(t.MetricsMax[c.metric]),
						Text: t.Quality(c.metric),
					})
				}
				if t.IterationSeconds.Finite() {
					speed = append(speed, bar{
						Label: label, Class: protection(t), Value: float64(t.IterationSeconds), Min: float64(t.IterationMin), Max: float64(t.IterationMax),
						Text: fmt.Sprintf("%.3g s, %.3g M ratings/s", float64(t.IterationSeconds), float64(t.RatingsPerSecond)/1e6),
					})
				}
			}
		}
		drawBars(&b, fmt.Sprintf("%s on the %s protocol (%s)", c.metric, c.protocol, c.better), quality, false)
		drawBars(&b, fmt.Sprintf("Seconds per iteration on the %s protocol (less is better)", c.protocol), speed, false)
	}
	return template.HTML(b.String())
}

func tierClass(tier string) string {
	switch tier {
	case "avx512", "avx2", "generic":
		return tier
	}
	return "library"
}

func protection(t Trainer) string {
	switch {
	case t.Rank == 0:
		return "baseline"
	case t.Epsilon.Finite():
		return "private"
	}
	return "open"
}
