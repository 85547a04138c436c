package privacy

import (
	"fmt"
	"math"
)

// A Mechanism is the way noise protects a release.
type Mechanism uint8

const (
	// Gaussian adds N(0, Noise²) to every coordinate; Sensitivity is in L2.
	Gaussian Mechanism = iota + 1
	// Laplace adds Laplace noise of scale Noise; Sensitivity is in L1.
	Laplace
	// SubsampledGaussian is Gaussian on a Poisson sample: each protected unit
	// takes part with probability SamplingRate, anew every time.
	SubsampledGaussian
)

// String gives the mechanism's name as it stands in files.
func (m Mechanism) String() string {
	switch m {
	case Gaussian:
		return "gaussian"
	case Laplace:
		return "laplace"
	case SubsampledGaussian:
		return "subsampled gaussian"
	}
	return fmt.Sprintf("mechanism %d", uint8(m))
}

// MarshalText writes the name that String gives.
func (m Mechanism) MarshalText() ([]byte, error) {
	if m < Gaussian || m > SubsampledGaussian {
		return nil, fmt.Errorf("privacy: unknown mechanism %d", uint8(m))
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads a name written by MarshalText.
func (m *Mechanism) UnmarshalText(text []byte) error {
	for candidate := Gaussian; candidate <= SubsampledGaussian; candidate++ {
		if candidate.String() == string(text) {
			*m = candidate
			return nil
		}
	}
	return fmt.Errorf("privacy: unknown mechanism %q: it is %q, %q or %q", text, Gaussian, Laplace, SubsampledGaussian)
}

// A Release is one noisy answer that left the trainer, Count times over.
type Release struct {
	// Name says what was released, for example "item Gram matrices".
	Name string `json:"name"`
	// Mechanism is how it was protected.
	Mechanism Mechanism `json:"mechanism"`
	// Sensitivity is how far one protected unit can move the answer, in the
	// query's own units: L2 for the Gaussian mechanisms, L1 for Laplace. For
	// a list of symmetric matrices it is the Frobenius norm over all of them.
	Sensitivity float64 `json:"sensitivity"`
	// Noise is the scale of the noise, in the same units: the standard
	// deviation s, or Laplace's b. 0 means that the exact answer was released.
	Noise float64 `json:"noise"`
	// Count is how often this was released, at least 1.
	Count int `json:"count"`
	// SamplingRate is the probability q of Poisson sampling, in (0, 1]; for
	// SubsampledGaussian only, 0 otherwise.
	SamplingRate float64 `json:"sampling_rate,omitempty"`
	// Grid is the step that the answer and its noise are multiples of, 0 when
	// they are not rounded.
	Grid float64 `json:"grid,omitempty"`
	// Coordinates bounds how many coordinates of one answer depend on one
	// protected unit (for symmetric matrices: r² for each r×r matrix), at
	// least 1 with Grid. It counts the noise draws whose deviation from a
	// perfect sampler matters and, unless RoundedFirst, widens the
	// sensitivity.
	Coordinates int64 `json:"coordinates,omitempty"`
	// RoundedFirst says that each contribution was rounded towards zero onto
	// the grid before an exact integer sum, so that rounding cannot widen the
	// sensitivity. Otherwise sums were rounded after they were formed.
	RoundedFirst bool `json:"rounded_first,omitempty"`
}

// Validate reports what is wrong with the release, or nil.
func (r Release) Validate() error {
	switch {
	case r.Name == "":
		return fmt.Errorf("privacy: a release has no name: say what was released")
	case r.Mechanism < Gaussian || r.Mechanism > SubsampledGaussian:
		return fmt.Errorf("privacy: release %q: unknown mechanism %d", r.Name, uint8(r.Mechanism))
	case !(r.Sensitivity > 0) || math.IsInf(r.Sensitivity, 1):
		return fmt.Errorf("privacy: release %q: sensitivity is %v: it must be positive and finite", r.Name, r.Sensitivity)
	case !(r.Noise >= 0) || math.IsInf(r.Noise, 1):
		return fmt.Errorf("privacy: release %q: noise scale is %v: it must be finite and not negative", r.Name, r.Noise)
	case r.Count < 1:
		return fmt.Errorf("privacy: release %q: count is %d: it must be at least 1", r.Name, r.Count)
	case r.Mechanism == SubsampledGaussian && !(r.SamplingRate > 0 && r.SamplingRate <= 1):
		return fmt.Errorf("privacy: release %q: sampling rate is %v: it must lie in (0, 1]", r.Name, r.SamplingRate)
	case r.Mechanism != SubsampledGaussian && r.SamplingRate != 0:
		return fmt.Errorf("privacy: release %q: a sampling rate of %v was given for the %v mechanism, which does not sample", r.Name, r.SamplingRate, r.Mechanism)
	case !(r.Grid >= 0) || math.IsInf(r.Grid, 1):
		return fmt.Errorf("privacy: release %q: grid step is %v: it must be finite and not negative", r.Name, r.Grid)
	case r.Coordinates < 0:
		return fmt.Errorf("privacy: release %q: number of coordinates is %d: it cannot be negative", r.Name, r.Coordinates)
	case r.Grid > 0 && r.Coordinates == 0:
		return fmt.Errorf("privacy: release %q is rounded to a grid of step %v, but the number of coordinates one protected unit can move is missing", r.Name, r.Grid)
	case r.RoundedFirst && r.Grid == 0:
		return fmt.Errorf("privacy: release %q says that contributions were rounded first, but names no grid", r.Name)
	}
	return nil
}

// WidenedSensitivity is the sensitivity with what rounding each coordinate of
// the sum to the grid can add: two sums that differ may round up to one step
// further apart in every coordinate, Grid·√Coordinates in L2 (Grid·Coordinates
// in L1 for Laplace). Contributions rounded first add nothing.
func (r Release) WidenedSensitivity() float64 {
	if r.RoundedFirst {
		return r.Sensitivity
	}
	if r.Mechanism == Laplace {
		return r.Sensitivity + r.Grid*float64(r.Coordinates)
	}
	return r.Sensitivity + r.Grid*math.Sqrt(float64(r.Coordinates))
}

// ratio is the widened sensitivity over the noise: μ of one Gaussian release,
// ε of one Laplace release; +Inf without noise.
func (r Release) ratio() float64 {
	if r.Noise == 0 {
		return math.Inf(1)
	}
	return r.WidenedSensitivity() / r.Noise
}
