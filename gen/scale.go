package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// scale emits x = a·x. Elementwise, so the tiers differ in width only.
func scale(c *build.Context) {
	for _, t := range tiers {
		scaleF32(c, t)
	}
}

// scaleF32 takes four vectors per turn, then one vector, then one element.
func scaleF32(c *build.Context, t isa) {
	function(c, "ScaleF32"+t.suffix, "func(a float32, x *float32, n int)",
		"ScaleF32"+t.suffix+" computes x[i] = a·x[i] for i < n.")
	a := t.vec(c)
	t.broadcast(c, paramMem(c, "a"), a)
	x := c.Load(c.Param("x"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	v := t.vecs(c, 4)

	step := func(label string, vectors int) {
		done := label + "_done"
		c.Label(label)
		c.CMPQ(n, imm(vectors*t.lanes))
		c.JLT(operand.LabelRef(done))
		for i := range vectors {
			c.VMULPS(off(x, i*t.bytes()), a, v[i])
		}
		for i := range vectors {
			t.store(c, v[i], off(x, i*t.bytes()))
		}
		c.ADDQ(imm(vectors*t.bytes()), x)
		c.SUBQ(imm(vectors*t.lanes), n)
		c.JMP(operand.LabelRef(label))
		c.Label(done)
	}
	step("four", 4)
	step("one", 1)

	s := c.XMM()
	c.Label("tail")
	c.TESTQ(n, n)
	c.JZ(operand.LabelRef("end"))
	c.VMULSS(off(x, 0), a.AsX(), s)
	c.VMOVSS(s, off(x, 0))
	c.ADDQ(imm(4), x)
	c.DECQ(n)
	c.JMP(operand.LabelRef("tail"))
	c.Label("end")
	finish(c)
}
