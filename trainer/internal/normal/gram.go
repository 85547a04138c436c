package normal

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/dpmf-go/dpmf/kernels"
)

// gramParts is the fixed number of parts whose sums are added in order, so that a
// full Gram matrix does not depend on the number of workers.
const gramParts = 16

// FullGramBytes is the memory that FullGram needs for a table of n rows.
func FullGramBytes(r, n int) int64 {
	s := int64(kernels.Stride(r))
	return 4 * (gramParts*s*s + int64(n))
}

// FullGram returns scale · Σ_i t_i t_iᵀ over all rows of table, in the storage of
// package kernels.
func FullGram(ctx context.Context, workers int, table []float32, r int, scale float32) ([]float32, error) {
	n, s := len(table)/r, kernels.Stride(r)
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	var parts [gramParts][]float32
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(Workers(workers))
	for p := range parts {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			parts[p] = make([]float32, s*s)
			in := kernels.GramInput{Table: table, Rank: r, Rows: rows[n*p/gramParts : n*(p+1)/gramParts]}
			kernels.GramF32(parts[p], nil, &in, make([]float32, kernels.GramWorkLen(r)))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	sum := parts[0]
	for _, p := range parts[1:] {
		for i, v := range p {
			sum[i] += v
		}
	}
	kernels.ScaleF32(scale, sum)
	return sum, nil
}
