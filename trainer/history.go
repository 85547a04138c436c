package trainer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dpmf-go/dpmf/trainer/internal/normal"
)

// checkHistory validates a user's ratings and returns sorted copies.
func (m *Model) checkHistory(items []int32, values []float32) ([]int32, []float32, error) {
	if len(items) != len(values) {
		return nil, nil, fmt.Errorf("new user: %d items but %d ratings", len(items), len(values))
	}
	order := make([]int, len(items))
	for k, i := range items {
		order[k] = k
		if uint(i) >= uint(m.NumItems()) {
			return nil, nil, fmt.Errorf("new user: item %d is outside the model's %d items", i, m.NumItems())
		}
		if v := float64(values[k]); math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, nil, fmt.Errorf("new user: the rating of item %d is %v", i, v)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(items[a], items[b]) })
	sorted, ratings := make([]int32, len(items)), make([]float32, len(items))
	for to, from := range order {
		sorted[to], ratings[to] = items[from], values[from]
		if to > 0 && sorted[to] == sorted[to-1] {
			return nil, nil, fmt.Errorf("new user: item %d is rated twice", sorted[to])
		}
	}
	return sorted, ratings, nil
}

func fullGram(table []float32, r int, scale float64) ([]float32, error) {
	return normal.FullGram(context.Background(), 1, table, r, float32(scale))
}
