package kernels

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA rounds x·y+z once through arbitrary precision.
func exactFMA(x, y, z float32) float32 {
	if math.IsNaN(float64(x)) || math.IsNaN(float64(y)) || math.IsNaN(float64(z)) || math.IsInf(float64(x), 0) || math.IsInf(float64(y), 0) || math.IsInf(float64(z), 0) {
		return float32(float64(x)*float64(y) + float64(z))
	}
	f := func(v float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(v)) }
	sum := new(big.Float).SetPrec(2000).Mul(f(x), f(y))
	sum.Add(sum, f(z))
	if sum.Sign() == 0 {
		return float32(float64(x)*float64(y) + float64(z)) // the sign of an exact zero
	}
	r, _ := sum.Float32()
	return r
}

func checkFMA(t *testing.T, x, y, z float32) {
	t.Helper()
	got, want := fma32(x, y, z), exactFMA(x, y, z)
	if math.Float32bits(got) != math.Float32bits(want) && !(got != got && want != want) {
		t.Errorf("fma32(%x, %x, %x) = %x, want %x", x, y, z, got, want)
	}
}

// TestFMA32 compares with arbitrary precision on random bits (all exponents,
// subnormals, NaN, infinities), on values of similar size, and on constructed
// midpoints, where rounding twice goes wrong.
func TestFMA32(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	bits := func() float32 { return math.Float32frombits(rng.Uint32()) }
	for range 200000 {
		checkFMA(t, bits(), bits(), bits())
		checkFMA(t, float32(rng.NormFloat64()), float32(rng.NormFloat64()), float32(rng.NormFloat64()))
	}
	for range 50000 {
		// 1 + 2⁻²⁴ is halfway between two float32; a tiny z of either sign decides.
		x := 1 + float32(rng.IntN(1<<12))/(1<<12)
		y := 1 + float32(rng.IntN(1<<12)*2+1)/(1<<12)/2
		z := float32(math.Ldexp(float64(rng.IntN(3)-1), -rng.IntN(140)))
		checkFMA(t, x, y, z)
		checkFMA(t, x*0x1p-70, y*0x1p-70, z*0x1p-9) // subnormal results
	}
	// A double rounding that plain float64 arithmetic gets wrong.
	x, y, z := float32(1+0x1p-23), float32(1+0x1p-23), float32(0x1p-60)
	checkFMA(t, x, y, z)
	checkFMA(t, 0x1p-75, 0x1.000002p-75, 0x1p-149)
}

func FuzzFMA32(f *testing.F) {
	f.Add(uint32(0x3f800001), uint32(0x3f800001), uint32(0x21800000))
	f.Add(uint32(0x00000001), uint32(0x3f000000), uint32(0x00000001))
	f.Fuzz(func(t *testing.T, x, y, z uint32) {
		checkFMA(t, math.Float32frombits(x), math.Float32frombits(y), math.Float32frombits(z))
	})
}
