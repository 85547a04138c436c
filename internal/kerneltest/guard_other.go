//go:build !linux

package kerneltest

import "testing"

// AtEnd returns n zero float32. Guard pages exist on Linux only.
func AtEnd(t testing.TB, n int) []float32 { return make([]float32, n) }

// AtStart returns n zero float32. Guard pages exist on Linux only.
func AtStart(t testing.TB, n int) []float32 { return make([]float32, n) }

// AtEndInt32 is AtEnd for row indices.
func AtEndInt32(t testing.TB, n int) []int32 { return make([]int32, n) }
