package main

import (
	"strconv"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peak emits the two measures that kernels are compared with: how many fused
// multiply-adds a core can start, and how fast it can read.
func peak(c *build.Context) {
	for _, t := range tiers {
		peakFMA(c, t)
		peakRead(c, t)
	}
}

// peakFMA keeps more independent sums in flight than any core needs to hide the
// latency of its FMA units (4 or 5 cycles, 2 units), and loads nothing in the loop.
func peakFMA(c *build.Context, t isa) {
	function(c, "PeakFMA"+t.suffix, "func(x *float32, turns int)",
		"PeakFMA"+t.suffix+" starts "+strconv.Itoa(peakSums(t)*peakUnroll)+" vector multiply-adds of x[0]·x[0] per turn, turns ≥ 1, and leaves one of the sums in x[0].")
	x := c.Load(c.Param("x"), c.GP64())
	turns := c.Load(c.Param("turns"), c.GP64())
	factor := t.vec(c)
	t.broadcast(c, off(x, 0), factor)
	sums := t.vecs(c, peakSums(t))
	for _, s := range sums {
		t.zero(c, s)
	}
	c.Label("turn")
	for range peakUnroll {
		for _, s := range sums {
			c.VFMADD231PS(factor, factor, s)
		}
	}
	c.DECQ(turns)
	c.JNZ(operand.LabelRef("turn"))
	for _, s := range sums[1:] {
		c.VADDPS(s, sums[0], sums[0])
	}
	c.VMOVSS(sums[0].AsX(), off(x, 0))
	finish(c)
}

// peakSums leaves registers for the factor and some to spare.
func peakSums(t isa) int { return t.registers * 3 / 4 }

const peakUnroll = 4

// peakRead reads four parts of an array side by side, which gives a memory system that follows streams more of
// them, into eight accumulators. A bitwise or has the most execution ports of all that touches a loaded vector.
func peakRead(c *build.Context, t isa) {
	const parts, vectors, chains = 4, 4, 8
	function(c, "PeakRead"+t.suffix, "func(x, sum *float32, partBytes, turns int)",
		"PeakRead"+t.suffix+" reads turns ≥ 1 times "+strconv.Itoa(vectors*t.lanes)+" elements in order from each of four parts of x that start partBytes apart, and leaves a combination of them in sum.")
	part := make([]reg.Register, parts)
	part[0] = c.Load(c.Param("x"), c.GP64())
	sum := c.Load(c.Param("sum"), c.GP64())
	bytes := c.Load(c.Param("partBytes"), c.GP64())
	turns := c.Load(c.Param("turns"), c.GP64())
	for i := 1; i < parts; i++ {
		next := c.GP64()
		c.MOVQ(part[i-1], next)
		c.ADDQ(bytes, next)
		part[i] = next
	}
	sums := t.vecs(c, chains)
	for _, s := range sums {
		t.zero(c, s)
	}
	c.Label("turn")
	for i := range vectors {
		for k, p := range part {
			s := sums[(i*parts+k)%chains]
			c.VORPS(off(p, i*t.bytes()), s, s)
		}
	}
	for _, p := range part {
		c.ADDQ(imm(vectors*t.bytes()), p)
	}
	c.DECQ(turns)
	c.JNZ(operand.LabelRef("turn"))
	for _, s := range sums[1:] {
		c.VORPS(s, sums[0], sums[0])
	}
	c.VMOVSS(sums[0].AsX(), off(sum, 0))
	finish(c)
}
