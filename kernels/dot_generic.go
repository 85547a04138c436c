package kernels

// dotF32Generic adds the products to the lanes and returns the sum of the lanes,
// which it leaves unreduced for the next chunk. Without lanes it starts from
// zeros and leaves nothing.
func dotF32Generic(lanes *[dotLanes]float32, x, y []float32) float32 {
	if lanes == nil {
		lanes = new([dotLanes]float32)
	}
	for i, v := range x {
		l := i % dotLanes
		lanes[l] = fma32(v, y[i], lanes[l])
	}
	sums := *lanes
	return halve(sums[:])
}

// halve adds the lanes, a power of two of them, in the order of the package
// comment. It overwrites them.
func halve(lanes []float32) float32 {
	for h := len(lanes) / 2; h > 0; h /= 2 {
		for i, v := range lanes[h : 2*h] {
			lanes[i] += v
		}
	}
	return lanes[0]
}
