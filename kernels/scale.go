package kernels

// ScaleF32 multiplies a vector by a number:
//
//	for i < len(x): x[i] = a·x[i]
//
// NaN and Inf propagate as in IEEE arithmetic.
func ScaleF32(a float32, x []float32) {
	for len(x) > scaleChunk {
		scaleF32(a, x[:scaleChunk])
		x = x[scaleChunk:]
	}
	if len(x) > 0 {
		scaleF32(a, x)
	}
}

// scaleChunk bounds one assembly call to some tens of microseconds.
const scaleChunk = 1 << 16
