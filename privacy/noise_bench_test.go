package privacy

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkAddSymmetric times the noise of one item's Gram matrix, stream
// change included; ns/sample is the figure to compare.
func BenchmarkAddSymmetric(b *testing.B) {
	for _, rank := range []int{8, 32, 64, 128} {
		b.Run(fmt.Sprintf("rank=%d", rank), func(b *testing.B) {
			x := make([]float32, rank*rank)
			noise := NewSeededNoise(Seed(1))
			stream := noise.Stream(0, 0, 0)
			b.ReportAllocs()
			item := uint64(0)
			for b.Loop() {
				item++
				stream.Reset(noise, 0, 0, item)
				stream.AddSymmetric(x, rank, rank, 3.7)
			}
			samples := float64(rank*(rank+1)/2) * float64(b.N)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/samples, "ns/sample")
		})
	}
}

func BenchmarkAddVector(b *testing.B) {
	for _, length := range []int{64, 2080} {
		b.Run(fmt.Sprintf("length=%d", length), func(b *testing.B) {
			x := make([]float32, length)
			noise := NewSeededNoise(Seed(1))
			stream := noise.Stream(0, 0, 0)
			item := uint64(0)
			for b.Loop() {
				item++
				stream.Reset(noise, 0, 0, item)
				stream.AddVector(x, 3.7)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(float64(length)*float64(b.N)), "ns/sample")
		})
	}
}

func BenchmarkReset(b *testing.B) {
	noise := NewSeededNoise(Seed(1))
	stream := noise.Stream(0, 0, 0)
	b.ReportAllocs()
	item := uint64(0)
	for b.Loop() {
		item++
		stream.Reset(noise, 0, 0, item)
	}
}

// BenchmarkStandardLibrary is what the same noise costs with the standard
// library's normal sampler over ChaCha8, unrounded and not added to anything.
func BenchmarkStandardLibrary(b *testing.B) {
	generator := rand.New(rand.NewChaCha8(Seed(1)))
	var sum float64
	for b.Loop() {
		for range 2080 {
			sum += generator.NormFloat64()
		}
	}
	_ = sum
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(2080*float64(b.N)), "ns/sample")
}
