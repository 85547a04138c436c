package kernels

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
	"gonum.org/v1/gonum/mat"
)

// choleskyRanks are the orders of the tests: around every tile edge, and some
// that take several calls of the assembly.
func choleskyRanks() []int { return append(kerneltest.Ranks(), 200, 256, 257, 512) }

// choleskySystem fills a and b with a positive definite system of order r,
// G·Gᵀ/n + ridge·I with G a normal r×n matrix, and everything that must not matter
// with NaN.
func choleskySystem(rng *rand.Rand, a, b []float32, r int, ridge float64) {
	ld := Stride(r)
	nan := float32(math.NaN())
	for i := range a {
		a[i] = nan
	}
	n := min(r, 64)
	g := kerneltest.Normal(rng, make([]float32, r*n))
	for i := range r {
		for j := i; j < r; j++ {
			sum := float32(0)
			x, y := g[i*n:i*n+n], g[j*n:j*n+n]
			for k, v := range x {
				sum += float32(v * y[k])
			}
			a[i*ld+j] = sum / float32(n)
		}
		a[i*ld+i] += float32(ridge)
	}
	for i := range b {
		b[i] = nan
	}
	kerneltest.Normal(rng, b[:r])
}

// upper copies the meaningful elements of a matrix of order r.
func upper(a []float32, r int) []float32 {
	ld := Stride(r)
	var u []float32
	for i := range r {
		u = append(u, a[i*ld+i:i*ld+r]...)
	}
	return u
}

func TestCholeskySolveF32(t *testing.T) {
	type result struct{ a, b, u, x []float32 }
	rng := rand.New(rand.NewPCG(5, 6))
	results := map[int]result{}
	for _, r := range choleskyRanks() {
		ld := Stride(r)
		var s result
		s.a, s.b = make([]float32, ld*ld), make([]float32, ld)
		choleskySystem(rng, s.a, s.b, r, 0.1)
		u, x := slices.Clone(s.a), slices.Clone(s.b)
		if column := choleskySolveF32Generic(u, x, r); column != -1 {
			t.Fatalf("r=%d: the reference fails at column %d", r, column)
		}
		s.u, s.x = upper(u, r), x[:r]
		checkSolution(t, s.a, s.b, s.x, r)
		results[r] = s
	}
	kerneltest.EachTier(t, func(t *testing.T) {
		for _, r := range choleskyRanks() {
			if r > 200 && Tier() == "generic" {
				continue // the reference has made the expected values
			}
			want := results[r]
			for _, place := range []func(testing.TB, int) []float32{kerneltest.AtEnd, kerneltest.AtStart} {
				a, b, y := place(t, len(want.a)), place(t, len(want.b)), place(t, len(want.b))
				name := func(what string) string { return fmt.Sprintf("r=%d: %s", r, what) }

				copy(a, want.a)
				copy(b, want.b)
				if column := CholeskySolveF32(a, b, r); column != -1 {
					t.Fatalf("r=%d: not positive definite at column %d", r, column)
				}
				kerneltest.SameBits(t, name("factor"), upper(a, r), want.u)
				kerneltest.SameBits(t, name("solution"), b[:r], want.x)

				copy(a, want.a)
				copy(y, want.b)
				if column := CholeskyF32(a, r); column != -1 {
					t.Fatalf("r=%d: CholeskyF32: not positive definite at column %d", r, column)
				}
				kerneltest.SameBits(t, name("factor alone"), upper(a, r), want.u)
				spoil(a, r)
				CholeskySolveFactoredF32(a, y, r)
				kerneltest.SameBits(t, name("factor after solving with it"), upper(a, r), want.u)
				kerneltest.SameBits(t, name("solution with the factor"), y[:r], want.x)
			}
		}
	})
}

// spoil fills the scratch part of a matrix of order r with NaN.
func spoil(a []float32, r int) {
	ld := Stride(r)
	for i := range ld {
		for j := range ld {
			if j < i || j >= r {
				a[i*ld+j] = float32(math.NaN())
			}
		}
	}
}

// checkSolution compares x with a float64 solution. A backward stable solver in
// precision ε = 2⁻²⁴ has a residual of at most about 3(r+1)·ε·|Uᵀ||U||x|
// (Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.4), and the
// error of x is at most the condition number times that; here the relative error
// in norm must not exceed r·ε·κ₂(A).
func checkSolution(t *testing.T, a, b, x []float32, r int) {
	t.Helper()
	ld := Stride(r)
	m, v := mat.NewSymDense(r, nil), mat.NewVecDense(r, nil)
	for i := range r {
		for j := i; j < r; j++ {
			m.SetSym(i, j, float64(a[i*ld+j]))
		}
		v.SetVec(i, float64(b[i]))
	}
	var c mat.Cholesky
	if !c.Factorize(m) {
		t.Fatalf("r=%d: the float64 oracle cannot factor the matrix", r)
	}
	var want mat.VecDense
	if err := c.SolveVecTo(&want, v); err != nil {
		t.Fatal(err)
	}
	var diff, norm float64
	for i := range r {
		diff = math.Hypot(diff, float64(x[i])-want.AtVec(i))
		norm = math.Hypot(norm, want.AtVec(i))
	}
	if bound := float64(r+1) * 0x1p-24 * c.Cond(); !(diff <= bound*norm) {
		t.Errorf("r=%d: relative error %.3g exceeds %.3g", r, diff/norm, bound)
	}
}

// TestCholeskyNotPositiveDefinite plants a bad pivot in every column.
func TestCholeskyNotPositiveDefinite(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, r := range []int{1, 2, 8, 9, 16, 17, 33, 50} {
			ld := Stride(r)
			good, rhs := make([]float32, ld*ld), make([]float32, ld)
			choleskySystem(rng, good, rhs, r, 0.5)
			a, b := make([]float32, ld*ld), make([]float32, ld)
			check := func(what string, want int) {
				t.Helper()
				factor := slices.Clone(a)
				copy(b, rhs)
				if got := CholeskySolveF32(a, b, r); got != want {
					t.Fatalf("r=%d, %s: CholeskySolveF32 returns %d, want %d", r, what, got, want)
				}
				if got := CholeskyF32(factor, r); got != want {
					t.Fatalf("r=%d, %s: CholeskyF32 returns %d, want %d", r, what, got, want)
				}
			}
			for j := range r {
				for _, pivot := range []float32{-1, nan, -inf} {
					copy(a, good)
					a[j*ld+j] = pivot
					check(fmt.Sprintf("pivot %v at %d", pivot, j), j)
				}
				for _, v := range []float32{nan, inf, -inf} {
					copy(a, good)
					a[j/2*ld+j] = v
					if j/2 < j || v != inf {
						check(fmt.Sprintf("%v in row %d of column %d", v, j/2, j), j)
					}
				}
				// Two equal columns of a block diagonal matrix leave an exact zero.
				clear(a)
				for i := range r {
					a[i*ld+i] = 4
				}
				a[j/2*ld+j] = 4
				if j > 0 {
					check(fmt.Sprintf("exact zero pivot at %d", j), j)
				}
			}
			clear(a)
			check("zero matrix", 0)
		}
	})
	var failed *NotPositiveDefiniteError
	if err := NotPositiveDefinite(3); !errors.As(err, &failed) || failed.Column != 3 {
		t.Errorf("NotPositiveDefinite(3) = %v", err)
	}
	if err := NotPositiveDefinite(-1); err != nil {
		t.Errorf("NotPositiveDefinite(-1) = %v", err)
	}
}

// TestCholeskySpecialValues pins what the documentation says about infinities
// and NaN that a factorization survives.
func TestCholeskySpecialValues(t *testing.T) {
	inf := float32(math.Inf(1))
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(9, 10))
		for _, r := range []int{1, 5, 16, 21, 43} {
			ld := Stride(r)
			a, b := make([]float32, ld*ld), make([]float32, ld)
			for j := range r {
				choleskySystem(rng, a, b, r, 0.5)
				a[j*ld+j] = inf
				if column := CholeskySolveF32(a, b, r); column != -1 {
					t.Fatalf("r=%d: infinite pivot at %d fails at column %d", r, j, column)
				}
				for i, x := range b[:r] {
					if (i == j) != (x == 0) || x-x != 0 {
						t.Fatalf("r=%d: with an infinite pivot at %d x[%d] is %v", r, j, i, x)
					}
				}
				for _, v := range []float32{inf, -inf, inf - inf} {
					choleskySystem(rng, a, b, r, 0.5)
					b[j] = v
					u, x := slices.Clone(a), slices.Clone(b)
					choleskySolveF32Generic(u, x, r)
					if column := CholeskySolveF32(a, b, r); column != -1 {
						t.Fatalf("r=%d: b[%d]=%v fails at column %d", r, j, v, column)
					}
					kerneltest.SameBits(t, fmt.Sprintf("r=%d: solution for b[%d]=%v", r, j, v), b[:r], x[:r])
				}
			}
		}
	})
}

func TestCholeskyChecksItsArguments(t *testing.T) {
	a, b := make([]float32, 32*32), make([]float32, 32)
	for name, call := range map[string]func(){
		"order 0":  func() { CholeskySolveF32(a, b, 0) },
		"order -1": func() { CholeskyF32(a, -1) },
		"short a":  func() { CholeskyF32(a, 33) },
		"short b":  func() { CholeskySolveFactoredF32(a, b[:31], 17) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

func TestCholeskyDoesNotAllocate(t *testing.T) {
	const r = 37
	rng := rand.New(rand.NewPCG(11, 12))
	system, rhs := make([]float32, Stride(r)*Stride(r)), make([]float32, Stride(r))
	choleskySystem(rng, system, rhs, r, 0.5)
	a, b := slices.Clone(system), slices.Clone(rhs)
	kerneltest.EachTier(t, func(t *testing.T) {
		if n := testing.AllocsPerRun(20, func() {
			copy(a, system)
			copy(b, rhs)
			CholeskySolveF32(a, b, r)
			CholeskySolveFactoredF32(a, b, r)
			copy(a, system)
			CholeskyF32(a, r)
		}); n != 0 {
			t.Errorf("%v allocations per run", n)
		}
	})
}

// FuzzCholeskySolveF32 compares the tiers on arbitrary bits, most of which fail
// early, and on diagonally dominant matrices, which do not; a byte may spoil one
// element of those.
func FuzzCholeskySolveF32(f *testing.F) {
	f.Add(uint8(7), uint8(1), []byte("some bytes"))
	f.Add(uint8(16), uint8(2), []byte{0, 1, 2, 3, 4})
	f.Add(uint8(33), uint8(0), []byte{0x3f, 0x80, 0, 0})
	f.Add(uint8(50), uint8(3), []byte{0x7f, 0x80, 0, 0, 1})
	f.Add(uint8(90), uint8(14), []byte("bytes of another kind"))
	f.Fuzz(func(t *testing.T, rank, kind uint8, data []byte) {
		r := int(rank)%100 + 1
		ld := Stride(r)
		a := kerneltest.Floats(data, ld*ld, kind%3 == 0)
		b := kerneltest.Floats(append([]byte{kind}, data...), ld, kind%3 != 1)
		if kind%3 != 0 {
			for i := range r {
				sum := float32(1)
				for j := range r {
					sum += float32(math.Abs(float64(a[min(i, j)*ld+max(i, j)])))
				}
				a[i*ld+i] = sum
			}
			if kind%4 == 3 {
				i := int(kind) % r
				a[i/3*ld+i] = -a[i/3*ld+i]
			}
		}
		u, x := slices.Clone(a), slices.Clone(b)
		want := choleskySolveF32Generic(u, x, r)
		kerneltest.ForTiers(func(tier string) {
			gotU, gotX := slices.Clone(a), slices.Clone(b)
			if column := CholeskySolveF32(gotU, gotX, r); column != want {
				t.Fatalf("%s, r=%d: column %d, want %d", tier, r, column, want)
			}
			alone, y := slices.Clone(a), slices.Clone(b)
			if column := CholeskyF32(alone, r); column != want {
				t.Fatalf("%s, r=%d: CholeskyF32: column %d, want %d", tier, r, column, want)
			}
			if want >= 0 {
				return
			}
			CholeskySolveFactoredF32(alone, y, r)
			kerneltest.SameBits(t, tier+" factor", upper(gotU, r), upper(u, r))
			kerneltest.SameBits(t, tier+" factor alone", upper(alone, r), upper(u, r))
			kerneltest.SameBits(t, tier+" solution", gotX[:r], x[:r])
			kerneltest.SameBits(t, tier+" solution with the factor", y[:r], x[:r])
		})
	})
}

// BenchmarkCholeskySolveF32 restores a batch of matrices outside the measured
// time; ns/op is one factorization with its solve, the median over the batches.
func BenchmarkCholeskySolveF32(b *testing.B) {
	kerneltest.EachTierB(b, func(b *testing.B) {
		for _, r := range []int{32, 64, 128} {
			b.Run(fmt.Sprintf("r=%d", r), func(b *testing.B) { benchmarkCholesky(b, r) })
		}
	})
}

func benchmarkCholesky(b *testing.B, r int) {
	const batch = 4
	size := Stride(r) * Stride(r)
	system, rhs := make([]float32, size), make([]float32, Stride(r))
	choleskySystem(rand.New(rand.NewPCG(13, 14)), system, rhs, r, 0.5)
	work, x := make([]float32, batch*size), make([]float32, batch*Stride(r))
	var times []time.Duration
	for b.Loop() {
		for i := range batch {
			copy(work[i*size:], system)
			copy(x[i*Stride(r):], rhs)
		}
		start := time.Now()
		for i := range batch {
			if CholeskySolveF32(work[i*size:], x[i*Stride(r):], r) >= 0 {
				b.Fatal("not positive definite")
			}
		}
		times = append(times, time.Since(start)/batch)
	}
	slices.Sort(times)
	median := float64(times[len(times)/2].Nanoseconds())
	n := float64(r)
	b.ReportMetric(median, "ns/op")
	b.ReportMetric(float64(times[0].Nanoseconds()), "best-ns/op")
	b.ReportMetric((n*n*n/3+2*n*n)/median, "GFLOP/s")
}
