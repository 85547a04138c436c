package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// poles is that of package kernels, and component the distance in bytes of the
// parts of a record of one float64 per pole.
const (
	poles     = 32
	component = 8 * poles
)

// doubles is the number of float64 in a register.
func (t isa) doubles() int { return t.lanes / 2 }

// poleVectors is the number of vectors of poles one call works on: all of them on
// AVX-512. On AVX2 there are registers for a quarter.
func (t isa) poleVectors() int {
	if t.embedded {
		return poles / t.doubles()
	}
	return poles / 4 / t.doubles()
}

// spectralForward keeps the state of its poles in registers while the rows pass by.
func spectralForward(c *build.Context, t isa, one operand.Mem) {
	name := "SpectralForwardF64" + t.suffix
	doc := name + " is spectralForwardF64Generic for the given number of rows; all pointers are to the first row"
	if !t.embedded {
		doc += " and to the first of eight poles"
	}
	function(c, name, "func(alpha, beta, beta2, rhs *float64, rows int, factors, pole, state *float64)", doc+".")
	alpha := c.Load(c.Param("alpha"), c.GP64())
	beta := c.Load(c.Param("beta"), c.GP64())
	beta2 := c.Load(c.Param("beta2"), c.GP64())
	rhs := c.Load(c.Param("rhs"), c.GP64())
	rows := c.Load(c.Param("rows"), c.GP64())
	factors := c.Load(c.Param("factors"), c.GP64())
	pole := c.Load(c.Param("pole"), c.GP64())
	state := c.Load(c.Param("state"), c.GP64())
	i := c.GP64()
	c.XORQ(i, i)

	n := t.poleVectors()
	var s [4][]reg.VecVirtual // Re s, Im s, Re f, Im f
	for part := range s {
		s[part] = t.vecs(c, n)
		for k := range n {
			c.VMOVUPD(off(state, part*component+k*t.bytes()), s[part][k])
		}
	}
	c.Label("row")
	for k := range n {
		sRe, sIm, fRe, fIm := s[0][k], s[1][k], s[2][k], s[3][k]
		inv, pRe, pIm, x := t.vec(c), t.vec(c), t.vec(c), t.vec(c)
		place := func(part int) operand.Mem { return off(factors, part*component+k*t.bytes()) }
		c.VBROADCASTSD(at(alpha, i, 8, 0), x)
		c.VSUBPD(sRe, x, pRe) // Re q
		c.VADDPD(off(pole, k*t.bytes()), sIm, pIm)
		c.VMULPD(pRe, pRe, x)
		c.VFMADD231PD(pIm, pIm, x)
		c.VBROADCASTSD(one, inv)
		c.VDIVPD(x, inv, inv)
		c.VBROADCASTSD(at(beta2, i, 8, 0), x)
		c.VMULPD(pRe, x, sRe)
		c.VMULPD(inv, sRe, sRe)
		c.VMULPD(pIm, x, sIm)
		c.VMULPD(inv, sIm, sIm)
		c.VMULPD(inv, pRe, pRe)
		c.VMULPD(inv, pIm, pIm)
		yRe := inv
		c.VBROADCASTSD(at(rhs, i, 8, 0), yRe)
		c.VSUBPD(fRe, yRe, yRe)
		zRe, zIm := fRe, t.vec(c)
		c.VMULPD(pRe, yRe, zRe)
		c.VFMADD231PD(pIm, fIm, zRe)
		c.VMULPD(pIm, yRe, zIm)
		c.VFNMADD231PD(pRe, fIm, zIm)
		c.VMOVUPD(zRe, place(2))
		c.VMOVUPD(zIm, place(3))
		b := x
		c.VBROADCASTSD(at(beta, i, 8, 0), b)
		c.VMULPD(zRe, b, fRe)
		c.VMULPD(zIm, b, fIm)
		c.VMULPD(pRe, b, pRe)
		c.VMULPD(pIm, b, pIm)
		c.VMOVUPD(pRe, place(0))
		c.VMOVUPD(pIm, place(1))
	}
	c.ADDQ(imm(4*component), factors)
	c.INCQ(i)
	c.CMPQ(i, rows)
	c.JLT(operand.LabelRef("row"))
	for part := range s {
		for k := range n {
			c.VMOVUPD(s[part][k], off(state, part*component+k*t.bytes()))
		}
	}
	finish(c)
}

// spectralBackward sums over the poles at once where it holds all of them. On
// AVX2 it leaves each pole's share in place of Re l for spectralSumF64.
func spectralBackward(c *build.Context, t isa) {
	name := "SpectralBackwardF64" + t.suffix
	signature, doc := "func(rhs *float64, rows int, factors, rho, state *float64)", name+" is spectralBackwardF64Generic for the given number of rows; all pointers are to the last row"
	if !t.embedded {
		signature = "func(rows int, factors, rho, state *float64)"
		doc += " and to the first of eight poles, and the terms of the sum go to the first part of factors"
	}
	function(c, name, signature, doc+".")
	var rhs reg.Register
	if t.embedded {
		rhs = c.Load(c.Param("rhs"), c.GP64())
	}
	rows := c.Load(c.Param("rows"), c.GP64())
	factors := c.Load(c.Param("factors"), c.GP64())
	rho := c.Load(c.Param("rho"), c.GP64())
	state := c.Load(c.Param("state"), c.GP64())

	n := t.poleVectors()
	re, im := t.vecs(c, n), t.vecs(c, n)
	for k := range n {
		c.VMOVUPD(off(state, k*t.bytes()), re[k])
		c.VMOVUPD(off(state, component+k*t.bytes()), im[k])
	}
	c.Label("row")
	terms := make([]reg.VecVirtual, n)
	for k := range n {
		place := func(part int) operand.Mem { return off(factors, part*component+k*t.bytes()) }
		lRe, lIm, zRe, zIm := t.vec(c), t.vec(c), t.vec(c), t.vec(c)
		c.VMOVUPD(place(0), lRe)
		c.VMOVUPD(place(1), lIm)
		c.VMOVUPD(place(2), zRe)
		c.VMOVUPD(place(3), zIm)
		c.VFNMADD231PD(re[k], lRe, zRe)
		c.VFMADD231PD(im[k], lIm, zRe)
		c.VFNMADD231PD(im[k], lRe, zIm)
		c.VFNMADD231PD(re[k], lIm, zIm)
		c.VMOVAPD(zRe, re[k])
		c.VMOVAPD(zIm, im[k])
		terms[k] = t.vec(c)
		c.VMULPD(off(rho, k*t.bytes()), zRe, terms[k])
		c.VFNMADD231PD(off(rho, component+k*t.bytes()), zIm, terms[k])
		if !t.embedded {
			c.VMOVUPD(terms[k], place(0))
		}
	}
	if t.embedded {
		sum := terms[0]
		for _, term := range terms[1:] {
			c.VADDPD(term, sum, sum)
		}
		high := c.YMM()
		c.VEXTRACTF64X4(operand.U8(1), sum, high)
		c.VADDPD(high, sum.AsY(), sum.AsY())
		storeSumF64(c, sum, high, off(rhs, 0))
		c.SUBQ(imm(8), rhs)
	}
	c.SUBQ(imm(4*component), factors)
	c.DECQ(rows)
	c.JNZ(operand.LabelRef("row"))
	for k := range n {
		c.VMOVUPD(re[k], off(state, k*t.bytes()))
		c.VMOVUPD(im[k], off(state, component+k*t.bytes()))
	}
	finish(c)
}

// storeSumF64 adds the four lanes of sum by halving and stores the result.
func storeSumF64(c *build.Context, sum, scratch reg.VecVirtual, to operand.Mem) {
	c.VEXTRACTF128(operand.U8(1), sum.AsY(), scratch.AsX())
	c.VADDPD(scratch.AsX(), sum.AsX(), sum.AsX())
	c.VPERMILPD(operand.U8(1), sum.AsX(), scratch.AsX())
	c.VADDSD(scratch.AsX(), sum.AsX(), sum.AsX())
	c.VMOVSD(sum.AsX(), to)
}

// spectralSumF64 finishes spectralBackward on AVX2.
func spectralSumF64(c *build.Context) {
	t := avx2
	function(c, "SpectralSumF64AVX2", "func(rhs *float64, rows int, factors *float64)",
		"SpectralSumF64AVX2 sets rhs[i] to the sum of the terms that SpectralBackwardF64AVX2 left in row i of factors.")
	rhs := c.Load(c.Param("rhs"), c.GP64())
	rows := c.Load(c.Param("rows"), c.GP64())
	factors := c.Load(c.Param("factors"), c.GP64())
	c.Label("row")
	half := t.vecs(c, 2)
	for k := range half {
		c.VMOVUPD(off(factors, k*t.bytes()), half[k])
		for group := 1; group < 4; group++ {
			c.VADDPD(off(factors, (2*group+k)*t.bytes()), half[k], half[k])
		}
	}
	c.VADDPD(half[1], half[0], half[0])
	storeSumF64(c, half[0], half[1], off(rhs, 0))
	c.ADDQ(imm(8), rhs)
	c.ADDQ(imm(4*component), factors)
	c.DECQ(rows)
	c.JNZ(operand.LabelRef("row"))
	finish(c)
}
