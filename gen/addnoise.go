package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// addNoise emits the addition of noise in grid steps to float32 sums. Elementwise
// in float64, so the tiers differ in width only.
func addNoise(c *build.Context) {
	for _, t := range tiers {
		addNoiseF32(c, t)
	}
}

// addNoiseF32 takes one register of float64 per turn, then one element.
func addNoiseF32(c *build.Context, t isa) {
	function(c, "AddNoiseF32"+t.suffix, "func(x *float32, noise *float64, n int, bias, step float64)",
		"AddNoiseF32"+t.suffix+" rounds x[i] to a multiple of step and adds noise[i] − bias steps, for i < n.")
	bias, step, round := t.vec(c), t.vec(c), t.vec(c)
	c.VBROADCASTSD(paramMem(c, "bias"), bias)
	c.VBROADCASTSD(paramMem(c, "step"), step)
	c.VMULPD(step, bias, round)
	x := c.Load(c.Param("x"), c.GP64()).(reg.GPVirtual)
	noise := c.Load(c.Param("noise"), c.GP64()).(reg.GPVirtual)
	n := c.Load(c.Param("n"), c.GP64()).(reg.GPVirtual)
	lanes := t.lanes / 2

	c.Label("loop")
	c.CMPQ(n, imm(lanes))
	c.JLT(operand.LabelRef("tail"))
	v, s := t.vec(c), t.vec(c)
	c.VCVTPS2PD(off(x, 0), v)
	c.VADDPD(round, v, v)
	c.VSUBPD(round, v, v)
	c.VMOVUPD(off(noise, 0), s)
	c.VSUBPD(bias, s, s)
	c.VMULPD(step, s, s)
	c.VADDPD(s, v, v)
	if t.lanes == 16 {
		c.VCVTPD2PS(v, v.AsY())
		c.VMOVUPS(v.AsY(), off(x, 0))
	} else {
		c.VCVTPD2PSY(v, v.AsX())
		c.VMOVUPS(v.AsX(), off(x, 0))
	}
	c.ADDQ(imm(4*lanes), x)
	c.ADDQ(imm(8*lanes), noise)
	c.SUBQ(imm(lanes), n)
	c.JMP(operand.LabelRef("loop"))

	c.Label("tail")
	c.TESTQ(n, n)
	c.JZ(operand.LabelRef("end"))
	a, b := c.XMM(), c.XMM()
	c.VMOVSS(off(x, 0), a)
	c.VCVTSS2SD(a, a, a)
	c.VADDSD(round.AsX(), a, a)
	c.VSUBSD(round.AsX(), a, a)
	c.VMOVSD(off(noise, 0), b)
	c.VSUBSD(bias.AsX(), b, b)
	c.VMULSD(step.AsX(), b, b)
	c.VADDSD(b, a, a)
	c.VCVTSD2SS(a, a, a)
	c.VMOVSS(a, off(x, 0))
	c.ADDQ(imm(4), x)
	c.ADDQ(imm(8), noise)
	c.DECQ(n)
	c.JMP(operand.LabelRef("tail"))
	c.Label("end")
	finish(c)
}
