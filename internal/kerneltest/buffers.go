package kerneltest

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Lengths are the awkward lengths for kernels over vectors: 0 to three vectors of the
// widest tier, and the neighbourhood of larger powers of two and block sizes.
func Lengths() []int {
	var n []int
	for i := range 3*16 + 2 {
		n = append(n, i)
	}
	return append(n, 63, 64, 65, 96, 127, 128, 129, 255, 256, 257, 511, 513, 1000)
}

// Ranks are the awkward orders for kernels over small matrices.
func Ranks() []int {
	return []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 47, 48, 49, 63, 64, 65, 80, 96, 100, 127, 128, 129, 160}
}

// Normal fills x with standard normal values.
func Normal(rng *rand.Rand, x []float32) []float32 {
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// Floats turns fuzz bytes into n float32 (any bits, NaN and infinities included when
// wild is set; otherwise moderate finite values), repeating the bytes as needed.
func Floats(data []byte, n int, wild bool) []float32 {
	x := make([]float32, n)
	if len(data) == 0 {
		data = []byte{1}
	}
	state := uint32(2463534242)
	for i := range x {
		var b uint32
		for k := range 4 {
			b = b<<8 | uint32(data[(4*i+k)%len(data)])
		}
		if (4*i)/len(data) > 0 || len(data) < 4 { // repeated bytes would repeat values
			state ^= state << 13
			state ^= state >> 17
			state ^= state << 5
			b ^= state
		}
		if wild {
			x[i] = math.Float32frombits(b)
		} else {
			x[i] = float32(int32(b)>>8) / (1 << 20)
		}
	}
	return x
}

// SameBits fails the test unless got and want are equal bit for bit; any NaN equals any NaN.
func SameBits(t testing.TB, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		g, w := got[i], want[i]
		if math.Float32bits(g) != math.Float32bits(w) && !(g != g && w != w) {
			t.Fatalf("%s: element %d is %x (%v), want %x (%v)", what, i, g, g, w, w)
		}
	}
}
