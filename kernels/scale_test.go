package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

func TestScaleF32(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(9, 10))
		for _, n := range append(kerneltest.Lengths(), scaleChunk, scaleChunk+3) {
			for _, place := range []func(testing.TB, int) []float32{kerneltest.AtEnd, kerneltest.AtStart} {
				x := kerneltest.Normal(rng, place(t, n))
				a := float32(rng.NormFloat64())
				want := slices.Clone(x)
				scaleF32Generic(a, want)
				ScaleF32(a, x)
				kerneltest.SameBits(t, "x", x, want)
			}
		}
	})
}

func FuzzScaleF32(f *testing.F) {
	f.Add(float32(2), []byte("a few bytes of input"), uint8(17))
	f.Add(float32(0), []byte{0xff, 0xff, 0x80, 0x7f}, uint8(200))
	f.Fuzz(func(t *testing.T, a float32, data []byte, n uint8) {
		x := kerneltest.Floats(data, int(n), true)
		want := slices.Clone(x)
		scaleF32Generic(a, want)
		kerneltest.ForTiers(func(tier string) {
			got := slices.Clone(x)
			ScaleF32(a, got)
			kerneltest.SameBits(t, tier, got, want)
		})
	})
}

func BenchmarkScaleF32(b *testing.B) {
	x := make([]float32, 4096)
	kerneltest.EachTierB(b, func(b *testing.B) {
		b.SetBytes(int64(8 * len(x)))
		for b.Loop() {
			ScaleF32(0.5, x)
		}
	})
	b.Run("gonum", func(b *testing.B) {
		b.SetBytes(int64(8 * len(x)))
		for b.Loop() {
			blas32.Scal(0.5, blas32.Vector{N: len(x), Inc: 1, Data: x})
		}
	})
}

func TestScaleF32DoesNotAllocate(t *testing.T) {
	x := make([]float32, 100)
	if n := testing.AllocsPerRun(100, func() { ScaleF32(1, x) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}
