package machine

import (
	"runtime"
	"time"
)

// fmaTurns bounds one assembly call to some tens of microseconds.
const fmaTurns = 1000

// PeakFMA measures float32 multiply-adds of the active tier on one core for about the given time, with nothing to
// load and enough independent sums to hide every latency. It returns GFLOP/s, two per multiply-add. In the
// generic tier it is what the Go compiler's scalar code reaches, rounding the product as it pleases.
func PeakFMA(d time.Duration) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	flops := 0
	start := time.Now()
	for {
		flops += peakFMA(fmaTurns)
		if t := time.Since(start); t >= d {
			return float64(flops) / float64(t.Nanoseconds())
		}
	}
}

// PeakRead measures how fast the active tier reads x on one core: whole passes for about the given time, at least one,
// each as four streams through the quarters of x. Up to 255 elements at the end, and those that do not divide by four,
// are left out. It returns GB/s (10⁹ bytes), and 0 for an x of fewer than 256 elements. The size of x
// decides which cache or memory is measured.
func PeakRead(x []float32, d time.Duration) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	part := len(x) / 4 &^ (readStep - 1)
	if part == 0 {
		return 0
	}
	passes := max(1, readChunk/(4*part)) // of a small array in one call
	bytes := 0
	start := time.Now()
	for {
		for at := 0; at < part; at += readChunk / 4 {
			peakRead(x[at:], part, min(readChunk/4, part-at)/readStep, passes)
		}
		bytes += passes * 4 * 4 * part
		if t := time.Since(start); t >= d {
			return float64(bytes) / float64(t.Nanoseconds())
		}
	}
}

const (
	// readStep elements of each quarter are the least that every tier can read.
	readStep = 64
	// readChunk elements are read by one assembly call: some tens of microseconds.
	readChunk = 1 << 17
)
