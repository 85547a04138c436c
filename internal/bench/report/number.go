package report

import (
	"encoding/json"
	"math"
	"strconv"
)

// Number is a float64 that JSON can always hold: NaN and infinities become null, and null becomes NaN. A training run
// that diverged must not cost the whole report.
type Number float64

// MarshalJSON writes the number, or null if it is not finite.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Finite() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads a number or null.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// Finite reports whether n is neither NaN nor infinite.
func (n Number) Finite() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// Quality prints a metric, which is not finite only if the training diverged.
func (n Number) Quality() string {
	if !n.Finite() {
		return "diverged"
	}
	return strconv.FormatFloat(float64(n), 'f', 4, 64)
}

// Quality prints a metric of a row with its spread over the repeats, or a dash if it was not measured.
func (t Trainer) Quality(name string) string {
	value, ok := t.Metrics[name]
	switch {
	case !ok:
		return "–"
	case t.Repeats < 2 || !value.Finite():
		return value.Quality()
	}
	return value.Quality() + " (" + t.MetricsMin[name].Quality() + "–" + t.MetricsMax[name].Quality() + ")"
}

// EpsilonText prints the ε that was proved, ∞ for no guarantee, and a dash for a run that was stopped before there was a
// model to prove anything about.
func (t Trainer) EpsilonText() string {
	switch {
	case t.Epsilon.Finite():
		return strconv.FormatFloat(float64(t.Epsilon), 'g', 4, 64)
	case t.Repeats == 0:
		return "–"
	}
	return "∞"
}
