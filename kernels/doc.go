// Package kernels holds the numeric kernels of dpmf: plain functions over
// slices, without algorithms, allocation, goroutines or retained pointers.
//
// # One result, to the bit
//
// Every kernel has exactly one correct output for an input, and every tier
// (pure Go, AVX2, AVX-512) returns it bit for bit, NaN payloads aside. A doc
// comment's pseudo-code is that definition: fma(x, y, z) is x·y+z rounded once,
// everything else is rounded after each operation, and sums are formed in the
// order written. Where a sum is split over virtual lanes, the comment states
// their number L: element i goes to lane i mod L and the lanes are added by
// halving (lane i + lane i+L/2, then L/4, … 1).
//
// # Arguments
//
// Slices need no alignment. Outputs must not overlap inputs unless a comment
// allows it. No kernel reads or writes outside the slices it is given. A slice
// that is too short, or a row index outside its table, is a programming error
// and panics with a message that names it, before anything is written.
//
// # Symmetric matrices
//
// A symmetric matrix of order r is stored row-major with the leading dimension
// Stride(r), the next multiple of 16, in Stride(r)² elements; only the upper
// triangle of the leading r×r block has meaning. Everything else is scratch: a
// kernel ignores what it finds there and may leave anything behind. Vectors that
// go with such a matrix have Stride(r) elements and the same rule.
package kernels

// lane is the width that padded sizes are a multiple of: the float32 in one
// AVX-512 register.
const lane = 16

// Stride is the leading dimension of a symmetric matrix of order r, and the
// length of the vectors that go with it: r rounded up to a multiple of 16.
func Stride(r int) int { return (r + lane - 1) &^ (lane - 1) }
