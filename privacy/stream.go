package privacy

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math"
)

// wordsPerBatch is how many random words a Stream asks for at a time.
const wordsPerBatch = 256

// A Stream draws the noise of one (release, iteration, item). Get one from
// Noise.Stream, and reuse it with Reset. It belongs to one goroutine.
type Stream struct {
	noise              *Noise
	release, iteration uint32
	block              cipher.Block
	bits               cipher.Stream
	buffer             [8 * wordsPerBatch]byte
	spare              [8]byte
}

// fill returns n ≤ wordsPerBatch fresh words as 8·n little-endian bytes.
func (s *Stream) fill(n int) []byte {
	words := s.buffer[:8*n]
	clear(words)
	s.bits.XORKeyStream(words, words)
	return words
}

// word returns one fresh word, behind those of the latest fill.
func (s *Stream) word() uint64 {
	clear(s.spare[:])
	s.bits.XORKeyStream(s.spare[:], s.spare[:])
	return binary.LittleEndian.Uint64(s.spare[:])
}

// AddVector replaces each x[i] by its nearest point on GridFor(scale) plus
// N(0, scale²) rounded to that grid, the draws being independent. A scale of 0
// changes nothing. It panics on a scale that is negative, not a number, or
// outside 2^±900.
func (s *Stream) AddVector(x []float32, scale float64) {
	grid := s.gridFor(scale)
	if grid.step == 0 {
		return
	}
	for len(x) > 0 {
		n := min(len(x), wordsPerBatch)
		addNormal(s, x[:n], s.fill(n), scale*grid.inverse, grid)
		x = x[n:]
	}
}

// AddVector64 is AddVector for float64.
func (s *Stream) AddVector64(x []float64, scale float64) {
	grid := s.gridFor(scale)
	if grid.step == 0 {
		return
	}
	for len(x) > 0 {
		n := min(len(x), wordsPerBatch)
		addNormal(s, x[:n], s.fill(n), scale*grid.inverse, grid)
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
	diagonal := scale * grid.inverse
	offDiagonal := diagonal * (1 / math.Sqrt2)
	for i := range r {
		row := x[i*ld+i : i*ld+r]
		addNormal(s, row[:1], s.fill(1), diagonal, grid)
		for row = row[1:]; len(row) > 0; {
			n := min(len(row), wordsPerBatch)
			addNormal(s, row[:n], s.fill(n), offDiagonal, grid)
			row = row[n:]
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
