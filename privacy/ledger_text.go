package privacy

import (
	"fmt"
	"math"
	"strings"
)

// String says in plain words what the ledger's guarantee is, what it rests on
// and what it does not cover.
func (l *Ledger) String() string {
	var b strings.Builder
	epsilon := l.Epsilon(l.delta)
	private := !math.IsInf(epsilon, 1)
	if private {
		fmt.Fprintf(&b, "Differential privacy: ε = %s at δ = %g.\n", upward(epsilon), l.delta)
		fmt.Fprintf(&b, "Protected: %s.\n", l.unit.Describe())
	} else {
		fmt.Fprintf(&b, "No privacy guarantee: %s.\n", l.whyNot())
	}
	if private && l.source.Seeded() {
		b.WriteString("WARNING: the noise came from a seed that the caller gave, which is for tests and benchmarks only: whoever knows the seed can remove the noise, and this record holds it. The ε above does not hold against them.\n")
	}
	if !l.sealed {
		b.WriteString("Training has not ended: more releases may follow.\n")
	}
	l.writeReleases(&b)
	l.writeSource(&b)
	if !private {
		return b.String()
	}
	l.writeRounding(&b)
	b.WriteString("Not covered: choosing hyper-parameters on the same data; training again on the same data (the guarantees add up, here they are counted for one run); " +
		"which items exist and how many; the range of the ratings, where it was read off them rather than given or published; what a user's own recommendations show, which are computed from her own ratings and meant for her alone.\n")
	return b.String()
}

// whyNot gives the reason for an infinite ε.
func (l *Ledger) whyNot() string {
	if l.unit == NoUnit {
		return "nothing was proved for this trainer"
	}
	if len(l.releases) == 0 {
		return "no release has been recorded, so nothing is claimed"
	}
	for _, r := range l.releases {
		if r.Noise == 0 {
			return fmt.Sprintf("%s left the trainer without noise (ε = ∞)", r.Name)
		}
	}
	if l.delta == 0 {
		return "Gaussian noise has no finite ε at δ = 0"
	}
	return "the noise is too small for any finite ε"
}

func (l *Ledger) writeReleases(b *strings.Builder) {
	if len(l.releases) == 0 {
		b.WriteString("Releases: none recorded.\n")
		return
	}
	b.WriteString("Releases:\n")
	for _, r := range l.releases {
		fmt.Fprintf(b, "  %s, %s: sensitivity %.6g", r.Name, times(r.Count), r.Sensitivity)
		switch {
		case r.Noise == 0:
			b.WriteString(", no noise")
		case r.Mechanism == Laplace:
			fmt.Fprintf(b, " (L1), Laplace noise of scale %.6g", r.Noise)
		default:
			fmt.Fprintf(b, " (L2), Gaussian noise of standard deviation %.6g", r.Noise)
		}
		if r.Mechanism == SubsampledGaussian {
			fmt.Fprintf(b, ", each protected unit taking part with probability %.6g", r.SamplingRate)
		}
		b.WriteString("\n")
	}
}

func times(count int) string {
	if count == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", count)
}

func (l *Ledger) writeSource(b *strings.Builder) {
	switch {
	case l.source.Generator == "":
		b.WriteString("Noise: none was drawn.\n")
	case l.source.Seeded():
		fmt.Fprintf(b, "Noise: %s; caller-given seed %s: for tests and benchmarks only, whoever knows the seed can remove the noise.\n", l.source.Generator, l.source.CallerSeed)
	default:
		fmt.Fprintf(b, "Noise: %s; keyed by the operating system, the key was not kept.\n", l.source.Generator)
	}
}

// writeRounding says what the grid does and does not do.
func (l *Ledger) writeRounding(b *strings.Builder) {
	after, before := 0.0, false
	for _, r := range l.releases {
		switch {
		case r.RoundedFirst:
			before = true
		case r.Grid > 0:
			after = max(after, r.WidenedSensitivity()/r.Sensitivity-1)
		}
	}
	if after > 0 {
		fmt.Fprintf(b, "Rounding: floating-point sums are rounded to a grid of a power of two near 2^-30 of the noise, and the noise to the same grid, so no low-order bits of a sum show through. "+
			"Rounding widens the sensitivity by up to %.2g %%, which ε includes. "+
			"It does not include the rounding errors inside the floating-point sums: those can move by more than a grid step when one contribution comes or goes, so the sensitivities hold for exact sums and only up to that error for these.\n", 100*after)
	}
	if before {
		b.WriteString("Rounding: contributions are rounded towards zero to a grid before an exact integer sum, and the noise lies on the same grid: rounding cannot raise those sensitivities.\n")
	}
}

// upward prints ε with five digits, never below its value.
func upward(epsilon float64) string {
	if epsilon == 0 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(epsilon))-4)
	if rounded := math.Round(epsilon/unit) * unit; math.Abs(rounded-epsilon) <= 1e-9*epsilon {
		// A calibrated ε is its target up to the bisection's error.
		return fmt.Sprintf("%.5g", rounded)
	}
	return fmt.Sprintf("%.5g", math.Ceil(epsilon/unit)*unit)
}
