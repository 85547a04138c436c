package dataset

import (
	"context"
	"errors"
)

// Shape describes a synthetic data set.
type Shape struct {
	Name           string
	Users, Items   int
	Ratings        int
	MinUserRatings int // every user has at least so many; 0 means 1
	Scale          Scale
}

// Synthetic generates ratings of the given shape; the same seed gives the same bits for any number of workers.
func Synthetic(ctx context.Context, shape Shape, seed uint64, opts Options) (*Ratings, error) {
	return nil, errors.New("dataset: not yet")
}

// LowRank is the synthetic set of the DPALS paper.
func LowRank(ctx context.Context, users, items, rank int, p float64, seed uint64) (*Ratings, error) {
	return nil, errors.New("dataset: not yet")
}
