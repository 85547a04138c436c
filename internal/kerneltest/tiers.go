// Package kerneltest helps to test and measure kernels: it runs a test on every
// tier, provides buffers that end at an unmapped page, lists awkward lengths, and
// compares results bit by bit.
package kerneltest

import (
	"testing"

	"github.com/dpmf-go/dpmf/internal/cpu"
)

// EachTier runs body as a subtest once per tier, lowest first, with the
// dispatchers set to it. Tiers above the one active at the start (the machine's,
// or DPMF_ISA's) are skipped by name, so that a log shows what was not run. The tier is
// process-wide: body must not call t.Parallel.
func EachTier(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	top := cpu.Active()
	defer restore(top)
	for _, tier := range cpu.Tiers {
		t.Run(tier.String(), func(t *testing.T) {
			if tier > top {
				t.Skipf("%s is above the tier of this machine, build or run (%s)", tier, top)
			}
			restore(tier)
			body(t)
		})
	}
}

// EachTierB is EachTier for benchmarks.
func EachTierB(b *testing.B, body func(b *testing.B)) {
	b.Helper()
	top := cpu.Active()
	defer restore(top)
	for _, tier := range cpu.Tiers {
		if tier > top {
			continue
		}
		b.Run(tier.String(), func(b *testing.B) {
			restore(tier)
			body(b)
		})
	}
}

// ForTiers calls body once per tier up to the active one, for fuzz bodies, which
// cannot have subtests.
func ForTiers(body func(tier string)) {
	top := cpu.Active()
	defer restore(top)
	for _, tier := range cpu.Tiers {
		if tier <= top {
			restore(tier)
			body(tier.String())
		}
	}
}

func restore(t cpu.Tier) {
	if err := cpu.Select(t.String()); err != nil {
		panic(err)
	}
}
