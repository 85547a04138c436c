package eval

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// A Ranker appends a user's k best items, best first and each at most once, to
// top, which is empty, and returns it. It may return fewer. Items that the user
// is known to have (the fold-in part) are the ranker's to leave out. It is
// called from several goroutines at a time.
type Ranker func(user, k int, top []int32) []int32

// Ranking is the quality of top-k lists, averaged over the users that have
// something held out.
type Ranking struct {
	// Users were averaged over; Skipped had no held-out items.
	Users, Skipped int
	// At has an entry for each cutoff, in the order they were asked for.
	At []Cutoff
}

// A Cutoff holds the measures for lists of K items. H is a user's set of
// held-out items, all equally relevant.
type Cutoff struct {
	K int
	// Recall is the mean of |list ∩ H| / min(K, |H|) (Liang et al. 2018).
	Recall float64
	// Precision is the mean of |list ∩ H| / K.
	Precision float64
	// NDCG is the mean of Σ 1/log₂(rank+1) over the hits, divided by the same
	// sum for a list that begins with min(K, |H|) hits. Ranks count from 1.
	NDCG float64
	// HitRate is the share of users with at least one hit.
	HitRate float64
	// Coverage is the share of all items that are in at least one list.
	Coverage float64
}

// Rank asks for the best items of every user with held-out items, once for the
// largest of the cutoffs, and measures the lists at each cutoff. Values of
// heldOut are ignored: what is stored is relevant.
//
// It is an error if there are no cutoffs or one is below 1, if the ranker
// returns more than k items, an item twice or one outside the matrix, or if
// heldOut has an item twice or one outside. With no user to average over, the
// means are NaN.
func Rank(ranker Ranker, heldOut Matrix, cutoffs []int, options ...Option) (Ranking, error) {
	if len(cutoffs) == 0 {
		return Ranking{}, fmt.Errorf("eval: no cutoff was given: name at least one list length")
	}
	for _, k := range cutoffs {
		if k < 1 {
			return Ranking{}, fmt.Errorf("eval: a cutoff of %d was given: lists have at least 1 item", k)
		}
	}
	items := heldOut.NumItems()
	longest := min(slices.Max(cutoffs), max(items, 1))
	discounts := make([]float64, longest)
	ideal := make([]float64, longest+1)
	for i := range discounts {
		discounts[i] = 1 / math.Log2(float64(i+2))
		ideal[i+1] = ideal[i] + discounts[i]
	}

	var blocks []rankingSums
	var scratch []rankingScratch
	forBlocks(heldOut.NumUsers(), options, func(workers, count int) {
		blocks, scratch = make([]rankingSums, count), make([]rankingScratch, workers)
	}, func(worker, block, firstUser, endUser int) {
		s, sums := &scratch[worker], &blocks[block]
		if s.state == nil {
			s.state = make([]uint8, items)
			s.covered = make([][]uint64, len(cutoffs))
			for i := range s.covered {
				s.covered[i] = make([]uint64, (items+63)/64)
			}
		}
		sums.at = make([]Cutoff, len(cutoffs))
		for user := firstUser; user < endUser && sums.err == nil; user++ {
			relevant, _ := heldOut.User(user)
			if len(relevant) == 0 {
				sums.skipped++
				continue
			}
			if sums.err = s.mark(user, relevant); sums.err != nil {
				return
			}
			s.top = ranker(user, longest, s.top[:0])
			if sums.err = s.check(user, longest); sums.err != nil {
				return
			}
			sums.users++
			for i, k := range cutoffs {
				sums.at[i].add(s, k, len(relevant), s.covered[i], discounts, ideal)
			}
			s.unmark(relevant)
		}
	})

	total := rankingSums{at: make([]Cutoff, len(cutoffs))}
	for _, block := range blocks {
		if block.err != nil {
			return Ranking{}, block.err
		}
		total.users += block.users
		total.skipped += block.skipped
		for i := range total.at {
			total.at[i].Recall += block.at[i].Recall
			total.at[i].Precision += block.at[i].Precision
			total.at[i].NDCG += block.at[i].NDCG
			total.at[i].HitRate += block.at[i].HitRate
		}
	}
	n := float64(total.users)
	for i := range total.at {
		c := &total.at[i]
		c.K = cutoffs[i]
		c.Recall /= n
		c.Precision /= n
		c.NDCG /= n
		c.HitRate /= n
		c.Coverage = coverage(scratch, i, items)
	}
	return Ranking{Users: total.users, Skipped: total.skipped, At: total.at}, nil
}

// Recall returns Rank's recall for one cutoff.
func Recall(ranker Ranker, heldOut Matrix, k int, options ...Option) (float64, error) {
	ranking, err := Rank(ranker, heldOut, []int{k}, options...)
	if err != nil {
		return math.NaN(), err
	}
	return ranking.At[0].Recall, nil
}

// NDCG returns Rank's NDCG for one cutoff.
func NDCG(ranker Ranker, heldOut Matrix, k int, options ...Option) (float64, error) {
	ranking, err := Rank(ranker, heldOut, []int{k}, options...)
	if err != nil {
		return math.NaN(), err
	}
	return ranking.At[0].NDCG, nil
}

// rankingSums are the sums over one block of users.
type rankingSums struct {
	users, skipped int
	at             []Cutoff
	err            error
}

// rankingScratch is what one worker needs.
type rankingScratch struct {
	top []int32
	// state says for each item whether it is relevant for the present user and
	// whether it is in the list.
	state []uint8
	// covered has, for each cutoff, a bit for each item that was in a list.
	covered [][]uint64
}

const (
	stateRelevant = 1 << iota
	stateListed
)

// mark notes the relevant items.
func (s *rankingScratch) mark(user int, relevant []int32) error {
	for _, item := range relevant {
		switch {
		case item < 0 || int(item) >= len(s.state):
			return fmt.Errorf("eval: user %d has held-out item %d, but there are %d items", user, item, len(s.state))
		case s.state[item] != 0:
			return fmt.Errorf("eval: user %d has held-out item %d twice", user, item)
		}
		s.state[item] = stateRelevant
	}
	return nil
}

// check looks for lists that would falsify the measures.
func (s *rankingScratch) check(user, k int) error {
	if len(s.top) > k {
		return fmt.Errorf("eval: the ranker gave user %d %d items instead of at most %d", user, len(s.top), k)
	}
	for _, item := range s.top {
		switch {
		case item < 0 || int(item) >= len(s.state):
			return fmt.Errorf("eval: the ranker gave user %d item %d, but there are %d items", user, item, len(s.state))
		case s.state[item]&stateListed != 0:
			return fmt.Errorf("eval: the ranker gave user %d item %d twice", user, item)
		}
		s.state[item] |= stateListed
	}
	return nil
}

// unmark forgets the user.
func (s *rankingScratch) unmark(relevant []int32) {
	for _, item := range relevant {
		s.state[item] = 0
	}
	for _, item := range s.top {
		s.state[item] = 0
	}
}

// add measures the first k of the list.
func (c *Cutoff) add(s *rankingScratch, k, relevant int, covered []uint64, discounts, ideal []float64) {
	hits, gain := 0, 0.0
	for rank, item := range s.top[:min(k, len(s.top))] {
		covered[item/64] |= 1 << (item % 64)
		if s.state[item]&stateRelevant != 0 {
			hits++
			gain += discounts[rank]
		}
	}
	best := min(k, relevant)
	c.Recall += float64(hits) / float64(best)
	c.Precision += float64(hits) / float64(k)
	c.NDCG += gain / ideal[best]
	if hits > 0 {
		c.HitRate++
	}
}

// coverage counts the items that any worker saw in a list.
func coverage(scratch []rankingScratch, cutoff, items int) float64 {
	count := 0
	for word := range (items + 63) / 64 {
		var union uint64
		for _, s := range scratch {
			if s.covered != nil {
				union |= s.covered[cutoff][word]
			}
		}
		count += bits.OnesCount64(union)
	}
	return float64(count) / float64(items)
}
