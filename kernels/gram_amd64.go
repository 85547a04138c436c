//go:build amd64 && gc && !noasm

package kernels

import (
	"unsafe"

	"github.com/dpmf-go/dpmf/asm"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

func gramF32(gram, rhs, table []float32, r int, b *gramRows, work []float32) {
	rowBytes, stride, count := 4*r, 4*Stride(r), len(b.rows)
	rows, next := &b.rows[0], unsafe.SliceData(b.next)
	weights, targets := unsafe.SliceData(b.weights), unsafe.SliceData(b.targets)
	switch {
	case cpu.HasAVX512:
		vectors, tail := registers(r, 16)
		asm.GramPackF32AVX512(&work[0], unsafe.SliceData(rhs), &table[0], rows, weights, targets, count, rowBytes, vectors, tail, stride)
		asm.GramTilesF32AVX512(&gram[0], &work[0], count, vectors, &table[0], rowBytes, next, len(b.next), perTile(r, 16, len(b.next)), stride)
	case cpu.HasAVX2:
		vectors, tail := registers(r, 8)
		asm.GramPackF32AVX2(&work[0], unsafe.SliceData(rhs), &table[0], rows, weights, targets, count, rowBytes, vectors, tail, stride)
		asm.GramTilesF32AVX2(&gram[0], &work[0], count, vectors, &table[0], rowBytes, next, len(b.next), perTile(r, 8, len(b.next)), stride)
	default:
		gramF32Generic(gram, rhs, table, r, b, work)
	}
}

// registers returns how many registers of the given lanes hold r elements, and
// how many lanes of the last one they use.
func registers(r, lanes int) (n, tail int) {
	n = (r + lanes - 1) / lanes
	return n, r - (n-1)*lanes
}

// perTile spreads the prefetches of n rows evenly over the tiles of a block: that
// many cache lines in each.
func perTile(r, lanes, n int) int {
	vectors, _ := registers(r, lanes)
	tiles := 1
	for c := vectors; c > 1; c-- {
		tiles += 2 * (c / 2) // two panels of tiles two or three registers wide
	}
	lines := (4*r + 63) / 64
	parts := max(1, tiles/lines) // of the list, for each line
	return (n + parts - 1) / parts
}
