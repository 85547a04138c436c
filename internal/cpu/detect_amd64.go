//go:build amd64 && gc && !noasm

package cpu

import "github.com/klauspost/cpuid/v2"

// detect looks for whole bundles: a CPU, or a hypervisor, that hides one
// feature of a tier does not get the tier.
func detect() Tier {
	c := cpuid.CPU
	if !c.Supports(cpuid.AVX, cpuid.AVX2, cpuid.FMA3, cpuid.BMI1, cpuid.BMI2, cpuid.F16C, cpuid.LZCNT, cpuid.POPCNT) {
		return Generic
	}
	if !c.Supports(cpuid.AVX512F, cpuid.AVX512CD, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL) {
		return TierAVX2
	}
	return TierAVX512
}
