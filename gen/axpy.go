package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// axpy emits y += a·x. Elementwise, so the tiers differ in width only.
func axpy(c *build.Context) {
	for _, t := range tiers {
		axpyF32(c, t)
	}
}

// axpyF32 takes four vectors per turn, then one vector, then one element.
func axpyF32(c *build.Context, t isa) {
	function(c, "AxpyF32"+t.suffix, "func(a float32, x, y *float32, n int)",
		"AxpyF32"+t.suffix+" computes y[i] = fma(a, x[i], y[i]) for i < n.")
	a := t.vec(c)
	t.broadcast(c, paramMem(c, "a"), a)
	x := c.Load(c.Param("x"), c.GP64())
	y := c.Load(c.Param("y"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	acc := t.vecs(c, 4)

	step := func(label string, vectors int) {
		done := label + "_done"
		c.Label(label)
		c.CMPQ(n, imm(vectors*t.lanes))
		c.JLT(operand.LabelRef(done))
		for i := range vectors {
			t.load(c, off(y, i*t.bytes()), acc[i])
		}
		for i := range vectors {
			c.VFMADD231PS(off(x, i*t.bytes()), a, acc[i])
		}
		for i := range vectors {
			t.store(c, acc[i], off(y, i*t.bytes()))
		}
		c.ADDQ(imm(vectors*t.bytes()), x)
		c.ADDQ(imm(vectors*t.bytes()), y)
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
	c.VMOVSS(off(y, 0), s)
	c.VFMADD231SS(off(x, 0), a.AsX(), s)
	c.VMOVSS(s, off(y, 0))
	c.ADDQ(imm(4), x)
	c.ADDQ(imm(4), y)
	c.DECQ(n)
	c.JMP(operand.LabelRef("tail"))
	c.Label("end")
	finish(c)
}
