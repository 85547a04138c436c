package kernels

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

// checkScores compares both kernels with the reference and with float64.
func checkScores(t *testing.T, scores, table, x []float32, r int, rows []int32) {
	t.Helper()
	want := make([]float32, len(scores))
	scoreF32Generic(want, table, x, r)
	ScoreF32(scores, table, x, r)
	kerneltest.SameBits(t, "ScoreF32, "+sizeName("r", r), scores, want)
	for i, s := range scores {
		checkOracle(t, "score", s, table[i*r:][:r], x[:r], scoreLanes)
	}

	scoreRowsF32Generic(want, table, x, r, rows)
	clear(scores)
	ScoreRowsF32(scores, table, x, r, rows)
	kerneltest.SameBits(t, "ScoreRowsF32, "+sizeName("r", r), scores, want)
}

func TestScoreF32(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(11, 12))
		for _, r := range append(kerneltest.Ranks(), 512, 513, 1000) {
			for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 41} {
				for _, place := range []func(testing.TB, int) []float32{kerneltest.AtEnd, kerneltest.AtStart} {
					table, x, scores := place(t, n*r), place(t, r), place(t, n)
					rows := kerneltest.AtEndInt32(t, n)
					for i := range rows {
						rows[i] = int32(rng.IntN(n))
					}
					if n > 0 {
						rows[n-1], rows[0] = 0, int32(n-1)
					}
					checkScores(t, scores, kerneltest.Normal(rng, table), kerneltest.Normal(rng, x), r, rows)
					underflow(rng, table)
					for i := range x {
						x[i] = 1e-30 // nearly all products round to −0
					}
					checkScores(t, scores, table, x, r, rows)
				}
			}
		}
	})
}

// TestScoreF32Chunks crosses the bound of one assembly call, with a longer x and a
// longer table than needed.
func TestScoreF32Chunks(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(13, 14))
		for _, r := range []int{1, 100} {
			n := 2*scoreRows(r) + 5
			if r == 1 {
				n = scoreRows(r) + 5
			}
			rows := make([]int32, n)
			for i := range rows {
				rows[i] = int32(rng.IntN(n + 1))
			}
			table := kerneltest.Normal(rng, make([]float32, (n+1)*r+r/2))
			checkScores(t, make([]float32, n), table, kerneltest.Normal(rng, make([]float32, r+3)), r, rows)
		}
	})
}

func TestScoreF32HandComputed(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		// Halving adds lanes 0 and 8 first, where 2²⁴ cancels; a sum from left to right
		// would lose the 1 of lane 1.
		row := make([]float32, 16)
		row[0], row[1], row[8] = 1<<24, 1, -1<<24
		x := make([]float32, 16)
		for i := range x {
			x[i] = 1
		}
		scores := []float32{9, 9}
		ScoreF32(scores, append(row, x...), x, 16)
		kerneltest.SameBits(t, "scores", scores, []float32{1, 16})
		ScoreRowsF32(scores, append(row, x...), x, 16, []int32{1, 0})
		kerneltest.SameBits(t, "scores of rows 1, 0", scores, []float32{16, 1})
	})
}

func TestScoreF32RejectsWrongSizes(t *testing.T) {
	f := func(n int) []float32 { return make([]float32, n) }
	for name, call := range map[string]func(scores []float32){
		"r is less than 1":             func(s []float32) { ScoreF32(s, f(9), f(3), 0) },
		"x has fewer than r elements":  func(s []float32) { ScoreF32(s, f(9), f(2), 3) },
		"table has fewer rows":         func(s []float32) { ScoreF32(s, f(8), f(3), 3) },
		"rows and scores differ":       func(s []float32) { ScoreRowsF32(s, f(9), f(3), 3, []int32{0, 1}) },
		"row index outside the table":  func(s []float32) { ScoreRowsF32(s, f(9), f(3), 3, []int32{0, 3, 1}) },
		"row index outside the table,": func(s []float32) { ScoreRowsF32(s, f(9), f(3), 3, []int32{0, 1, -1}) },
	} {
		scores := []float32{7, 7, 7}
		mustPanic(t, name, func() { call(scores) })
		kerneltest.SameBits(t, name, scores, []float32{7, 7, 7})
	}
}

func FuzzScoreF32(f *testing.F) {
	f.Add([]byte("a few bytes of input"), uint8(17), uint8(9))
	f.Add([]byte{0xff, 0xff, 0x80, 0x7f}, uint8(64), uint8(16))
	f.Add([]byte{0, 0, 0, 1, 0x80, 0, 0, 1, 0x0d, 0xff, 0xff, 0xff}, uint8(129), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, rank, n uint8) {
		r := int(rank)%160 + 1
		n %= 40
		table, x := kerneltest.Floats(data, int(n)*r, true), kerneltest.Floats(data, r+1, true)[1:]
		want, got := make([]float32, n), make([]float32, n)
		scoreF32Generic(want, table, x, r)
		kerneltest.ForTiers(func(tier string) {
			ScoreF32(got, table, x, r)
			kerneltest.SameBits(t, tier, got, want)
		})
	})
}

func FuzzScoreRowsF32(f *testing.F) {
	f.Add([]byte("a few bytes of input"), uint8(17), uint8(9))
	f.Add([]byte{0xff, 0xff, 0x80, 0x7f}, uint8(64), uint8(100))
	f.Add([]byte{1, 2, 3}, uint8(16), uint8(33))
	f.Fuzz(func(t *testing.T, data []byte, rank, n uint8) {
		r := int(rank)%160 + 1
		const tableRows = 23
		table, x := kerneltest.Floats(data, tableRows*r, true), kerneltest.Floats(data, r+1, true)[1:]
		rows := make([]int32, n)
		for i := range rows {
			rows[i] = int32(i*7) % tableRows
			if len(data) > 0 {
				rows[i] = int32(data[i%len(data)]) % tableRows
			}
		}
		want, got := make([]float32, n), make([]float32, n)
		scoreRowsF32Generic(want, table, x, r, rows)
		kerneltest.ForTiers(func(tier string) {
			ScoreRowsF32(got, table, x, r, rows)
			kerneltest.SameBits(t, tier, got, want)
		})
	})
}

// benchmarkItems is ML-20M's number of rated items.
const benchmarkItems = 26744

func BenchmarkScoreF32(b *testing.B) {
	for _, r := range []int{32, 64, 128, 100} {
		for _, n := range []int{1024, benchmarkItems} {
			rng := rand.New(rand.NewPCG(1, 1))
			table, x, scores := kerneltest.Normal(rng, make([]float32, n*r)), kerneltest.Normal(rng, make([]float32, r)), make([]float32, n)
			b.Run(sizeName("r", r)+"/"+sizeName("n", n), func(b *testing.B) {
				kerneltest.EachTierB(b, func(b *testing.B) {
					b.SetBytes(int64(4 * n * r))
					for b.Loop() {
						ScoreF32(scores, table, x, r)
					}
				})
				b.Run("gonum", func(b *testing.B) {
					a := blas32.General{Rows: n, Cols: r, Stride: r, Data: table}
					u, v := blas32.Vector{N: r, Inc: 1, Data: x}, blas32.Vector{N: n, Inc: 1, Data: scores}
					b.SetBytes(int64(4 * n * r))
					for b.Loop() {
						blas32.Gemv(blas.NoTrans, 1, a, u, 0, v)
					}
				})
				b.Run("loop", func(b *testing.B) {
					b.SetBytes(int64(4 * n * r))
					for b.Loop() {
						for i := range scores {
							scores[i] = plainDot(table[i*r:][:r], x)
						}
					}
				})
			})
		}
	}
}

func BenchmarkScoreRowsF32(b *testing.B) {
	for _, r := range []int{64, 128} {
		const n = 144 // ratings of an average ML-20M user
		rng := rand.New(rand.NewPCG(1, 1))
		table, x, scores := kerneltest.Normal(rng, make([]float32, benchmarkItems*r)), kerneltest.Normal(rng, make([]float32, r)), make([]float32, n)
		lists := make([][]int32, 1024)
		for u := range lists {
			lists[u] = make([]int32, n)
			for i := range lists[u] {
				lists[u][i] = int32(rng.IntN(benchmarkItems))
			}
		}
		b.Run(sizeName("r", r), func(b *testing.B) {
			kerneltest.EachTierB(b, func(b *testing.B) {
				b.SetBytes(4 * n * int64(r))
				for u := 0; b.Loop(); u++ {
					ScoreRowsF32(scores, table, x, r, lists[u%len(lists)])
				}
			})
			b.Run("gonum", func(b *testing.B) {
				b.SetBytes(4 * n * int64(r))
				v := blas32.Vector{N: r, Inc: 1, Data: x}
				for u := 0; b.Loop(); u++ {
					for i, row := range lists[u%len(lists)] {
						scores[i] = blas32.Dot(blas32.Vector{N: r, Inc: 1, Data: table[int(row)*r:][:r]}, v)
					}
				}
			})
			b.Run("loop", func(b *testing.B) {
				b.SetBytes(4 * n * int64(r))
				for u := 0; b.Loop(); u++ {
					for i, row := range lists[u%len(lists)] {
						scores[i] = plainDot(table[int(row)*r:][:r], x)
					}
				}
			})
		})
	}
}

func TestScoreF32DoesNotAllocate(t *testing.T) {
	scores, table, x, rows := make([]float32, 9), make([]float32, 9*20), make([]float32, 20), make([]int32, 9)
	if n := testing.AllocsPerRun(100, func() {
		ScoreF32(scores, table, x, 20)
		ScoreRowsF32(scores, table, x, 20, rows)
	}); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}
