//go:build amd64 && gc && !noasm

package machine

import (
	"github.com/dpmf-go/dpmf/asm"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

// Of PeakFMA: vector multiply-adds per turn times float32 per vector.
const (
	fmaPerTurnAVX2   = 48 * 8
	fmaPerTurnAVX512 = 96 * 16
)

// peakFMA returns the number of floating-point operations it did.
func peakFMA(turns int) int {
	x := float32(1e-3)
	switch {
	case cpu.HasAVX512:
		asm.PeakFMAAVX512(&x, turns)
		return 2 * fmaPerTurnAVX512 * turns
	case cpu.HasAVX2:
		asm.PeakFMAAVX2(&x, turns)
		return 2 * fmaPerTurnAVX2 * turns
	default:
		return peakFMAGeneric(turns)
	}
}

// peakRead reads passes times turns times readStep elements from each of the four parts that start part elements apart.
func peakRead(x []float32, part, turns, passes int) {
	switch {
	case cpu.HasAVX512:
		asm.PeakReadAVX512(&x[0], 4*part, turns*readStep/64, passes)
	case cpu.HasAVX2:
		asm.PeakReadAVX2(&x[0], 4*part, turns*readStep/32, passes)
	default:
		peakReadGeneric(x, part, turns, passes)
	}
}
