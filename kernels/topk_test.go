package kernels

import (
	"cmp"
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

// ranking is the definition of TopKF32 carried out literally, for any k: all
// candidates in the order in which they are selected.
func ranking(scores []float32, exclude []int32) []int32 {
	var ids []int32
	for i, s := range scores {
		if _, excluded := slices.BinarySearch(exclude, int32(i)); s == s && !excluded {
			ids = append(ids, int32(i))
		}
	}
	slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	return ids
}

// staleScratch is shared by all tests: what a call leaves in it must not matter.
var staleScratch TopKScratch

// checkTopK compares TopKF32 for each k with the ranking.
func checkTopK(t testing.TB, what string, scores []float32, exclude []int32, ks ...int) {
	t.Helper()
	ranked := ranking(scores, exclude)
	for _, k := range ks {
		checkTopKRanked(t, what, k, scores, exclude, ranked[:min(k, len(ranked))])
	}
}

func checkTopKRanked(t testing.TB, what string, k int, scores []float32, exclude, want []int32) {
	t.Helper()
	ids, values := make([]int32, k), make([]float32, k)
	for i := range ids {
		ids[i], values[i] = -7, -7
	}
	n := TopKF32(ids, values, scores, exclude, &staleScratch)
	if n != len(want) || !slices.Equal(ids[:n], want) {
		t.Fatalf("%s, n=%d k=%d: %d ids %v, want %d: %v", what, len(scores), k, n, ids[:n], len(want), want)
	}
	for i := range ids {
		if i < n && math.Float32bits(values[i]) != math.Float32bits(scores[ids[i]]) || i >= n && (ids[i] != -7 || values[i] != -7) {
			t.Fatalf("%s, n=%d k=%d: element %d is (%d, %v)", what, len(scores), k, i, ids[i], values[i])
		}
	}
}

// topkInputs fill a slice with scores that are hard in one way each.
var topkInputs = map[string]func(*rand.Rand, []float32){
	"normal": func(rng *rand.Rand, s []float32) { kerneltest.Normal(rng, s) },
	"equal": func(_ *rand.Rand, s []float32) {
		for i := range s {
			s[i] = 2.5
		}
	},
	"few values": func(rng *rand.Rand, s []float32) {
		for i := range s {
			s[i] = float32(rng.IntN(5)) - 2
		}
	},
	"signed zeros": func(rng *rand.Rand, s []float32) {
		for i := range s {
			s[i] = float32(math.Copysign(0, float64(rng.IntN(2))-0.5))
		}
	},
	"ascending": func(_ *rand.Rand, s []float32) {
		for i := range s {
			s[i] = float32(i)
		}
	},
	"descending": func(_ *rand.Rand, s []float32) {
		for i := range s {
			s[i] = -float32(i)
		}
	},
	"wild": func(rng *rand.Rand, s []float32) {
		special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, 1, math.MaxFloat32, math.SmallestNonzeroFloat32}
		for i := range s {
			s[i] = special[rng.IntN(len(special))]
		}
	},
	"NaN": func(_ *rand.Rand, s []float32) {
		for i := range s {
			s[i] = float32(math.NaN())
		}
	},
	"-Inf": func(_ *rand.Rand, s []float32) {
		for i := range s {
			s[i] = float32(math.Inf(-1))
		}
	},
	"sample misleads": func(rng *rand.Rand, s []float32) { // high exactly where guessThreshold looks
		for i := range s {
			s[i] = rng.Float32()
		}
		for i := 0; i < len(s); i += max(1, len(s)/topkSample) {
			s[i] += 10
		}
	},
}

func TestTopKF32(t *testing.T) {
	kerneltest.EachTier(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		lengths := append([]int{0, 1, 2, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1000}, topkBlock-1, topkBlock, topkBlock+1, 3*topkBlock+17, 9000)
		for name, fill := range topkInputs {
			for _, n := range lengths {
				scores := kerneltest.AtEnd(t, n)
				fill(rng, scores)
				var some, all []int32
				for i := range n {
					all = append(all, int32(i))
					if rng.IntN(9) == 0 {
						some = append(some, int32(i))
					}
				}
				ks := []int{0, 1, 2, 10, 49, 100, 500, TopKMax}
				checkTopK(t, name, scores, nil, ks...)
				checkTopK(t, name+" excluding some", scores, some, ks...)
				if n > 0 && n < 2000 {
					checkTopK(t, name+" excluding all", scores, all, 10)
					checkTopK(t, name+" excluding all but one", scores, all[1:], 10)
					checkTopK(t, name+" excluding indices outside", scores, []int32{-3, 0, 0, int32(n - 1), int32(n), math.MaxInt32}, 10)
				}
			}
		}
	})
}

func TestTopKF32RejectsWrongArguments(t *testing.T) {
	scores := make([]float32, 5)
	for name, call := range map[string]func(ids []int32, values []float32){
		"ids and values differ":    func(ids []int32, values []float32) { TopKF32(ids, values[:1], scores, nil, new(TopKScratch)) },
		"exclude is not ascending": func(ids []int32, values []float32) { TopKF32(ids, values, scores, []int32{1, 2, 1}, new(TopKScratch)) },
		"more than TopKMax": func([]int32, []float32) {
			TopKF32(make([]int32, TopKMax+1), make([]float32, TopKMax+1), scores, nil, new(TopKScratch))
		},
	} {
		ids, values := []int32{7, 7}, []float32{7, 7}
		mustPanic(t, name, func() { call(ids, values) })
		if !slices.Equal(ids, []int32{7, 7}) || !slices.Equal(values, []float32{7, 7}) {
			t.Errorf("%s: wrote before it panicked", name)
		}
	}
}

func TestTopKKey(t *testing.T) {
	ascending := []float32{float32(math.Inf(-1)), -math.MaxFloat32, -1, -math.SmallestNonzeroFloat32, 0, math.SmallestNonzeroFloat32, 1, math.MaxFloat32, float32(math.Inf(1))}
	for i, s := range ascending {
		if got := keyScore(topkKey(s, 3)); got != s {
			t.Errorf("score %v comes back as %v", s, got)
		}
		if got := keyIndex(topkKey(s, math.MaxInt32-1)); got != math.MaxInt32-1 {
			t.Errorf("index comes back as %d", got)
		}
		if topkKey(s, 4) >= topkKey(s, 3) || i > 0 && topkKey(s, math.MaxInt32) <= topkKey(ascending[i-1], 0) {
			t.Errorf("key of %v is out of order", s)
		}
	}
	if topkKey(float32(math.Copysign(0, -1)), 3) != topkKey(0, 3) {
		t.Error("−0 and +0 have different keys")
	}
}

// TestSelectLargest drives quickselect into repeated keys and bad pivots.
func TestSelectLargest(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, n := range []int{1, 2, 3, 11, 12, 13, 100, 1000, 2128} {
		for kind := range 4 {
			keys := make([]uint64, n)
			for i := range keys {
				switch kind {
				case 0:
					keys[i] = rng.Uint64()
				case 1:
					keys[i] = uint64(rng.IntN(3))
				case 2: // an organ pipe: the median of three is always extreme
					keys[i] = uint64(min(i, n-1-i))
				}
			}
			want := slices.Clone(keys)
			slices.Sort(want)
			slices.Reverse(want)
			for _, k := range []int{1, 2, n / 3, n - 1, n} {
				if k < 1 || k > n {
					continue
				}
				got := slices.Clone(keys)
				selectLargest(got, k)
				all := slices.Sorted(slices.Values(got))
				slices.Reverse(all)
				slices.Sort(got[:k])
				slices.Reverse(got[:k])
				if !slices.Equal(got[:k], want[:k]) || !slices.Equal(all, want) {
					t.Fatalf("n=%d k=%d kind %d: wrong keys in front or keys lost", n, k, kind)
				}
			}
		}
	}
}

func FuzzTopKF32(f *testing.F) {
	f.Add([]byte("a few bytes of input"), uint16(17), uint16(9), uint8(3))
	f.Add([]byte{0xff, 0xff, 0x80, 0x7f}, uint16(3000), uint16(100), uint8(0))
	f.Add([]byte{0x7f, 0x80, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0}, uint16(2300), uint16(1000), uint8(7))
	f.Fuzz(func(t *testing.T, data []byte, n, k uint16, every uint8) {
		n %= 4096
		k %= TopKMax + 1
		scores := kerneltest.Floats(data, int(n), true)
		if every%2 == 0 { // coarse scores tie
			for i, s := range scores {
				scores[i] = float32(math.Trunc(math.Mod(float64(s), 8)))
			}
		}
		var exclude []int32
		for i := 0; every > 0 && i < int(n); i += int(every) {
			exclude = append(exclude, int32(i))
		}
		kerneltest.ForTiers(func(tier string) { checkTopK(t, tier, scores, exclude, int(k)) })
	})
}

func TestTopKF32DoesNotAllocate(t *testing.T) {
	scores := kerneltest.Normal(rand.New(rand.NewPCG(1, 1)), make([]float32, 5000))
	ids, values, scratch := make([]int32, 100), make([]float32, 100), new(TopKScratch)
	if n := testing.AllocsPerRun(20, func() { TopKF32(ids, values, scores, []int32{1, 5}, scratch) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

func BenchmarkTopKF32(b *testing.B) {
	const n = benchmarkItems
	rng := rand.New(rand.NewPCG(1, 1))
	scores := make([][]float32, 16) // several, so that branches are not learnt by heart
	for i := range scores {
		scores[i] = kerneltest.Normal(rng, make([]float32, n))
	}
	var exclude []int32
	for i := range n {
		if rng.IntN(n) < 144 {
			exclude = append(exclude, int32(i))
		}
	}
	for _, k := range []int{10, 100, 1000} {
		ids, values, scratch := make([]int32, k), make([]float32, k), new(TopKScratch)
		b.Run(sizeName("k", k), func(b *testing.B) {
			kerneltest.EachTierB(b, func(b *testing.B) {
				b.SetBytes(4 * n)
				for i := 0; b.Loop(); i++ {
					TopKF32(ids, values, scores[i%len(scores)], exclude, scratch)
				}
			})
			b.Run("heap", func(b *testing.B) {
				b.SetBytes(4 * n)
				for i := 0; b.Loop(); i++ {
					topkByHeap(k, scores[i%len(scores)], exclude)
				}
			})
			b.Run("sort", func(b *testing.B) {
				b.SetBytes(4 * n)
				order := make([]int32, n)
				for i := 0; b.Loop(); i++ {
					s := scores[i%len(scores)]
					for j := range order {
						order[j] = int32(j)
					}
					slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(s[b], s[a]) })
				}
			})
		})
	}
}

// scoreHeap is the textbook min-heap of the k best, on container/heap.
type scoreHeap struct {
	ids    []int32
	scores []float32
}

func (h *scoreHeap) Len() int { return len(h.ids) }
func (h *scoreHeap) Less(i, j int) bool {
	a, b := h.ids[i], h.ids[j]
	return h.scores[a] < h.scores[b] || h.scores[a] == h.scores[b] && a > b
}
func (h *scoreHeap) Swap(i, j int) { h.ids[i], h.ids[j] = h.ids[j], h.ids[i] }
func (h *scoreHeap) Push(x any)    { h.ids = append(h.ids, x.(int32)) }
func (h *scoreHeap) Pop() any {
	last := h.ids[len(h.ids)-1]
	h.ids = h.ids[:len(h.ids)-1]
	return last
}

func topkByHeap(k int, scores []float32, exclude []int32) []int32 {
	h := &scoreHeap{ids: make([]int32, 0, k), scores: scores}
	for i, s := range scores {
		for len(exclude) > 0 && exclude[0] < int32(i) {
			exclude = exclude[1:]
		}
		if s != s || len(exclude) > 0 && exclude[0] == int32(i) {
			continue
		}
		if h.Len() < k {
			heap.Push(h, int32(i))
		} else if s > scores[h.ids[0]] {
			h.ids[0] = int32(i)
			heap.Fix(h, 0)
		}
	}
	best := make([]int32, h.Len())
	for i := len(best) - 1; i >= 0; i-- {
		best[i] = heap.Pop(h).(int32)
	}
	return best
}

func TestTopKByHeapIsAFairRival(t *testing.T) {
	scores := kerneltest.Normal(rand.New(rand.NewPCG(2, 2)), make([]float32, 3000))
	if exclude := []int32{4, 9}; !slices.Equal(topkByHeap(50, scores, exclude), ranking(scores, exclude)[:50]) {
		t.Error("the benchmark's heap selects something else")
	}
}
