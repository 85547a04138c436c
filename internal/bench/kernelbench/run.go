package kernelbench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dpmf-go/dpmf/internal/bench/report"
	"github.com/dpmf-go/dpmf/internal/bench/stat"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

// Config says what to measure.
type Config struct {
	Kernels []string // names as in Names
	Items   int      // rows of the factor tables: the items of the data set
	PerUser int      // rows gathered per Gram matrix: the ratings of a mean user
	Ranks   []int
	Rounds  int // repetitions of everything; 1 or more
	Seed    uint64

	// Step, if set, is called before each kernel and size.
	Step func(done, total int, name string)
	// Emit receives the rows of each kernel and size when it is done, the highest tier first.
	Emit func(rows []report.Kernel)
}

// DefaultRanks are the ranks of the requirements.
var DefaultRanks = []int{32, 64, 128}

// Names lists the kernels that can be measured, in the order of measurement.
func Names() []string {
	var names []string
	for _, c := range cases(DefaultRanks) {
		if !slices.Contains(names, c.kernel) {
			names = append(names, c.kernel)
		}
	}
	return names
}

// Select reads a comma-separated list of kernel names (any case, with or without F32), "all" or "none".
func Select(list string) ([]string, error) {
	switch strings.TrimSpace(strings.ToLower(list)) {
	case "all":
		return Names(), nil
	case "none", "":
		return nil, nil
	}
	var chosen []string
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		at := slices.IndexFunc(Names(), func(name string) bool {
			return strings.EqualFold(name, word) || strings.EqualFold(strings.TrimSuffix(name, "F32"), word)
		})
		if at < 0 {
			return nil, fmt.Errorf("unknown kernel %q: choose from %s, all or none", word, strings.Join(Names(), ", "))
		}
		if name := Names()[at]; !slices.Contains(chosen, name) {
			chosen = append(chosen, name)
		}
	}
	return chosen, nil
}

func cases(ranks []int) []benchCase {
	var list []benchCase
	each := func(make func(r int) benchCase) {
		for _, r := range ranks {
			list = append(list, make(r))
		}
	}
	each(gramCase)
	each(choleskyCase)
	each(spectralCase(8))
	each(spectralCase(40))
	each(scoreCase)
	each(scoreRowsCase)
	for _, k := range []int{20, 100} {
		list = append(list, topkCase(k))
	}
	for _, n := range []int{cachedLen, memoryLen} {
		list = append(list, dotCase(n), axpyCase(n))
	}
	return append(list, scaleCase(cachedLen), addNoiseCase(cachedLen))
}

// Bytes is an upper bound of the memory that a run allocates at a time.
func Bytes(cfg Config) int64 {
	largest := int64(2 * memoryLen * 4)
	for _, r := range cfg.Ranks {
		largest = max(largest, 4*int64(cfg.Items)*int64(r)+4*gramIndices)
	}
	return max(largest, 4*16*int64(cfg.Items)) + 16<<20
}

// Run measures the chosen kernels. It returns ctx's error soon after ctx is done; what was emitted by then is complete.
// The active tier changes while it runs, and is what it was afterwards.
func Run(ctx context.Context, cfg Config) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	top := cpu.Active()
	defer use(top)
	e := &env{items: cfg.Items, perUser: cfg.PerUser, seed: cfg.Seed}
	list := slices.DeleteFunc(cases(cfg.Ranks), func(c benchCase) bool { return !slices.Contains(cfg.Kernels, c.kernel) })
	for k, c := range list {
		if cfg.Step != nil {
			cfg.Step(k, len(list), c.kernel+" "+c.size)
		}
		use(top)
		s, err := c.prepare(e)
		if err != nil {
			return fmt.Errorf("kernel %s, %s: %w", c.kernel, c.size, err)
		}
		rows, err := measure(ctx, c, s, top, cfg.Rounds)
		if err != nil {
			return err
		}
		cfg.Emit(rows)
	}
	return nil
}

const (
	burst      = 4 * time.Millisecond // of one contestant in one round
	limitBurst = 1500 * time.Microsecond
)

// contestant is one tier, or the library, in the rounds of one case.
type contestant struct {
	name   string
	tier   cpu.Tier
	run    timedCalls
	calls  int
	speed  []float64 // work per nanosecond, one per round
	limits []float64
}

// measure interleaves all tiers up to top, highest first, and the library.
func measure(ctx context.Context, c benchCase, s *subject, top cpu.Tier, rounds int) ([]report.Kernel, error) {
	var list []*contestant
	for tier := int(top); tier >= int(cpu.Generic); tier-- {
		list = append(list, &contestant{name: cpu.Tier(tier).String(), tier: cpu.Tier(tier), run: s.run})
	}
	if s.library != "" {
		list = append(list, &contestant{name: s.library, tier: top, run: s.other})
	}
	for _, x := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		use(x.tier)
		x.calibrate()
	}
	for range max(rounds, 1) {
		for _, x := range list {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			use(x.tier)
			x.limits = append(x.limits, s.measureLimit(limitBurst))
			took := x.run(x.calls)
			x.speed = append(x.speed, s.work*float64(x.calls)/float64(max(took.Nanoseconds(), 1)))
		}
	}
	return rowsOf(c, s, list), nil
}

// calibrate finds the number of calls that fill a burst, from calls that also warm the caches.
func (x *contestant) calibrate() {
	for x.calls = 1; ; {
		took := x.run(x.calls)
		if took >= burst/4 {
			x.calls = max(1, int(float64(x.calls)*float64(burst)/float64(took)))
			return
		}
		x.calls = max(2*x.calls, min(16*x.calls, int(float64(x.calls)*float64(burst)/float64(max(took, 1)))/2))
	}
}

// use selects a tier that this machine has.
func use(t cpu.Tier) {
	if err := cpu.Select(t.String()); err != nil {
		panic("kernelbench: " + err.Error())
	}
}

// rowsOf turns the rounds into medians.
func rowsOf(c benchCase, s *subject, list []*contestant) []report.Kernel {
	rows := make([]report.Kernel, len(list))
	topShare := stat.SpreadOf(quotient(list[0].speed, list[0].limits)).Median
	for k, x := range list {
		share := stat.SpreadOf(quotient(x.speed, x.limits)).Median
		row := report.Kernel{
			Name: c.kernel, Tier: x.name, Size: c.size, Unit: c.unit, Rounds: len(x.speed),
			Share: report.Number(share), ShareOf: c.limit,
			Limit: report.Number(stat.SpreadOf(x.limits).Median),
			Ratio: none, Scaled: none, Required: none, Reached: none,
		}
		isTier := x.name == x.tier.String()
		setRate(&row, c.unit, s.work, x)
		if isTier && x.tier > cpu.Generic && c.unit == "µs" && c.limit == "fma" {
			row.Scaled = scaledTime(s.work, x)
		}
		switch {
		case !isTier:
			row.Ratio, row.RatioTo = ratio(x, list[0])
		case x.tier > cpu.Generic:
			row.Ratio, row.RatioTo = ratio(x, list[k+1])
		}
		if isTier {
			setRequired(&row, c.floor, x.tier, share, topShare, list[0].tier)
		}
		rows[k] = row
	}
	return rows
}

var none = report.Number(math.NaN())

// setRate expresses the speed in the unit of the case.
func setRate(row *report.Kernel, unit string, work float64, x *contestant) {
	values := slices.Clone(x.speed)
	if unit == "µs" {
		for i, v := range values {
			values[i] = work / v / 1e3
		}
	}
	s := stat.SpreadOf(values)
	row.Rate, row.Min, row.Max = report.Number(s.Median), report.Number(s.Min), report.Number(s.Max)
}

// scaledTime is the median time of a call, in µs, if the tier's FMA peak were referencePeak.
func scaledTime(work float64, x *contestant) report.Number {
	scaled := make([]float64, len(x.speed))
	for i, v := range x.speed {
		scaled[i] = work / v / 1e3 * x.limits[i] / referencePeak
	}
	return report.Number(stat.SpreadOf(scaled).Median)
}

// ratio is the median over the rounds of how many times as fast x is as y.
func ratio(x, y *contestant) (report.Number, string) {
	return report.Number(stat.SpreadOf(quotient(x.speed, y.speed)).Median), y.name
}

func quotient(x, y []float64) []float64 {
	q := make([]float64, len(x))
	for i := range x {
		q[i] = x[i] / y[i]
	}
	return q
}

// setRequired compares with the project's floors.
func setRequired(row *report.Kernel, f floor, tier cpu.Tier, share, topShare float64, top cpu.Tier) {
	set := func(what string, required, reached float64, ok bool) {
		row.RequiredWhat, row.Required, row.Reached, row.OK = what, report.Number(required), report.Number(reached), &ok
	}
	switch {
	case tier == cpu.TierAVX512 && f.share > 0:
		set("share ≥", f.share, share, share >= f.share)
	case tier == cpu.TierAVX512 && f.micros > 0:
		set("µs at 115 GFLOP/s ≤", f.micros, float64(row.Scaled), float64(row.Scaled) <= f.micros)
	case tier == cpu.TierAVX2 && top == cpu.TierAVX512 && f.avx2Share > 0:
		set("share / avx512 share ≥", f.avx2Share, share/topShare, share/topShare >= f.avx2Share)
	}
}
