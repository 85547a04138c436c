package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

// spectralOracle computes f(X)·b in float64 with gonum's eigendecomposition, and the
// extreme absolute eigenvalue and the number below floor.
func spectralOracle(t testing.TB, x, b []float32, r int, floor float32) (y []float64, norm float64, eigenvalues []float64) {
	t.Helper()
	ld := Stride(r)
	s := mat.NewSymDense(r, nil)
	for i := range r {
		for j := i; j < r; j++ {
			s.SetSym(i, j, float64(x[i*ld+j]))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(s, true) {
		t.Fatal("the oracle's eigendecomposition failed")
	}
	var z mat.Dense
	eigen.VectorsTo(&z)
	eigenvalues = eigen.Values(nil)
	y = make([]float64, r)
	for k, v := range eigenvalues {
		norm = max(norm, math.Abs(v))
		dot := 0.0
		for i := range r {
			dot += z.At(i, k) * float64(b[i])
		}
		dot /= max(v, float64(floor))
		for i := range r {
			y[i] += dot * z.At(i, k)
		}
	}
	return y, norm, eigenvalues
}

// checkSpectral holds y, the kernel's answer for b, to the documented bound and
// the count to the rounding allowed. It returns the error over the bound.
func checkSpectral(t testing.TB, what string, x, b, y []float32, r int, floor float32, below int) float64 {
	t.Helper()
	want, norm, eigenvalues := spectralOracle(t, x, b, r, floor)
	errNorm, bNorm := 0.0, 0.0
	for i := range r {
		errNorm = math.Hypot(errNorm, float64(y[i])-want[i])
		bNorm = math.Hypot(bNorm, float64(b[i]))
	}
	condition := 1 + norm/float64(floor)
	factor := 10 + math.Sqrt(float64(r))
	bound := 0x1p-24 * factor * condition * bNorm / float64(floor)
	if !(errNorm <= bound) {
		t.Errorf("%s: r=%d: error %.3g exceeds %.3g (‖X‖/floor %.3g)", what, r, errNorm, bound, norm/float64(floor))
	}
	slack := 0x1p-24 * factor * (norm + float64(floor))
	low, high := 0, 0
	for _, v := range eigenvalues {
		if v < float64(floor)-slack {
			low++
		}
		if v < float64(floor)+slack {
			high++
		}
	}
	if below < low || below > high {
		t.Errorf("%s: r=%d: %d eigenvalues counted below the floor, want %d to %d", what, r, below, low, high)
	}
	if bound == 0 {
		return 0
	}
	return errNorm / bound
}

// noisyGram is a Gram matrix plus symmetric noise, and a floor below which the
// given share of its eigenvalues lies. Everything that has no meaning is NaN.
func noisyGram(t testing.TB, rng *rand.Rand, r int, share float64) (x, b []float32, floor float32) {
	ld := Stride(r)
	x, b = garbage(ld*ld), garbage(ld)
	factors := kerneltest.Normal(rng, make([]float32, 3*r*r))
	for i := range r {
		for j := i; j < r; j++ {
			s := 0.0
			for k := range 3 * r {
				s += float64(factors[k*r+i]) * float64(factors[k*r+j])
			}
			x[i*ld+j] = float32(s/float64(3*r) + 0.1*rng.NormFloat64())
		}
		b[i] = float32(rng.NormFloat64())
	}
	_, _, eigenvalues := spectralOracle(t, x, b, r, 1)
	k := min(r-1, int(math.Round(share*float64(r))))
	floor = float32(eigenvalues[k])
	if k > 0 {
		floor = float32(eigenvalues[k-1]+eigenvalues[k]) / 2
	}
	for i := range r { // shift the spectrum so that the floor is positive
		x[i*ld+i] += 0.2 - floor
	}
	return x, b, 0.2
}

func garbage(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.NaN())
	}
	return v
}

func TestQuick(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, r := range kerneltest.Ranks() {
		for _, share := range []float64{0, .08, .4, .9} {
			x, b, floor := noisyGram(t, rng, r, share)
			y := slices.Clone(b)
			below, err := SpectralSolveF32(x, y, r, floor, garbage(SpectralWorkLen(r)))
			if err != nil {
				t.Fatal(err)
			}
			q := checkSpectral(t, fmt.Sprint(share), x, b, y, r, floor, below)
			y2 := slices.Clone(b)
			x2 := slices.Clone(x)
			x2[0] += 0
			below, _ = SpectralSolveF32(x2, y2, r, floor*1e-7, garbage(SpectralWorkLen(r)))
			q2 := checkSpectral(t, fmt.Sprint("slow ", share), x, b, y2, r, floor*1e-7, below)
			if r > 30 {
				t.Log(r, share, below, q, q2)
			}
		}
	}
	_ = strings.Join
}

func BenchmarkSpectralSolveF32(b *testing.B) {
	kerneltest.EachTierB(b, func(b *testing.B) {
		for _, r := range []int{32, 64, 128} {
			for _, share := range []float64{0, 0.08, 0.4} {
				x, rhs, floor := noisyGram(b, rand.New(rand.NewPCG(7, 8)), r, share)
				y, work := make([]float32, len(rhs)), make([]float32, SpectralWorkLen(r))
				b.Run(fmt.Sprintf("r=%d/below=%v", r, share), func(b *testing.B) {
					for b.Loop() {
						copy(y, rhs)
						if _, err := SpectralSolveF32(x, y, r, floor, work); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	})
}
