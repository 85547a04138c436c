package privacy

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// samplerDeviation bounds |ln(p̃/p)| for the probability p̃ with which a grid
// point is drawn and the probability p that a perfect sampler gives it.
const samplerDeviation = 0x1p-46

func addNormal[T float32 | float64](s *Stream, x []T, words []byte, ratio float64, grid Grid) {
	var seed [32]byte
	copy(seed[:], words)
	r := rand.New(rand.NewChaCha8(seed))
	_ = binary.LittleEndian
	for i := range x {
		x[i] = T((math.RoundToEven(float64(x[i])*grid.inverse) + math.RoundToEven(r.NormFloat64()*ratio)) * grid.step)
	}
}
