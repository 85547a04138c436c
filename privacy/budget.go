package privacy

import (
	"encoding/json"
	"fmt"
	"math"
)

// A Budget is the (ε, δ) a training run may spend. ε = +Inf means that no
// noise is added at all: the result is then not private, and every text this
// package prints says so.
type Budget struct {
	Epsilon, Delta float64
}

// Validate reports what is wrong with the budget, or nil. ε must be positive
// (+Inf allowed: no privacy), δ must lie strictly between 0 and 1.
func (b Budget) Validate() error {
	switch {
	case math.IsNaN(b.Epsilon):
		return fmt.Errorf("privacy: epsilon is not a number: give a positive number, for example 1")
	case b.Epsilon <= 0:
		return fmt.Errorf("privacy: epsilon is %v: it must be positive (use +Inf for training without privacy)", b.Epsilon)
	}
	return validateDelta(b.Delta)
}

func validateDelta(delta float64) error {
	switch {
	case math.IsNaN(delta):
		return fmt.Errorf("privacy: delta is not a number: give a number between 0 and 1, at most one over the number of users")
	case delta <= 0:
		return fmt.Errorf("privacy: delta is %v: it must be positive, for example one over the number of users", delta)
	case delta >= 1:
		return fmt.Errorf("privacy: delta is %v: it must be below 1, at most one over the number of users", delta)
	}
	return nil
}

// IsPrivate reports whether the budget limits anything, that is, whether ε is
// finite.
func (b Budget) IsPrivate() bool { return !math.IsInf(b.Epsilon, 1) }

// Mu returns μ*(ε, δ): the largest μ for which every μ-GDP mechanism is
// (ε, δ)-differentially private, from the lower end of the bracket that
// bisection ends with, so that Delta(Mu(), Epsilon) ≤ δ always holds. For
// ε = +Inf it returns +Inf. The error is Validate's.
func (b Budget) Mu() (float64, error) {
	if err := b.Validate(); err != nil {
		return 0, err
	}
	return muFor(b.Epsilon, b.Delta), nil
}

// String gives the budget in words.
func (b Budget) String() string {
	if !b.IsPrivate() {
		return "no privacy guarantee (ε = ∞, no noise)"
	}
	return fmt.Sprintf("(ε = %g, δ = %g)", b.Epsilon, b.Delta)
}

// budgetFile is the JSON form of a Budget; JSON has no infinity, so an ε of
// +Inf is the text "inf".
type budgetFile struct {
	Epsilon any     `json:"epsilon"`
	Delta   float64 `json:"delta"`
}

// MarshalJSON writes {"epsilon": …, "delta": …}, with "inf" for an ε of +Inf.
// A budget that is not valid is an error.
func (b Budget) MarshalJSON() ([]byte, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	if !b.IsPrivate() {
		return json.Marshal(budgetFile{"inf", b.Delta})
	}
	return json.Marshal(budgetFile{b.Epsilon, b.Delta})
}

// UnmarshalJSON reads what MarshalJSON wrote and refuses a budget that is not
// valid. On error the budget is unchanged.
func (b *Budget) UnmarshalJSON(data []byte) error {
	var file budgetFile
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("privacy: the budget cannot be read: %w", err)
	}
	read := Budget{Delta: file.Delta}
	switch epsilon := file.Epsilon.(type) {
	case float64:
		read.Epsilon = epsilon
	case string:
		if epsilon != "inf" {
			return fmt.Errorf("privacy: the budget's epsilon is %q: it is a number or \"inf\"", epsilon)
		}
		read.Epsilon = math.Inf(1)
	default:
		return fmt.Errorf("privacy: the budget has no epsilon: it is a number or \"inf\"")
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*b = read
	return nil
}
