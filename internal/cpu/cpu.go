// Package cpu decides which tier of kernels runs: generic (pure Go), avx2 or
// avx512. A tier is a bundle of CPU features; sub-features are optional extras
// of the highest tier. The environment variable DPMF_ISA, or Select, can lower
// the tier but never raise it above what the machine has.
package cpu

import (
	"fmt"
	"os"
	"strings"
)

// Tier is a rung of the ladder generic < avx2 < avx512.
type Tier uint8

const (
	Generic Tier = iota // pure Go
	TierAVX2
	TierAVX512
)

// Tiers lists all tiers, lowest first.
var Tiers = []Tier{Generic, TierAVX2, TierAVX512}

// String is the word that DPMF_ISA uses for the tier.
func (t Tier) String() string {
	switch t {
	case TierAVX2:
		return "avx2"
	case TierAVX512:
		return "avx512"
	}
	return "generic"
}

// Parse reads a tier's word. The error names the words it knows.
func Parse(word string) (Tier, error) {
	for _, t := range Tiers {
		if word == t.String() {
			return t, nil
		}
	}
	return Generic, fmt.Errorf("unknown instruction set %q: use generic, avx2 or avx512", word)
}

// Features lists the bundle of CPU features that a tier may use, by the names
// the generator writes into asm.Features. Each tier includes the one below it.
func (t Tier) Features() []string {
	var f []string
	if t >= TierAVX2 {
		f = append(f, "AVX", "AVX2", "FMA3", "BMI", "BMI2", "F16C", "LZCNT", "POPCNT", "SSE", "SSE2", "SSE3", "SSSE3", "SSE4.1", "SSE4.2")
	}
	if t >= TierAVX512 {
		f = append(f, "AVX512F", "AVX512CD", "AVX512BW", "AVX512DQ", "AVX512VL")
	}
	return f
}

// HasAVX2 and HasAVX512 say which tiers the dispatchers may use now. They are
// plain variables so that a dispatch is one load and one predictable branch;
// only init, Select and tests write them, and never while kernels run.
var (
	HasAVX2   bool
	HasAVX512 bool
)

var (
	detected = detect()
	active   Tier
	warning  string
)

// Variable is the environment variable that lowers the tier.
const Variable = "DPMF_ISA"

func init() {
	set(detected)
	if word, ok := os.LookupEnv(Variable); ok && word != "" {
		if err := Select(word); err != nil {
			warning = fmt.Sprintf("%s ignored: %v; using %s", Variable, err, active)
		}
	}
}

// Detected is the highest tier of this machine and build.
func Detected() Tier { return detected }

// Active is the tier in use.
func Active() Tier { return active }

// Warning is one sentence about a DPMF_ISA that could not be followed, or "".
// The library only reports it here; a program should treat it as an error.
func Warning() string { return warning }

// Select lowers the tier to the one named word. It fails, and changes nothing,
// for an unknown word or a tier above Detected. It must not run while kernels do.
func Select(word string) error {
	t, err := Parse(strings.TrimSpace(word))
	if err != nil {
		return err
	}
	if t > detected {
		return fmt.Errorf("instruction set %q is above this machine's %s: choose %[2]s or lower", word, detected)
	}
	set(t)
	warning = ""
	return nil
}

func set(t Tier) {
	active = t
	HasAVX2 = t >= TierAVX2
	HasAVX512 = t >= TierAVX512
}
