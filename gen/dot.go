package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dotLanes is the number of virtual lanes of one long inner product.
const dotLanes = 64

// dot emits inner products of two vectors.
func dot(c *build.Context) {
	for _, t := range tiers {
		dotF32(c, t)
	}
}

// dotF32 keeps all lanes in registers: four of AVX-512, eight of AVX2.
func dotF32(c *build.Context, t isa) {
	function(c, "DotF32"+t.suffix, "func(lanes *[64]float32, x, y *float32, n int) float32",
		"DotF32"+t.suffix+" adds x[i]·y[i] to lanes[i mod 64] for i < n and returns their sum; nil lanes are zeros to forget.")
	lanes := c.Load(c.Param("lanes"), c.GP64())
	x := c.Load(c.Param("x"), c.GP64())
	y := c.Load(c.Param("y"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	acc := t.vecs(c, dotLanes/t.lanes)
	for _, a := range acc {
		t.zero(c, a)
	}
	c.TESTQ(lanes, lanes)
	c.JZ(operand.LabelRef("whole"))
	for i, a := range acc {
		t.load(c, off(lanes, i*t.bytes()), a)
	}
	v := t.vec(c)

	c.Label("whole")
	c.SUBQ(imm(dotLanes), n)
	c.JLT(operand.LabelRef("whole_done"))
	for i, a := range acc {
		t.load(c, off(x, i*t.bytes()), v)
		c.VFMADD231PS(off(y, i*t.bytes()), v, a)
	}
	c.ADDQ(imm(4*dotLanes), x)
	c.ADDQ(imm(4*dotLanes), y)
	c.JMP(operand.LabelRef("whole"))
	c.Label("whole_done")
	c.ADDQ(imm(dotLanes), n)
	c.JZ(operand.LabelRef("sum"))
	if t.embedded {
		dotTail512(c, t, x, y, n, acc)
	} else {
		dotTail2(c, t, x, y, n, acc)
	}

	c.Label("sum")
	c.TESTQ(lanes, lanes)
	c.JZ(operand.LabelRef("halve"))
	for i, a := range acc {
		t.store(c, a, off(lanes, i*t.bytes()))
	}
	c.Label("halve")
	for half := len(acc) / 2; half > 0; half /= 2 {
		for i, a := range acc[:half] {
			c.VADDPS(acc[i+half], a, a)
		}
	}
	total := sumLanes(c, t, acc[0])
	c.VMOVSS(total, resultMem(c, 0))
	finish(c)
}

// dotTail512 adds n < 64 products under masks, which leave other lanes alone.
func dotTail512(c *build.Context, t isa, x, y, n reg.Register, acc []reg.VecVirtual) {
	mask := c.GP64()
	c.MOVQ(operand.I32(-1), mask)
	c.BZHIQ(n, mask, mask)
	v := t.vec(c)
	for i, a := range acc {
		k := c.K()
		c.KMOVW(mask.As32(), k)
		c.VMOVUPS_Z(off(x, i*t.bytes()), k, v)
		c.VFMADD231PS(off(y, i*t.bytes()), v, k, a)
		if i < len(acc)-1 {
			c.SHRQ(operand.U8(t.lanes), mask)
		}
	}
}

// dotTail2 adds n < 64 products. A lane without an element gets the product
// 0·−0 = −0, the only one that leaves every sum unchanged.
func dotTail2(c *build.Context, t isa, x, y, n reg.Register, acc []reg.VecVirtual) {
	left, eight, sign := c.YMM(), c.YMM(), c.YMM()
	broadcastInt(c, n.(reg.GP).As32(), left)
	eights := c.GP32()
	c.MOVL(imm(t.lanes), eights)
	broadcastInt(c, eights, eight)
	signBits(c, sign)
	position := iota8(c)
	mask, v, w := c.YMM(), c.YMM(), c.YMM()
	for i, a := range acc {
		c.VPCMPGTD(position, left, mask)
		c.VMASKMOVPS(off(x, i*t.bytes()), mask, v)
		c.VMASKMOVPS(off(y, i*t.bytes()), mask, w)
		c.VANDNPS(sign, mask, mask)
		c.VORPS(mask, w, w)
		c.VFMADD231PS(w, v, a)
		if i < len(acc)-1 {
			c.CMPQ(n, imm((i+1)*t.lanes))
			c.JLE(operand.LabelRef("sum"))
			c.VPADDD(eight, position, position)
		}
	}
}

// sumLanes adds the lanes of v by halving and returns a register whose lowest
// lane is the sum. It overwrites v.
func sumLanes(c *build.Context, t isa, v reg.VecVirtual) reg.VecVirtual {
	y := v.AsY()
	if t.lanes == 16 {
		high := c.YMM()
		c.VEXTRACTF64X4(operand.U8(1), v, high)
		c.VADDPS(high, y, y)
	}
	x, high := c.XMM(), c.XMM()
	c.VEXTRACTF128(operand.U8(1), y, high)
	c.VADDPS(high, v.AsX(), x)
	c.VSHUFPS(operand.U8(0b1110), x, x, high)
	c.VADDPS(high, x, x)
	c.VMOVSHDUP(x, high)
	c.VADDSS(high, x, x)
	return x
}
