package dataset

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel calls f for 0..parts-1 on the given number of goroutines and returns the first error. It stops handing out
// parts when ctx is cancelled, so a part should take well under 100 ms.
func parallel(ctx context.Context, workers, parts int, f func(part int) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	workers = min(workers, parts)
	if workers <= 1 {
		for p := range parts {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := f(p); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range workers {
		g.Go(func() error {
			for {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				p := int(next.Add(1)) - 1
				if p >= parts {
					return nil
				}
				if err := f(p); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// evenRange is part p of parts nearly equal ranges of 0..n.
func evenRange(n, parts, p int) (from, to int) {
	return int(int64(n) * int64(p) / int64(parts)), int(int64(n) * int64(p+1) / int64(parts))
}

// rowRange is part p of parts ranges of rows that hold nearly equal numbers of entries, given their offsets.
func rowRange(ptr []int64, parts, p int) (from, to int) {
	return rowBound(ptr, parts, p), rowBound(ptr, parts, p+1)
}

func rowBound(ptr []int64, parts, p int) int {
	rows := len(ptr) - 1
	switch {
	case p <= 0:
		return 0
	case p >= parts:
		return rows
	}
	// Count a row as one entry more than it has, so that empty rows are spread as well.
	goal := (ptr[rows] + int64(rows)) / int64(parts) * int64(p)
	lo, hi := 0, rows
	for lo < hi {
		mid := (lo + hi) / 2
		if ptr[mid]+int64(mid) < goal {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
