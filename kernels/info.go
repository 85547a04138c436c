package kernels

import "github.com/dpmf-go/dpmf/internal/cpu"

// KernelInfo describes one kernel to a user of the library.
type KernelInfo struct {
	Name        string   // exported Go function
	Description string   // one line
	Tiers       []string // tiers it is implemented for, lowest first
	Active      string   // tier a call uses now
	Reason      string   // why that tier and no higher one
}

// registry lists the exported kernels. TestInfoListsEveryKernel compares it
// with the package's source.
var registry = []KernelInfo{
	{Name: "AddNoiseF32", Description: "sums rounded to a grid plus noise in grid steps"},
	{Name: "AxpyF32", Description: "y += a·x"},
	{Name: "GramF32", Description: "Gram matrix and right-hand side of gathered, weighted rows"},
	{Name: "CholeskyF32", Description: "A = UᵀU in place, for a symmetric positive definite A"},
	{Name: "CholeskySolveF32", Description: "factor A = UᵀU and solve A·x = b"},
	{Name: "CholeskySolveFactoredF32", Description: "solve UᵀU·x = b with a given factor"},
	{Name: "DotF32", Description: "inner product of two vectors"},
	{Name: "ScaleF32", Description: "x = a·x"},
	{Name: "ScoreF32", Description: "inner products of one vector with all rows of a table"},
	{Name: "ScoreRowsF32", Description: "inner products of one vector with chosen rows of a table"},
	{Name: "TopKF32", Description: "the k largest scores, without an excluded list"},
	{Name: "SpectralSolveF32", Description: "b = f(X)·b, f(x) = 1/max(x, floor) on the eigenvalues"},
}

// Info lists every kernel with the tier in use and why.
func Info() []KernelInfo {
	reason := "highest tier of this machine"
	switch {
	case cpu.Warning() != "":
		reason = cpu.Warning()
	case cpu.Active() < cpu.Detected():
		reason = "lowered by request; this machine has " + cpu.Detected().String()
	case cpu.Detected() == cpu.Generic:
		reason = "no assembly in this build or for this CPU"
	}
	list := make([]KernelInfo, len(registry))
	for i, k := range registry {
		k.Tiers = []string{cpu.Generic.String(), cpu.TierAVX2.String(), cpu.TierAVX512.String()}
		k.Active = cpu.Active().String()
		k.Reason = reason
		list[i] = k
	}
	return list
}

// Tier is the word for the tier in use: "generic", "avx2" or "avx512".
func Tier() string { return cpu.Active().String() }

// SelectTier lowers the tier to the one named ("generic", "avx2", "avx512"). It
// returns an error, and changes nothing, for an unknown word or a tier above the
// machine's. Call it before any kernel runs.
func SelectTier(word string) error { return cpu.Select(word) }

// TierWarning is one sentence about a DPMF_ISA that could not be followed, or "".
func TierWarning() string { return cpu.Warning() }
