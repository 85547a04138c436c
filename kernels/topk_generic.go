package kernels

// topkFilterF32Generic writes base+i for every scores[i] ≥ threshold, ascending, to
// the front of ids and returns their number. NaN scores never pass, and nothing
// passes a NaN threshold. There are at most topkBlock scores.
func topkFilterF32Generic(ids *[topkBlock + topkSlack]int32, scores []float32, base int32, threshold float32) int {
	n := 0
	for i, s := range scores {
		ids[n] = base + int32(i)
		if s >= threshold {
			n++
		}
	}
	return n
}
