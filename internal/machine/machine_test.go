package machine

import (
	"testing"
	"time"

	"github.com/dpmf-go/dpmf/internal/cpu"
	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

// TestPeakFMA checks plausibility: no core does more than 2 vectors of multiply-adds per cycle at 8 GHz, and even an
// emulated one does a tenth of a GFLOP/s.
func TestPeakFMA(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		lanes := map[cpu.Tier]float64{cpu.Generic: 8, cpu.TierAVX2: 8, cpu.TierAVX512: 16}[cpu.Active()]
		got := 0.0
		for range 10 { // a busy machine disturbs some of them
			got = max(got, PeakFMA(time.Millisecond))
		}
		if got < 0.1 || got > 2*2*lanes*8 {
			t.Errorf("%.2f GFLOP/s is not the peak of a real core", got)
		}
		t.Logf("%.1f GFLOP/s", got)
	})
}

// TestPeakReadStaysInside ends the array at an unmapped page.
func TestPeakReadStaysInside(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		for _, n := range []int{1, 255, 256, 257, 511, 512, 1000, readChunk, readChunk + 257, 2*readChunk + 255} {
			got := PeakRead(kerneltest.AtEnd(t, n), 0)
			if (got > 0) != (n >= 256) {
				t.Errorf("n=%d: %v GB/s", n, got)
			}
		}
	})
}

func TestParseKiB(t *testing.T) {
	got, ok := parseKiB("MemTotal:       24595020 kB\nMemFree:   1 kB\nMemAvailable:   13421772 kB\n", "MemAvailable")
	if !ok || got != 13421772<<10 {
		t.Errorf("got %d, %v", got, ok)
	}
	for _, bad := range []string{"", "MemTotal: 1 kB\n", "MemAvailable: many kB\n"} {
		if got, ok := parseKiB(bad, "MemAvailable"); ok {
			t.Errorf("%q gave %d", bad, got)
		}
	}
}

func TestDescription(t *testing.T) {
	if CPU() == "" || TierReason() == "" {
		t.Errorf("CPU %q, reason %q", CPU(), TierReason())
	}
}
