package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// gramCase is one call of GramF32 with its starting values.
type gramCase struct {
	GramInput
	gram, rhs []float32
}

// newGramCase draws a case whose buffers lie against guard pages.
func newGramCase(t testing.TB, rng *rand.Rand, r, tableRows, count int, weighted, targeted bool) gramCase {
	c := gramCase{GramInput: GramInput{Table: kerneltest.Normal(rng, kerneltest.AtEnd(t, tableRows*r)), Rank: r}}
	c.Rows = kerneltest.AtEndInt32(t, count)
	for i := range c.Rows {
		c.Rows[i] = int32(rng.IntN(tableRows))
	}
	if count > 0 {
		c.Rows[0], c.Rows[count-1] = int32(tableRows-1), 0 // both ends of the table
	}
	if weighted {
		c.Weights = kerneltest.AtEnd(t, count)
		for i := range c.Weights {
			c.Weights[i] = float32(rng.ExpFloat64())
		}
	}
	if targeted {
		c.Targets = kerneltest.Normal(rng, kerneltest.AtEnd(t, count))
	}
	c.gram = kerneltest.Normal(rng, kerneltest.AtEnd(t, Stride(r)*Stride(r)))
	c.rhs = kerneltest.Normal(rng, kerneltest.AtEnd(t, Stride(r)))
	return c
}

// generic returns what the reference makes of the case.
func (c gramCase) generic() (gram, rhs []float32) {
	gram, rhs = slices.Clone(c.gram), slices.Clone(c.rhs)
	gramF32Generic(gram, rhs, c.Table, c.Rank, &gramRows{rows: c.Rows, weights: c.Weights, targets: c.Targets}, make([]float32, c.Rank))
	return gram, rhs
}

func (c gramCase) check(t testing.TB, what string, wantGram, wantRHS []float32, work []float32) {
	t.Helper()
	gram, rhs := slices.Clone(c.gram), slices.Clone(c.rhs)
	GramF32(gram, rhs, &c.GramInput, work)
	kerneltest.SameBits(t, what+": gram", upper(gram, c.Rank), upper(wantGram, c.Rank))
	kerneltest.SameBits(t, what+": rhs", rhs[:c.Rank], wantRHS[:c.Rank])
}

// TestGramF32 compares every tier with the reference at awkward ranks and
// around the block length, with and without weights and targets.
func TestGramF32(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, r := range append(kerneltest.Ranks(), 200, 512) {
		block := gramBlock(r)
		counts := []int{0, 1, 2, block - 1, block, block + 1, 2*block + 3}
		if r > 64 {
			counts = []int{1, block + 1}
		}
		for i, n := range counts {
			c := newGramCase(t, rng, r, 37, n, i%2 == 0, true)
			c.Next = []int32{0, 36, -5, 1 << 30}
			plain := newGramCase(t, rng, r, 37, n, i%3 == 0, false)
			gram, rhs := c.generic()
			plainGram, plainRHS := plain.generic()
			kerneltest.ForTiers(func(tier string) {
				work := kerneltest.AtEnd(t, GramWorkLen(r))
				c.check(t, fmt.Sprint(tier, " r=", r, " n=", n), gram, rhs, work)
				plain.check(t, fmt.Sprint(tier, " no targets r=", r, " n=", n), plainGram, plainRHS, work)
			})
		}
	}
}

// TestGramF32AgainstFloat64 bounds the rounding error by n·2⁻²⁴ times the sum of
// absolute products, the textbook bound for n fused multiply-adds.
func TestGramF32AgainstFloat64(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, r := range []int{1, 8, 33, 64} {
			const n = 150
			c := newGramCase(t, rng, r, 50, n, true, true)
			clear(c.gram)
			clear(c.rhs)
			GramF32(c.gram, c.rhs, &c.GramInput, make([]float32, GramWorkLen(r)))
			for a := range r {
				for b := a; b <= r; b++ { // b == r stands for the right-hand side
					var want, scale float64
					for k, row := range c.Rows {
						u := c.Table[int(row)*r:][:r]
						other := float64(c.Targets[k])
						if b < r {
							other = float64(u[b])
						}
						p := float64(c.Weights[k]) * float64(u[a]) * other
						want += p
						scale += math.Abs(p)
					}
					got := c.rhs[a]
					if b < r {
						got = c.gram[a*Stride(r)+b]
					}
					if e := math.Abs(float64(got) - want); e > (n+4)*0x1p-24*scale {
						t.Fatalf("r=%d (%d,%d): %v, want %v, error %g of scale %g", r, a, b, got, want, e, scale)
					}
				}
			}
		}
	})
}

func TestGramF32BadArguments(t *testing.T) {
	good := func() (gram, rhs []float32, in *GramInput, work []float32) {
		return make([]float32, 256), make([]float32, 16), &GramInput{Table: make([]float32, 30), Rank: 3, Rows: []int32{0, 9}, Targets: []float32{1, 2}}, make([]float32, GramWorkLen(3))
	}
	for name, spoil := range map[string]func(gram, rhs *[]float32, in *GramInput, work *[]float32){
		"rank":          func(_, _ *[]float32, in *GramInput, _ *[]float32) { in.Rank = 0 },
		"short gram":    func(g, _ *[]float32, _ *GramInput, _ *[]float32) { *g = (*g)[:255] },
		"short rhs":     func(_, b *[]float32, _ *GramInput, _ *[]float32) { *b = (*b)[:15] },
		"weights":       func(_, _ *[]float32, in *GramInput, _ *[]float32) { in.Weights = []float32{1} },
		"targets":       func(_, _ *[]float32, in *GramInput, _ *[]float32) { in.Targets = []float32{1} },
		"row too large": func(_, _ *[]float32, in *GramInput, _ *[]float32) { in.Rows[1] = 10 },
		"row negative":  func(_, _ *[]float32, in *GramInput, _ *[]float32) { in.Rows[0] = -1 },
		"work":          func(_, _ *[]float32, _ *GramInput, w *[]float32) { *w = (*w)[:len(*w)-1] },
	} {
		gram, rhs, in, work := good()
		spoil(&gram, &rhs, in, &work)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			GramF32(gram, rhs, in, work)
		}()
		if slices.ContainsFunc(gram, func(v float32) bool { return v != 0 }) {
			t.Errorf("%s: gram was written before the panic", name)
		}
	}
}

func TestGramF32DoesNotAllocate(t *testing.T) {
	c := newGramCase(t, rand.New(rand.NewPCG(1, 1)), 20, 30, 200, true, true)
	work := make([]float32, GramWorkLen(20))
	if n := testing.AllocsPerRun(20, func() { GramF32(c.gram, c.rhs, &c.GramInput, work) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

func FuzzGramF32(f *testing.F) {
	f.Add([]byte("some bytes that become factors"), uint8(17), uint8(20), uint8(3), false)
	f.Add([]byte{0x7f, 0x80, 0, 0, 1, 2, 3}, uint8(64), uint8(70), uint8(1), true)
	f.Add([]byte{1}, uint8(1), uint8(0), uint8(0), false)
	f.Fuzz(func(t *testing.T, data []byte, rank, count, flags uint8, wild bool) {
		r, n := max(1, int(rank)%80), int(count)
		const tableRows = 11
		c := gramCase{GramInput: GramInput{Table: kerneltest.Floats(data, tableRows*r, wild), Rank: r, Rows: make([]int32, n)}}
		for i := range c.Rows {
			c.Rows[i] = int32((i*7 + len(data)) % tableRows)
		}
		if flags&1 != 0 {
			c.Weights = kerneltest.Floats(data, n, wild)
			if !wild {
				for i, w := range c.Weights {
					c.Weights[i] = max(w, -w)
				}
			}
		}
		if flags&2 != 0 {
			c.Targets = kerneltest.Floats(append(data, 5), n, wild)
		}
		if flags&4 != 0 {
			c.Next = []int32{3, 1}
		}
		c.gram = kerneltest.Floats(data, Stride(r)*Stride(r), wild)
		c.rhs = kerneltest.Floats(data, Stride(r), wild)
		gram, rhs := c.generic()
		kerneltest.ForTiers(func(tier string) { c.check(t, tier, gram, rhs, make([]float32, GramWorkLen(r))) })
	})
}

// BenchmarkGramF32 gathers 1024 random rows of a table of ML-20M's item count and
// reports useful flops, r(r+1) per row; the library to beat is gonum's Ssyrk on packed blocks.
func BenchmarkGramF32(b *testing.B) {
	const items, n = 26744, 1024
	rng := rand.New(rand.NewPCG(9, 10))
	for _, r := range []int{16, 32, 64, 128, 256} {
		in := GramInput{Table: kerneltest.Normal(rng, make([]float32, items*r)), Rank: r, Rows: make([]int32, n), Targets: make([]float32, n)}
		for i := range in.Rows {
			in.Rows[i] = int32(rng.IntN(items))
		}
		gram, rhs, work := make([]float32, Stride(r)*Stride(r)), make([]float32, Stride(r)), make([]float32, GramWorkLen(r))
		flops := float64(n * r * (r + 1))
		b.Run(fmt.Sprint("r=", r), func(b *testing.B) {
			kerneltest.EachTierB(b, func(b *testing.B) {
				for b.Loop() {
					GramF32(gram, rhs, &in, work)
				}
				b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
			b.Run("gonum", func(b *testing.B) {
				packed := blas32.General{Rows: 64, Cols: r, Stride: r, Data: make([]float32, 64*r)}
				sum := blas32.Symmetric{N: r, Stride: Stride(r), Data: gram, Uplo: blas.Upper}
				for b.Loop() {
					for k := 0; k < n; k += 64 {
						for i, row := range in.Rows[k : k+64] {
							copy(packed.Data[i*r:][:r], in.Table[int(row)*r:][:r])
						}
						blas32.Syrk(blas.Trans, 1, packed, 1, sum)
					}
				}
				b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		})
	}
}
