package dataset

import (
	"cmp"
	"slices"
)

// Filters keep dimensions and id maps, so that indices stay valid; rows and columns may become empty. Compact
// removes those. All of them look at the exact ratings and counts, so none is private.

const dropped = 0xff // a label that partition leaves out

// Above keeps the ratings greater than limit.
func (r *Ratings) Above(limit float32) *Ratings {
	return r.keep(func(u, k int) bool { return r.rowVal[k] > limit })
}

// MinUserRatings keeps the ratings of users who have at least n.
func (r *Ratings) MinUserRatings(n int) *Ratings {
	return r.keep(func(u, k int) bool { return r.UserCount(u) >= n })
}

// MinItemRatings keeps the ratings of items that have at least n.
func (r *Ratings) MinItemRatings(n int) *Ratings {
	return r.keep(func(u, k int) bool { return r.ItemCount(int(r.rowItem[k])) >= n })
}

// TopItems keeps the ratings of the n items with the most, lower indices first among equals.
func (r *Ratings) TopItems(n int) *Ratings {
	order := r.ItemsByCount()
	top := make([]bool, r.items)
	for _, i := range order[:min(max(n, 0), len(order))] {
		top[i] = true
	}
	return r.keep(func(u, k int) bool { return top[r.rowItem[k]] })
}

// ItemsByCount lists all items, the one with the most ratings first, lower indices first among equals.
func (r *Ratings) ItemsByCount() []int32 {
	order := make([]int32, r.items)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.ItemCount(int(b)), r.ItemCount(int(a))), cmp.Compare(a, b))
	})
	return order
}

// Implicit is the preparation of the implicit protocol (Liang et al. 2018): keep ratings above limit (3.5 on a scale of
// 5), then the users who have at least minItems of them (5), remove empty rows and columns, and set every value to 1.
func (r *Ratings) Implicit(limit float32, minItems int) *Ratings {
	out := r.Above(limit).MinUserRatings(minItems).Compact()
	for _, values := range [][]float32{out.rowVal, out.colVal} {
		for k := range values {
			values[k] = 1
		}
	}
	out.scale = Scale{Min: 1, Max: 1}
	out.mean = meanByRow(out.userPtr, out.rowVal)
	return out
}

// Compact removes users and items without ratings and renumbers the others in the same order. The result has id maps
// of its own.
func (r *Ratings) Compact() *Ratings {
	users, userIndex := occupied(r.userPtr)
	items, itemIndex := occupied(r.itemPtr)
	out := r.keep(func(u, k int) bool { return true })
	out.users, out.items = len(users), len(items)
	out.userPtr, out.itemPtr = squeeze(out.userPtr, users), squeeze(out.itemPtr, items)
	renumber(out.rowItem, itemIndex)
	renumber(out.colUser, userIndex)
	out.userIDs, out.itemIDs = r.userIDs.pick(users), r.itemIDs.pick(items)
	return out
}

// keep copies the ratings for which f(user, position by user) holds.
func (r *Ratings) keep(f func(u, k int) bool) *Ratings {
	label := make([]uint8, r.NumRatings())
	for u := range r.users {
		for k := r.userPtr[u]; k < r.userPtr[u+1]; k++ {
			if !f(u, int(k)) {
				label[k] = dropped
			}
		}
	}
	return r.partition(label, 1)[0]
}

// occupied lists the rows that have entries, and for every row its place in that list.
func occupied(ptr []int64) (rows []int32, index []int32) {
	index = make([]int32, len(ptr)-1)
	for i := range index {
		if ptr[i+1] > ptr[i] {
			index[i] = int32(len(rows))
			rows = append(rows, int32(i))
		}
	}
	return rows, index
}

// squeeze keeps the offsets of the given rows, which must include all that have entries.
func squeeze(ptr []int64, rows []int32) []int64 {
	out := make([]int64, 0, len(rows)+1)
	for _, row := range rows {
		out = append(out, ptr[row])
	}
	return append(out, ptr[len(ptr)-1])
}

func renumber(ids, index []int32) {
	for k, i := range ids {
		ids[k] = index[i]
	}
}
