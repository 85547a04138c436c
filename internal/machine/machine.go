// Package machine describes the computer a measurement ran on, and measures the two limits that kernels are compared
// with: the float32 multiply-add rate of one core and the rate at which it reads memory.
package machine

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/dpmf-go/dpmf/internal/cpu"
)

// CPU is the processor's own name, with family and model where the name alone says little.
func CPU() string {
	c := cpuid.CPU
	name := strings.Join(strings.Fields(c.BrandName), " ")
	if name == "" {
		name = runtime.GOARCH + " processor without a name"
	}
	return name
}

// Stepping is the family, model and stepping that identify the design behind a generic name; "" off amd64.
func Stepping() string {
	c := cpuid.CPU
	if c.Family == 0 {
		return ""
	}
	return "family " + strconv.Itoa(c.Family) + " model " + strconv.Itoa(c.Model) + " stepping " + strconv.Itoa(c.Stepping)
}

// TierReason says in a few words why the active tier runs and no higher one.
func TierReason() string {
	switch {
	case cpu.Active() < cpu.Detected():
		return "lowered by request; this machine has " + cpu.Detected().String()
	case cpu.Detected() == cpu.Generic:
		return "no assembly in this build or for this CPU"
	}
	return "highest tier of this machine"
}

// MemoryAvailable is the memory, in bytes, that the system could give without swapping, and false where unknown.
func MemoryAvailable() (int64, bool) { return procKiB("/proc/meminfo", "MemAvailable") }

// PeakResident is the most memory, in bytes, that this process has held so far, and false where unknown.
func PeakResident() (int64, bool) { return procKiB("/proc/self/status", "VmHWM") }

func procKiB(path, name string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	return parseKiB(string(text), name)
}
