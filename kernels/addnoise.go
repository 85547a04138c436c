package kernels

// AddNoiseF32 rounds sums to a grid and adds noise that is given in grid steps,
// in float64 (docs/privacy.md, Noise):
//
//	c = bias·step
//	for i < len(x): x[i] = float32(((x[i] + c) − c) + (noise[i] − bias)·step)
//
// With bias = 3·2⁵¹ and step a power of two, adding and subtracting c rounds x[i] to the nearest
// multiple of step (half to even), and noise[i] − bias is an exact integer for noise[i] within 2⁵¹ of bias.
// noise is as long as x and may not overlap it. NaN and Inf propagate as in IEEE
// arithmetic.
func AddNoiseF32(x []float32, noise []float64, bias, step float64) {
	if len(x) != len(noise) {
		panic("kernels: AddNoiseF32: x and noise differ in length")
	}
	for len(x) > addNoiseChunk {
		addNoiseF32(x[:addNoiseChunk], noise[:addNoiseChunk], bias, step)
		x, noise = x[addNoiseChunk:], noise[addNoiseChunk:]
	}
	if len(x) > 0 {
		addNoiseF32(x, noise, bias, step)
	}
}

// addNoiseChunk bounds one assembly call to some tens of microseconds.
const addNoiseChunk = 1 << 15
