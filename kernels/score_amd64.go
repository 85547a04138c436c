//go:build amd64 && gc && !noasm

package kernels

import (
	"github.com/dpmf-go/dpmf/asm"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

func scoreF32(scores, table, x []float32, r int) {
	switch {
	case cpu.HasAVX512:
		asm.ScoreF32AVX512(&scores[0], &table[0], &x[0], r, len(scores))
	case cpu.HasAVX2:
		asm.ScoreF32AVX2(&scores[0], &table[0], &x[0], r, len(scores))
	default:
		scoreF32Generic(scores, table, x, r)
	}
}

func scoreRowsF32(scores, table, x []float32, r int, rows []int32) {
	switch {
	case cpu.HasAVX512:
		asm.ScoreRowsF32AVX512(&scores[0], &table[0], &x[0], r, &rows[0], len(rows))
	case cpu.HasAVX2:
		asm.ScoreRowsF32AVX2(&scores[0], &table[0], &x[0], r, &rows[0], len(rows))
	default:
		scoreRowsF32Generic(scores, table, x, r, rows)
	}
}
