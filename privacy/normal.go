package privacy

import (
	"math"
	"math/big"
	"math/bits"
)

// This file draws normal noise on a grid: round(σ·Z), where σ = s/g is the
// scale in grid steps (2²⁹ ≤ σ < 2³⁰, or √2 less) and Z is standard normal.
//
// The method is Marsaglia and Tsang's ziggurat with 512 layers, changed in
// three places so that every grid point gets its probability to a relative
// 2⁻⁴⁶ (samplerDeviation), in the tails too, where the usual versions give
// probabilities to an absolute precision or cut off:
//
//   - The abscissa is a uniform real of which 54 bits are looked at. If they do
//     not decide how σ·Z rounds, 64 more are drawn and the product is formed
//     without rounding (exactRound); that happens about once in 10⁶ draws. So
//     the granularity of a machine number does not show.
//   - The layers are stacked by the recursion y_{i+1} = y_i + A/x_i from
//     widths x_i rounded up, which makes their areas equal by construction
//     rather than up to the cancellation in y_{i+1} − y_i.
//   - The tail is drawn by rejection from a staircase of halving height, with
//     the same lazy bits, rather than from a logarithm of one uniform. It has
//     no end: a draw of 13 standard deviations has its proper probability.
//
// What is left is the rounding of float64 in the table and in the comparisons
// with exp(−z²/2), below 2⁻⁴⁶ as the test that sums the layers confirms, out to
// 13 standard deviations, beyond which a draw falls once in 10³⁷. Pure-ε
// arguments carry over: each draw that depends on a protected unit costs at
// most 2·2⁻⁴⁶ in ε (Ledger.Epsilon adds it), instead of a distance in δ that
// would have to be multiplied by 1 + e^ε.

// samplerDeviation bounds |ln(p̃/p)| for the probability p̃ with which a grid
// point is drawn and the probability p that a perfect sampler gives it.
const samplerDeviation = 0x1p-46

const (
	layers = 512
	// tailStart is where the base layer ends and the tail begins: a little
	// below 3.85204…, for which 512 layers would end at exactly 1, so that
	// they end a little above it instead; a fraction that float64 holds.
	tailStart = 252446.0 / 65536
	// A random word is one abscissa, in its upper bits, and below it the sign
	// and the number of the layer.
	layerMask    = layers - 1
	signShift    = 9
	abscissaMask = 1<<64 - 1<<(signShift+1)
	abscissaBits = 64 - (signShift + 1)
	// Widths, which are below 8, are held as multiples of 2⁻⁶¹, scales as
	// multiples of 2⁻³⁴ and products as multiples of 2⁻³¹.
	widthBits, scaleBits = 61, 34
	productBits          = widthBits + scaleBits - 64
	fractionMask         = 1<<productBits - 1
	// A product is undecided if its fraction, counted from the middle between
	// two grid points, is within undecided of the next one: more than what the
	// bits of the abscissa that were not drawn and the two truncations can
	// add, 2⁷·width·scale/2³⁰ + 2 < 2¹⁰ units.
	undecided      = 1 << 10
	firstUndecided = 1<<productBits - undecided
	// tailUndecided is the same for the tail, whose float64 products are below
	// 2³⁴ steps with at most four roundings of relative 2⁻⁵³.
	tailUndecided = 0x1p-15
)

// A layer is a rectangle [0, width] × [bottom, bottom + height] under or
// across the curve exp(−x²/2).
type layer struct {
	// inside, over 2⁶⁴, is the part of the width that is under the curve
	// whatever the ordinate is.
	inside uint64
	// width is in units of 2⁻⁶¹, which holds its float64 exactly.
	width uint64
}

// An edge holds what is needed of a layer only where the curve crosses it.
type edge struct{ bottom, height float64 }

// A zigguratTable keeps the two apart, so that the part each draw reads stays in
// the first-level cache.
type zigguratTable struct {
	layers [layers]layer
	edges  [layers]edge
}

const (
	// tailStep is the width of the steps of the tail's staircase: a little more
	// than ln 2/tailStart, so that halving once a step stays above the curve.
	tailStep = 3.0 / 16
	// tailDrop is by how much the logarithm of the curve's exponential factor
	// falls in one step, tailExcess how much of it halving leaves.
	tailDrop   = tailStart * tailStep
	tailExcess = tailDrop - math.Ln2
)

var ziggurat = newZiggurat()

func newZiggurat() *zigguratTable {
	density := func(x float64) float64 { return math.Exp(-x * x / 2) }
	inverse := func(y float64) float64 { return math.Sqrt(-2 * math.Log(y)) }
	const margin = 0x1p-48
	level := density(tailStart)
	area := tailStart*level + math.Sqrt(math.Pi/2)*math.Erfc(tailStart/math.Sqrt2)

	// fixed turns a share of the width or the width itself into an integer;
	// scaling by a power of two is exact, so only the share is truncated.
	fixed := func(x float64, bits int) uint64 { return uint64(math.Ldexp(x, bits)) }

	var table zigguratTable
	// The base: a rectangle to tailStart and, as if it continued to the same
	// height, the tail.
	width := area / level
	table.layers[0] = layer{fixed(tailStart/width, 64), fixed(width, widthBits)}
	table.edges[0] = edge{0, level}
	bottom := level
	for i := 1; i < layers; i++ {
		width := inverse(bottom) * (1 + margin)
		height := area / width
		inside := 0.0
		if top := bottom + height; top < 1 {
			inside = inverse(top) * (1 - margin)
		}
		table.layers[i] = layer{fixed(inside/width, 64), fixed(width, widthBits)}
		table.edges[i] = edge{bottom, height}
		bottom += height
	}
	return &table
}

// A stepScale is a noise scale in grid steps, as a multiple of 2⁻³⁴ (exact,
// for scales from 2²⁰ to below 2³⁰ steps).
type stepScale uint64

func newStepScale(steps float64) stepScale { return stepScale(math.Ldexp(steps, scaleBits)) }

// steps returns the scale as a float64.
func (s stepScale) steps() float64 { return math.Ldexp(float64(s), -scaleBits) }

// stepBias is added to draws: a float64 of this size ends at the units, so its
// bits plus an integer are the bits of the sum, and a draw in steps becomes a
// float64 without a conversion.
const (
	stepBias     = 3 << 51
	stepBiasBits = 0x4338000000000000
)

// draw fills noise, at most wordsPerBatch long, with draws plus stepBias, of the given
// standard deviation in grid steps. words holds a fresh random word for each.
//
// The loop has no calls: it treats every word as if it decided its draw, and
// lists those that do not (about 1 in 120) to be drawn again after it.
func (s *Stream) draw(noise []float64, words []uint64, scale stepScale) {
	table := &ziggurat.layers
	open := &s.open
	opened := 0
	noise = noise[:len(words)]
	for i, word := range words {
		layer := &table[word&layerMask]
		abscissa := word & abscissaMask
		z, _ := bits.Mul64(abscissa, layer.width)
		product, _ := bits.Mul64(z, uint64(scale))
		product += 1 << (productBits - 1)
		if abscissa >= layer.inside || product&fractionMask >= firstUndecided {
			open[opened%wordsPerBatch] = uint8(i)
			opened++
		}
		noise[i] = math.Float64frombits(stepBiasBits + withSign(product>>productBits, word))
	}
	for _, i := range open[:opened] {
		magnitude := uint64(s.drawSlowly(words[i], scale))
		noise[i] = math.Float64frombits(stepBiasBits + withSign(magnitude, words[i]))
	}
}

// withSign negates a magnitude, in two's complement, if the word's sign bit is
// set.
func withSign(magnitude, word uint64) uint64 {
	negative := uint64(int64(word<<(63-signShift)) >> 63)
	return magnitude ^ negative - negative
}

// drawSlowly returns the magnitude of a draw whose first word does not decide
// it: the abscissa is not certainly under the curve, or not certain to round
// one way. It tests the ordinate, or draws from the tail, or starts again. The
// sign is the first word's, which none of this depends on.
func (s *Stream) drawSlowly(word uint64, scale stepScale) int64 {
	for {
		index := word & layerMask
		layer := &ziggurat.layers[index]
		abscissa := word & abscissaMask
		switch {
		case abscissa < layer.inside:
			return s.roundBody(abscissa, layer.width, scale)
		case index == 0:
			return s.drawTail(scale)
		default:
			if ziggurat.underCurve(index, abscissa, s.word()) {
				return s.roundBody(abscissa, layer.width, scale)
			}
		}
		word = s.word()
	}
}

// underCurve reports whether the point of a layer with this abscissa, and with
// the ordinate that the upper 53 bits of a word place between the layer's bottom
// and top, is under the curve.
func (t *zigguratTable) underCurve(index, abscissa, word uint64) bool {
	z := float64(math.Ldexp(float64(abscissa), -64) * math.Ldexp(float64(t.layers[index].width), -widthBits))
	edge := &t.edges[index]
	ordinate := edge.bottom + float64((float64(word>>11)+0.5)*0x1p-53*edge.height)
	return ordinate < math.Exp(-z*z/2)
}

// roundBody rounds abscissa·width·scale to whole steps, drawing more bits of
// the abscissa if the product needs them.
func (s *Stream) roundBody(abscissa, width uint64, scale stepScale) int64 {
	z, _ := bits.Mul64(abscissa, width)
	product, _ := bits.Mul64(z, uint64(scale))
	product += 1 << (productBits - 1)
	if product&fractionMask >= firstUndecided {
		return exactRound(0, 0, abscissa, s.word(), math.Ldexp(float64(width), -widthBits), scale)
	}
	return int64(product >> productBits)
}

// drawTail returns round(scale·z) for a positive normal z given z ≥ tailStart.
// The proposal for y = z − tailStart is uniform on [m, m+1)·tailStep with
// probability 2^−(m+1); its density relative to the curve's is at most 1 and is
// tailLevel.
func (s *Stream) drawTail(scale stepScale) int64 {
	for {
		stair := s.zeros()
		abscissa := s.word() & abscissaMask
		// A uniform number with full relative precision however small.
		level := math.Ldexp(1+math.Ldexp(float64(s.word()>>12)+0.5, -52), -1-s.zeros())
		if level >= tailLevel(stair, abscissa) {
			continue
		}
		y := float64((float64(stair) + math.Ldexp(float64(abscissa), -64)) * tailStep)
		steps := float64((tailStart + y) * scale.steps())
		rounded := math.RoundToEven(steps)
		if math.Abs(steps-rounded) > 0.5-tailUndecided {
			return exactRound(tailStart, stair, abscissa, s.word(), tailStep, scale)
		}
		return int64(rounded)
	}
}

// tailLevel is exp(−tailStart·y − y²/2)·2^m for y = (m + u)·tailStep, with m
// the stair and u = abscissa/2⁶⁴. The large parts m·tailDrop and m·ln 2 are
// subtracted beforehand, in tailExcess, so that the exponent is small and
// precise far out.
func tailLevel(stair int, abscissa uint64) float64 {
	m, u := float64(stair), math.Ldexp(float64(abscissa), -64)
	y := (m + u) * tailStep
	return math.Exp(-(float64(u*tailDrop) + float64(m*tailExcess) + float64(y*y/2)))
}

// zeros counts the zero bits before the first one in a fresh random string.
func (s *Stream) zeros() int {
	for count := 0; ; count += 64 {
		if word := s.word(); word != 0 {
			return count + bits.TrailingZeros64(word)
		}
	}
}

// exactRound rounds (offset + (stair + u)·width)·scale to whole steps without
// any other rounding. u in [0, 1) has the bits of abscissa, left-aligned, and
// behind them the 64 of more.
func exactRound(offset float64, stair int, abscissa, more uint64, width float64, scale stepScale) int64 {
	const precision = 512
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	position := new(big.Int).SetUint64(abscissa >> (64 - abscissaBits))
	position.Lsh(position, 64).Add(position, new(big.Int).SetUint64(more))
	z := new(big.Float).SetPrec(precision).SetInt(position)
	z.SetMantExp(z, -abscissaBits-64)
	z.Add(z, number(float64(stair)))
	z.Mul(z, number(width))
	z.Add(z, number(offset))
	z.Mul(z, new(big.Float).SetPrec(precision).SetUint64(uint64(scale)))
	z.SetMantExp(z, -scaleBits)
	z.Add(z, number(0.5))
	rounded, _ := z.Int64()
	return rounded
}
