//go:build amd64 && gc && !noasm

package kernels

import (
	"github.com/dpmf-go/dpmf/asm"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

func axpyF32(a float32, x, y []float32) {
	switch {
	case cpu.HasAVX512:
		asm.AxpyF32AVX512(a, &x[0], &y[0], len(y))
	case cpu.HasAVX2:
		asm.AxpyF32AVX2(a, &x[0], &y[0], len(y))
	default:
		axpyF32Generic(a, x, y)
	}
}
