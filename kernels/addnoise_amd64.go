//go:build amd64 && gc && !noasm

package kernels

import (
	"github.com/dpmf-go/dpmf/asm"
	"github.com/dpmf-go/dpmf/internal/cpu"
)

func addNoiseF32(x []float32, noise []float64, bias, step float64) {
	switch {
	case cpu.HasAVX512:
		asm.AddNoiseF32AVX512(&x[0], &noise[0], len(x), bias, step)
	case cpu.HasAVX2:
		asm.AddNoiseF32AVX2(&x[0], &noise[0], len(x), bias, step)
	default:
		addNoiseF32Generic(x, noise, bias, step)
	}
}
