package kernels

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpmf-go/dpmf/internal/kerneltest"
)

// topkBySorting is the definition of TopKF32 carried out literally.
func topkBySorting(k int, scores []float32, exclude []int32) []int32 {
	var ids []int32
	for i, s := range scores {
		if s == s && !slices.Contains(exclude, int32(i)) {
			ids = append(ids, int32(i))
		}
	}
	slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	return ids[:min(k, len(ids))]
}

func checkTopK(t testing.TB, what string, k int, scores []float32, exclude []int32) {
	t.Helper()
	ids, values := make([]int32, k), make([]float32, k)
	for i := range ids {
		ids[i], values[i] = -7, -7
	}
	want := topkBySorting(k, scores, exclude)
	n := TopKF32(ids, values, scores, exclude, new(TopKScratch))
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
		lengths := append(kerneltest.Lengths(), topkBlock-1, topkBlock, topkBlock+1, 3*topkBlock+17, 9000)
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
				for _, k := range []int{0, 1, 2, 10, 49, 100, 500, TopKMax} {
					if n > 300 && k == 2 {
						continue
					}
					checkTopK(t, name, k, scores, nil)
					checkTopK(t, name+" excluding some", k, scores, some)
				}
				if n > 0 && n < 2000 {
					checkTopK(t, name+" excluding all", 10, scores, all)
					checkTopK(t, name+" excluding all but one", 10, scores, all[1:])
					checkTopK(t, name+" excluding indices outside", 10, scores, []int32{-3, 0, 0, int32(n - 1), int32(n), math.MaxInt32})
				}
			}
		}
	})
}
