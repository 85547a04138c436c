package kernels

// DotF32 is the inner product of two vectors. It has L = 64 lanes:
//
//	lane[0:64] = 0
//	for i < len(x): lane[i mod 64] = fma(x[i], y[i], lane[i mod 64])
//	for h in 32, 16, 8, 4, 2, 1: for i < h: lane[i] += lane[i+h]
//	return lane[0]
//
// y must be as long as x; they may overlap. The sum of no elements is +0. NaN and
// Inf propagate as in IEEE arithmetic. With u = 2⁻²⁴ the error is at most about
// (len(x)/64 + 7)·u·Σ|x[i]·y[i]|.
func DotF32(x, y []float32) float32 {
	if len(x) != len(y) {
		panic("kernels: DotF32: x and y differ in length")
	}
	switch {
	case len(x) == 0:
		return 0
	case len(x) <= dotChunk:
		return dotF32(nil, x, y)
	}
	var lanes [dotLanes]float32
	for len(x) > dotChunk {
		dotF32(&lanes, x[:dotChunk], y[:dotChunk])
		x, y = x[dotChunk:], y[dotChunk:]
	}
	return dotF32(&lanes, x, y)
}

const (
	dotLanes = 64

	// dotChunk bounds one assembly call to some tens of microseconds. It is a
	// multiple of dotLanes, so that a chunk starts at lane 0.
	dotChunk = 1 << 16
)
