//go:build !(amd64 && gc && !noasm)

package machine

func peakFMA(turns int) int { return peakFMAGeneric(turns) }

func peakRead(x []float32, part, turns, passes int) { peakReadGeneric(x, part, turns, passes) }
