package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

const noiseBias = 3 << 51

// noiseSteps draws integers plus the bias.
func noiseSteps(rng *rand.Rand, n int) []float64 {
	noise := make([]float64, n)
	for i := range noise {
		noise[i] = noiseBias + math.Round(rng.NormFloat64()*0x1p29)
	}
	return noise
}

func TestAddNoiseF32(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(21, 22))
		for _, n := range append(kerneltest.Lengths(), addNoiseChunk+5) {
			for _, place := range []func(testing.TB, int) []float32{kerneltest.AtEnd, kerneltest.AtStart} {
				x, noise := kerneltest.Normal(rng, place(t, n)), noiseSteps(rng, n)
				step := math.Ldexp(1, rng.IntN(80)-60)
				want := slices.Clone(x)
				addNoiseF32Generic(want, noise, noiseBias, step)
				AddNoiseF32(x, noise, noiseBias, step)
				kerneltest.SameBits(t, "x", x, want)
			}
		}
	})
}

// TestAddNoiseF32Meaning computes the sum of the nearest grid point and the noise another way.
func TestAddNoiseF32Meaning(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(23, 24))
		x, noise, step := kerneltest.Normal(rng, make([]float32, 1000)), noiseSteps(rng, 1000), 0x1p-28
		before := slices.Clone(x)
		AddNoiseF32(x, noise, noiseBias, step)
		for i, v := range before {
			want := float32((math.RoundToEven(float64(v)/step) + noise[i] - noiseBias) * step)
			if x[i] != want {
				t.Fatalf("element %d: %v, want %v", i, x[i], want)
			}
		}
	})
}

func TestAddNoiseF32DoesNotAllocate(t *testing.T) {
	x, noise := make([]float32, 100), make([]float64, 100)
	if n := testing.AllocsPerRun(100, func() { AddNoiseF32(x, noise, noiseBias, 1) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
	mustPanic(t, "differ in length", func() { AddNoiseF32(x, noise[1:], noiseBias, 1) })
}

func FuzzAddNoiseF32(f *testing.F) {
	f.Add([]byte("bytes of sums"), uint8(19), 0.001, uint64(5))
	f.Add([]byte{0x7f, 0xc0, 0, 1}, uint8(8), 1e300, uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, n uint8, step float64, seed uint64) {
		x, noise := kerneltest.Floats(data, int(n), true), noiseSteps(rand.New(rand.NewPCG(seed, 1)), int(n))
		if n > 3 {
			noise[n/2] = math.Float64frombits(seed)
		}
		want := slices.Clone(x)
		addNoiseF32Generic(want, noise, noiseBias, step)
		kerneltest.ForTiers(func(tier string) {
			got := slices.Clone(x)
			AddNoiseF32(got, noise, noiseBias, step)
			kerneltest.SameBits(t, tier, got, want)
		})
	})
}

// BenchmarkAddNoiseF32 takes the length of a mean row of a triangle at rank 64.
func BenchmarkAddNoiseF32(b *testing.B) {
	x, noise := make([]float32, 32), noiseSteps(rand.New(rand.NewPCG(1, 1)), 32)
	kerneltest.EachTierB(b, func(b *testing.B) {
		b.SetBytes(int64(12 * len(x)))
		for b.Loop() {
			AddNoiseF32(x, noise, noiseBias, 1)
		}
	})
}
