package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockVectors is the number of registers that hold 16 columns.
func (t isa) blockVectors() int { return block / t.lanes }

// sums are the 32 virtual lanes of a sum: even and odd blocks of 16 columns.
type sums [2][]reg.VecVirtual

func (t isa) newSums(c *build.Context) (s sums) {
	for i := range s {
		s[i] = t.vecs(c, t.blockVectors())
		for _, v := range s[i] {
			t.zero(c, v)
		}
	}
	return s
}

// reduce adds the lanes by halving; the sum is in the lowest lane of the result.
func (s sums) reduce(c *build.Context, t isa) reg.VecVirtual {
	for k := range s[0] {
		c.VADDPS(s[1][k], s[0][k], s[0][k])
	}
	v, high := s[0][0], c.YMM()
	if t.lanes == 16 {
		c.VEXTRACTF64X4(operand.U8(1), v, high)
	} else {
		high = s[0][1]
	}
	c.VADDPS(high.AsY(), v.AsY(), v.AsY())
	c.VEXTRACTF128(operand.U8(1), v.AsY(), high.AsX())
	c.VADDPS(high.AsX(), v.AsX(), v.AsX())
	c.VPERMILPS(operand.U8(0x4e), v.AsX(), high.AsX())
	c.VADDPS(high.AsX(), v.AsX(), v.AsX())
	c.VMOVSHDUP(v.AsX(), high.AsX())
	c.VADDSS(high.AsX(), v.AsX(), v.AsX())
	return v
}

// blocks runs body once per block of 16 columns: inline for the first, then in a
// loop over pairs so that a block knows its parity. offset counts bytes; body
// adds displacement to it.
func (t isa) blocks(c *build.Context, name string, n, offset reg.Register, body func(displacement, parity int, first bool)) {
	bytes := 4 * block
	left := c.GP64()
	body(0, 0, true)
	c.MOVQ(imm(bytes), offset)
	c.MOVQ(n, left)
	c.SUBQ(imm(3*block), left)
	c.JLT(operand.LabelRef(name + "_last"))
	c.Label(name)
	body(0, 1, false)
	body(bytes, 0, false)
	c.ADDQ(imm(2*bytes), offset)
	c.SUBQ(imm(2*block), left)
	c.JGE(operand.LabelRef(name))
	c.Label(name + "_last")
	c.CMPQ(left, imm(-block))
	c.JLT(operand.LabelRef(name + "_done"))
	body(0, 1, false)
	c.Label(name + "_done")
}

// skipMasks selects the lanes of the first block at and after a column (ge), and
// only after it (gt).
type skipMasks struct {
	ge, gt []reg.Register
}

func (t isa) newSkipMasks(c *build.Context, skip reg.GPVirtual, iota operand.Mem) (m skipMasks) {
	if t.lanes == 16 {
		bits, ge, gt := c.GP32(), c.K(), c.K()
		c.MOVL(operand.U32(0xffff), bits)
		c.SHLXL(skip.As32(), bits, bits)
		c.KMOVW(bits, ge)
		c.ADDL(bits, bits)
		c.KMOVW(bits, gt)
		return skipMasks{[]reg.Register{ge}, []reg.Register{gt}}
	}
	at, x := c.YMM(), c.XMM()
	c.VMOVD(skip.As32(), x)
	c.VPBROADCASTD(x, at)
	for k := range t.blockVectors() {
		steps, ge, gt := c.YMM(), c.YMM(), c.YMM()
		t.load(c, iota.Offset(k*t.bytes()), steps)
		c.VPCMPGTD(at, steps, gt)
		c.VPCMPEQD(at, steps, ge)
		c.VPOR(gt, ge, ge)
		m.ge, m.gt = append(m.ge, ge), append(m.gt, gt)
	}
	return m
}

// spectralRow emits the two passes over one row: the dot product, then everything
// else with the norm.
func spectralRow(c *build.Context, t isa, iota, half operand.Mem) {
	name := "SpectralRowF32" + t.suffix
	function(c, name, "func(row, v, y, w *float32, n, skip int, tau float32) (diag, norm2 float32)",
		name+" is spectralRowF32Generic for n columns.")
	row := c.Load(c.Param("row"), c.GP64())
	v := c.Load(c.Param("v"), c.GP64())
	y := c.Load(c.Param("y"), c.GP64())
	w := c.Load(c.Param("w"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	skip := c.GP64()
	c.Load(c.Param("skip"), skip)
	masks := t.newSkipMasks(c, skip, iota)
	offset := c.GP64()
	tau := t.vec(c)
	t.broadcast(c, paramMem(c, "tau"), tau)

	place := func(base reg.Register, displacement, k int, first bool) operand.Mem {
		if first {
			return off(base, displacement+k*t.bytes())
		}
		return at(base, offset, 1, displacement+k*t.bytes())
	}

	dot := t.newSums(c)
	t.blocks(c, "dot", n, offset, func(d, parity int, first bool) {
		for k := range t.blockVectors() {
			x, acc := t.vec(c), dot[parity][k]
			switch {
			case !first:
				t.load(c, place(v, d, k, first), x)
				c.VFMADD231PS(place(y, d, k, first), x, acc)
			case t.embedded:
				t.load(c, place(v, d, k, first), x)
				c.VFMADD231PS(place(y, d, k, first), x, masks.ge[k], acc)
			default:
				z := t.vec(c)
				c.VANDPS(place(v, d, k, first), masks.ge[k], x)
				c.VANDPS(place(y, d, k, first), masks.ge[k], z)
				c.VFMADD231PS(z, x, acc)
			}
		}
	})
	s := dot.reduce(c, t)

	// h = (0.5·tau)·(tau·s), and the element of v and w that belongs to the row.
	h, hs, vi, wi := t.vec(c), c.XMM(), t.vec(c), t.vec(c)
	c.VMULSS(half, tau.AsX(), hs)
	c.VMULSS(s.AsX(), tau.AsX(), s.AsX())
	c.VMULSS(s.AsX(), hs, hs)
	c.VBROADCASTSS(hs, h)
	t.broadcast(c, at(v, skip, 4, 0), vi)
	t.broadcast(c, at(y, skip, 4, 0), wi)
	c.VMULPS(wi, tau, wi)
	c.VFNMADD231PS(vi, h, wi)
	diag := c.XMM()
	c.VMOVSS(at(row, skip, 4, 0), diag)
	c.VFNMADD231SS(vi.AsX(), wi.AsX(), diag)
	c.VFNMADD231SS(vi.AsX(), wi.AsX(), diag)
	c.VMOVSS(diag, resultMem(c, 0))

	zero := t.vec(c)
	t.zero(c, zero)
	norm := t.newSums(c)
	t.blocks(c, "rest", n, offset, func(d, parity int, first bool) {
		for k := range t.blockVectors() {
			vj, wj, x := t.vec(c), t.vec(c), t.vec(c)
			t.load(c, place(v, d, k, first), vj)
			if first && t.embedded {
				c.VMULPS_Z(place(y, d, k, first), tau, masks.ge[k], wj)
				c.VFNMADD231PS(vj, h, masks.ge[k], wj)
			} else {
				c.VMULPS(place(y, d, k, first), tau, wj)
				c.VFNMADD231PS(vj, h, wj)
			}
			if first && !t.embedded {
				c.VANDPS(wj, masks.ge[k], wj)
			}
			t.store(c, wj, place(w, d, k, first))
			t.store(c, zero, place(y, d, k, first))
			t.load(c, place(row, d, k, first), x)
			c.VFNMADD231PS(vj, wi, x)
			c.VFNMADD231PS(wj, vi, x)
			if first && t.embedded {
				c.VMOVAPS_Z(x, masks.gt[k], x)
			} else if first {
				c.VANDPS(x, masks.gt[k], x)
			}
			t.store(c, x, place(row, d, k, first))
			c.VFMADD231PS(x, x, norm[parity][k])
		}
	})
	c.VMOVSS(norm.reduce(c, t).AsX(), resultMem(c, 1))
	finish(c)
}

func spectralReflect(c *build.Context, t isa) {
	name := "SpectralReflectF32" + t.suffix
	function(c, name, "func(c, v *float32, n int, tau float32)",
		name+" is spectralReflectF32Generic for n columns.")
	x := c.Load(c.Param("c"), c.GP64())
	v := c.Load(c.Param("v"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	offset := c.GP64()
	c.XORQ(offset, offset)
	dot := t.newSums(c)
	t.blocks(c, "dot", n, offset, func(d, parity int, first bool) {
		for k := range t.blockVectors() {
			a := t.vec(c)
			t.load(c, at(v, offset, 1, d+k*t.bytes()), a)
			c.VFMADD231PS(at(x, offset, 1, d+k*t.bytes()), a, dot[parity][k])
		}
	})
	s, g := dot.reduce(c, t), t.vec(c)
	c.VMULSS(paramMem(c, "tau"), s.AsX(), s.AsX())
	c.VBROADCASTSS(s.AsX(), g)
	c.XORQ(offset, offset)
	t.blocks(c, "axpy", n, offset, func(d, parity int, first bool) {
		for k := range t.blockVectors() {
			a := t.vec(c)
			t.load(c, at(x, offset, 1, d+k*t.bytes()), a)
			c.VFNMADD231PS(at(v, offset, 1, d+k*t.bytes()), g, a)
			t.store(c, a, at(x, offset, 1, d+k*t.bytes()))
		}
	})
	finish(c)
}

// spectralUpdate emits panels of columns whose v, w and y stay in registers while
// the rows pass by.
func spectralUpdate(c *build.Context, t isa) {
	name := "SpectralUpdateF32" + t.suffix
	function(c, name, "func(a *float32, ld, step, end, n int, v, w, y, vrow, wrow, urow *float32)",
		name+" is spectralUpdateF32Generic: a, v, w and y point to the first of n columns, a, vrow, wrow and urow to the first row; step is 1 or -1, ld is multiplied by it, and so is end, the number of rows.")
	p := updater{c: c, t: t}
	p.a = c.Load(c.Param("a"), c.GP64())
	p.ld = c.Load(c.Param("ld"), c.GP64())
	p.step = paramMem(c, "step")
	p.end = c.Load(c.Param("end"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	p.v = c.Load(c.Param("v"), c.GP64())
	p.w = c.Load(c.Param("w"), c.GP64())
	p.y = c.Load(c.Param("y"), c.GP64())
	p.vrow = c.Load(c.Param("vrow"), c.GP64())
	p.wrow = c.Load(c.Param("wrow"), c.GP64())
	p.urow = c.Load(c.Param("urow"), c.GP64())
	c.SHLQ(operand.U8(2), p.ld)

	widest := 3
	if t.embedded {
		widest = 8
	}
	c.Label("panels")
	for width := widest; width > 0; width-- {
		next := fmt.Sprintf("narrower_than_%d", width)
		c.CMPQ(n, imm(width*t.lanes))
		c.JLT(operand.LabelRef(next))
		p.panel(width)
		for _, base := range []reg.Register{p.a, p.v, p.w, p.y} {
			c.ADDQ(imm(width*t.bytes()), base)
		}
		c.SUBQ(imm(width*t.lanes), n)
		c.JMP(operand.LabelRef("panels"))
		c.Label(next)
	}
	finish(c)
}

type updater struct {
	c                *build.Context
	t                isa
	a, ld, end       reg.Register
	step             operand.Mem
	v, w, y          reg.Register // first column
	vrow, wrow, urow reg.Register // first row
}

// panel passes all rows by width vectors of columns.
func (p updater) panel(width int) {
	c, t := p.c, p.t
	v, w, y := t.vecs(c, width), t.vecs(c, width), t.vecs(c, width)
	for k := range width {
		t.load(c, off(p.v, k*t.bytes()), v[k])
		t.load(c, off(p.w, k*t.bytes()), w[k])
		t.load(c, off(p.y, k*t.bytes()), y[k])
	}
	row, i := c.GP64(), c.GP64()
	c.MOVQ(p.a, row)
	c.XORQ(i, i)
	label := fmt.Sprintf("rows_%d", width)
	c.Label(label)
	vi, wi, ui := t.vec(c), t.vec(c), t.vec(c)
	t.broadcast(c, at(p.wrow, i, 4, 0), wi)
	t.broadcast(c, at(p.vrow, i, 4, 0), vi)
	t.broadcast(c, at(p.urow, i, 4, 0), ui)
	for k := range width {
		x := t.vec(c)
		t.load(c, off(row, k*t.bytes()), x)
		c.VFNMADD231PS(v[k], wi, x)
		c.VFNMADD231PS(w[k], vi, x)
		t.store(c, x, off(row, k*t.bytes()))
		c.VFMADD231PS(x, ui, y[k])
	}
	c.ADDQ(p.ld, row)
	c.ADDQ(p.step, i)
	c.CMPQ(i, p.end)
	c.JNE(operand.LabelRef(label))
	for k := range width {
		t.store(c, y[k], off(p.y, k*t.bytes()))
	}
}
