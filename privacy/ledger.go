package privacy

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrSealed is what Record returns, wrapped, after Seal.
var ErrSealed = errors.New("the ledger is sealed")

// A Ledger is the record of everything a training run released, and the only
// source of the ε that is printed. The zero Ledger claims nothing; make one
// with NewLedger. It is not safe for concurrent use.
type Ledger struct {
	unit     Unit
	delta    float64
	source   Source
	releases []Release
	sealed   bool
}

// NewLedger starts an empty ledger: who is protected, the δ that ε is quoted
// at, and where the noise comes from (Noise.Source; the zero Source when no
// noise is drawn). δ must lie strictly between 0 and 1.
func NewLedger(unit Unit, delta float64, source Source) (*Ledger, error) {
	l := &Ledger{unit: unit, delta: delta, source: source}
	if err := l.validate(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Ledger) validate() error {
	if l.unit > RatingValue {
		return fmt.Errorf("privacy: unknown unit of protection %d", uint8(l.unit))
	}
	if l.delta != 0 {
		if err := validateDelta(l.delta); err != nil {
			return err
		}
	}
	if err := l.source.validate(); err != nil {
		return err
	}
	for _, r := range l.releases {
		if err := r.Validate(); err != nil {
			return err
		}
		if r.Noise > 0 && l.source.Generator == "" {
			return fmt.Errorf("privacy: release %q has noise of scale %v, but the ledger names no source of noise", r.Name, r.Noise)
		}
	}
	return nil
}

// Record adds a release. One that equals the latest entry of its name in all
// but Count is added to that entry, so a trainer may record every iteration. The error
// says what is wrong with the release, that it has noise while the ledger has
// no source of noise, or that the ledger is sealed (ErrSealed).
func (l *Ledger) Record(r Release) error {
	if l.sealed {
		return fmt.Errorf("privacy: release %q came after training had ended: %w", r.Name, ErrSealed)
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if r.Noise > 0 && l.source.Generator == "" {
		return fmt.Errorf("privacy: release %q has noise of scale %v, but the ledger names no source of noise", r.Name, r.Noise)
	}
	for i := len(l.releases) - 1; i >= 0; i-- {
		if l.releases[i].Name != r.Name {
			continue
		}
		merged := l.releases[i]
		merged.Count = r.Count
		if merged == r && l.releases[i].Count <= math.MaxInt32-r.Count {
			l.releases[i].Count += r.Count
			return nil
		}
		break
	}
	l.releases = append(l.releases, r)
	return nil
}

// Seal ends the record: what was released is all there will be.
func (l *Ledger) Seal() { l.sealed = true }

// Sealed reports whether Seal was called.
func (l *Ledger) Sealed() bool { return l.sealed }

// Unit returns who is protected.
func (l *Ledger) Unit() Unit { return l.unit }

// TargetDelta returns the δ that String quotes ε at.
func (l *Ledger) TargetDelta() float64 { return l.delta }

// Source returns where the noise came from.
func (l *Ledger) Source() Source { return l.source }

// Releases returns a copy of the entries, in the order of their first record.
func (l *Ledger) Releases() []Release { return slices.Clone(l.releases) }

// Mu returns the μ of all Gaussian releases together, √ΣCount·(Δ/s)² with the
// widened sensitivities: 0 if there is none, +Inf if one had no noise. Laplace
// and subsampled releases are not part of it; Epsilon covers all.
func (l *Ledger) Mu() float64 { return gaussianMu(l.releases) }

func gaussianMu(releases []Release) float64 {
	var sum float64
	for _, r := range releases {
		if r.Mechanism == Gaussian {
			ratio := r.ratio()
			sum += float64(float64(r.Count) * float64(ratio*ratio))
		}
	}
	// Rounded up by more than the error of the sum.
	return math.Sqrt(sum) * (1 + 0x1p-50)
}

// Epsilon returns the ε for which everything recorded is (ε, δ)-DP with
// respect to the ledger's unit:
//
//   - Gaussian releases alone: exactly ε(μ, δ);
//   - with subsampled Gaussian releases: Rényi accounting of both at integer orders;
//   - plus the sum of Count·Δ/b over the Laplace releases (pure ε);
//   - plus the allowance for the distance of the noise sampler from a perfect
//     one, 2·2⁻⁴⁶ for each noise draw that depends on one protected unit.
//
// It is +Inf — no privacy guarantee — when a release had no noise, when the
// unit is NoUnit, when nothing was recorded (then nothing is claimed), and
// when δ is not in (0, 1) and a Gaussian release needs it.
func (l *Ledger) Epsilon(delta float64) float64 {
	if l.unit == NoUnit || len(l.releases) == 0 {
		return math.Inf(1)
	}
	return epsilonOf(l.releases, delta)
}

// Private reports whether the ledger supports any finite ε at its own δ.
func (l *Ledger) Private() bool { return !math.IsInf(l.Epsilon(l.delta), 1) }

// epsilonOf is Epsilon for a non-empty list and a unit other than NoUnit.
func epsilonOf(releases []Release, delta float64) float64 {
	var laplace, draws float64
	gaussian, subsampled := false, false
	for _, r := range releases {
		ratio := r.ratio()
		if math.IsInf(ratio, 1) {
			return ratio
		}
		draws += float64(float64(r.Count) * float64(r.Coordinates))
		switch r.Mechanism {
		case Laplace:
			laplace += float64(float64(r.Count) * ratio)
		case Gaussian:
			gaussian = true
		case SubsampledGaussian:
			subsampled = true
		}
	}
	// Every outcome's probability is within a factor e^±η of the perfect
	// sampler's, so (ε, δ) becomes (ε + 2η, e^η·δ).
	eta := draws * samplerDeviation
	epsilon := float64(laplace*(1+0x1p-50)) + 2*eta
	if !gaussian && !subsampled {
		return epsilon
	}
	if !(delta > 0 && delta < 1) {
		return math.Inf(1)
	}
	delta *= math.Exp(-eta)
	if !subsampled {
		return epsilon + Epsilon(gaussianMu(releases), delta)
	}
	return epsilon + epsilonByRenyi(releases, delta)
}
