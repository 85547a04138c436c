package kernels

func addNoiseF32Generic(x []float32, noise []float64, bias, step float64) {
	c := bias * step
	noise = noise[:len(x)]
	for i, v := range x {
		rounded := float64(float64(v)+c) - c
		x[i] = float32(rounded + float64((noise[i]-bias)*step))
	}
}
