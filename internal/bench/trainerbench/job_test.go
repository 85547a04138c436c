package trainerbench

import (
	"math"
	"strings"
	"testing"
)

func titles(list []job) string {
	var s []string
	for _, j := range list {
		s = append(s, j.title)
	}
	return strings.Join(s, "; ")
}

// TestRanks holds the choice of ranks to what the help promises: the one asked for, or else 64, and for DPALS also the one
// that suits data and ε.
func TestRanks(t *testing.T) {
	p := params()
	p.Epsilons = []float64{1, 10, 20}
	const small, large = 6040, 138_493
	for _, c := range []struct {
		protocol    Protocol
		rank, users int
		want        string
	}{
		{Explicit, 32, small, "als explicit r=32; dpals explicit ε=1 r=32; dpals explicit ε=10 r=32; dpals explicit ε=20 r=32"},
		{Implicit, 0, small, "als implicit r=64; dpals implicit ε=1 r=64; dpals implicit ε=1 r=16; dpals implicit ε=10 r=64; dpals implicit ε=20 r=64"},
		{Implicit, 0, large, "als implicit r=64; dpals implicit ε=1 r=64; dpals implicit ε=10 r=64; dpals implicit ε=20 r=64"},
	} {
		p.Rank = c.rank
		if got := titles(jobs(Trainers, c.protocol, p, c.users)); got != c.want {
			t.Errorf("%s, rank %d, %d users: %s; want %s", c.protocol, c.rank, c.users, got, c.want)
		}
	}
	p.Rank = 0
	for _, j := range jobs(Trainers, Explicit, p, small) {
		if j.rank != usualRank && (j.name != "dpals" || j.rank > usualRank) {
			t.Errorf("unexpected %s", j.title)
		}
	}
}

func TestCheckRefusesBeforeWork(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Params)
		want   string
	}{
		"impossible budget": {func(p *Params) { p.Epsilons, p.Delta = []float64{math.Inf(1), 1}, 1e-200 }, "dpals speed ε=1 r=4: item counts already take"},
		"rank":              {func(p *Params) { p.Rank = -1 }, "rank is -1"},
		"rank too large":    {func(p *Params) { p.Rank = 1 << 20 }, "rank is 1048576"},
		"repeats":           {func(p *Params) { p.Repeats = 0 }, "repeats is 0"},
		"threads":           {func(p *Params) { p.Threads = 0 }, "threads is 0"},
		"iterations":        {func(p *Params) { p.Iterations = -1 }, "iterations is -1"},
		"no epsilon":        {func(p *Params) { p.Epsilons = nil }, "epsilons is empty"},
		"delta":             {func(p *Params) { p.Delta = 1 }, "delta is 1"},
	} {
		p := params()
		c.change(&p)
		if err := Check(Trainers, p, 200, 60); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
	p := params()
	if err := Check(Trainers, p, 200, 60); err != nil {
		t.Errorf("good parameters are refused: %v", err)
	}
}

// TestHeldOut has the published number of users where there are enough, and 600 on MovieLens 1M.
func TestHeldOut(t *testing.T) {
	for users, want := range map[int]int{136_677: 10_000, 100_000: 10_000, 6_034: 600, 6_999: 600, 938: 93, 9: 0} {
		if got := heldOut(users); got != want {
			t.Errorf("%d users: %d held out, want %d", users, got, want)
		}
	}
}
