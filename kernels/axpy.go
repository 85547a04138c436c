package kernels

// AxpyF32 adds a multiple of one vector to another:
//
//	for i < len(y): y[i] = fma(a, x[i], y[i])
//
// x must be as long as y. x and y may be the same slice; other overlaps are not
// allowed. NaN and Inf propagate as in IEEE arithmetic.
func AxpyF32(a float32, x, y []float32) {
	if len(x) != len(y) {
		panic("kernels: AxpyF32: x and y differ in length")
	}
	for len(y) > axpyChunk {
		axpyF32(a, x[:axpyChunk], y[:axpyChunk])
		x, y = x[axpyChunk:], y[axpyChunk:]
	}
	if len(y) > 0 {
		axpyF32(a, x, y)
	}
}

// axpyChunk bounds one assembly call to some tens of microseconds.
const axpyChunk = 1 << 16
