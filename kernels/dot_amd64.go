//go:build amd64 && gc && !noasm

package kernels

import (
	"github.com/dpmf-go/dpmf/asm"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

func dotF32(lanes *[dotLanes]float32, x, y []float32) float32 {
	switch {
	case cpu.HasAVX512:
		return asm.DotF32AVX512(lanes, &x[0], &y[0], len(x))
	case cpu.HasAVX2:
		return asm.DotF32AVX2(lanes, &x[0], &y[0], len(x))
	default:
		return dotF32Generic(lanes, x, y)
	}
}
