//go:build !(amd64 && gc && !noasm)

package kernels

func addNoiseF32(x []float32, noise []float64, bias, step float64) {
	addNoiseF32Generic(x, noise, bias, step)
}
