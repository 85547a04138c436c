// Package stat summarises repeated measurements.
package stat

import (
	"math"
	"slices"
)

// Spread is the median, smallest and largest of the rounds.
type Spread struct{ Median, Min, Max float64 }

// SpreadOf orders a copy of x. Without values everything is NaN.
func SpreadOf(x []float64) Spread {
	if len(x) == 0 {
		nan := math.NaN()
		return Spread{nan, nan, nan}
	}
	s := slices.Sorted(slices.Values(x))
	mid := s[len(s)/2]
	if len(s)%2 == 0 {
		mid = (mid + s[len(s)/2-1]) / 2
	}
	return Spread{mid, s[0], s[len(s)-1]}
}
