package privacy

import "math"

// The functions of this file are the exact accounting of Gaussian releases:
// a release with L2 sensitivity Δ and noise N(0, s²I) is (Δ/s)-GDP, adaptive
// composition adds the squares of μ, and μ-GDP is (ε, δ)-DP exactly for
//
//	δ(ε) = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2)
//
// (Balle & Wang 2018, Theorem 8; Dong, Roth & Su 2022, Corollary 1).

// accountingSlack is the relative error allowed for the evaluation of δ(ε) in
// float64; results are widened by it before they are called safe.
const accountingSlack = 1e-12

// Delta returns the smallest δ for which a μ-GDP mechanism is (ε, δ)-DP,
// rounded up by the evaluation error. ε may be 0 or +Inf. A negative or NaN
// argument gives 1, the value that claims nothing.
func Delta(mu, epsilon float64) float64 {
	if !(mu >= 0) || !(epsilon >= 0) {
		return 1
	}
	switch {
	case mu == 0 || math.IsInf(epsilon, 1) && !math.IsInf(mu, 1):
		return 0
	case math.IsInf(mu, 1):
		return 1
	}
	// logDelta's slack is relative to δ; float64 underflow ends at the
	// smallest positive number, never at an unsafe zero.
	delta := math.Exp(logDelta(mu, epsilon))
	return min(1, max(delta, math.SmallestNonzeroFloat64))
}

// Epsilon returns the smallest ε for which a μ-GDP mechanism is (ε, δ)-DP,
// from the upper end of the bracket that bisection ends with. It is 0 when
// δ(0) ≤ δ already, +Inf for μ = +Inf, for δ ≤ 0 with μ > 0, and for NaN.
func Epsilon(mu, delta float64) float64 {
	if mu == 0 || delta >= 1 && !math.IsNaN(mu) {
		return 0
	}
	if !(mu > 0) || math.IsInf(mu, 1) || !(delta > 0) {
		return math.Inf(1)
	}
	target := math.Log(delta)
	if logDelta(mu, 0) <= target {
		return 0
	}
	// δ(ε) ≤ Φ(−ε/μ+μ/2), hence ε = μ²/2 + μ·√(2·ln(1/δ)) is above the answer.
	low, high := 0.0, mu*mu/2+mu*math.Sqrt(-2*target)
	for !(logDelta(mu, high) <= target) {
		if high *= 2; math.IsInf(high, 1) {
			return high
		}
	}
	return bisect(low, high, func(epsilon float64) bool { return logDelta(mu, epsilon) > target })
}

// muFor is μ*(ε, δ) for a valid budget: the lower end of the bracket.
func muFor(epsilon, delta float64) float64 {
	if math.IsInf(epsilon, 1) {
		return math.Inf(1)
	}
	target := math.Log(delta)
	high := 1.0
	for logDelta(high, epsilon) <= target {
		high *= 2
	}
	low := high / 2
	for logDelta(low, epsilon) > target {
		if low /= 2; low == 0 {
			return 0
		}
	}
	// bisect returns the end where the condition fails, so ask for "safe" with
	// the axis turned round.
	return -bisect(-high, -low, func(minusMu float64) bool { return logDelta(-minusMu, epsilon) > target })
}

// bisect narrows [low, high], where unsafe(low) holds and unsafe(high) does
// not, to two neighbouring float64 (or 200 halvings) and returns the upper,
// safe end.
func bisect(low, high float64, unsafe func(float64) bool) float64 {
	for range 200 {
		middle := low + (high-low)/2
		if middle <= low || middle >= high {
			break
		}
		if unsafe(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// logDelta is an upper bound of ln δ(ε) for 0 < μ < ∞ and 0 ≤ ε < ∞.
func logDelta(mu, epsilon float64) float64 {
	upper, lower := -epsilon/mu+mu/2, -epsilon/mu-mu/2
	a := logNormalCDF(upper)
	// b − a would cancel catastrophically for large ε when written as
	// ε + ln Φ(lower) − ln Φ(upper): both logarithms hold −ε²/2μ². With
	// ln Φ(−x) = −x²/2 + ln(erfcx(x/√2)/2) the quadratic parts cancel exactly:
	// ε − lower²/2 + upper²/2 = 0.
	var difference float64
	if upper < 0 {
		difference = logScaledTail(-lower) - logScaledTail(-upper)
	} else {
		difference = epsilon + logNormalCDF(lower) - a
	}
	if difference >= 0 {
		// The two terms agree to the last bit: δ is below what float64 can
		// resolve next to a, so bound it by that resolution.
		return a + math.Log(accountingSlack)
	}
	// ln(1 − e^d), by the branch that keeps its relative precision.
	var tail float64
	if difference > -math.Ln2 {
		tail = math.Log(-math.Expm1(difference))
	} else {
		tail = math.Log1p(-math.Exp(difference))
	}
	// An absolute error of the difference is one of error/|difference| in ln δ.
	// The scaled tails are logarithms of moderate numbers; the other branch
	// rounds ε and ln Φ themselves.
	differenceError := 8e-15
	if upper >= 0 {
		differenceError += 8e-16 * epsilon
	}
	return a + tail + accountingSlack + 8e-16*math.Abs(a) + differenceError*(1+1/-difference)
}

// logNormalCDF is ln Φ(x) for any x.
func logNormalCDF(x float64) float64 {
	if x > -1 {
		return math.Log1p(-math.Erfc(x/math.Sqrt2) / 2)
	}
	return -x*x/2 + logScaledTail(-x)
}

// logScaledTail is ln(Φ(−x)·e^{x²/2}) for x ≥ 0: the tail of the normal
// distribution without its Gaussian factor. Below 5 it comes from erfc; above,
// from the continued fraction of Mills' ratio, which there converges to full
// precision in 60 terms and does not cancel.
func logScaledTail(x float64) float64 {
	if x < 5 {
		return math.Log(math.Erfc(x/math.Sqrt2)/2) + x*x/2
	}
	// Φ(−x)/φ(x) = 1/(x + 1/(x + 2/(x + 3/(x + …)))).
	fraction := x
	for term := 60; term >= 1; term-- {
		fraction = x + float64(term)/fraction
	}
	return -math.Log(fraction) - 0.5*math.Log(2*math.Pi)
}
