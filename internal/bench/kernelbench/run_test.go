package kernelbench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dpmf-go/dpmf/internal/bench/report"
	"github.com/dpmf-go/dpmf/internal/cpu"
	"github.com/dpmf-go/dpmf/kernels"
)

func small(kernels ...string) Config {
	return Config{Kernels: kernels, Items: 300, PerUser: 40, Ranks: []int{8, 33}, Rounds: 2, Seed: 1}
}

func TestRunMeasuresEveryKernelOnEveryTier(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for a few seconds")
	}
	before := cpu.Active()
	cfg := small(Names()...)
	var rows []report.Kernel
	steps := 0
	cfg.Step = func(done, total int, name string) {
		if done != steps || total < len(Names()) || name == "" {
			t.Errorf("step %d of %d, %q, after %d steps", done, total, name, steps)
		}
		steps++
	}
	cfg.Emit = func(r []report.Kernel) { rows = append(rows, r...) }
	if err := Run(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	if cpu.Active() != before {
		t.Errorf("the tier changed from %v to %v", before, cpu.Active())
	}
	for _, name := range Names() {
		for tier := cpu.Generic; tier <= before; tier++ {
			if !slices.ContainsFunc(rows, func(r report.Kernel) bool { return r.Name == name && r.Tier == tier.String() }) {
				t.Errorf("no row for %s on %s", name, tier)
			}
		}
	}
	for _, r := range rows {
		if !(r.Min > 0 && r.Min <= r.Rate && r.Rate <= r.Max && r.Share > 0 && r.Limit > 0) || r.Rounds != 2 {
			t.Errorf("implausible row %+v", r)
		}
		if r.Ratio.Finite() != (r.RatioTo != "") {
			t.Errorf("ratio without the tier it refers to, or the other way round: %+v", r)
		}
	}
}

func TestRunStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := small("GramF32", "CholeskySolveF32")
	emitted := 0
	cfg.Emit = func([]report.Kernel) {
		emitted++
		cancel()
	}
	if err := Run(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if emitted != 1 {
		t.Errorf("%d sizes were emitted, want the one before the cancellation", emitted)
	}
}

func TestSelect(t *testing.T) {
	for list, want := range map[string][]string{
		"all":                    Names(),
		"none":                   nil,
		"gram, DotF32":           {"GramF32", "DotF32"},
		"GRAMF32,gram":           {"GramF32"},
		"choleskysolve":          {"CholeskySolveF32"},
		" score ,topk,axpy,dot ": {"ScoreF32", "TopKF32", "AxpyF32", "DotF32"},
	} {
		got, err := Select(list)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Select(%q) = %v, %v; want %v", list, got, err, want)
		}
	}
	if _, err := Select("gram,fft"); err == nil || !strings.Contains(err.Error(), `"fft"`) || !strings.Contains(err.Error(), "GramF32") {
		t.Errorf("error %v, want one that names the word and the choices", err)
	}
}

// TestEveryKernelIsMeasured compares the cases with the registry. The factor and the solve alone are the two halves of
// what CholeskySolveF32 is measured with.
func TestEveryKernelIsMeasured(t *testing.T) {
	halves := []string{"CholeskyF32", "CholeskySolveFactoredF32"}
	for _, k := range kernels.Info() {
		if !slices.Contains(Names(), k.Name) && !slices.Contains(halves, k.Name) {
			t.Errorf("%s is not measured", k.Name)
		}
	}
}
