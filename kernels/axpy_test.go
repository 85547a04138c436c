package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

func TestAxpyF32(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		for _, n := range append(kerneltest.Lengths(), axpyChunk+3) {
			for _, place := range []func(testing.TB, int) []float32{kerneltest.AtEnd, kerneltest.AtStart} {
				x, y := kerneltest.Normal(rng, place(t, n)), kerneltest.Normal(rng, place(t, n))
				a := float32(rng.NormFloat64())
				want := slices.Clone(y)
				axpyF32Generic(a, x, want)
				AxpyF32(a, x, y)
				kerneltest.SameBits(t, "y", y, want)

				axpyF32Generic(a, want, want) // x and y may be the same slice
				AxpyF32(a, y, y)
				kerneltest.SameBits(t, "aliased y", y, want)
			}
		}
	})
}

func FuzzAxpyF32(f *testing.F) {
	f.Add(float32(2), []byte("a few bytes of input"), uint8(17))
	f.Add(float32(-0.5), []byte{0xff, 0xff, 0x80, 0x7f}, uint8(33))
	f.Fuzz(func(t *testing.T, a float32, data []byte, n uint8) {
		x, y := kerneltest.Floats(data, int(n), true), kerneltest.Floats(data, int(n)+1, true)[1:]
		want := slices.Clone(y)
		axpyF32Generic(a, x, want)
		kerneltest.ForTiers(func(tier string) {
			got := slices.Clone(y)
			AxpyF32(a, x, got)
			kerneltest.SameBits(t, tier, got, want)
		})
	})
}

func BenchmarkAxpyF32(b *testing.B) {
	x := make([]float32, 4096)
	y := make([]float32, 4096)
	kerneltest.EachTierB(b, func(b *testing.B) {
		b.SetBytes(int64(8 * len(x)))
		for b.Loop() {
			AxpyF32(0.5, x, y)
		}
	})
}

func TestAxpyF32DoesNotAllocate(t *testing.T) {
	x, y := make([]float32, 100), make([]float32, 100)
	if n := testing.AllocsPerRun(100, func() { AxpyF32(1, x, y) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}
