package machine

// sink keeps the compiler from removing a measured loop.
var sink float32

// peakFMAGeneric runs eight independent sequences s ← s·factor + step and returns the number of operations.
func peakFMAGeneric(turns int) int {
	factor, step := float32(0.5)+0*sink, float32(1e-3)
	var a, b, c, d, e, f, g, h float32
	for range turns {
		a = a*factor + step
		b = b*factor + step
		c = c*factor + step
		d = d*factor + step
		e = e*factor + step
		f = f*factor + step
		g = g*factor + step
		h = h*factor + step
	}
	sink = a + b + c + d + e + f + g + h
	return 2 * 8 * turns
}

// peakReadGeneric reads x once, eight elements per turn.
func peakReadGeneric(x []float32) {
	var a, b, c, d float32
	for len(x) >= 8 {
		a += x[0] + x[4]
		b += x[1] + x[5]
		c += x[2] + x[6]
		d += x[3] + x[7]
		x = x[8:]
	}
	for _, v := range x {
		a += v
	}
	sink = a + b + c + d
}
