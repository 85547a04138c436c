package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
)

// BuildOptions are the optional parts of New.
type BuildOptions struct {
	Name             string // for Info
	UserIDs, ItemIDs *IDs   // nil means the identity
	Scale            Scale  // zero means the smallest scale that fits the ratings
	Workers          int    // 0 means GOMAXPROCS
}

// New builds a users × items matrix from triples in any order. Of several ratings of one user and item the last
// wins, and Info counts the others. It is an error if an index is outside the matrix, a value is not finite or
// outside the given scale, an id map has another length than its dimension, or there is no rating at all.
// triples is neither changed nor kept.
func New(users, items int, triples []Triple, opts BuildOptions) (*Ratings, error) {
	if users <= 0 || items <= 0 || users > math.MaxInt32 || items > math.MaxInt32 {
		return nil, fmt.Errorf("dataset: a matrix of %d users and %d items is impossible; both must be 1 to %d", users, items, math.MaxInt32)
	}
	if len(triples) == 0 {
		return nil, errors.New("dataset: there is no rating in the data")
	}
	userIDs, itemIDs := opts.UserIDs, opts.ItemIDs
	if userIDs == nil {
		userIDs = IdentityIDs(users)
	}
	if itemIDs == nil {
		itemIDs = IdentityIDs(items)
	}
	if userIDs.Len() != users || itemIDs.Len() != items {
		return nil, fmt.Errorf("dataset: %d user ids and %d item ids do not fit a matrix of %d users and %d items", userIDs.Len(), itemIDs.Len(), users, items)
	}
	given := opts.Scale != Scale{}
	for k, t := range triples {
		switch {
		case t.User < 0 || int(t.User) >= users:
			return nil, fmt.Errorf("dataset: rating %d has user index %d, outside 0..%d", k, t.User, users-1)
		case t.Item < 0 || int(t.Item) >= items:
			return nil, fmt.Errorf("dataset: rating %d has item index %d, outside 0..%d", k, t.Item, items-1)
		case t.Value-t.Value != 0: // NaN or infinite
			return nil, fmt.Errorf("dataset: rating %d (user %d, item %d) is %v, not a finite number", k, t.User, t.Item, t.Value)
		case given && (t.Value < opts.Scale.Min || t.Value > opts.Scale.Max):
			return nil, fmt.Errorf("dataset: rating %d (user %d, item %d) is %v, outside the scale %v to %v", k, t.User, t.Item, t.Value, opts.Scale.Min, opts.Scale.Max)
		}
	}
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	r, err := build(context.Background(), workers, users, items, [][]Triple{triples}, nil)
	if err != nil {
		return nil, err
	}
	r.userIDs, r.itemIDs = userIDs, itemIDs
	r.info.Name = opts.Name
	r.scale = opts.Scale
	if !given {
		r.scale, r.info.ScaleFromRatings = fitScale(r.rowVal), true
	}
	return r, nil
}

// build turns blocks of valid triples, in the order of the input, into a matrix without ids and scale. Blocks are set
// to nil as soon as they are no longer needed, unless they are the only one.
func build(ctx context.Context, workers, users, items int, blocks [][]Triple, progress func(done, total int64)) (*Ratings, error) {
	starts := make([]int64, len(blocks)+1)
	for b, block := range blocks {
		starts[b+1] = starts[b] + int64(len(block))
	}
	n := starts[len(blocks)]
	report := func(step int64) {
		if progress != nil {
			progress(step*n/4, n)
		}
	}
	report(0)
	ascending, err := blocksAscending(ctx, workers, blocks)
	if err != nil {
		return nil, err
	}
	r := &Ratings{users: users, items: items}
	if ascending {
		// The usual case for MovieLens files: the input is the matrix by user already.
		err = r.copySorted(ctx, workers, blocks, starts)
	} else {
		err = r.sortBlocks(ctx, workers, blocks, starts)
	}
	if err != nil {
		return nil, err
	}
	report(3)
	if err := r.finish(ctx, workers); err != nil {
		return nil, err
	}
	report(4)
	return r, nil
}

// finish derives the matrix by item and the mean from the matrix by user.
func (r *Ratings) finish(ctx context.Context, workers int) error {
	var err error
	r.itemPtr, r.colUser, r.colVal, err = transpose(ctx, workers, r.items, r.userPtr, r.rowItem, r.rowVal)
	if err != nil {
		return err
	}
	r.mean = meanByRow(r.userPtr, r.rowVal)
	return nil
}

// meanByRow sums row by row, so that the result does not depend on how the work was divided and errors stay small.
func meanByRow(ptr []int64, val []float32) float64 {
	if len(val) == 0 {
		return 0
	}
	total := 0.0
	for u := range len(ptr) - 1 {
		sum := 0.0
		for _, v := range val[ptr[u]:ptr[u+1]] {
			sum += float64(v)
		}
		total += sum
	}
	return total / float64(len(val))
}

// blocksAscending reports whether the triples ascend strictly by user and item, which also rules out duplicates.
func blocksAscending(ctx context.Context, workers int, blocks [][]Triple) (bool, error) {
	ok := make([]bool, len(blocks))
	err := parallel(ctx, workers, len(blocks), func(b int) error {
		last := int64(-1)
		for prev := b - 1; prev >= 0; prev-- {
			if k := len(blocks[prev]); k > 0 {
				last = pairKey(blocks[prev][k-1])
				break
			}
		}
		for _, t := range blocks[b] {
			key := pairKey(t)
			if key <= last {
				return nil
			}
			last = key
		}
		ok[b] = true
		return nil
	})
	for _, asc := range ok {
		if !asc {
			return false, err
		}
	}
	return true, err
}

func pairKey(t Triple) int64 { return int64(t.User)<<32 | int64(t.Item) }

// copySorted fills the matrix by user from triples in its own order.
func (r *Ratings) copySorted(ctx context.Context, workers int, blocks [][]Triple, starts []int64) error {
	n := starts[len(blocks)]
	r.userPtr = make([]int64, r.users+1)
	r.rowItem = make([]int32, n)
	r.rowVal = make([]float32, n)
	return parallel(ctx, workers, len(blocks), func(b int) error {
		// Each block writes the offsets of the rows that begin in it: those after the last user of the block before.
		user := int32(-1)
		for prev := b - 1; prev >= 0; prev-- {
			if k := len(blocks[prev]); k > 0 {
				user = blocks[prev][k-1].User
				break
			}
		}
		pos := starts[b]
		items, vals := r.rowItem[pos:starts[b+1]], r.rowVal[pos:starts[b+1]]
		for k, t := range blocks[b] {
			for user < t.User {
				user++
				r.userPtr[user] = pos + int64(k)
			}
			items[k], vals[k] = t.Item, t.Value
		}
		if starts[b+1] == n && len(blocks[b]) > 0 {
			for user < int32(r.users) {
				user++
				r.userPtr[user] = n
			}
		}
		return nil
	})
}

// sortBlocks fills the matrix by user from triples in any order: a stable counting sort by item, then one by user,
// after which equal pairs stand side by side in the order of the input and all but the last are removed.
func (r *Ratings) sortBlocks(ctx context.Context, workers int, blocks [][]Triple, starts []int64) error {
	itemPtr, users, vals, err := sortByItem(ctx, workers, r.items, blocks, starts)
	if err != nil {
		return err
	}
	if len(blocks) > 1 {
		clear(blocks)
	}
	r.userPtr, r.rowItem, r.rowVal, err = transpose(ctx, workers, r.users, itemPtr, users, vals)
	if err != nil {
		return err
	}
	r.info.Duplicates = r.removeDuplicates()
	return nil
}

// removeDuplicates keeps the last of neighbouring entries of one row with the same item and returns how many it removed.
func (r *Ratings) removeDuplicates() int64 {
	w := int64(0)
	for u := range r.users {
		from, to := r.userPtr[u], r.userPtr[u+1]
		r.userPtr[u] = w
		for k := from; k < to; k++ {
			if k+1 < to && r.rowItem[k+1] == r.rowItem[k] {
				continue
			}
			r.rowItem[w], r.rowVal[w] = r.rowItem[k], r.rowVal[k]
			w++
		}
	}
	removed := r.userPtr[r.users] - w
	r.userPtr[r.users] = w
	r.rowItem, r.rowVal = r.rowItem[:w:w], r.rowVal[:w:w]
	return removed
}

// sortByItem is a stable parallel counting sort of the triples by item.
func sortByItem(ctx context.Context, workers, items int, blocks [][]Triple, starts []int64) (ptr []int64, users []int32, vals []float32, err error) {
	n := starts[len(blocks)]
	parts := sortParts(workers, items, n)
	// Parts are ranges of positions, so that one large block is divided as well as many small ones.
	each := func(p int, f func(block []Triple)) {
		from, to := evenRange(int(n), parts, p)
		for b, block := range blocks {
			lo, hi := max(int64(from), starts[b]), min(int64(to), starts[b+1])
			if lo < hi {
				f(block[lo-starts[b] : hi-starts[b]])
			}
		}
	}
	next := make([][]int64, parts)
	err = parallel(ctx, workers, parts, func(p int) error {
		count := make([]int64, items)
		each(p, func(block []Triple) {
			for _, t := range block {
				count[t.Item]++
			}
		})
		next[p] = count
		return nil
	})
	if err != nil {
		return nil, nil, nil, err
	}
	ptr = startsOf(next, items)
	users, vals = make([]int32, n), make([]float32, n)
	err = parallel(ctx, workers, parts, func(p int) error {
		pos := next[p]
		each(p, func(block []Triple) {
			for _, t := range block {
				k := pos[t.Item]
				pos[t.Item] = k + 1
				users[k], vals[k] = t.User, t.Value
			}
		})
		return context.Cause(ctx)
	})
	return ptr, users, vals, err
}

// transpose turns compressed rows into compressed columns with a stable parallel counting sort: the rows in each
// column ascend, and equal pairs keep their order.
func transpose(ctx context.Context, workers, cols int, ptr []int64, idx []int32, val []float32) (tptr []int64, tidx []int32, tval []float32, err error) {
	parts := sortParts(workers, cols, int64(len(idx)))
	next := make([][]int64, parts)
	err = parallel(ctx, workers, parts, func(p int) error {
		from, to := rowRange(ptr, parts, p)
		count := make([]int64, cols)
		for _, c := range idx[ptr[from]:ptr[to]] {
			count[c]++
		}
		next[p] = count
		return nil
	})
	if err != nil {
		return nil, nil, nil, err
	}
	tptr = startsOf(next, cols)
	tidx, tval = make([]int32, len(idx)), make([]float32, len(idx))
	err = parallel(ctx, workers, parts, func(p int) error {
		from, to := rowRange(ptr, parts, p)
		pos := next[p]
		for row := from; row < to; row++ {
			a, b := ptr[row], ptr[row+1]
			vals := val[a:b]
			for j, c := range idx[a:b] {
				k := pos[c]
				pos[c] = k + 1
				tidx[k], tval[k] = int32(row), vals[j]
			}
		}
		return nil
	})
	return tptr, tidx, tval, err
}

// sortParts is the number of ranges a counting sort works on: enough to stop soon after a cancel, few enough that the
// counters (one per key and part) stay small beside the n entries.
func sortParts(workers, keys int, n int64) int {
	byMemory := n / int64(4*keys+1)
	return int(max(1, min(byMemory, int64(8*workers), 1+n>>16)))
}

// startsOf replaces counts[part][key] by the position where that part begins to write that key, and returns the
// offsets of the keys.
func startsOf(counts [][]int64, keys int) []int64 {
	ptr := make([]int64, keys+1)
	pos := int64(0)
	for key := range keys {
		ptr[key] = pos
		for _, count := range counts {
			c := count[key]
			count[key] = pos
			pos += c
		}
	}
	ptr[keys] = pos
	return ptr
}

// fitScale is the smallest scale that contains the values: their range, and the largest step among 1, ½, ¼, ⅕, ⅒
// that reaches them all from zero, or 0.
func fitScale(values []float32) Scale {
	if len(values) == 0 {
		return Scale{}
	}
	s := Scale{Min: values[0], Max: values[0]}
	steps := [...]float32{1, 0.5, 0.25, 0.2, 0.1}
	fits := [len(steps)]bool{true, true, true, true, true}
	// Ratings repeat a few values: remember those already tried in a small table, indexed by a hash of their bits.
	var tried [256]uint32
	tried[0] = 1 // bits 0 are in no slot yet, and 1 belongs elsewhere
	for _, v := range values {
		bits := math.Float32bits(v)
		slot := &tried[bits*0x9e3779b1>>24]
		if *slot == bits {
			continue
		}
		*slot = bits
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		for k, step := range steps {
			fits[k] = fits[k] && onGrid(v, step)
		}
	}
	if s.Min == s.Max {
		return s
	}
	for k, step := range steps {
		if fits[k] {
			s.Step = step
			break
		}
	}
	return s
}

// onGrid allows for the rounding of a decimal fraction to float32.
func onGrid(v, step float32) bool {
	q := float64(v) / float64(step)
	d := q - math.Round(q)
	return math.Abs(q) < 1<<20 && d > -1e-3 && d < 1e-3
}
