package trainer

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dpmf-go/dpmf/kernels"
)

// Scored is an item with its predicted rating, score or similarity.
type Scored struct {
	Item  int
	Score float32
}

// Recommend returns the k items with the highest predictions for a stored user, best
// first, leaving out those she rated in the training data (if the model still
// has them: see Seen). It returns nothing for an unknown user.
func (m *Model) Recommend(user, k int) []Scored {
	if uint(user) >= uint(m.NumUsers()) {
		return nil
	}
	var seen []int32
	if m.Seen != nil && user < m.Seen.NumUsers() { // none are left of a matrix that was closed
		seen, _ = m.Seen.User(user)
	}
	return m.RecommendExcluding(user, k, seen)
}

// RecommendExcluding is Recommend with a list of items to leave out, in any order.
func (m *Model) RecommendExcluding(user, k int, exclude []int32) []Scored {
	if uint(user) >= uint(m.NumUsers()) {
		return nil
	}
	var mean float32
	if m.Offsets.User != nil {
		mean = m.Offsets.User[user]
	}
	return m.recommend(m.UserVector(user), mean, k, exclude)
}

// RecommendNew is Recommend for a user made by NewUser; her history is left out.
func (m *Model) RecommendNew(u *User, k int) []Scored {
	return m.recommend(u.Vector, u.Mean, k, u.items)
}

// PredictNew returns the predicted rating of a user made by NewUser.
func (m *Model) PredictNew(u *User, item int) float32 {
	if uint(item) >= uint(m.NumItems()) {
		return float32(math.NaN())
	}
	return m.clamp(m.Offsets.itemBase(int32(item)) + u.Mean + m.dot(u.Vector, item))
}

// ScoresNew writes the scores of all items for a user made by NewUser into out, which has one element
// per item; predictions are not clamped, so that their order is kept. It is what evaluation ranks by.
func (m *Model) ScoresNew(u *User, out []float32) { m.scores(u.Vector, u.Mean, out) }

func (m *Model) scores(x []float32, mean float32, out []float32) {
	kernels.ScoreF32(out, m.ItemFactors, x, m.Rank)
	for i := range out {
		out[i] = m.Offsets.itemBase(int32(i)) + mean + out[i]
	}
}

func (m *Model) recommend(x []float32, mean float32, k int, exclude []int32) []Scored {
	scores := make([]float32, m.NumItems())
	m.scores(x, mean, scores)
	top := topK(scores, k, exclude)
	for t := range top {
		top[t].Score = m.clamp(top[t].Score)
	}
	return top
}

// SimilarItems returns the k items whose factors have the largest cosine with
// those of the given item, best first, without the item itself and without items that
// have no factors (all of them zero).
func (m *Model) SimilarItems(item, k int) ([]Scored, error) {
	if uint(item) >= uint(m.NumItems()) {
		return nil, fmt.Errorf("similar items: item %d is outside the model's %d items", item, m.NumItems())
	}
	scores := make([]float32, m.NumItems())
	x := m.ItemVector(item)
	kernels.ScoreF32(scores, m.ItemFactors, x, m.Rank)
	own := norm(x)
	for i := range scores {
		cosine := float64(scores[i]) / (own * norm(m.ItemVector(i))) // 0/0 = NaN is never selected
		scores[i] = float32(min(max(cosine, -1), 1))
	}
	return topK(scores, k, []int32{int32(item)}), nil
}

// norm is in float64, where squares of float32 neither underflow nor overflow.
func norm(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(float64(v) * float64(v))
	}
	return math.Sqrt(sum)
}

// topK returns the k highest scores, equal ones by ascending index. Scores that are NaN
// and items in exclude are left out.
func topK(scores []float32, k int, exclude []int32) []Scored {
	if !slices.IsSorted(exclude) {
		exclude = slices.Sorted(slices.Values(exclude))
	}
	k = max(0, min(k, len(scores)))
	if k > kernels.TopKMax {
		return sortedTop(scores, k, exclude)
	}
	ids, values := make([]int32, k), make([]float32, k)
	n := kernels.TopKF32(ids, values, scores, exclude, new(kernels.TopKScratch))
	top := make([]Scored, n)
	for t := range top {
		top[t] = Scored{int(ids[t]), values[t]}
	}
	return top
}

// sortedTop is topK for more items than the kernel selects: it sorts all.
func sortedTop(scores []float32, k int, exclude []int32) []Scored {
	top := make([]Scored, 0, len(scores))
	for i, s := range scores {
		if _, left := slices.BinarySearch(exclude, int32(i)); !left && s == s {
			top = append(top, Scored{i, s})
		}
	}
	slices.SortStableFunc(top, func(a, b Scored) int { return cmp.Compare(b.Score, a.Score) })
	return top[:min(k, len(top))]
}
