//go:build !(amd64 && gc && !noasm)

package kernels

func topkFilterF32(ids *[topkBlock + topkSlack]int32, scores []float32, base int32, threshold float32) int {
	return topkFilterF32Generic(ids, scores, base, threshold)
}
