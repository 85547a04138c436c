package kernels

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpmf-go/dpmf/internal/cpu"
	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

// The tests below compare the steps of SpectralSolveF32 with their references one by
// one, on every tier, between guard pages, with NaN wherever a step must not look.

func TestSpectralTriangleSteps(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(21, 22))
		for _, r := range append(kerneltest.Ranks(), 300) {
			ld := Stride(r)
			for _, place := range []func(testing.TB, int) []float32{kerneltest.AtEnd, kerneltest.AtStart} {
				x := place(t, ld*ld)
				copy(x, garbage(len(x)))
				for i := range r {
					kerneltest.Normal(rng, x[i*ld+i:i*ld+r])
				}
				x[rng.IntN(r)*ld+r-1] = -100 // the last column belongs to every row
				if got, want := spectralMaxF32(x, r), spectralMaxF32Generic(x, r); got != want {
					t.Fatalf("order %d: largest %x, want %x", r, got, want)
				}

				a, want := place(t, ld*ld), garbage(ld*ld)
				copy(a, want)
				spectralCopyF32(a, x, r, 0.25)
				spectralCopyF32Generic(want, x, r, 0.25)
				kerneltest.SameBits(t, fmt.Sprintf("copy, order %d", r), a, want)

				spectralMirrorF32(a, ld)
				spectralMirrorF32Generic(want, ld)
				kerneltest.SameBits(t, fmt.Sprintf("mirror, order %d", r), a, want)
			}
		}
	})
}

func TestSpectralVectorSteps(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(23, 24))
		for blocks := 1; blocks <= 11; blocks++ {
			n := blocks * lane
			for _, place := range []func(testing.TB, int) []float32{kerneltest.AtEnd, kerneltest.AtStart} {
				normal := func() []float32 { return kerneltest.Normal(rng, place(t, n)) }

				c, v := normal(), normal()
				want := slices.Clone(c)
				spectralReflectF32Generic(want, v, 0.3)
				spectralReflectF32(c, v, 0.3)
				kerneltest.SameBits(t, fmt.Sprintf("reflect, %d elements", n), c, want)

				for skip := range lane {
					row, v, y, w := normal(), normal(), normal(), normal()
					for _, x := range [][]float32{row, v, y} {
						copy(x[:skip], garbage(skip))
					}
					wantRow, wantW, wantY := slices.Clone(row), slices.Clone(w), slices.Clone(y)
					wantDiag, wantNorm2 := spectralRowF32Generic(wantRow, v, wantY, wantW, skip, 0.7)
					diag, norm2 := spectralRowF32(row, v, y, w, skip, 0.7)
					what := fmt.Sprintf("row, %d elements, skip %d: ", n, skip)
					kerneltest.SameBits(t, what+"row", row, wantRow)
					kerneltest.SameBits(t, what+"w", w, wantW)
					kerneltest.SameBits(t, what+"y", y, wantY)
					kerneltest.SameBits(t, what+"results", []float32{diag, norm2}, []float32{wantDiag, wantNorm2})
				}
			}
		}
	})
}

func TestSpectralUpdateStep(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(25, 26))
		for blocks := 1; blocks <= updateColumns/lane+1; blocks++ {
			ld := blocks * lane
			for _, place := range []func(testing.TB, int) []float32{kerneltest.AtEnd, kerneltest.AtStart} {
				a := kerneltest.Normal(rng, place(t, ld*ld))
				v, w, u, y := kerneltest.Normal(rng, place(t, ld)), kerneltest.Normal(rng, place(t, ld)), kerneltest.Normal(rng, place(t, ld)), kerneltest.Normal(rng, place(t, ld))
				for _, step := range []int{1, -1} {
					rows := 1 + rng.IntN(ld)
					row := ld - rows
					if step < 0 {
						row = ld - 1
					}
					end := min(ld, updateColumns)
					for col := 0; col < end; col += lane {
						wantA, wantY := slices.Clone(a), slices.Clone(y)
						spectralUpdateF32Generic(wantA, ld, row, step, rows, col, end, v, w, u, wantY)
						spectralUpdateF32(a, ld, row, step, rows, col, end, v, w, u, y)
						what := fmt.Sprintf("%d rows from %d by %d, columns %d to %d", rows, row, step, col, end)
						kerneltest.SameBits(t, what, a, wantA)
						kerneltest.SameBits(t, what+": y", y, wantY)
					}
				}
			}
		}
	})
}

// TestSpectralLargeOrder crosses every bound on the work of one assembly call.
func TestSpectralLargeOrder(t *testing.T) {
	const r = updateRows + 60
	rng := rand.New(rand.NewPCG(27, 28))
	ld := Stride(r)
	x, b := garbage(ld*ld), garbage(ld)
	for i := range r {
		kerneltest.Normal(rng, x[i*ld+i:i*ld+r])
		x[i*ld+i] += 40
	}
	kerneltest.Normal(rng, b[:r])
	var first []float32
	var firstBelow int
	kerneltest.EachTier(t, func(t *testing.T) {
		if Tier() == "generic" && cpu.Detected() != cpu.Generic {
			t.Skip("nothing is bounded in Go, and it takes a second")
		}
		y := slices.Clone(b)
		below, err := SpectralSolveF32(x, y, r, 20, garbage(SpectralWorkLen(r)))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first, firstBelow = y, below
			return
		}
		kerneltest.SameBits(t, "solution", y[:r], first[:r])
		if below != firstBelow {
			t.Errorf("%d eigenvalues below the floor, another tier counts %d", below, firstBelow)
		}
	})
	if first != nil { // nil if DPMF_ISA asks for the generic tier
		checkSpectral(t, "large", x, b, first, r, 20, firstBelow)
	}
}
