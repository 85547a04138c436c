package trainerbench

import (
	"errors"
	"fmt"

	"github.com/dpmf-go/dpmf/privacy"
)

// Params is what the command line decides for all trainers.
type Params struct {
	Rank       int // 0 means each trainer's own, and for private ones also that of the others
	Iterations int // 0 means each trainer's own
	Threads    int
	Seed       uint64 // of splits, initial factors and noise
	Repeats    int    // runs with Seed, Seed+1, …
	Epsilons   []float64
	Delta      float64
}

// Validate reports the first thing that no trainer can work with.
func (p Params) Validate() error {
	switch {
	case p.Rank < 0:
		return fmt.Errorf("the rank is %d: give at least 1, or 0 for each trainer's own", p.Rank)
	case p.Repeats < 1:
		return fmt.Errorf("the number of repeats is %d: it must be at least 1", p.Repeats)
	case p.Iterations < 0:
		return fmt.Errorf("the number of iterations is %d: give at least 1, or 0 for each trainer's own", p.Iterations)
	case p.Threads < 1:
		return fmt.Errorf("the number of threads is %d: it must be at least 1", p.Threads)
	case len(p.Epsilons) == 0:
		return errors.New("the list of epsilons is empty: give at least one, such as 1")
	}
	for _, epsilon := range p.Epsilons {
		if err := (privacy.Budget{Epsilon: epsilon, Delta: p.Delta}).Validate(); err != nil {
			return err
		}
	}
	return nil
}
