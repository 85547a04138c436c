package privacy

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLayersAddUpToTheCurve sums, at many abscissae, the density that the
// layers produce, and compares it with exp(−z²/2): the ratio must be the same
// everywhere, tail included, to a fraction of samplerDeviation.
func TestLayersAddUpToTheCurve(t *testing.T) {
	const tolerance = samplerDeviation / 2
	width := func(i int) float64 { return math.Ldexp(float64(ziggurat.layers[i].width), -widthBits) }
	share := func(i int) float64 { return math.Ldexp(float64(ziggurat.layers[i].inside), -64) }
	density := func(z float64) float64 {
		curve := math.Exp(-z * z / 2)
		sum := new(big.Float).SetPrec(200)
		for i := range layers {
			var accepted float64
			switch edge := ziggurat.edges[i]; {
			case z < share(i)*width(i):
				accepted = 1
			case z < width(i) && i > 0:
				accepted = min(1, max(0, (curve-edge.bottom)/edge.height))
			}
			sum.Add(sum, new(big.Float).SetFloat64(accepted/width(i)))
		}
		total, _ := sum.Float64()
		return total / curve
	}
	constant := density(0)
	check := func(z float64) {
		if z >= tailStart {
			return
		}
		if got := density(z)/constant - 1; math.Abs(got) > tolerance {
			t.Errorf("at z = %v the density is off by a factor 1 + %g", z, got)
		}
	}
	generator := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		check(generator.Float64() * tailStart)
	}
	for i := 1; i < layers; i++ {
		for _, z := range []float64{width(i), share(i) * width(i)} {
			check(z * (1 - 1e-13))
			check(z * (1 + 1e-13))
		}
	}
	// One attempt enters the tail with probability (1 − share(0))/layers; the
	// constant times the tail's area is what it should be.
	tail := math.Sqrt(math.Pi/2) * math.Erfc(tailStart/math.Sqrt2)
	outside := math.Ldexp(float64(-ziggurat.layers[0].inside), -64)
	if got := outside/(constant*tail) - 1; math.Abs(got) > tolerance {
		t.Errorf("the tail is entered too often by a factor 1 + %g", got)
	}
	// The stack ends above the curve's top, and the staircase covers the tail.
	if top := ziggurat.edges[layers-1]; top.bottom >= 1 || top.bottom+top.height <= 1 {
		t.Errorf("the top layer spans %v to %v", top.bottom, top.bottom+top.height)
	}
	for stair := range 60 {
		for _, u := range []float64{0, 0.1, 0.5, 0.999} {
			y := (float64(stair) + u) * tailStep
			got := tailLevel(stair, uint64(math.Ldexp(u, 64)))
			exact := math.Exp(-y*y/2) * math.Exp(-tailStart*y) * math.Exp2(float64(stair))
			if got > 1 || !near(got, exact, 1e-13) {
				t.Errorf("stair %d + %v is accepted with %v, want %v", stair, u, got, exact)
			}
		}
	}
	certain := 0.0
	for i := range layers {
		certain += share(i) / layers
	}
	if certain < 0.991 {
		t.Errorf("only %v of the draws are decided by one word", certain)
	}
}

// anyScale draws what newStepScale is called with.
func anyScale() *rapid.Generator[stepScale] {
	return rapid.Map(rapid.Float64Range(0x1p28, 0x1p30-1), newStepScale)
}

// What the integer product decides, no further bits of the abscissa could
// change.
func TestDecidedDrawsAreRoundedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := anyScale().Draw(t, "scale")
		layer := ziggurat.layers[rapid.IntRange(0, layers-1).Draw(t, "layer")]
		width := math.Ldexp(float64(layer.width), -widthBits)
		abscissa := rapid.Uint64().Draw(t, "abscissa") & abscissaMask
		if rapid.Bool().Draw(t, "near a middle") {
			// Move next to the middle between two grid points, where rounding
			// is hard.
			steps := width * scale.steps() * math.Ldexp(float64(abscissa), -64)
			middle := math.Floor(steps) + 0.5
			nearby := math.Ldexp(middle/(width*scale.steps()), 64)
			if nearby >= 0x1p64 {
				return
			}
			abscissa = (uint64(nearby) + uint64(rapid.Int64Range(-8, 8).Draw(t, "offset"))<<(signShift+1)) & abscissaMask
		}
		lowest := exactRound(0, 0, abscissa, 0, width, scale)
		highest := exactRound(0, 0, abscissa, math.MaxUint64, width, scale)
		stream := NewSeededNoise(Seed(rapid.Uint64().Draw(t, "seed"))).Stream(1, 2, 3)
		got := stream.roundBody(abscissa, layer.width, scale)
		if stream.spareNext == len(stream.spare) { // no word was drawn: it was decided
			if got != lowest || got != highest {
				t.Fatalf("decided %d, exact %d to %d", got, lowest, highest)
			}
			return
		}
		if got < lowest || got > highest || highest > lowest+1 {
			t.Fatalf("drawn %d, exact %d to %d", got, lowest, highest)
		}
		if want := exactRound(0, 0, abscissa, stream.spare[0], width, scale); got != want {
			t.Fatalf("drawn %d, want %d", got, want)
		}
	})
}

// draw and drawSlowly agree on what one word decides, each with its own sign.
func TestDrawAgreesWithSlowPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := anyScale().Draw(t, "scale")
		words := rapid.SliceOfN(rapid.Uint64(), 1, wordsPerBatch).Draw(t, "words")
		noise := make([]float64, len(words))
		NewSeededNoise(Seed(1)).Stream(0, 0, 0).draw(noise, words, scale)
		for i, word := range words {
			layer := ziggurat.layers[word&layerMask]
			if word&abscissaMask >= layer.inside {
				continue
			}
			stream := NewSeededNoise(Seed(2)).Stream(0, 0, 0)
			want := float64(stream.roundBody(word&abscissaMask, layer.width, scale))
			if stream.spareNext != len(stream.spare) {
				continue // undecided: more bits were drawn
			}
			if word>>signShift&1 != 0 {
				want = -want
			}
			if got := noise[i] - stepBias; got != want {
				t.Fatalf("draw %d is %v, want %v", i, got, want)
			}
		}
	})
}

// The share of ordinates that are accepted is the share of the layer's height
// that is under the curve.
func TestEdgesFollowTheCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index := rapid.Uint64Range(1, layers-1).Draw(t, "layer")
		layer, edge := ziggurat.layers[index], ziggurat.edges[index]
		abscissa := rapid.Uint64Range(layer.inside, math.MaxUint64).Draw(t, "abscissa") & abscissaMask
		accepted, rejected := uint64(0), uint64(math.MaxUint64)
		if !ziggurat.underCurve(index, abscissa, accepted) {
			rejected = 0
		} else if ziggurat.underCurve(index, abscissa, rejected) {
			accepted = rejected
		}
		for rejected > accepted && rejected-accepted > 1 {
			if middle := accepted + (rejected-accepted)/2; ziggurat.underCurve(index, abscissa, middle) {
				accepted = middle
			} else {
				rejected = middle
			}
		}
		z := math.Ldexp(float64(abscissa), -64) * math.Ldexp(float64(layer.width), -widthBits)
		want := min(1, max(0, (math.Exp(-z*z/2)-edge.bottom)/edge.height))
		if got := math.Ldexp(float64(accepted), -64); math.Abs(got-want) > 1e-12 {
			t.Fatalf("layer %d at z = %v accepts %v of its height, want %v", index, z, got, want)
		}
	})
}

func TestExactRound(t *testing.T) {
	scale := newStepScale(0x1p29)
	// (1.5 + (2 + 0.75)·0.25)·2²⁹ = 2.1875·2²⁹.
	if got, want := exactRound(1.5, 2, 3<<62, 0, 0.25, scale), int64(2.1875*0x1p29); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	// An abscissa whose product is half a step less one of the undrawn bits
	// rounds down or up as those say.
	if got := exactRound(0, 0, 1<<34, 0, 1, scale); got != 1 { // exactly ½ rounds up
		t.Errorf("½ step became %d", got)
	}
	if got := exactRound(0, 0, 1<<34-1<<10, math.MaxUint64, 1, scale); got != 0 {
		t.Errorf("just below ½ step became %d", got)
	}
}

// drawNormals returns n standard normals from the stream of the given item.
func drawNormals(n int, item uint64) []float64 {
	const scale = 1.7
	x := make([]float64, n)
	NewSeededNoise(Seed(11)).Stream(1, 2, item).AddVector64(x, scale)
	for i := range x {
		x[i] /= scale
	}
	return x
}

func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// rejections runs the battery of tests of normality on x, which it sorts, and
// names those that reject it. Each rejects a perfect sampler with probability
// about 1e-4 to 1e-3.
func rejections(x []float64) []string {
	var rejected []string
	n := float64(len(x))
	var mean, variance, skewness, kurtosis float64
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		d := v - mean
		variance += d * d / n
		skewness += d * d * d / n
		kurtosis += d * d * d * d / n
	}
	for name, z := range map[string]float64{
		"mean":     mean * math.Sqrt(n),
		"variance": (variance - 1) * math.Sqrt(n/2),
		"skewness": skewness * math.Sqrt(n/6),
		"kurtosis": (kurtosis - 3) * math.Sqrt(n/96), // of the fourth moment itself
	} {
		if math.Abs(z) > 4 {
			rejected = append(rejected, fmt.Sprintf("%s (%.1f deviations)", name, z))
		}
	}
	slices.Sort(x)
	var distance, square float64
	for i, v := range x {
		p, q := normalCDF(v), normalCDF(-x[len(x)-1-i])
		rank := float64(i)
		distance = max(distance, p-rank/n, (rank+1)/n-p)
		square += (2*rank + 1) / n * (math.Log(max(p, 1e-300)) + math.Log(max(q, 1e-300)))
	}
	if d := distance * math.Sqrt(n); d > 2.1 {
		rejected = append(rejected, fmt.Sprintf("Kolmogorov–Smirnov (%.2f)", d))
	}
	if a := -n - square; a > 7 {
		rejected = append(rejected, fmt.Sprintf("Anderson–Darling (%.2f)", a))
	}
	// Both tails out to where a handful is expected.
	for _, edge := range []float64{2, 2.5, 3, 3.5, tailStart, 4, 4.5, 5} {
		for _, side := range []float64{-1, 1} {
			index, _ := slices.BinarySearch(x, side*edge)
			count, expected := float64(index), n*normalCDF(-edge)
			if side > 0 {
				count = n - count
			}
			if math.Abs(count-expected) > 4*math.Sqrt(expected)+3 {
				rejected = append(rejected, fmt.Sprintf("tail beyond %v (%v of %.1f)", side*edge, count, expected))
			}
		}
	}
	return rejected
}

func TestNoiseIsNormal(t *testing.T) {
	for item := range uint64(2) {
		if rejected := rejections(drawNormals(1<<20, item)); rejected != nil {
			t.Errorf("item %d: %s", item, strings.Join(rejected, ", "))
		}
	}
	// The off-diagonal scale takes the same path with another factor.
	const rank = 700
	matrix := make([]float32, rank*rank)
	NewSeededNoise(Seed(12)).Stream(0, 0, 0).AddSymmetric(matrix, rank, rank, 3)
	var off []float64
	for i := range rank {
		for j := i + 1; j < rank; j++ {
			off = append(off, float64(matrix[i*rank+j])/(3/math.Sqrt2))
		}
	}
	if rejected := rejections(off); rejected != nil {
		t.Errorf("off-diagonal: %s", strings.Join(rejected, ", "))
	}
}

// The battery has to notice samplers that are wrong in ways noise is wrong.
func TestBatteryRejectsWrongSamplers(t *testing.T) {
	generator := rand.New(rand.NewPCG(3, 4))
	for name, c := range map[string]struct {
		wrong    func(x float64) float64
		rejected string
	}{
		"variance 3 % too large": {func(x float64) float64 { return x * math.Sqrt(1.03) }, "variance"},
		"variance 3 % too small": {func(x float64) float64 { return x * math.Sqrt(0.97) }, "Anderson–Darling"},
		"sum of 12 uniforms": {func(float64) float64 {
			sum := -6.0
			for range 12 {
				sum += generator.Float64()
			}
			return sum
		}, "tail"},
		"tail cut off":      {func(x float64) float64 { return max(-3.5, min(3.5, x)) }, "tail"},
		"never negative":    {math.Abs, "mean"},
		"a fiftieth higher": {func(x float64) float64 { return x + 0.02 }, "Kolmogorov–Smirnov"},
		"logistic": {func(float64) float64 {
			u := generator.Float64()
			return math.Log(u/(1-u)) * math.Sqrt(3) / math.Pi
		}, "kurtosis"},
	} {
		x := drawNormals(1<<18, 0)
		for i := range x {
			x[i] = c.wrong(x[i])
		}
		if rejected := strings.Join(rejections(x), ", "); !strings.Contains(rejected, c.rejected) {
			t.Errorf("%s: rejected by %q, not by %s", name, rejected, c.rejected)
		}
	}
}

// The tail sampler alone, where a run of the whole one sends few draws.
func TestTailIsNormal(t *testing.T) {
	stream := NewSeededNoise(Seed(13)).Stream(0, 0, 0)
	scale := newStepScale(0x1p29 * 1.3)
	const n = 200_000
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(stream.drawTail(scale)) / scale.steps()
	}
	slices.Sort(x)
	// Given that it exceeds tailStart, z has the distribution function 1 −
	// Φ(−z)/Φ(−tailStart).
	var distance float64
	for i, z := range x {
		p := 1 - normalCDF(-z)/normalCDF(-tailStart)
		distance = max(distance, p-float64(i)/n, float64(i+1)/n-p)
	}
	if d := distance * math.Sqrt(n); d > 2.1 {
		t.Errorf("Kolmogorov–Smirnov %.2f", d)
	}
	if x[0] < tailStart-1e-8 {
		t.Errorf("the tail begins at %v", x[0])
	}
	for _, edge := range []float64{5, 5.5, 6} {
		index, _ := slices.BinarySearch(x, edge)
		count, expected := float64(n-index), n*normalCDF(-edge)/normalCDF(-tailStart)
		if math.Abs(count-expected) > 4*math.Sqrt(expected)+3 {
			t.Errorf("beyond %v: %v of %.1f", edge, count, expected)
		}
	}
}
