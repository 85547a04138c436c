package kernels

import (
	"math"
	"math/bits"
	"slices"
)

// TopKMax is the largest number of elements TopKF32 selects.
const TopKMax = 1000

// TopKScratch is the working memory of TopKF32. The zero value is ready, its
// contents between calls mean nothing, and concurrent calls need one each.
type TopKScratch struct {
	keys   [topkCapacity]uint64         // candidates
	sorted [TopKMax]uint64              // the other half of the radix sort
	ids    [topkBlock + topkSlack]int32 // survivors of one block
}

const (
	// topkCapacity is the room for candidates at k = TopKMax; see candidateRoom.
	topkCapacity = 2*TopKMax + topkSample
	topkSample   = 512

	// topkBlock scores are filtered by one assembly call.
	topkBlock = 2048
	// topkSlack elements after the survivors may be overwritten by a filter.
	topkSlack = 16
)

// TopKF32 selects the k = len(ids) largest scores. It writes their indices to ids
// and the scores themselves to values, in descending order and equal scores (−0
// equals +0) by ascending index, and returns how many it wrote: fewer than k if
// there are fewer candidates. What ids and values hold beyond that is unchanged.
//
// Candidates are the indices of scores whose score is not NaN and that are not in
// exclude. exclude must ascend (equal neighbours and indices outside scores do no
// harm); the check is cheap next to the selection, so it is made, and a descent
// panics. values must be as long as ids, k at most TopKMax, scores shorter than
// 2³¹. ids and values must not overlap the other arguments.
//
// The selection is exact, so the result has no rounding and no order of summation.
func TopKF32(ids []int32, values, scores []float32, exclude []int32, scratch *TopKScratch) int {
	k := len(ids)
	switch {
	case len(values) != k:
		panic("kernels: TopKF32: ids and values differ in length")
	case k > TopKMax:
		panic("kernels: TopKF32: more than TopKMax elements asked for")
	case len(scores) > math.MaxInt32:
		panic("kernels: TopKF32: more scores than int32 can index")
	case !slices.IsSorted(exclude):
		panic("kernels: TopKF32: exclude is not ascending")
	}
	if k == 0 || len(scores) == 0 {
		return 0
	}
	c := candidates{scratch: scratch, k: k, room: candidateRoom(k), threshold: float32(math.Inf(-1))}
	if guess, ok := guessThreshold(scores, k+len(exclude), scratch); ok {
		c.threshold = guess
		c.collect(scores, exclude)
		if c.n < k { // the guess was too high
			c = candidates{scratch: scratch, k: k, room: c.room, threshold: float32(math.Inf(-1))}
			c.collect(scores, exclude)
		}
	} else {
		c.collect(scores, exclude)
	}
	c.shrink()
	sorted := sortDescending(scratch.keys[:c.n], &scratch.sorted)
	for i, key := range sorted {
		id := keyIndex(key)
		ids[i], values[i] = id, scores[id]
	}
	return len(sorted)
}

// candidates is a buffer of keys that keeps at least the k largest seen. When it
// is full it drops all others and raises the threshold for those to come.
type candidates struct {
	scratch   *TopKScratch
	k         int     // wanted
	room      int     // capacity in use, more than k
	n         int     // keys held
	threshold float32 // lower scores need not be offered any more
}

// candidateRoom trades the cost of shrinking against a threshold that lags behind.
func candidateRoom(k int) int { return 2*k + 128 }

// collect offers all scores that are not excluded.
func (c *candidates) collect(scores []float32, exclude []int32) {
	keys := &c.scratch.keys
	// Short blocks first, because the threshold rises fastest at the start.
	block := min(topkBlock, c.room)
	for base := 0; base < len(scores); {
		m := min(block, len(scores)-base)
		survivors := topkFilterF32(&c.scratch.ids, scores[base:base+m], int32(base), c.threshold)
		for _, id := range c.scratch.ids[:survivors] {
			for len(exclude) > 0 && exclude[0] < id {
				exclude = exclude[1:]
			}
			if len(exclude) > 0 && exclude[0] == id {
				continue
			}
			if c.n == c.room {
				c.shrink()
			}
			if s := scores[id]; s >= c.threshold {
				keys[c.n] = topkKey(s, id)
				c.n++
			}
		}
		base += m
		if block < topkBlock {
			c.shrink()
			block = min(topkBlock, 2*block)
		}
	}
}

// shrink keeps the k largest keys. An index to come is higher than all seen, so
// from now on only a score above the smallest one kept can be selected.
func (c *candidates) shrink() {
	if c.n <= c.k {
		return
	}
	keys := c.scratch.keys[:c.n]
	selectLargest(keys, c.k)
	c.n = c.k
	smallest := slices.Min(keys[:c.k])
	c.threshold = math.Nextafter32(keyScore(smallest), float32(math.Inf(1)))
	if math.IsInf(float64(keyScore(smallest)), 1) {
		c.threshold = float32(math.NaN()) // nothing compares above +Inf
	}
}

// guessThreshold estimates from evenly spaced scores a value that about 1.5 to 3
// times as many scores as wanted reach. A bad guess costs time, never correctness. It
// reports false where the plain way is as fast or most scores are wanted.
func guessThreshold(scores []float32, wanted int, scratch *TopKScratch) (float32, bool) {
	n := len(scores)
	if wanted < topkSample/8 || wanted > n/4 || n < 4*topkSample {
		return 0, false
	}
	step := n / topkSample
	keys := scratch.keys[:topkSample]
	for i := range keys {
		keys[i] = 0
		if s := scores[i*step]; s == s {
			keys[i] = topkKey(s, int32(i))
		}
	}
	// Of the sample a share wanted/n is expected above the exact threshold; three
	// standard deviations of that number more make a guess that is rarely too high.
	expected := topkSample * wanted / n
	rank := expected + 3*isqrt(expected) + 3
	selectLargest(keys, rank)
	smallest := slices.Min(keys[:rank])
	return keyScore(smallest), smallest != 0
}

func isqrt(n int) int { return int(math.Sqrt(float64(n))) }

// topkKey orders candidates as unsigned integers: by score, then lower index
// first. Keys of different indices differ. No key is 0.
func topkKey(score float32, id int32) uint64 {
	b := math.Float32bits(score + 0) // −0 + 0 = +0
	b ^= uint32(int32(b)>>31) | 1<<31
	return uint64(b)<<32 | uint64(^uint32(id))
}

func keyIndex(key uint64) int32 { return int32(^uint32(key)) }

func keyScore(key uint64) float32 {
	b := uint32(key >> 32)
	return math.Float32frombits(b ^ (uint32(int32(^b)>>31) | 1<<31))
}

// selectLargest moves the k largest of the keys, 0 < k ≤ len(keys), to the front in
// no particular order (Hoare's quickselect). The partition has no branch that depends
// on the keys. After 2·log₂(len) bad pivots it sorts instead.
func selectLargest(keys []uint64, k int) {
	for budget := 2 * bits.Len(uint(len(keys))); len(keys) > k; budget-- {
		if budget == 0 || len(keys) < 12 {
			slices.SortFunc(keys, func(a, b uint64) int {
				if a > b {
					return -1
				}
				return 1
			})
			return
		}
		middle := medianOf3(keys[0], keys[len(keys)/2], keys[len(keys)-1])
		above := 0
		for i, key := range keys {
			keys[i] = keys[above]
			keys[above] = key
			_, larger := bits.Sub64(middle, key, 0) // 1 if key > middle
			above += int(larger)
		}
		if above >= k {
			keys = keys[:above]
			continue
		}
		// keys[above:] are at most the pivot; the pivot itself comes next.
		at := above + slices.Index(keys[above:], middle)
		keys[above], keys[at] = keys[at], keys[above]
		keys, k = keys[above+1:], k-above-1
	}
}

func medianOf3(a, b, c uint64) uint64 {
	return max(min(a, b), min(max(a, b), c))
}

// sortDescending sorts keys, in place or into other, and returns the sorted
// ones: few by insertion, many by a radix sort that leaves out constant bytes.
func sortDescending(keys []uint64, other *[TopKMax]uint64) []uint64 {
	if len(keys) <= 48 {
		for i := 1; i < len(keys); i++ {
			key, j := keys[i], i
			for ; j > 0 && keys[j-1] < key; j-- {
				keys[j] = keys[j-1]
			}
			keys[j] = key
		}
		return keys
	}
	varying := uint64(0)
	for _, key := range keys {
		varying |= key ^ keys[0]
	}
	from, to := keys, other[:len(keys)]
	for shift := 0; shift < 64; shift += 8 {
		if byte(varying>>shift) == 0 {
			continue
		}
		var start [256]uint16
		for _, key := range from {
			start[^byte(key>>shift)]++ // complemented: larger bytes first
		}
		sum := uint16(0)
		for b, count := range start {
			start[b] = sum
			sum += count
		}
		for _, key := range from {
			b := ^byte(key >> shift)
			to[start[b]] = key
			start[b]++
		}
		from, to = to, from
	}
	return from
}
