package kernels

func axpyF32Generic(a float32, x, y []float32) {
	for i, v := range x {
		y[i] = fma32(a, v, y[i])
	}
}
