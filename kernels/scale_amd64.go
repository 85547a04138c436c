//go:build amd64 && gc && !noasm

package kernels

import (
	"github.com/dpmf-go/dpmf/asm"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

func scaleF32(a float32, x []float32) {
	switch {
	case cpu.HasAVX512:
		asm.ScaleF32AVX512(a, &x[0], len(x))
	case cpu.HasAVX2:
		asm.ScaleF32AVX2(a, &x[0], len(x))
	default:
		scaleF32Generic(a, x)
	}
}
