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

// peakReadGeneric is peakRead in Go.
func peakReadGeneric(x []float32, part, turns, passes int) {
	n := turns * readStep
	first, second, third, fourth := x[:n], x[part:][:n], x[2*part:][:n], x[3*part:][:n]
	var a, b, c, d float32
	for range passes {
		for i, v := range first {
			a += v
			b += second[i]
			c += third[i]
			d += fourth[i]
		}
	}
	sink = a + b + c + d
}
