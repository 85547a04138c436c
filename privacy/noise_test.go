package privacy

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := logUniform(-200, 200).Draw(t, "scale")
		grid := GridFor(scale)
		step := grid.Step()
		if fraction, _ := math.Frexp(step); fraction != 0.5 {
			t.Fatalf("step %v is not a power of two", step)
		}
		if !(step > scale*0x1p-30 && step <= scale*0x1p-29) {
			t.Fatalf("step %v for scale %v", step, scale)
		}
		x := scale * rapid.Float64Range(-1e6, 1e6).Draw(t, "x")
		nearest := grid.Round(x)
		if steps := nearest / step; steps != math.Trunc(steps) {
			t.Fatalf("%v is not on the grid", nearest)
		}
		if math.Abs(nearest-x) > step/2 {
			t.Fatalf("%v was rounded to %v", x, nearest)
		}
	})
	for _, scale := range []float64{0, -1, math.NaN(), math.Inf(1), 0x1p-950, 0x1p950} {
		grid := GridFor(scale)
		if grid.Step() != 0 || grid.Round(0.1) != 0.1 {
			t.Errorf("scale %v gave a grid of step %v", scale, grid.Step())
		}
	}
}

// Noisy sums are on the grid, and are the rounded sum plus the same noise
// whatever the sum is.
func TestNoisySumsAreOnTheGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := logUniform(-6, 6).Draw(t, "scale")
		n := rapid.IntRange(1, 600).Draw(t, "length")
		size := logUniform(-3, 9).Draw(t, "size")
		generator := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		grid := GridFor(scale)
		sums, noise, narrow := make([]float64, n), make([]float64, n), make([]float32, n)
		for i := range sums {
			narrow[i] = float32(size * generator.NormFloat64())
			sums[i] = float64(narrow[i])
		}
		before := slices.Clone(sums)
		source := NewSeededNoise(Seed(5))
		source.Stream(1, 2, 3).AddVector64(noise, scale)
		source.Stream(1, 2, 3).AddVector64(sums, scale)
		source.Stream(1, 2, 3).AddVector(narrow, scale)
		for i := range sums {
			if steps := sums[i] / grid.Step(); steps != math.Trunc(steps) {
				t.Fatalf("sum %d is %v steps", i, steps)
			}
			if want := grid.Round(before[i]) + noise[i]; sums[i] != want {
				t.Fatalf("sum %d is %v, want %v", i, sums[i], want)
			}
			if want := float32(sums[i]); narrow[i] != want {
				t.Fatalf("float32 sum %d is %v, want %v", i, narrow[i], want)
			}
		}
	})
}

func TestNoiseOnHugeSums(t *testing.T) {
	// Far beyond the grid's reach, a sum goes through: the noise is too small
	// to show in a float32.
	for _, size := range []float32{0x1p25, 0x1p60, 0x1p100, math.MaxFloat32} {
		for _, scale := range []float64{1, 1e-3, 0x1p-800} {
			x := []float32{size, -size}
			NewSeededNoise(Seed(1)).Stream(0, 0, 0).AddVector(x, scale)
			if ulp := size * 0x1p-22; math.Abs(float64(x[0]-size)) > float64(ulp) || math.Abs(float64(x[1]+size)) > float64(ulp) {
				t.Errorf("scale %v: %v became %v", scale, size, x)
			}
		}
	}
	x := []float64{math.NaN(), math.Inf(1)}
	NewSeededNoise(Seed(1)).Stream(0, 0, 0).AddVector64(x, 1)
	if !math.IsNaN(x[0]) || !math.IsInf(x[1], 1) {
		t.Errorf("NaN and Inf became %v", x)
	}
}

func TestScaleZeroChangesNothing(t *testing.T) {
	x := []float32{0.1, -7, 1e-30, 0.1}
	wide := []float64{0.1, -7, 1e-300}
	stream := NewNoise().Stream(0, 0, 0)
	stream.AddVector(x, 0)
	stream.AddSymmetric(x, 2, 2, 0)
	stream.AddVector64(wide, 0)
	if !slices.Equal(x, []float32{0.1, -7, 1e-30, 0.1}) || !slices.Equal(wide, []float64{0.1, -7, 1e-300}) {
		t.Errorf("changed to %v, %v", x, wide)
	}
}

func TestNoisePanics(t *testing.T) {
	stream := NewNoise().Stream(0, 0, 0)
	x := make([]float32, 9)
	for name, call := range map[string]func(){
		"negative scale": func() { stream.AddVector(x, -1) },
		"NaN scale":      func() { stream.AddVector64(make([]float64, 1), math.NaN()) },
		"tiny scale":     func() { stream.AddSymmetric(x, 3, 3, 0x1p-901) },
		"infinite scale": func() { stream.AddSymmetric(x, 3, 3, math.Inf(1)) },
		"short matrix":   func() { stream.AddSymmetric(x[:8], 3, 3, 1) },
		"small ld":       func() { stream.AddSymmetric(x, 3, 2, 1) },
		"negative rank":  func() { stream.AddSymmetric(x, -1, 2, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
	stream.AddSymmetric(nil, 0, 0, 1)
	stream.AddVector(nil, 1)
}

// The covariance of symmetric noise: s² on the diagonal, s²/2 off it, nothing
// between different entries, and so s²‖D‖² along any symmetric direction D.
func TestSymmetricCovariance(t *testing.T) {
	const (
		rank, ld = 5, 7
		entries  = rank * (rank + 1) / 2
		items    = 40_000
		scale    = 2.5
		marker   = -123.25
	)
	source := NewSeededNoise(Seed(21))
	stream := source.Stream(0, 0, 0)
	var second [entries][entries]float64
	var directed float64
	direction := [rank][rank]float64{}
	var norm float64
	generator := rand.New(rand.NewPCG(5, 6))
	for i := range rank {
		for j := i; j < rank; j++ {
			direction[i][j] = generator.NormFloat64()
			direction[j][i] = direction[i][j]
		}
	}
	for i := range rank {
		for j := range rank {
			norm += direction[i][j] * direction[i][j]
		}
	}
	matrix := make([]float32, rank*ld)
	for item := range uint64(items) {
		for i := range matrix {
			matrix[i] = marker
		}
		for i := range rank {
			clear(matrix[i*ld+i : i*ld+rank])
		}
		stream.Reset(source, 3, 1, item)
		stream.AddSymmetric(matrix, rank, ld, scale)
		var flat [entries]float64
		next, along := 0, 0.0
		for i := range rank {
			for j := range ld {
				value := float64(matrix[i*ld+j])
				switch {
				case j < i || j >= rank:
					if value != marker {
						t.Fatalf("element (%d, %d) outside the triangle became %v", i, j, value)
					}
				default:
					flat[next] = value
					next++
					factor := 2.0
					if i == j {
						factor = 1
					}
					along += factor * value * direction[i][j]
				}
			}
		}
		for a := range entries {
			for b := range entries {
				second[a][b] += flat[a] * flat[b] / items
			}
		}
		directed += along * along / items
	}
	variance := func(entry int) float64 {
		next := 0
		for i := range rank {
			for j := i; j < rank; j++ {
				if next == entry {
					if i == j {
						return scale * scale
					}
					return scale * scale / 2
				}
				next++
			}
		}
		panic("no such entry")
	}
	for a := range entries {
		for b := range entries {
			want, deviation := 0.0, math.Sqrt(variance(a)*variance(b)/items)
			if a == b {
				want, deviation = variance(a), deviation*math.Sqrt2
			}
			if got := second[a][b]; math.Abs(got-want) > 4.5*deviation {
				t.Errorf("covariance of entries %d and %d is %v, want %v ± %v", a, b, got, want, deviation)
			}
		}
	}
	if want := scale * scale * norm; math.Abs(directed/want-1) > 4.5*math.Sqrt(2.0/items) {
		t.Errorf("variance along a direction is %v, want %v", directed, want)
	}
}

// Every stream has its own bits: neighbours in release, iteration and item,
// ids that differ only in high bits, and other seeds.
func TestStreamsAreDistinctAndUncorrelated(t *testing.T) {
	const length = 1 << 12
	type id struct {
		seed               uint64
		release, iteration uint32
		item               uint64
	}
	ids := []id{
		{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}, {0, 1, 1, 1}, {0, 0, 0, 2}, {0, 0, 2, 0},
		{0, 1 << 31, 0, 0}, {0, 0, 1 << 31, 0}, {0, 0, 0, 1 << 32}, {0, 0, 0, 1 << 63}, {0, 0, 0, math.MaxUint64},
		{0, math.MaxUint32, math.MaxUint32, math.MaxUint64},
	}
	seen := make(map[uint64]id)
	noise := make([][]float64, len(ids))
	for k, id := range ids {
		source := NewSeededNoise(Seed(id.seed))
		stream := source.Stream(id.release, id.iteration, id.item)
		words := make([]uint64, length)
		stream.fill(words)
		for _, word := range words {
			if other, ok := seen[word]; ok {
				t.Fatalf("streams %+v and %+v share the word %#x", other, id, word)
			}
			seen[word] = id
		}
		noise[k] = make([]float64, length)
		source.Stream(id.release, id.iteration, id.item).AddVector64(noise[k], 1)
	}
	for a := range ids {
		for b := range a {
			for _, shift := range []int{0, 1} {
				var product, squares float64
				for i := range length - shift {
					product += noise[a][i] * noise[b][i+shift] / math.Sqrt(length)
					squares += (noise[a][i]*noise[a][i] - 1) * (noise[b][i+shift]*noise[b][i+shift] - 1) / (2 * math.Sqrt(length))
				}
				if math.Abs(product) > 4.5 || math.Abs(squares) > 6 {
					t.Errorf("streams %+v and %+v are correlated at shift %d: %.1f, squares %.1f deviations", ids[a], ids[b], shift, product, squares)
				}
			}
		}
	}
	// Within a stream as well.
	long := drawNormals(1<<18, 5)
	for _, shift := range []int{1, 2, 3, 7, 32, 256} {
		var product float64
		for i := range len(long) - shift {
			product += long[i] * long[i+shift] / math.Sqrt(float64(len(long)))
		}
		if math.Abs(product) > 4.5 {
			t.Errorf("draws %d apart are correlated: %.1f deviations", shift, product)
		}
	}
}

func TestNoiseDoesNotDependOnWorkers(t *testing.T) {
	const items, rank = 64, 20
	draw := func(workers int) []float32 {
		source := NewSeededNoise(Seed(9))
		out := make([]float32, items*rank*rank)
		var group sync.WaitGroup
		for worker := range workers {
			group.Go(func() {
				stream := source.Stream(0, 0, 0)
				for item := items - 1 - worker; item >= 0; item -= workers {
					stream.Reset(source, 2, 7, uint64(item))
					stream.AddSymmetric(out[item*rank*rank:(item+1)*rank*rank], rank, rank, 1)
				}
			})
		}
		group.Wait()
		return out
	}
	want := draw(1)
	for _, workers := range []int{2, 5} {
		if !slices.Equal(draw(workers), want) {
			t.Errorf("%d workers drew other noise than one", workers)
		}
	}
	// Reset and Stream give the same, and a used stream starts afresh.
	source := NewSeededNoise(Seed(9))
	fresh, reused := make([]float32, rank*rank), make([]float32, rank*rank)
	stream := source.Stream(2, 6, 3)
	stream.AddVector(make([]float32, 1000), 1)
	stream.Reset(source, 2, 7, 3)
	stream.AddSymmetric(reused, rank, rank, 1)
	source.Stream(2, 7, 3).AddSymmetric(fresh, rank, rank, 1)
	if !slices.Equal(fresh, reused) || !slices.Equal(fresh, want[3*rank*rank:4*rank*rank]) {
		t.Error("Reset and Stream differ")
	}
}

// The noise of a seed is fixed for good, on every machine.
func TestSeededNoiseIsStable(t *testing.T) {
	x := make([]float64, 5)
	NewSeededNoise(Seed(42)).Stream(1, 2, 3).AddVector64(x, 0.75)
	want := []float64{0.3924264134839177, 1.357876941561699, -0.5307091986760497, 0.8431779434904456, 0.467375130392611}
	if !slices.Equal(x, want) {
		t.Errorf("got %v, want %v", x, want)
	}
}

func TestSources(t *testing.T) {
	a, b := make([]float64, 4), make([]float64, 4)
	NewNoise().Stream(0, 0, 0).AddVector64(a, 1)
	NewNoise().Stream(0, 0, 0).AddVector64(b, 1)
	if slices.Equal(a, b) {
		t.Error("two keys from the operating system gave the same noise")
	}
	if source := NewNoise().Source(); source.Seeded() || source.Generator == "" {
		t.Errorf("%+v", source)
	}
	if source := NewSeededNoise(Seed(258)).Source(); !source.Seeded() || source.CallerSeed[:6] != "020100" {
		t.Errorf("%+v", source)
	}
}

func TestNoiseDoesNotAllocate(t *testing.T) {
	source := NewSeededNoise(Seed(1))
	stream := source.Stream(0, 0, 0)
	x := make([]float32, 64*64)
	if n := testing.AllocsPerRun(20, func() { stream.AddSymmetric(x, 64, 64, 1); stream.AddVector(x, 1) }); n != 0 {
		t.Errorf("%v allocations for noise", n)
	}
}
