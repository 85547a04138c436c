package dpals

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpmf-go/dpmf/dataset"
)

// userStream is the generator of one user's random choices, so that they do not depend on
// the order in which users are visited.
func userStream(seed uint64, purpose uint32, user int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(purpose)<<32|uint64(uint32(user))))
}

const (
	purposeCounts = 1 + iota
	purposeLimit
)

// chooseUniform returns k of the positions 0..n-1 at random, or all of them, in
// ascending order. It uses scratch's memory.
func chooseUniform(rng *rand.Rand, n, k int, scratch []int) []int {
	scratch = scratch[:0]
	for i := range n {
		scratch = append(scratch, i)
	}
	if n <= k {
		return scratch
	}
	for i := range k {
		j := i + rng.IntN(n-i)
		scratch[i], scratch[j] = scratch[j], scratch[i]
	}
	slices.Sort(scratch[:k])
	return scratch[:k]
}

// countItems counts for every item the users who have it among at most k of their items
// chosen at random: adding or removing one user changes at most k counts by one.
func countItems(train *dataset.Ratings, k int, seed uint64) []float64 {
	counts := make([]float64, train.NumItems())
	var scratch []int
	for u := range train.NumUsers() {
		items, _ := train.User(u)
		scratch = chooseUniform(userStream(seed, purposeCounts, u), len(items), k, scratch)
		for _, p := range scratch {
			counts[items[p]]++
		}
	}
	return counts
}

// frequentItems marks the n items with the largest counts, ties by lower index.
func frequentItems(counts []float64, n int) []bool {
	order := make([]int, len(counts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	frequent := make([]bool, len(counts))
	for _, i := range order[:n] {
		frequent[i] = true
	}
	return frequent
}

// contributions is the part of the ratings that item steps may use, by item, with
// weights w_ij = item[j]·user[i] that satisfy the limit per user.
type contributions struct {
	of       func(item int) (users []int32, values []float32)
	weighted bool
	item     []float32
	user     []float32
}

func (s *contributions) weights(item int, users []int32, weights []float32) {
	w := s.item[item]
	for k, u := range users {
		weights[k] = w * s.user[u]
	}
}

// adaptiveContributions uses every rating of a frequent item. Its weights are those of Adaptive, scaled
// down by 2⁻²⁰ so that rounding to float32 cannot lift Σ w² above k.
func adaptiveContributions(train *dataset.Ratings, counts []float64, frequent []bool, k int, e float64) contributions {
	s := contributions{weighted: true, item: make([]float32, train.NumItems()), user: make([]float32, train.NumUsers())}
	for i, c := range counts {
		if frequent[i] {
			s.item[i] = float32(math.Pow(c, e))
		}
	}
	for u := range s.user {
		items, _ := train.User(u)
		var sum float64
		for _, i := range items {
			sum += float64(float64(s.item[i]) * float64(s.item[i]))
		}
		if sum > 0 {
			s.user[u] = float32(math.Sqrt(float64(k)/sum) * (1 - 0x1p-20))
		}
	}
	s.of = func(item int) ([]int32, []float32) {
		if !frequent[item] {
			return nil, nil
		}
		return train.Item(item)
	}
	return s
}

// sampledContributions keeps at most k ratings of frequent items per user, at
// random or those with the least counts, with weight one.
func sampledContributions(train *dataset.Ratings, counts []float64, frequent []bool, k int, limit Limit, seed uint64) contributions {
	ptr := make([]int, train.NumItems()+1)
	chosen := make([][]int32, train.NumUsers()) // positions within the user's ratings
	var candidates, scratch []int
	for u := range chosen {
		items, _ := train.User(u)
		candidates = candidates[:0]
		for p, i := range items {
			if frequent[i] {
				candidates = append(candidates, p)
			}
		}
		if limit == Tail {
			slices.SortStableFunc(candidates, func(a, b int) int { return cmp.Compare(counts[items[a]], counts[items[b]]) })
			candidates = candidates[:min(k, len(candidates))]
		} else {
			scratch = chooseUniform(userStream(seed, purposeLimit, u), len(candidates), k, scratch)
			for to, from := range scratch {
				candidates[to] = candidates[from]
			}
			candidates = candidates[:len(scratch)]
		}
		for _, p := range candidates {
			chosen[u] = append(chosen[u], int32(p))
			ptr[items[p]+1]++
		}
	}
	for i := range train.NumItems() {
		ptr[i+1] += ptr[i]
	}
	users, values := make([]int32, ptr[train.NumItems()]), make([]float32, ptr[train.NumItems()])
	next := slices.Clone(ptr)
	for u, positions := range chosen {
		items, ratings := train.User(u)
		for _, p := range positions {
			at := next[items[p]]
			next[items[p]]++
			users[at], values[at] = int32(u), ratings[p]
		}
	}
	return contributions{of: func(item int) ([]int32, []float32) {
		return users[ptr[item]:ptr[item+1]], values[ptr[item]:ptr[item+1]]
	}}
}

// checkBudget verifies Σ_j w_ij² ≤ k for every user from the weights as they will be used. A violation is a defect of
// this package; it must stop the run before anything is released.
func (s *contributions) checkBudget(items, users, k int) error {
	spent := make([]float64, users)
	for i := range items {
		who, _ := s.of(i)
		for _, u := range who {
			w := 1.0
			if s.weighted {
				w = float64(s.item[i] * s.user[u])
			}
			spent[u] += float64(w * w)
		}
	}
	for u, v := range spent {
		if !(v <= float64(k)) { // also NaN
			return fmt.Errorf("dpals: internal error: user %d has squared weights of %v in sum, above the %d that the noise is made for; nothing was released", u, v, k)
		}
	}
	return nil
}
