package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// LowRank generates the synthetic set of the DPALS paper (Chien et al. 2021): M = U·Vᵀ with U users × rank and V
// items × rank random matrices of orthonormal columns, scaled so that the entries of M have standard deviation 1, without
// noise or rounding, of which each entry is observed with probability p independently. The paper takes rank 5, 1000 items
// and p = 20·ln(users)/items.
//
// It is an error if a dimension is not positive, rank is above either of them, p is not in (0, 1], or nothing is observed.
func LowRank(ctx context.Context, users, items, rank int, p float64, seed uint64) (*Ratings, error) {
	switch {
	case users <= 0 || items <= 0 || users > math.MaxInt32 || items > math.MaxInt32:
		return nil, fmt.Errorf("dataset: a low-rank set of %d users and %d items is impossible; both must be 1 to %d", users, items, math.MaxInt32)
	case rank <= 0 || rank > min(users, items):
		return nil, fmt.Errorf("dataset: rank %d of a low-rank set must be 1 to %d, the smaller of users and items", rank, min(users, items))
	case !(p > 0 && p <= 1):
		return nil, fmt.Errorf("dataset: the share %v of observed entries must be above 0 and at most 1", p)
	}
	workers := Options{}.workers()
	s := newStream(seed, purposeLowRankUsers, 0)
	left, err := orthonormal(ctx, &s, users, rank)
	if err != nil {
		return nil, err
	}
	s = newStream(seed, purposeLowRankItems, 0)
	right, err := orthonormal(ctx, &s, items, rank)
	if err != nil {
		return nil, err
	}
	// The squares of the entries of U·Vᵀ sum to rank, and its sum is the product of the column sums.
	n := float64(users) * float64(items)
	mean := 0.0
	for k := range rank {
		mean += float64(columnSum(left, rank, k) * columnSum(right, rank, k))
	}
	mean /= n
	scale := 1 / math.Sqrt(float64(rank)/n-float64(mean*mean))
	if math.IsInf(scale, 0) || math.IsNaN(scale) {
		return nil, fmt.Errorf("dataset: a low-rank set of %d users and %d items has no variance", users, items)
	}

	r := &Ratings{users: users, items: items, userIDs: IdentityIDs(users), itemIDs: IdentityIDs(items)}
	r.userPtr = make([]int64, users+1)
	threshold := uint64(math.MaxUint64)
	if p < 1 {
		threshold = uint64(p * (1 << 63) * 2)
	}
	observed := func(u int, f func(item int)) {
		s := newStream(seed, purposeLowRankMask, u)
		for i := range items {
			if s.next() <= threshold {
				f(i)
			}
		}
	}
	parts := min(users, max(8*workers, 1+int(n)>>20))
	err = parallel(ctx, workers, parts, func(part int) error {
		from, to := evenRange(users, parts, part)
		for u := from; u < to; u++ {
			observed(u, func(int) { r.userPtr[u+1]++ })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for u := range users {
		r.userPtr[u+1] += r.userPtr[u]
	}
	total := r.userPtr[users]
	if total == 0 {
		return nil, errors.New("dataset: no entry of the low-rank set was observed; raise the share or the dimensions")
	}
	r.rowItem, r.rowVal = make([]int32, total), make([]float32, total)
	err = parallel(ctx, workers, parts, func(part int) error {
		from, to := evenRange(users, parts, part)
		for u := from; u < to; u++ {
			k := r.userPtr[u]
			a := left[u*rank:][:rank]
			observed(u, func(i int) {
				b := right[i*rank:][:rank]
				sum := 0.0
				for c, x := range a {
					sum += float64(x * b[c])
				}
				r.rowItem[k], r.rowVal[k] = int32(i), float32(scale*sum)
				k++
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := r.finish(ctx, workers); err != nil {
		return nil, err
	}
	r.scale = fitScale(r.rowVal)
	r.info = Info{Name: fmt.Sprintf("lowrank-%dx%d-r%d", users, items, rank), Source: "synthetic", Synthetic: true, Seed: seed, ScaleFromRatings: true}
	r.info.SHA256 = r.ContentSHA256()
	return r, nil
}

func columnSum(a []float64, cols, k int) float64 {
	sum := 0.0
	for i := k; i < len(a); i += cols {
		sum += a[i]
	}
	return sum
}

// orthonormal is a rows × cols matrix, row-major, whose columns are orthonormal and otherwise uniformly random:
// a normal matrix after Gram–Schmidt, done twice for accuracy.
func orthonormal(ctx context.Context, s *stream, rows, cols int) ([]float64, error) {
	// Columns are contiguous while they are worked on.
	col := make([][]float64, cols)
	for k := range col {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		v := make([]float64, rows)
		for i := 0; i < rows; i += 2 {
			// Box–Muller
			radius, angle := math.Sqrt(-2*math.Log(s.unit())), 2*math.Pi*s.unit()
			v[i] = radius * math.Cos(angle)
			if i+1 < rows {
				v[i+1] = radius * math.Sin(angle)
			}
		}
		for range 2 {
			for _, w := range col[:k] {
				d := 0.0
				for i, x := range v {
					d += float64(x * w[i])
				}
				for i := range v {
					v[i] -= float64(d * w[i])
				}
			}
		}
		norm := 0.0
		for _, x := range v {
			norm += float64(x * x)
		}
		norm = math.Sqrt(norm)
		if norm < 1e-6 { // as good as impossible, and only for tiny matrices
			return nil, errors.New("dataset: the random factors of the low-rank set are degenerate; choose another seed")
		}
		for i := range v {
			v[i] /= norm
		}
		col[k] = v
	}
	out := make([]float64, rows*cols)
	for k, v := range col {
		for i, x := range v {
			out[i*cols+k] = x
		}
	}
	return out, nil
}
