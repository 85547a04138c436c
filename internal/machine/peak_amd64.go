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

// Of PeakRead: elements per turn.
const (
	readPerTurnAVX2   = 128
	readPerTurnAVX512 = 256
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

// peakRead reads x once; what does not fill a turn is read by the generic version.
func peakRead(x []float32) {
	var sum float32
	switch {
	case cpu.HasAVX512 && len(x) >= readPerTurnAVX512:
		n := len(x) &^ (readPerTurnAVX512 - 1)
		asm.PeakReadAVX512(&x[0], &sum, n/readPerTurnAVX512)
		peakReadGeneric(x[n:])
	case cpu.HasAVX2 && len(x) >= readPerTurnAVX2:
		n := len(x) &^ (readPerTurnAVX2 - 1)
		asm.PeakReadAVX2(&x[0], &sum, n/readPerTurnAVX2)
		peakReadGeneric(x[n:])
	default:
		peakReadGeneric(x)
	}
}
