package dataset

import "math/bits"

// stream is a small random generator (SplitMix64, Steele, Lea & Flood 2014) for splits and synthetic data, which need
// the same bits on every machine and a cheap independent stream for every user. It is no source of privacy noise.
type stream struct{ state uint64 }

// Purposes keep the streams of one seed apart.
const (
	purposeSplitRandom = iota + 1
	purposeSplitUser
	purposeLeaveOut
	purposeFolds
	purposeHoldOut
	purposeFoldIn
	purposeActivity
	purposeFounders
	purposeUserItems
	purposeItemFactors
	purposeUserFactors
	purposeLowRankItems
	purposeLowRankUsers
	purposeLowRankMask
)

// newStream is the stream of one purpose and index (a user, usually) under a seed.
func newStream(seed uint64, purpose, index int) stream {
	return stream{mix64(mix64(seed+0x9e3779b97f4a7c15*uint64(purpose)) + 0xd1342543de82ef95*uint64(index+1))}
}

func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *stream) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	return mix64(s.state)
}

// below is uniform on 0..n-1, for 1 ≤ n ≤ 2³². Its bias, below 2⁻³², is far less than any test here can see.
func (s *stream) below(n uint64) uint64 {
	hi, _ := bits.Mul64(s.next(), n)
	return hi
}

// unit is uniform on (0, 1), never 0.
func (s *stream) unit() float64 { return (float64(s.next()>>12) + 0.5) * (1.0 / (1 << 52)) }

// bell is nearly standard normal: the sum of four 16-bit uniforms (Irwin–Hall), scaled to variance 1. Its range is
// ±3.46 and its excess kurtosis -0.3. Only integers are added, so every machine gets the same bits.
func (s *stream) bell() float32 {
	v := s.next()
	sum := int32(v&0xffff) + int32(v>>16&0xffff) + int32(v>>32&0xffff) + int32(v>>48) - 2*0xffff
	return float32(sum) * (1 / 37837.227) // standard deviation of the sum: √(4·(2³²-1)/12)
}

// shuffle permutes the slice uniformly (Fisher–Yates).
func shuffle[T any](s *stream, list []T) {
	for i := len(list) - 1; i > 0; i-- {
		j := s.below(uint64(i) + 1)
		list[i], list[j] = list[j], list[i]
	}
}

// choose marks a uniformly random set of k of the elements of out with value v, leaving the others as they are
// (selection sampling, Knuth, The Art of Computer Programming 2, algorithm 3.4.2 S).
func choose(s *stream, out []uint8, k int, v uint8) {
	for i := 0; k > 0 && i < len(out); i++ {
		if s.below(uint64(len(out)-i)) < uint64(k) {
			out[i] = v
			k--
		}
	}
}
