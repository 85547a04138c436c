// Package asm holds the generated assembly kernels and their Go declarations.
//
// Nothing in it is edited by hand: `make generate` rewrites it from gen/. The
// functions check nothing; package kernels states their contracts, checks the
// arguments and chooses the tier.
package asm
