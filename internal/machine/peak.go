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

// PeakRead measures how fast the active tier reads x, in order, on one core: whole passes for about the given time,
// at least one. It returns GB/s (10⁹ bytes). The size of x decides which cache or memory is measured.
func PeakRead(x []float32, d time.Duration) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	bytes := 0
	start := time.Now()
	for {
		for at := 0; at < len(x); at += readChunk {
			peakRead(x[at:min(at+readChunk, len(x))])
		}
		bytes += 4 * len(x)
		if t := time.Since(start); t >= d {
			return float64(bytes) / float64(t.Nanoseconds())
		}
	}
}

// readChunk elements are read by one assembly call: some tens of microseconds.
const readChunk = 1 << 17
