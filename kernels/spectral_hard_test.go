package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpmf-go/dpmf/internal/cpu"
	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

// spectralHardCases are matrices with clusters, splits, exact ties with the floor
// and extreme scales, where methods that need single eigenvectors go wrong.
func spectralHardCases(rng *rand.Rand, r int) []*spectralCase {
	var cases []*spectralCase
	add := func(name string, floor float32, element func(i, j int) float64) {
		ld := Stride(r)
		s := &spectralCase{name: fmt.Sprintf("%s, order %d, floor %v", name, r, floor), r: r, x: garbage(ld * ld), b: garbage(ld), floor: floor}
		for i := range r {
			for j := i; j < r; j++ {
				s.x[i*ld+j] = float32(element(i, j))
			}
			s.b[i] = float32(rng.NormFloat64())
		}
		cases = append(cases, s)
	}
	diagonal := func(f func(i int) float64) func(i, j int) float64 {
		return func(i, j int) float64 {
			if i == j {
				return f(i)
			}
			return 0
		}
	}
	u := kerneltest.Normal(rng, make([]float32, r))
	norm2 := 0.0
	for _, v := range u {
		norm2 += float64(v) * float64(v)
	}
	rankOne := func(lambda, scale float64) func(i, j int) float64 {
		return func(i, j int) float64 {
			v := scale * float64(u[i]) * float64(u[j]) / norm2
			if i == j {
				v += lambda
			}
			return v
		}
	}

	for _, lambda := range []float64{-3, 0, 0.5, float64(math.Nextafter32(1, 0)), 1, float64(math.Nextafter32(1, 2)), 7} {
		add(fmt.Sprintf("%v·I", lambda), 1, diagonal(func(int) float64 { return lambda }))
	}
	add("zero", 1e-30, diagonal(func(int) float64 { return 0 }))
	add("±I", 0.5, diagonal(func(i int) float64 { return float64(1 - i%2*2) }))
	add("spread diagonal", 2, diagonal(func(i int) float64 { return float64(i - r/2) }))
	add("graded diagonal", 1e-3, diagonal(func(i int) float64 { return math.Pow(10, 4-8*float64(i)/float64(r)) }))
	add("steeply graded diagonal", 1e-10, diagonal(func(i int) float64 { return math.Pow(10, 20-40*float64(i)/float64(r)) }))
	add("steeply graded", 1, func(i, j int) float64 {
		return rng.NormFloat64() * math.Pow(10, 20-20*float64(i+j)/float64(r))
	})
	add("graded upwards", 1e-4, func(i, j int) float64 { return rng.NormFloat64() * math.Pow(10, 4*float64(i+j)/float64(r)-4) })
	for _, lambda := range []float64{0.5, 1, 2} {
		for _, scale := range []float64{1e-6, 3, -3, 1e3, -1e3} {
			add(fmt.Sprintf("%v·I + %v·uuᵀ", lambda, scale), 1, rankOne(lambda, scale))
		}
	}
	add("all ones", 1e-4, func(i, j int) float64 { return 1 })
	add("all below", 100, func(i, j int) float64 { return rng.NormFloat64() })
	add("floor far above", 1e30, func(i, j int) float64 { return rng.NormFloat64() })
	add("floor far below", 1e-30, func(i, j int) float64 { return rng.NormFloat64() })
	add("just above the float64 path", 0x1p-15, func(i, j int) float64 { return max(-0.9, min(0.9, rng.NormFloat64())) })
	add("floor on the diagonal", 1, func(i, j int) float64 {
		if i == j {
			return 1
		}
		return rng.NormFloat64()
	})
	add("split in blocks", 0.5, func(i, j int) float64 {
		if i/3 != j/3 {
			return 0
		}
		return rng.NormFloat64()
	})
	add("tridiagonal with zero diagonal", 1, func(i, j int) float64 {
		if j == i+1 {
			return 1
		}
		return 0
	})
	add("second difference", 1e-2, func(i, j int) float64 { return map[int]float64{0: 2, 1: -1}[j-i] })
	add("Wilkinson", 1, func(i, j int) float64 {
		return map[int]float64{0: math.Abs(float64(2*i-r+1) / 2), 1: 1}[j-i]
	})
	add("arrow", 0.1, func(i, j int) float64 {
		if i == 0 && j > 0 {
			return 1
		}
		return map[bool]float64{true: float64(i)}[i == j]
	})
	add("two clusters", 0.5, func(i, j int) float64 {
		return map[bool]float64{true: float64(i % 2)}[i == j] + 1e-6*rng.NormFloat64()
	})
	for _, scale := range []float64{1e-45, 1e-38, 1e-20, 1e20, 1e36} {
		add(fmt.Sprintf("random times %v", scale), float32(max(scale, 1e-45)), func(i, j int) float64 { return rng.NormFloat64() * scale })
	}
	for _, scale := range []float64{0, 1e-40, 1e-20, 1e20, 1e37} {
		add(fmt.Sprintf("b times %v", scale), 1, func(i, j int) float64 { return rng.NormFloat64() })
		b := cases[len(cases)-1].b
		for i := range b {
			b[i] = float32(float64(b[i]) * scale)
		}
	}
	return cases
}

func TestSpectralSolveF32OnHardMatrices(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	var cases []*spectralCase
	for _, r := range []int{1, 2, 3, 5, 16, 17, 33, 64} {
		cases = append(cases, spectralHardCases(rng, r)...)
	}
	for _, s := range cases {
		s.solveGeneric(t)
	}
	kerneltest.EachTier(t, func(t *testing.T) {
		if cpu.Active() == cpu.Generic {
			return // solveGeneric did it
		}
		for _, s := range cases {
			s.checkTier(t)
		}
	})
}

// TestResolventPoles holds the table to what the comments say of it: the sign
// function outside a neighbourhood of zero, and inside it an error that f's
// continuity makes harmless.
func TestResolventPoles(t *testing.T) {
	const delta = 1e-6
	largest, kink := 0.0, 0.0
	for i := range 200001 {
		u := math.Pow(delta/100, float64(i)/200000)
		s := 0.0
		for _, q := range resolventPoles {
			s += q.weight * u / (u*u + q.pole*q.pole)
		}
		if u >= delta {
			largest = max(largest, math.Abs(s-1))
		} else {
			kink = max(kink, u*math.Abs(s-1)/2)
		}
	}
	if largest > 3.81e-9 {
		t.Errorf("largest error outside ±%v: %v", delta, largest)
	}
	if kink > 5e-8 {
		t.Errorf("largest weighted error inside ±%v: %v", delta, kink)
	}
}
