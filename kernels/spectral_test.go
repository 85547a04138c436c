package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpmf-go/dpmf/internal/cpu"
	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

// spectralOracle computes f(X)·b in float64 with gonum's eigendecomposition, and the
// norm and the eigenvalues of X.
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
	bound := 0x1p-24*factor*condition*bNorm/float64(floor) + math.Sqrt(float64(r))*0x1p-149 // subnormal results
	if bound > math.MaxFloat32 || slices.ContainsFunc(want, func(v float64) bool { return math.Abs(v) > math.MaxFloat32 }) {
		return 0 // the answer overflows
	}
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
	return errNorm / bound
}

// noisyGram is a Gram matrix plus symmetric noise, and a floor below which the
// given share of its eigenvalues lies. Everything that has no meaning is NaN.
func noisyGram(t testing.TB, rng *rand.Rand, r int, share float64) (x, b []float32, floor float32) {
	ld := Stride(r)
	x, b = garbage(ld*ld), garbage(ld)
	factors := kerneltest.Normal(rng, make([]float32, r*r))
	for i := range r {
		for j := i; j < r; j++ {
			s := 0.0
			for k := range r {
				s += float64(factors[k*r+i]) * float64(factors[k*r+j])
			}
			x[i*ld+j] = float32(s/float64(r) + 0.1*rng.NormFloat64())
		}
		b[i] = float32(rng.NormFloat64())
	}
	_, _, eigenvalues := spectralOracle(t, x, b, r, 1)
	k := max(0, min(r-1, int(math.Round(share*float64(r)))))
	floor = float32(eigenvalues[k])
	switch {
	case share < 0:
		floor -= 0.1
	case k > 0:
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

// spectralCase is one problem with the answer of the generic tier.
type spectralCase struct {
	name  string
	r     int
	x, b  []float32
	floor float32

	y     []float32
	below int
}

// solveGeneric fills in the reference's answer and checks it against the oracle.
func (s *spectralCase) solveGeneric(t testing.TB) {
	t.Helper()
	tier := cpu.Active()
	defer func() {
		if err := cpu.Select(tier.String()); err != nil {
			t.Fatal(err)
		}
	}()
	if err := cpu.Select(cpu.Generic.String()); err != nil {
		t.Fatal(err)
	}
	s.y = slices.Clone(s.b)
	below, err := SpectralSolveF32(s.x, s.y, s.r, s.floor, garbage(SpectralWorkLen(s.r)))
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	s.below = below
	checkSpectral(t, s.name, s.x, s.b, s.y, s.r, s.floor, below)
}

// checkTier runs the active tier on slices between guard pages and compares bits.
func (s *spectralCase) checkTier(t testing.TB) {
	t.Helper()
	for _, place := range []func(testing.TB, int) []float32{kerneltest.AtEnd, kerneltest.AtStart} {
		x, y, work := place(t, len(s.x)), place(t, len(s.b)), place(t, SpectralWorkLen(s.r))
		copy(x, s.x)
		copy(y, s.b)
		copy(work, garbage(len(work)))
		below, err := SpectralSolveF32(x, y, s.r, s.floor, work)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		kerneltest.SameBits(t, s.name, y[:s.r], s.y[:s.r])
		kerneltest.SameBits(t, s.name+": X afterwards", x, s.x)
		if below != s.below {
			t.Errorf("%s: %d eigenvalues below the floor, the generic tier counts %d", s.name, below, s.below)
		}
	}
}

func TestSpectralSolveF32(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var cases []*spectralCase
	add := func(r int, share, floorScale float64) {
		x, b, floor := noisyGram(t, rng, r, share)
		floor *= float32(floorScale)
		cases = append(cases, &spectralCase{name: fmt.Sprintf("order %d, share %v, floor %v", r, share, floor), r: r, x: x, b: b, floor: floor})
	}
	for i, r := range append(kerneltest.Ranks(), 200, 256) {
		add(r, 0.08, 1)
		if r <= 80 {
			add(r, []float64{0.4, 0.9, -1, 0}[i%4], 1)
			add(r, 0.5, 1e-6) // the float64 path
		}
	}
	for _, s := range cases {
		s.solveGeneric(t)
	}
	kerneltest.EachTier(t, func(t *testing.T) {
		for _, s := range cases {
			if cpu.Active() == cpu.Generic && s.r > 65 {
				continue // solveGeneric did it
			}
			s.checkTier(t)
		}
	})
}

func TestSpectralSolveF32RejectsBadInput(t *testing.T) {
	const r = 5
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	solve := func(floor float32, change func(x, b []float32)) error {
		x, b, _ := noisyGram(t, rand.New(rand.NewPCG(9, 9)), r, 0.4)
		change(x, b)
		before := slices.Clone(b)
		_, err := SpectralSolveF32(x, b, r, floor, make([]float32, SpectralWorkLen(r)))
		if err != nil {
			kerneltest.SameBits(t, "b after an error", b, before)
		}
		return err
	}
	kerneltest.EachTier(t, func(t *testing.T) {
		for _, floor := range []float32{0, -1, nan, inf} {
			if err := solve(floor, func(x, b []float32) {}); err == nil || !strings.Contains(err.Error(), "floor is") {
				t.Errorf("floor %v: error %v", floor, err)
			}
		}
		for _, bad := range []float32{nan, inf, -inf} {
			for i := range r {
				for j := i; j < r; j++ {
					want := fmt.Sprintf("element (%d, %d) of X", i, j)
					if err := solve(1, func(x, b []float32) { x[i*Stride(r)+j] = bad }); err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%v at (%d, %d): error %v", bad, i, j, err)
					}
				}
				want := fmt.Sprintf("element %d of b", i)
				if err := solve(1, func(x, b []float32) { b[i] = bad }); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v at %d of b: error %v", bad, i, err)
				}
			}
		}
	})
}

func TestSpectralSolveF32PanicsOnShortSlices(t *testing.T) {
	const r = 17
	ld := Stride(r)
	for name, call := range map[string]func(){
		"x has": func() {
			SpectralSolveF32(make([]float32, ld*ld-1), make([]float32, ld), r, 1, make([]float32, SpectralWorkLen(r)))
		},
		"b has": func() {
			SpectralSolveF32(make([]float32, ld*ld), make([]float32, ld-1), r, 1, make([]float32, SpectralWorkLen(r)))
		},
		"work has": func() {
			SpectralSolveF32(make([]float32, ld*ld), make([]float32, ld), r, 1, make([]float32, SpectralWorkLen(r)-1))
		},
		"the order is": func() { SpectralSolveF32(nil, nil, 0, 1, nil) },
	} {
		func() {
			defer func() {
				if message := fmt.Sprint(recover()); !strings.Contains(message, name) {
					t.Errorf("panic %q does not say %q", message, name)
				}
			}()
			call()
		}()
	}
}

func TestSpectralSolveF32DoesNotAllocate(t *testing.T) {
	for _, floorScale := range []float32{1e-3, 1, 1e-7} {
		const r = 40
		x, b, floor := noisyGram(t, rand.New(rand.NewPCG(1, 1)), r, 0.3)
		y, work := make([]float32, len(b)), make([]float32, SpectralWorkLen(r))
		if n := testing.AllocsPerRun(20, func() {
			copy(y, b)
			if _, err := SpectralSolveF32(x, y, r, floor*floorScale, work); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("floor %v: %v allocations per call", floor*floorScale, n)
		}
	}
}

func FuzzSpectralSolveF32(f *testing.F) {
	f.Add([]byte("a few bytes of input"), uint8(17), float32(0.5), int8(0), false)
	f.Add([]byte{0, 0, 0, 0}, uint8(3), float32(1e-9), int8(0), false)
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7}, uint8(33), float32(2), int8(-90), false)
	f.Add([]byte{0x7f, 0x80, 0, 0, 1, 9}, uint8(8), float32(1), int8(60), true)
	f.Add([]byte("the quick brown fox"), uint8(40), float32(100), int8(3), false)
	f.Fuzz(func(t *testing.T, data []byte, order uint8, floor float32, exponent int8, wild bool) {
		r := 1 + int(order)%48
		ld := Stride(r)
		x := kerneltest.Floats(data, ld*ld, wild)
		b := kerneltest.Floats(data, ld*ld+ld, wild)[ld*ld:]
		for i := range x {
			x[i] = float32(math.Ldexp(float64(x[i]), int(exponent)))
		}
		type answer struct {
			y     []float32
			below int
			err   error
		}
		var first *answer
		kerneltest.ForTiers(func(tier string) {
			a := answer{y: slices.Clone(b)}
			a.below, a.err = SpectralSolveF32(x, a.y, r, floor, make([]float32, SpectralWorkLen(r)))
			if first == nil {
				first = &a
				return
			}
			kerneltest.SameBits(t, tier, a.y, first.y)
			if a.below != first.below || fmt.Sprint(a.err) != fmt.Sprint(first.err) {
				t.Errorf("%s: %d, %v; generic: %d, %v", tier, a.below, a.err, first.below, first.err)
			}
		})
		if first.err == nil {
			checkSpectral(t, "generic", x, b, first.y, r, floor, first.below)
		}
	})
}

func BenchmarkSpectralSolveF32(b *testing.B) {
	kerneltest.EachTierB(b, func(b *testing.B) {
		for _, r := range []int{32, 64, 128} {
			for _, share := range []float64{-1, 0.08, 0.4} {
				x, rhs, floor := noisyGram(b, rand.New(rand.NewPCG(7, 8)), r, share)
				y, work := make([]float32, len(rhs)), make([]float32, SpectralWorkLen(r))
				b.Run(fmt.Sprintf("r=%d/below=%v", r, max(0, share)), func(b *testing.B) {
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
