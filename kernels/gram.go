package kernels

import "fmt"

// GramInput names the gathered rows of one Gram accumulation.
type GramInput struct {
	Table []float32 // n × Rank, row-major: the factors of the other side
	Rank  int       // r ≥ 1
	Rows  []int32   // which rows of Table, in the order of summation; repeats allowed

	// Weights holds one weight ≥ 0 per row of Rows; nil means all ones. A negative
	// weight gives NaN.
	Weights []float32
	// Targets holds one target per row of Rows; nil leaves the right-hand side alone.
	Targets []float32

	// Next may list the rows that the caller's next call will gather. It changes no
	// result: the first of them are prefetched while this call computes. Indices outside Table do no harm.
	Next []int32
}

// GramWorkLen is the number of float32 that GramF32 needs as work space for rank r.
func GramWorkLen(r int) int { return gramBlock(r) * Stride(r) }

// gramBlock is the number of rows packed together: as many as fill 16 KiB, so
// that the packed block and the rows prefetched for the next one share a
// first-level cache of 32 KiB, within bounds that keep the loops long and one
// assembly call short.
func gramBlock(r int) int { return min(max(4096/Stride(r), 8), 128) }

// GramF32 accumulates the normal equations of one least-squares row (Chien et al. 2021,
// equations 1 and 2): with u_k the table row Rows[k], w_k its weight and m_k its target,
//
//	for k < len(Rows), in order:
//	    s = √w_k                          (1 without weights)
//	    t[a] = s·u_k[a]                   (u_k[a] without weights)
//	    for a ≤ c < r: gram[a][c] = fma(t[a], t[c], gram[a][c])
//	    if Targets:    rhs[c] = fma(s·m_k, t[c], rhs[c])
//
// that is, gram += Σ w u uᵀ and rhs += Σ w m u. gram is a symmetric matrix of
// order r and rhs its vector in the storage described in the package comment;
// rhs may be nil if Targets is. work has at least GramWorkLen(r) elements. NaN
// and Inf propagate as in IEEE arithmetic. A row index outside Table panics
// before anything is written.
func GramF32(gram, rhs []float32, in *GramInput, work []float32) {
	checkGram(gram, rhs, in, work)
	n := len(in.Rows)
	// Blocks of nearly equal length: a short last one would pay the cost of loading
	// and storing every tile for few rows.
	blocks := (n + gramBlock(in.Rank) - 1) / gramBlock(in.Rank)
	for k := range blocks {
		start, end := n*k/blocks, n*(k+1)/blocks
		next := in.Rows[end:]
		if len(next) == 0 {
			next = in.Next
		}
		b := gramRows{rows: in.Rows[start:end], next: next[:min(len(next), end-start)]}
		if in.Weights != nil {
			b.weights = in.Weights[start:end]
		}
		if in.Targets != nil {
			b.targets = in.Targets[start:end]
		}
		gramF32(gram, rhs, in.Table, in.Rank, &b, work)
	}
}

// gramRows is one block of rows with what goes with them.
type gramRows struct {
	rows, next       []int32
	weights, targets []float32
}

func checkGram(gram, rhs []float32, in *GramInput, work []float32) {
	r, n := in.Rank, len(in.Rows)
	switch {
	case r < 1:
		panic("kernels: GramF32: rank below 1")
	case len(gram) < Stride(r)*Stride(r):
		panic("kernels: GramF32: gram is shorter than Stride(r)²")
	case in.Targets != nil && len(rhs) < Stride(r):
		panic("kernels: GramF32: rhs is shorter than Stride(r)")
	case in.Weights != nil && len(in.Weights) != n:
		panic("kernels: GramF32: Weights and Rows differ in length")
	case in.Targets != nil && len(in.Targets) != n:
		panic("kernels: GramF32: Targets and Rows differ in length")
	case len(work) < GramWorkLen(r):
		panic("kernels: GramF32: work is shorter than GramWorkLen(r)")
	}
	checkRows("GramF32", in.Rows, len(in.Table)/r)
}

// checkRows panics unless every index lies in [0, n).
func checkRows(kernel string, rows []int32, n int) {
	for _, i := range rows {
		if uint(i) >= uint(n) {
			panic(fmt.Sprintf("kernels: %s: row %d is outside a table of %d rows", kernel, i, n))
		}
	}
}
