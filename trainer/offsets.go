package trainer

import "github.com/dpmf-go/dpmf/dataset"

// Means selects which averages are subtracted from ratings before factors are
// fitted, and added back to predictions.
type Means struct {
	Global, Item, User bool
	// Shrinkage is the number of ratings at the overall mean that an item's or user's
	// average is mixed with.
	Shrinkage float64
}

// Offsets are the averages: a rating's base is Global + Item[i] + User[u].
type Offsets struct {
	Global float32
	Item   []float32 // nil: zero
	User   []float32 // nil: zero
}

// FitOffsets computes the selected averages one after the other, each on what
// the previous ones leave: global, then items, then users.
func FitOffsets(r *dataset.Ratings, m Means) Offsets {
	var o Offsets
	if m.Global {
		o.Global = float32(r.Mean())
	}
	if m.Item {
		o.Item = make([]float32, r.NumItems())
		for i := range o.Item {
			_, values := r.Item(i)
			var sum float64
			for _, v := range values {
				sum += float64(v - o.Global)
			}
			o.Item[i] = shrunkMean(sum, len(values), m.Shrinkage)
		}
	}
	if m.User {
		o.User = make([]float32, r.NumUsers())
		for u := range o.User {
			items, values := r.User(u)
			o.User[u] = o.FitUser(items, values, m.Shrinkage)
		}
	}
	return o
}

// FitUser is the shrunk average of what Global and Item leave of one user's ratings.
func (o *Offsets) FitUser(items []int32, values []float32, shrinkage float64) float32 {
	var sum float64
	for k, v := range values {
		sum += float64(v - o.itemBase(items[k]))
	}
	return shrunkMean(sum, len(values), shrinkage)
}

func shrunkMean(sum float64, n int, shrinkage float64) float32 {
	if n == 0 {
		return 0
	}
	return float32(sum / (float64(n) + shrinkage))
}

func (o *Offsets) itemBase(i int32) float32 {
	if o.Item == nil {
		return o.Global
	}
	return o.Global + o.Item[i]
}

// Base is the part of a prediction that does not come from factors.
func (o *Offsets) Base(u, i int) float32 {
	if o.User == nil {
		return o.itemBase(int32(i))
	}
	return o.itemBase(int32(i)) + o.User[u]
}

// UserResiduals writes the ratings of user u minus their bases into out.
func (o *Offsets) UserResiduals(u int, items []int32, values, out []float32) {
	var user float32
	if o.User != nil {
		user = o.User[u]
	}
	o.residuals(user, items, values, out)
}

func (o *Offsets) residuals(user float32, items []int32, values, out []float32) {
	for k, v := range values {
		out[k] = v - (o.itemBase(items[k]) + user)
	}
}

// ItemResiduals writes the ratings of item i minus their bases into out.
func (o *Offsets) ItemResiduals(i int, users []int32, values, out []float32) {
	base := o.itemBase(int32(i))
	for k, v := range values {
		if o.User != nil {
			out[k] = v - (base + o.User[users[k]])
		} else {
			out[k] = v - base
		}
	}
}
