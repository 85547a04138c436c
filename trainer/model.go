package trainer

import (
	"encoding/json"
	"fmt"
	"math"
	"sync"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/privacy"
	"github.com/dpmf-go/dpmf/trainer/internal/normal"
)

// A Model predicts the rating (or score) of user u for item i as
//
//	base(u, i) + ⟨user factors of u, item factors of i⟩,
//
// clamped to the rating scale if it has one. It is immutable and safe for
// concurrent use.
type Model struct {
	Algorithm string          // "als", "dpals", …
	Config    json.RawMessage // hyper-parameters of the training run, as JSON
	Rank      int

	// Factors, row-major with Rank columns. UserFactors is nil in a model file that
	// was saved without them: such a model knows items only, and users come in
	// through NewUser.
	UserFactors, ItemFactors []float32
	Offsets                  Offsets

	// ClampMin < ClampMax bound predictions; equal values mean no clamping.
	ClampMin, ClampMax float32

	// FoldIn is how a user's factors follow from her ratings and the item factors.
	FoldIn FoldIn

	UserIDs, ItemIDs *dataset.IDs

	// Ledger is nil for an algorithm without privacy.
	Ledger *privacy.Ledger

	// Seen, if not nil, holds the training ratings: Recommend leaves out what a user has
	// rated. It is not saved.
	Seen *dataset.Ratings

	background struct { // FoldIn.Loss.BackgroundWeight() · VᵀV
		once sync.Once
		gram []float32
		err  error
	}
}

// MaxRank is the highest rank that trainers accept. Far beyond any use, it keeps the sizes of
// tables and workspaces within what integers can count.
const MaxRank = 1 << 14

// FoldIn is the least-squares problem that gives a user's factors.
type FoldIn struct {
	Loss      Loss    `json:"loss"`
	Ridge     Ridge   `json:"ridge"`
	UserMean  bool    `json:"user_mean"`            // subtract the user's own shrunk mean first
	Shrinkage float64 `json:"shrinkage,omitempty"`  // of that mean
	ClipBound float64 `json:"clip_bound,omitempty"` // ratings are clipped to ±this after centring; 0: not
}

// NumUsers is the number of users with stored factors.
func (m *Model) NumUsers() int { return len(m.UserFactors) / m.Rank }

// NumItems is the number of items.
func (m *Model) NumItems() int { return len(m.ItemFactors) / m.Rank }

// UserVector returns the factors of user u, which must not be changed.
func (m *Model) UserVector(u int) []float32 { return m.UserFactors[u*m.Rank:][:m.Rank:m.Rank] }

// ItemVector returns the factors of item i, which must not be changed.
func (m *Model) ItemVector(i int) []float32 { return m.ItemFactors[i*m.Rank:][:m.Rank:m.Rank] }

// Predict returns the predicted rating of a stored user for an item.
// It is NaN if either index is outside the model.
func (m *Model) Predict(user, item int) float32 {
	if uint(user) >= uint(m.NumUsers()) || uint(item) >= uint(m.NumItems()) {
		return float32(math.NaN())
	}
	return m.clamp(m.Offsets.Base(user, item) + m.dot(m.UserVector(user), item))
}

// dot sums in the order of kernels.ScoreF32, so that predictions and recommendations
// agree to the bit.
func (m *Model) dot(x []float32, item int) float32 {
	var score [1]float32
	kernels.ScoreF32(score[:], m.ItemVector(item), x, m.Rank)
	return score[0]
}

// PredictItems writes the predictions of one stored user for the given items into
// out, several at a time: the fast path for evaluation. Indices must be in range.
func (m *Model) PredictItems(user int, items []int32, out []float32) {
	kernels.ScoreRowsF32(out, m.ItemFactors, m.UserVector(user), m.Rank, items)
	for k, i := range items {
		out[k] = m.clamp(m.Offsets.Base(user, int(i)) + out[k])
	}
}

func (m *Model) clamp(x float32) float32 {
	if m.ClampMin < m.ClampMax {
		return min(max(x, m.ClampMin), m.ClampMax)
	}
	return x
}

// A User is a user who was not in the training data, or whose history changed.
type User struct {
	Vector []float32 // factors
	Mean   float32   // her part of the base
	items  []int32   // her history, ascending; left out of recommendations
}

// NewUser computes a user's factors from her ratings by the same least-squares problem as in
// training (for a private model: unclipped), without
// retraining. items and values are of equal length, in any order; an item index
// outside the model, a repeated one or a value that is not finite is an error.
func (m *Model) NewUser(items []int32, values []float32) (*User, error) {
	sorted, targets, err := m.checkHistory(items, values)
	if err != nil {
		return nil, err
	}
	u := &User{Vector: make([]float32, m.Rank), items: sorted}
	if m.FoldIn.UserMean {
		u.Mean = m.Offsets.FitUser(sorted, targets, m.FoldIn.Shrinkage)
	}
	background, err := m.backgroundGram()
	if err != nil {
		return nil, err
	}
	w := normal.NewWorkspace(m.Rank)
	in := kernels.GramInput{Table: m.ItemFactors, Rank: m.Rank, Rows: sorted, Targets: targets}
	if m.FoldIn.Loss.Weighted() {
		in.Weights = make([]float32, len(targets))
		m.FoldIn.Loss.Weights(targets, in.Weights)
		w.Weights = in.Weights
	}
	m.FoldIn.prepare(&m.Offsets, u.Mean, sorted, targets)
	w.Targets = targets
	accumulate := func() { w.Accumulate(&in, background) }
	accumulate()
	if _, err := w.SolveRidge(m.Rank, m.FoldIn.Ridge.At(float64(len(sorted))), u.Vector, accumulate); err != nil {
		return nil, err
	}
	return u, nil
}

// prepare turns ratings into the targets of the user's equations, in place.
func (f *FoldIn) prepare(o *Offsets, userMean float32, items []int32, ratings []float32) {
	if f.Loss.Kind == Explicit {
		o.residuals(userMean, items, ratings, ratings)
		ClipRatings(ratings, f.ClipBound)
		return
	}
	f.Loss.Targets(ratings)
}

// ClipRatings limits x to ±bound in place; a bound of 0 does nothing.
func ClipRatings(x []float32, bound float64) {
	if bound == 0 {
		return
	}
	b := float32(bound)
	for k, v := range x {
		switch { // most ratings are within the bound
		case v > b:
			x[k] = b
		case v < -b:
			x[k] = -b
		}
	}
}

// backgroundGram computes the item side's full Gram matrix once.
func (m *Model) backgroundGram() ([]float32, error) {
	weight := m.FoldIn.Loss.BackgroundWeight()
	if weight == 0 {
		return nil, nil
	}
	m.background.once.Do(func() {
		m.background.gram, m.background.err = fullGram(m.ItemFactors, m.Rank, weight)
	})
	return m.background.gram, m.background.err
}

// Privacy says in plain words who is protected, from what, by which mechanisms
// and at which ε, or that the model is not private.
func (m *Model) Privacy() string {
	if m.Ledger == nil {
		return fmt.Sprintf("No privacy guarantee: %s computes the model from exact ratings.", m.Algorithm)
	}
	return m.Ledger.String()
}
