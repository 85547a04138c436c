//go:build amd64 && gc && !noasm

package kernels

import (
	"github.com/dpmf-go/dpmf/asm"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

func topkFilterF32(ids *[topkBlock + topkSlack]int32, scores []float32, base int32, threshold float32) int {
	switch {
	case cpu.HasAVX512:
		return asm.TopKFilterF32AVX512(&ids[0], &scores[0], len(scores), base, threshold)
	case cpu.HasAVX2:
		return asm.TopKFilterF32AVX2(&ids[0], &scores[0], len(scores), base, threshold)
	default:
		return topkFilterF32Generic(ids, scores, base, threshold)
	}
}
