package privacy

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/dpmf-go/dpmf/kernels"
)

const (
	// wordsPerBatch is how many random words a Stream asks for at a time.
	wordsPerBatch = 256
	// spareWords is how many it fetches for the draws that need more than one.
	spareWords = 32
)

// Stream.open holds places in a batch as bytes.
const _ = uint8(wordsPerBatch - 1)

// A Stream draws the noise of one (release, iteration, item). Get one from
// Noise.Stream, and reuse it with Reset. It belongs to one goroutine.
type Stream struct {
	noise              *Noise
	release, iteration uint32
	block              cipher.Block
	bits               cipher.Stream
	// words and steps hold one batch, open is scratch space for draw.
	words [wordsPerBatch]uint64
	steps [wordsPerBatch]float64
	open  [wordsPerBatch]uint8
	// diagonal holds a part of a matrix's diagonal.
	diagonal [wordsPerBatch]float32
	// spare holds words for the draws that need more than one; those from
	// spareNext on are fresh.
	spare     [spareWords]uint64
	spareNext int
}

// fill overwrites words with fresh random ones.
func (s *Stream) fill(words []uint64) {
	clear(words)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
	s.bits.XORKeyStream(bytes, bytes)
	if bigEndian {
		for i, word := range words {
			words[i] = bits.ReverseBytes64(word)
		}
	}
}

// bigEndian tells whether this machine would read the key stream's bytes in
// another order than the rest.
var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// word returns one fresh word.
func (s *Stream) word() uint64 {
	if s.spareNext == len(s.spare) {
		s.fill(s.spare[:])
		s.spareNext = 0
	}
	s.spareNext++
	return s.spare[s.spareNext-1]
}

// batch draws the next n ≤ wordsPerBatch samples.
func (s *Stream) batch(n int, scale stepScale) []float64 {
	s.fill(s.words[:n])
	s.draw(s.steps[:n], s.words[:n], scale)
	return s.steps[:n]
}

// AddVector replaces each x[i] by its nearest point on GridFor(scale) plus
// N(0, scale²) rounded to that grid, the draws being independent, and rounds
// the sum to float32. NaN and Inf stay what they are. A scale of 0 changes
// nothing. It panics on a scale that is negative, not a number, or outside
// 2^±900.
func (s *Stream) AddVector(x []float32, scale float64) {
	grid := s.gridFor(scale)
	if grid.step == 0 {
		return
	}
	sigma := newStepScale(scale * grid.inverse)
	for len(x) > 0 {
		n := min(len(x), wordsPerBatch)
		kernels.AddNoiseF32(x[:n], s.batch(n, sigma), stepBias, grid.step)
		x = x[n:]
	}
}

// AddVector64 is AddVector for float64, with the same noise.
func (s *Stream) AddVector64(x []float64, scale float64) {
	grid := s.gridFor(scale)
	if grid.step == 0 {
		return
	}
	sigma := newStepScale(scale * grid.inverse)
	for len(x) > 0 {
		n := min(len(x), wordsPerBatch)
		for i, steps := range s.batch(n, sigma) {
			x[i] = grid.Round(x[i]) + float64((steps-stepBias)*grid.step)
		}
		x = x[n:]
	}
}

// AddSymmetric adds the isotropic noise of symmetric matrices (one draw per
// pair i ≤ j: N(0, scale²) on the diagonal, N(0, scale²/2) off it) to the upper
// triangle of an r×r matrix, row-major with leading dimension ld:
// element (i, j) is x[i·ld+j]. Sums are rounded first as in AddVector, to
// GridFor(scale) everywhere. What lies below the diagonal and between the rows
// is not touched. It panics if ld < r or x is shorter than (r−1)·ld + r, and on
// scales as AddVector does.
func (s *Stream) AddSymmetric(x []float32, r, ld int, scale float64) {
	if r < 0 || ld < r || r > 0 && len(x) < (r-1)*ld+r {
		panic(fmt.Sprintf("privacy: AddSymmetric: a slice of %d does not hold %d rows of a triangle with leading dimension %d", len(x), r, ld))
	}
	grid := s.gridFor(scale)
	if grid.step == 0 {
		return
	}
	draw := newStepScale(scale * grid.inverse)
	for first := 0; first < r; first += wordsPerBatch { // the diagonal
		n := min(r-first, wordsPerBatch)
		for k := range n {
			s.diagonal[k] = x[(first+k)*(ld+1)]
		}
		kernels.AddNoiseF32(s.diagonal[:n], s.batch(n, draw), stepBias, grid.step)
		for k := range n {
			x[(first+k)*(ld+1)] = s.diagonal[k]
		}
	}
	// Off the diagonal a batch covers several rows, and a row may end in the next one.
	draw = newStepScale(scale * grid.inverse * (1 / math.Sqrt2))
	left := r * (r - 1) / 2
	steps := s.steps[:0]
	for i := range r - 1 {
		for row := x[i*ld+i+1 : i*ld+r]; len(row) > 0; {
			if len(steps) == 0 {
				steps = s.batch(min(left, wordsPerBatch), draw)
				left -= len(steps)
			}
			n := min(len(row), len(steps))
			kernels.AddNoiseF32(row[:n], steps[:n], stepBias, grid.step)
			row, steps = row[n:], steps[n:]
		}
	}
}

// gridFor checks the scale and returns its grid.
func (s *Stream) gridFor(scale float64) Grid {
	if !validScale(scale) {
		panic(fmt.Sprintf("privacy: noise of scale %v cannot be drawn: it must be 0 or between 2^-900 and 2^900", scale))
	}
	return GridFor(scale)
}
