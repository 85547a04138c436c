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
// them, and does nothing with what it reads.
func peakRead(c *build.Context, t isa) {
	const parts, vectors = 4, 4
	function(c, "PeakRead"+t.suffix, "func(x *float32, partBytes, turns, passes int)",
		"PeakRead"+t.suffix+" reads, passes ≥ 1 times, turns ≥ 1 times "+strconv.Itoa(vectors*t.lanes)+" elements in order from each of four parts of x that start partBytes apart.")
	x := c.Load(c.Param("x"), c.GP64())
	bytes := c.Load(c.Param("partBytes"), c.GP64())
	turns := c.Load(c.Param("turns"), c.GP64())
	passes := c.Load(c.Param("passes"), c.GP64())
	part := make([]reg.Register, parts)
	for i := range part {
		part[i] = c.GP64()
	}
	left := c.GP64()
	c.Label("pass")
	c.MOVQ(turns, left)
	c.MOVQ(x, part[0])
	for i := 1; i < parts; i++ {
		c.MOVQ(part[i-1], part[i])
		c.ADDQ(bytes, part[i])
	}
	c.Label("turn")
	for i := range vectors {
		for _, p := range part {
			t.load(c, off(p, i*t.bytes()), t.vec(c))
		}
	}
	for _, p := range part {
		c.ADDQ(imm(vectors*t.bytes()), p)
	}
	c.DECQ(left)
	c.JNZ(operand.LabelRef("turn"))
	c.DECQ(passes)
	c.JNZ(operand.LabelRef("pass"))
	finish(c)
}
