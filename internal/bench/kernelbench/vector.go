package kernelbench

import (
	"fmt"

	"gonum.org/v1/gonum/blas/blas32"

	"github.com/dpmf-go/dpmf/kernels"
)

// Lengths of the vector cases: both operands in a first-level cache of 32 KiB, and neither in any usual cache.
const (
	cachedLen = 1 << 11
	memoryLen = 1 << 24
)

func vectorSize(n int) string {
	if n >= memoryLen {
		return fmt.Sprintf("n=%d, memory", n)
	}
	return fmt.Sprintf("n=%d, cache", n)
}

// dotCase reads 8 bytes per element. The limit reads the same memory.
func dotCase(n int) benchCase {
	return benchCase{
		kernel: "DotF32", size: vectorSize(n), unit: "GB/s", limit: "read", floor: floor{avx2Share: .5},
		prepare: func(e *env) (*subject, error) {
			both := repeated(normal(e.rng(3), cachedLen), 2*n)
			x, y := both[:n], both[n:]
			return &subject{
				work: 8 * float64(n), read: both,
				run:     together(func() { kernels.DotF32(x, y) }),
				library: "gonum Dot",
				other:   together(func() { blas32.Dot(vector(x), vector(y)) }),
			}, nil
		},
	}
}

// axpyCase counts the 8 bytes it reads per element; that it also writes 4 is why it cannot reach the read limit.
func axpyCase(n int) benchCase {
	return benchCase{
		kernel: "AxpyF32", size: vectorSize(n), unit: "GB/s", limit: "read", floor: floor{avx2Share: .5},
		prepare: func(e *env) (*subject, error) {
			both := repeated(normal(e.rng(4), cachedLen), 2*n)
			x, y := both[:n], both[n:]
			return &subject{
				work: 8 * float64(n), read: both,
				run:     together(func() { kernels.AxpyF32(1e-6, x, y) }),
				library: "gonum Axpy",
				other:   together(func() { blas32.Axpy(1e-6, vector(x), vector(y)) }),
			}, nil
		},
	}
}

// scaleCase and addNoiseCase are measured in the cache, where trainers use them.
func scaleCase(n int) benchCase {
	return benchCase{
		kernel: "ScaleF32", size: vectorSize(n), unit: "GB/s", limit: "read", floor: floor{avx2Share: .5},
		prepare: func(e *env) (*subject, error) {
			x := normal(e.rng(9), n)
			return &subject{
				work: 4 * float64(n), read: x,
				run:     together(func() { kernels.ScaleF32(-1, x) }),
				library: "gonum Scal",
				other:   together(func() { blas32.Scal(-1, vector(x)) }),
			}, nil
		},
	}
}

// addNoiseCase counts the 12 bytes it reads per element.
func addNoiseCase(n int) benchCase {
	return benchCase{
		kernel: "AddNoiseF32", size: vectorSize(n), unit: "GB/s", limit: "read", floor: floor{avx2Share: .5},
		prepare: func(e *env) (*subject, error) {
			rng := e.rng(10)
			const bias = 3 << 51
			x, noise := normal(rng, n), make([]float64, n)
			for k := range noise {
				noise[k] = bias + float64(rng.IntN(1<<20)-1<<19)
			}
			return &subject{
				work: 12 * float64(n), read: x,
				run: together(func() { kernels.AddNoiseF32(x, noise, bias, 0x1p-30) }),
			}, nil
		},
	}
}

func vector(x []float32) blas32.Vector { return blas32.Vector{N: len(x), Inc: 1, Data: x} }

// repeated fills n elements with copies of a block: the speed of these kernels does not depend on the values, and drawing
// millions of them takes longer than measuring.
func repeated(block []float32, n int) []float32 {
	x := make([]float32, n)
	for done := 0; done < n; {
		done += copy(x[done:], block)
	}
	return x
}
