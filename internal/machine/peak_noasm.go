//go:build !(amd64 && gc && !noasm)

package machine

func peakFMA(turns int) int { return peakFMAGeneric(turns) }

func peakRead(x []float32, part, turns int) { peakReadGeneric(x, part, turns) }
