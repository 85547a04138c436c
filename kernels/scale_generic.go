package kernels

func scaleF32Generic(a float32, x []float32) {
	for i := range x {
		x[i] *= a
	}
}
