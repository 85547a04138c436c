package kernelbench

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dpmf-go/dpmf/internal/machine"
)

// A benchCase is one kernel at one size.
type benchCase struct {
	kernel, size string
	unit         string // GFLOP/s, GB/s or µs
	limit        string // what its share is of: fma or read
	floor        floor
	prepare      func(e *env) (*subject, error)
}

// floor is what the project demands of the avx512 tier, 0 for nothing; the avx2 tier must have at least
// avx2Share of the avx512 tier's share of its own limit.
type floor struct {
	share     float64 // at least, of the FMA peak
	micros    float64 // at most, at referencePeak
	avx2Share float64
}

// referencePeak is the FMA peak, GFLOP/s, of the machine that times in the requirements refer to.
const referencePeak = 115

// A subject is a case with its data.
type subject struct {
	work    float64 // useful floating-point operations or bytes of one call, as the limit counts
	run     timedCalls
	library string // name of a pure-Go library that does the same, "" for none
	other   timedCalls
	read    []float32 // what the read limit reads: the data of one call
}

// timedCalls makes a number of calls and returns the time spent in them alone.
type timedCalls func(calls int) time.Duration

// measureLimit measures the limit of the active tier for about d.
func (s *subject) measureLimit(d time.Duration) float64 {
	if s.read != nil {
		return machine.PeakRead(s.read, d)
	}
	return machine.PeakFMA(d)
}

// together times calls that need no preparation between them.
func together(call func()) timedCalls {
	return func(calls int) time.Duration {
		start := time.Now()
		for range calls {
			call()
		}
		return time.Since(start)
	}
}

// restored times calls that destroy their input: restore sets up a batch, whose calls are then timed together.
func restored(batch int, restore func(), call func(k int)) timedCalls {
	return func(calls int) time.Duration {
		var total time.Duration
		for left := calls; left > 0; left -= batch {
			restore()
			start := time.Now()
			for k := range min(batch, left) {
				call(k)
			}
			total += time.Since(start)
		}
		return total
	}
}

// env is what the cases know about the data set.
type env struct {
	items   int // rows of a factor table
	perUser int // ratings of a mean user
	seed    uint64
}

func (e *env) rng(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(e.seed, purpose)) }

func normal(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

func rankSize(r int) string { return fmt.Sprintf("r=%d", r) }
