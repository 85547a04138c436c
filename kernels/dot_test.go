package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

// dotReference is DotF32 on the reference, whatever the tier.
func dotReference(x, y []float32) float32 { return dotF32Generic(nil, x, y) }

// underflow makes products that round to ±0, so that a lane holds −0 and shows
// whether something was added to it that should not have been.
func underflow(rng *rand.Rand, x []float32) []float32 {
	for i := range x {
		x[i] = float32(math.Copysign(1e-30, rng.Float64()-0.9))
	}
	return x
}

// checkOracle compares a sum of n products with float64: the error bound of the
// comments, u·(products per lane + levels of halving)·Σ|x·y|.
func checkOracle(t testing.TB, what string, got float32, x, y []float32, lanes int) {
	t.Helper()
	var want, size float64
	for i, v := range x {
		want += float64(v) * float64(y[i])
		size += math.Abs(float64(v) * float64(y[i]))
	}
	bound := 0x1p-24 * (float64(len(x)/lanes) + 8) * size
	if math.Abs(float64(got)-want) > bound+math.SmallestNonzeroFloat32 {
		t.Fatalf("%s of %d products is %v, want %v ± %v", what, len(x), got, want, bound)
	}
}

func TestDotF32(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, n := range append(kerneltest.Lengths(), dotChunk-1, dotChunk, dotChunk+1, 2*dotChunk+77) {
			for _, place := range []func(testing.TB, int) []float32{kerneltest.AtEnd, kerneltest.AtStart} {
				x, y := kerneltest.Normal(rng, place(t, n)), kerneltest.Normal(rng, place(t, n))
				got := DotF32(x, y)
				kerneltest.SameBits(t, "dot", []float32{got}, []float32{dotReference(x, y)})
				checkOracle(t, "dot", got, x, y, dotLanes)
				kerneltest.SameBits(t, "square", []float32{DotF32(x, x)}, []float32{dotReference(x, x)})
				underflow(rng, x)
				for i := range y {
					y[i] = -x[i] // all products round to −0
				}
				kerneltest.SameBits(t, "underflow", []float32{DotF32(x, y)}, []float32{dotReference(x, y)})
			}
		}
	})
}

func TestDotF32HandComputed(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		// Lane 0 gets 2²⁴ and then loses it, so the 1 of lane 64 mod 64 = 0 is absorbed,
		// while the 1 of lane 1 survives.
		x, y := make([]float32, 129), make([]float32, 129)
		for i := range y {
			y[i] = 1
		}
		x[0], x[64], x[128], x[1] = 1<<24, 1, -1<<24, 1
		if got := DotF32(x, y); got != 1 {
			t.Errorf("got %v, want 1", got)
		}
	})
}

func FuzzDotF32(f *testing.F) {
	f.Add([]byte("a few bytes of input"), uint16(17))
	f.Add([]byte{0xff, 0xff, 0x80, 0x7f}, uint16(133))
	f.Add([]byte{0, 0, 0, 1, 0x80, 0, 0, 1, 0x0d, 0xff, 0xff, 0xff}, uint16(200))
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		n %= 1024
		x, y := kerneltest.Floats(data, int(n), true), kerneltest.Floats(data, int(n)+1, true)[1:]
		want := dotReference(x, y)
		kerneltest.ForTiers(func(tier string) {
			kerneltest.SameBits(t, tier, []float32{DotF32(x, y)}, []float32{want})
		})
	})
}

var sink float32

func BenchmarkDotF32(b *testing.B) {
	for _, n := range []int{64, 4096} {
		x, y := make([]float32, n), make([]float32, n)
		b.Run(sizeName("n", n), func(b *testing.B) {
			kerneltest.EachTierB(b, func(b *testing.B) {
				b.SetBytes(int64(8 * n))
				for b.Loop() {
					sink += DotF32(x, y)
				}
			})
			b.Run("gonum", func(b *testing.B) {
				u, v := blas32.Vector{N: n, Inc: 1, Data: x}, blas32.Vector{N: n, Inc: 1, Data: y}
				b.SetBytes(int64(8 * n))
				for b.Loop() {
					sink += blas32.Dot(u, v)
				}
			})
			b.Run("loop", func(b *testing.B) {
				b.SetBytes(int64(8 * n))
				for b.Loop() {
					sink += plainDot(x, y)
				}
			})
		})
	}
}

// plainDot is what one would write without this package.
func plainDot(x, y []float32) float32 {
	var sum float32
	y = y[:len(x)]
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func TestDotF32DoesNotAllocate(t *testing.T) {
	x, y := make([]float32, 100), make([]float32, 100)
	if n := testing.AllocsPerRun(100, func() { sink += DotF32(x, y) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}
