package privacy

import "math"

// gridBits fixes the grid: its step is the power of two just above
// 2^−gridBits times the noise scale.
const gridBits = 30

// A Grid is the set of multiples of a power of two on which noisy sums live.
// The zero Grid rounds nothing.
type Grid struct {
	step, inverse float64
}

// GridFor returns the grid for noise of the given scale s: its step g is a
// power of two with 2⁻³⁰·s < g ≤ 2⁻²⁹·s. A scale of 0 gives the zero Grid,
// and so does one that noise cannot be drawn for: negative, not a number, or
// outside 2^±900, where g or 1/g might not be a normal float64.
func GridFor(scale float64) Grid {
	if !(scale > 0) || !validScale(scale) {
		return Grid{}
	}
	_, exponent := math.Frexp(scale)
	return Grid{step: math.Ldexp(1, exponent-gridBits), inverse: math.Ldexp(1, gridBits-exponent)}
}

// validScale reports whether noise of scale s can be drawn: 0 for none, or
// within 2^±900.
func validScale(scale float64) bool {
	return scale == 0 || scale >= 0x1p-900 && scale <= 0x1p900
}

// Step returns the distance of neighbouring grid points, 0 for the zero Grid.
func (g Grid) Step() float64 { return g.step }

// Round returns the grid point nearest to x, the even one of two. The result
// is exact unless |x| exceeds 2⁵² steps, where every float64 is on the grid
// already. NaN and Inf stay what they are.
func (g Grid) Round(x float64) float64 {
	if g.step == 0 {
		return x
	}
	return math.RoundToEven(x*g.inverse) * g.step
}
