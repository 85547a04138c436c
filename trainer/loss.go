package trainer

import (
	"fmt"
	"math"
)

// LossKind is what a factorization minimizes.
type LossKind string

const (
	// Explicit: Σ over observed (rating − prediction)².
	Explicit LossKind = "explicit"
	// Unobserved: Σ over observed (1 − score)² + a0·Σ over all pairs score²
	// (Rendle et al. 2021).
	Unobserved LossKind = "unobserved"
	// Confidence: Σ over all pairs c·(p − score)², with p = 1 and c = 1 + α·rating where
	// observed, p = 0 and c = 1 elsewhere (Hu, Koren & Volinsky 2008). A rating ≤ 0 counts as unobserved.
	Confidence LossKind = "confidence"
)

// Loss is a loss with its parameters.
type Loss struct {
	Kind       LossKind `json:"kind"`
	Background float64  `json:"background,omitempty"` // a0 ≥ 0, for Unobserved; with Explicit it pulls unobserved predictions towards the base
	Alpha      float64  `json:"alpha,omitempty"`      // α > 0, for Confidence
}

// Validate reports what is wrong with the loss, or nil. An empty kind is not valid:
// trainers fill in their default first.
func (l Loss) Validate() error {
	switch l.Kind {
	case Explicit, Unobserved:
		if !(l.Background >= 0) || math.IsInf(l.Background, 1) {
			return fmt.Errorf("background weight a0 is %v: it must be finite and not negative", l.Background)
		}
		if l.Alpha != 0 {
			return fmt.Errorf("alpha is set but the %s loss has none: use the confidence loss or leave it out", l.Kind)
		}
	case Confidence:
		if !(l.Alpha > 0) || math.IsInf(l.Alpha, 1) {
			return fmt.Errorf("alpha is %v: the confidence loss needs it positive and finite", l.Alpha)
		}
		if l.Background != 0 {
			return fmt.Errorf("background weight is set but the confidence loss has weight 1 everywhere: leave it out")
		}
	default:
		return fmt.Errorf("unknown loss %q: use %s, %s or %s", l.Kind, Explicit, Unobserved, Confidence)
	}
	return nil
}

// BackgroundWeight is the factor of the other side's full Gram matrix in the normal
// equations.
func (l Loss) BackgroundWeight() float64 {
	if l.Kind == Confidence {
		return 1
	}
	return l.Background
}

// Weighted reports whether observed pairs have weights other than one.
func (l Loss) Weighted() bool { return l.Kind == Confidence }

// Targets turns ratings into the targets of the normal equations in place. Explicit ratings, from
// which the base is subtracted already, are their own targets. For Confidence,
// expanding the squares over all pairs leaves weight c−1 = α·r and target c/(c−1).
func (l Loss) Targets(ratings []float32) {
	switch l.Kind {
	case Unobserved:
		for k := range ratings {
			ratings[k] = 1
		}
	case Confidence:
		for k, r := range ratings {
			w := l.confidence(r)
			ratings[k] = 0
			if w > 0 {
				ratings[k] = float32(1+w) / w
			}
		}
	}
}

// Weights writes the weights that belong to ratings, for Weighted losses.
func (l Loss) Weights(ratings, weights []float32) {
	for k, r := range ratings {
		weights[k] = l.confidence(r)
	}
}

// confidence is c−1 = α·r; a rating that is not positive says nothing more than an
// unobserved pair does.
func (l Loss) confidence(r float32) float32 { return max(0, float32(l.Alpha)*r) }

// Excess is by how much the least-squares form of Targets and Weights, Σ (c−1)·(c/(c−1) − score)² plus
// background, exceeds the loss for the given ratings: Σ c/(c−1) for Confidence,
// and nothing for the other losses. It does not depend on the factors.
func (l Loss) Excess(ratings []float32) float64 {
	var sum float64
	if l.Kind == Confidence {
		for _, r := range ratings {
			if w := float64(l.confidence(r)); w > 0 {
				sum += (1 + w) / w
			}
		}
	}
	return sum
}

// Ridge is the regularization λ·ρ(n) of a row with n ratings, ρ(n) = (n+1)^Exponent / Constant.
type Ridge struct {
	Lambda   float64 `json:"lambda"`
	Exponent float64 `json:"exponent,omitempty"` // p; 0: the same for every row
	Constant float64 `json:"constant,omitempty"` // 0 means 1
}

// Validate reports what is wrong with the ridge, or nil.
func (r Ridge) Validate() error {
	if !(r.Lambda > 0) || math.IsInf(r.Lambda, 1) {
		return fmt.Errorf("regularization lambda is %v: it must be positive and finite", r.Lambda)
	}
	if math.IsNaN(r.Exponent) || math.Abs(r.Exponent) > 4 {
		return fmt.Errorf("regularization exponent is %v: it must lie between -4 and 4", r.Exponent)
	}
	if !(r.Constant >= 0) || math.IsInf(r.Constant, 1) {
		return fmt.Errorf("regularization constant is %v: it must be positive and finite (0 means 1)", r.Constant)
	}
	return nil
}

// At is λ·ρ(n). n may be a noisy count.
func (r Ridge) At(n float64) float32 {
	if r.Exponent == 0 && (r.Constant == 0 || r.Constant == 1) {
		return float32(r.Lambda)
	}
	c := r.Constant
	if c == 0 {
		c = 1
	}
	return float32(r.Lambda * math.Pow(n+1, r.Exponent) / c)
}
