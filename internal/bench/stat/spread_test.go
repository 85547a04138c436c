package stat

import (
	"math"
	"testing"
)

func TestSpreadOf(t *testing.T) {
	x := []float64{5, 1, 3}
	if got := SpreadOf(x); got != (Spread{3, 1, 5}) {
		t.Errorf("odd: %v", got)
	}
	if x[0] != 5 {
		t.Error("the input was sorted")
	}
	if got := SpreadOf([]float64{4, 1, 2, 9}); got != (Spread{3, 1, 9}) {
		t.Errorf("even: %v", got)
	}
	if got := SpreadOf(nil); !math.IsNaN(got.Median) || !math.IsNaN(got.Min) || !math.IsNaN(got.Max) {
		t.Errorf("empty: %v", got)
	}
}

func TestMean(t *testing.T) {
	if got := Mean([]float64{1, 2, 6}); got != 3 {
		t.Errorf("mean %v, want 3", got)
	}
	if got := Mean(nil); !math.IsNaN(got) {
		t.Errorf("mean of nothing is %v, want NaN", got)
	}
}
