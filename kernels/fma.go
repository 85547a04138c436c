//go:build !arm64

package kernels

import "math"

// fma32 returns x·y + z rounded once to float32.
//
// The product of two float32 is exact in float64, so only the addition rounds
// before the conversion. Rounding twice goes wrong only where the first result
// lies on a midpoint of the float32 grid, normal or subnormal; there at least
// the low 28 bits of the float64 are zero. In that rare case the exact error of
// the addition decides: it turns the sum into its round-to-odd neighbour, from
// which the conversion rounds correctly.
func fma32(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := p + float64(z)
	if math.Float64bits(s)&(1<<28-1) != 0 {
		return float32(s)
	}
	return float32(roundToOdd(p, float64(z), s))
}

// roundToOdd returns p+z truncated towards zero with its last bit set if it was
// inexact, given s = fl(p+z).
func roundToOdd(p, z, s float64) float64 {
	b := s - p
	e := (p - (s - b)) + (z - b)
	if e == 0 || e != e || math.Float64bits(s)&1 != 0 {
		return s
	}
	bits := math.Float64bits(s)
	if (e > 0) == (s > 0) {
		bits++
	} else {
		bits--
	}
	return math.Float64frombits(bits)
}
