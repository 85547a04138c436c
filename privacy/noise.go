package privacy

import (
	"crypto/aes"
	"crypto/cipher"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// keyLabel keeps these keys apart from any other use of the same master key.
const keyLabel = "dpmf noise key 1"

// generatorName is what ledgers call the generator below.
const generatorName = "AES-256-CTR, one key per (release, iteration), one counter range per item"

// Noise is a source of Gaussian noise that can be drawn in any order: every
// (release, iteration, item) has a stream of its own, so the noise does not
// depend on the number of workers or on their schedule.
//
// The key of an iteration of a release is SHA-256(label ‖ master ‖ release ‖
// iteration), a fixed-length message; its streams are AES-256 in counter mode
// with the item in the upper half of the counter block and zero in the lower.
// Different triples never share a counter block under the same key, so no
// stream is used twice and all are independent as long as AES is a
// pseudo-random permutation and SHA-256 with a secret prefix a pseudo-random
// function.
//
// A Noise is safe for concurrent use; a Stream belongs to one goroutine.
type Noise struct {
	master [32]byte
	source Source
}

// A Source says where noise came from. The zero Source stands for no noise.
type Source struct {
	// Generator names the generator, "" when no noise was drawn.
	Generator string `json:"generator,omitempty"`
	// CallerSeed holds the seed in hexadecimal when the caller gave it, for
	// tests and benchmarks; "" when the key came from the operating system
	// and is not kept.
	CallerSeed string `json:"caller_seed,omitempty"`
}

// Seeded reports whether the caller gave the seed: then whoever knows it can
// remove the noise, and there is no privacy against them.
func (s Source) Seeded() bool { return s.CallerSeed != "" }

func (s Source) validate() error {
	if s.CallerSeed != "" {
		if s.Generator == "" {
			return fmt.Errorf("privacy: the source of noise has a seed but no generator")
		}
		if seed, err := hex.DecodeString(s.CallerSeed); err != nil || len(seed) != 32 {
			return fmt.Errorf("privacy: the seed in the source of noise is not 32 bytes in hexadecimal")
		}
	}
	return nil
}

// NewNoise returns noise keyed by the operating system's random generator.
func NewNoise() *Noise {
	n := &Noise{source: Source{Generator: generatorName}}
	// Read fills the slice entirely or ends the program; it returns no error.
	cryptorand.Read(n.master[:])
	return n
}

// NewSeededNoise returns noise that the seed determines. It is for tests and
// benchmarks only: whoever knows the seed can remove the noise. The ledger
// records the seed and says so.
func NewSeededNoise(seed [32]byte) *Noise {
	return &Noise{
		master: seed,
		source: Source{Generator: generatorName, CallerSeed: hex.EncodeToString(seed[:])},
	}
}

// Seed spreads a number over the 32 bytes that NewSeededNoise takes.
func Seed(number uint64) [32]byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], number)
	return seed
}

// Source says where the noise comes from, for NewLedger.
func (n *Noise) Source() Source { return n.source }

// Stream returns the noise of one item in one iteration of one release, from
// its beginning. Each triple must be used for one purpose only: asking for it
// again gives the same noise again.
func (n *Noise) Stream(release, iteration uint32, item uint64) *Stream {
	s := &Stream{}
	s.Reset(n, release, iteration, item)
	return s
}

// Reset turns s into the stream that n.Stream would return and keeps its
// buffers. Changing only the item is cheaper than changing the release or the
// iteration.
func (s *Stream) Reset(n *Noise, release, iteration uint32, item uint64) {
	if s.noise != n || s.release != release || s.iteration != iteration || s.block == nil {
		s.noise, s.release, s.iteration = n, release, iteration
		s.block = n.block(release, iteration)
	}
	var counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[:8], item)
	s.bits = cipher.NewCTR(s.block, counter[:])
	s.spareNext = len(s.spare)
}

// block returns the cipher of one iteration of one release.
func (n *Noise) block(release, iteration uint32) cipher.Block {
	var message [len(keyLabel) + 32 + 8]byte
	copy(message[:], keyLabel)
	copy(message[len(keyLabel):], n.master[:])
	binary.BigEndian.PutUint32(message[len(keyLabel)+32:], release)
	binary.BigEndian.PutUint32(message[len(keyLabel)+36:], iteration)
	key := sha256.Sum256(message[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		// Only a wrong key length is an error, and a SHA-256 sum is 32 bytes.
		panic("privacy: " + err.Error())
	}
	return block
}
