package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// spectral emits the steps of SpectralSolveF32 that touch whole matrices or
// vectors; its driver is in package kernels.
func spectral(c *build.Context) {
	iota := c.StaticGlobal("spectral_iota")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		c.AppendDatum(operand.U32(i))
	}
	magnitude := c.ConstData("spectral_magnitude", operand.U32(0x7fffffff))
	half := c.ConstData("spectral_half", operand.F32(0.5))
	one := c.ConstData("spectral_one", operand.F64(1))
	for _, t := range tiers {
		spectralMax(c, t, iota, magnitude)
		spectralCopy(c, t, iota)
		spectralMirror(c, t)
		spectralRow(c, t, iota, half)
		spectralReflect(c, t)
		spectralUpdate(c, t)
		spectralForward(c, t, one)
		spectralBackward(c, t)
	}
	spectralSumF64(c)
}

// block is the number of columns that all tiers treat as a unit: Stride's.
const block = 16

// triangle walks over the vectors of the upper triangle of rows first to end-1:
// body sees the offset in bytes of the vector within its row, the row's pointers
// are advanced by ld, and inside selects the lanes with row ≤ column < r.
type triangle struct {
	c            *build.Context
	t            isa
	ld, offset   reg.Register // in bytes
	inside       reg.Register // opmask on AVX-512, vector mask on AVX2
	advance      func()       // to the next row
	body         func()
	row, end, r  reg.Register
	iotaConstant operand.Mem
}

func (w triangle) emit() {
	c, t := w.c, w.t
	steps, columns, width, rowB, rB, below := t.vec(c), t.vec(c), t.vec(c), t.vec(c), t.vec(c), t.vec(c)
	t.load(c, w.iotaConstant, steps)
	x := c.XMM()
	tmp := c.GP64()
	spread := func(n operand.Op, v reg.VecVirtual) {
		c.MOVQ(n, tmp)
		c.VMOVD(tmp.As32(), x)
		c.VPBROADCASTD(x, v)
	}
	spread(imm(t.lanes), width)
	spread(w.r, rB)

	c.Label("row")
	c.CMPQ(w.row, w.end)
	c.JGE(operand.LabelRef("rows_done"))
	spread(w.row, rowB)
	c.MOVQ(w.row, w.offset)
	c.ANDQ(imm(-block), w.offset)
	spread(w.offset, columns)
	c.VPADDD(steps, columns, columns)
	c.SHLQ(operand.U8(2), w.offset)
	c.Label("column")
	if t.lanes == 16 {
		k := w.inside.(reg.OpmaskVirtual)
		c.VPCMPD(operand.U8(5), rowB, columns, k)  // columns ≥ row
		c.VPCMPD(operand.U8(1), rB, columns, k, k) // columns < r
	} else {
		c.VPCMPGTD(columns, rowB, below)
		c.VPCMPGTD(columns, rB, w.inside)
		c.VPANDN(w.inside, below, w.inside)
	}
	w.body()
	c.VPADDD(width, columns, columns)
	c.ADDQ(imm(t.bytes()), w.offset)
	c.CMPQ(w.offset, w.ld)
	c.JLT(operand.LabelRef("column"))
	w.advance()
	c.INCQ(w.row)
	c.JMP(operand.LabelRef("row"))
	c.Label("rows_done")
}

// mask allocates what triangle.inside wants.
func (t isa) mask(c *build.Context) reg.Register {
	if t.lanes == 16 {
		return c.K()
	}
	return c.YMM()
}

func spectralMax(c *build.Context, t isa, iota, magnitude operand.Mem) {
	name := "SpectralMaxF32" + t.suffix
	function(c, name, "func(x *float32, ld, first, end, r int) uint32",
		name+" returns the largest magnitude bits in the upper triangle's rows first ≤ i < end; x points to row first.")
	x := c.Load(c.Param("x"), c.GP64())
	ld := c.Load(c.Param("ld"), c.GP64())
	c.SHLQ(operand.U8(2), ld)
	largest, abs, v := t.vec(c), t.vec(c), t.vec(c)
	c.VPBROADCASTD(magnitude, abs)
	c.VPXOR(largest.AsY(), largest.AsY(), largest.AsY())
	offset, inside := c.GP64(), t.mask(c)
	triangle{c: c, t: t, ld: ld, offset: offset, inside: inside, iotaConstant: iota,
		row: c.Load(c.Param("first"), c.GP64()), end: c.Load(c.Param("end"), c.GP64()), r: c.Load(c.Param("r"), c.GP64()),
		advance: func() { c.ADDQ(ld, x) },
		body: func() {
			if t.lanes == 16 {
				c.VMOVDQU32_Z(at(x, offset, 1, 0), inside.(reg.OpmaskVirtual), v)
				c.VPANDD(abs, v, v)
			} else {
				c.VPAND(at(x, offset, 1, 0), inside, v)
				c.VPAND(abs, v, v)
			}
			c.VPMAXUD(v, largest, largest)
		}}.emit()
	high := c.YMM()
	if t.lanes == 16 {
		c.VEXTRACTI64X4(operand.U8(1), largest, high)
		c.VPMAXUD(high, largest.AsY(), largest.AsY())
	}
	c.VEXTRACTI128(operand.U8(1), largest.AsY(), high.AsX())
	c.VPMAXUD(high.AsX(), largest.AsX(), largest.AsX())
	for _, order := range []uint8{0x4e, 0xb1} {
		c.VPSHUFD(operand.U8(order), largest.AsX(), high.AsX())
		c.VPMAXUD(high.AsX(), largest.AsX(), largest.AsX())
	}
	result := c.GP32()
	c.VMOVD(largest.AsX(), result)
	c.VZEROUPPER()
	c.Store(result, c.ReturnIndex(0))
	c.RET()
}

func spectralCopy(c *build.Context, t isa, iota operand.Mem) {
	name := "SpectralCopyF32" + t.suffix
	function(c, name, "func(a, x *float32, ld, first, end, r int, scale float32)",
		name+" sets rows first ≤ i < end of a, from the diagonal block on, to scale·x in the upper triangle of order r and +0 elsewhere; a and x point to row first.")
	a := c.Load(c.Param("a"), c.GP64())
	x := c.Load(c.Param("x"), c.GP64())
	ld := c.Load(c.Param("ld"), c.GP64())
	c.SHLQ(operand.U8(2), ld)
	scale, v := t.vec(c), t.vec(c)
	t.broadcast(c, paramMem(c, "scale"), scale)
	offset, inside := c.GP64(), t.mask(c)
	triangle{c: c, t: t, ld: ld, offset: offset, inside: inside, iotaConstant: iota,
		row: c.Load(c.Param("first"), c.GP64()), end: c.Load(c.Param("end"), c.GP64()), r: c.Load(c.Param("r"), c.GP64()),
		advance: func() {
			c.ADDQ(ld, x)
			c.ADDQ(ld, a)
		},
		body: func() {
			if t.lanes == 16 {
				c.VMULPS_Z(at(x, offset, 1, 0), scale, inside.(reg.OpmaskVirtual), v)
			} else {
				c.VMULPS(at(x, offset, 1, 0), scale, v)
				c.VANDPS(v, inside, v)
			}
			t.store(c, v, at(a, offset, 1, 0))
		}}.emit()
	finish(c)
}

// spectralMirror transposes square blocks of one vector's width in registers.
func spectralMirror(c *build.Context, t isa) {
	name := "SpectralMirrorF32" + t.suffix
	function(c, name, "func(a *float32, ld, first, rows int)",
		name+" copies the part of the upper triangle in rows first ≤ i < first+rows onto its mirror image; first and rows are multiples of 16 and the diagonal blocks are +0 below it.")
	a := c.Load(c.Param("a"), c.GP64())
	ld := c.Load(c.Param("ld"), c.GP64())
	first := c.Load(c.Param("first"), c.GP64())
	rows := c.Load(c.Param("rows"), c.GP64())
	stride, stride3 := c.GP64(), c.GP64()
	c.MOVQ(ld, stride)
	c.SHLQ(operand.U8(2), stride)
	c.LEAQ(at(stride, stride, 2, 0), stride3)
	c.ADDQ(first, rows) // the end

	source, target, column, tmp := c.GP64(), c.GP64(), c.GP64(), c.GP64()
	// address sets p to the block's element (i, j).
	address := func(i, j, p reg.Register) {
		c.MOVQ(i, p)
		c.IMULQ(stride, p)
		c.LEAQ(at(p, j, 4, 0), p)
		c.ADDQ(a, p)
	}
	// each calls f with the address of each row of the block at p, which it advances.
	each := func(p reg.Register, f func(i int, m operand.Mem)) {
		c.MOVQ(p, tmp)
		for i := range t.lanes {
			switch i % 4 {
			case 0:
				f(i, off(tmp, 0))
			case 1:
				f(i, at(tmp, stride, 1, 0))
			case 2:
				f(i, at(tmp, stride, 2, 0))
			case 3:
				f(i, at(tmp, stride3, 1, 0))
				c.LEAQ(at(tmp, stride, 4, 0), tmp)
			}
		}
	}

	c.Label("row")
	c.CMPQ(first, rows)
	c.JGE(operand.LabelRef("done"))
	address(first, first, source)
	v := t.vecs(c, t.lanes)
	each(source, func(i int, m operand.Mem) { t.load(c, m, v[i]) })
	v = t.transpose(c, v)
	each(source, func(i int, m operand.Mem) {
		c.VORPS(m, v[i], v[i])
		t.store(c, v[i], m)
	})
	c.MOVQ(first, column)
	c.Label("column")
	c.ADDQ(imm(t.lanes), column)
	c.CMPQ(column, ld)
	c.JGE(operand.LabelRef("columns_done"))
	address(first, column, source)
	address(column, first, target)
	u := t.vecs(c, t.lanes)
	each(source, func(i int, m operand.Mem) { t.load(c, m, u[i]) })
	u = t.transpose(c, u)
	each(target, func(i int, m operand.Mem) { t.store(c, u[i], m) })
	c.JMP(operand.LabelRef("column"))
	c.Label("columns_done")
	c.ADDQ(imm(t.lanes), first)
	c.JMP(operand.LabelRef("row"))
	c.Label("done")
	finish(c)
}

// transpose returns the columns of the square block whose rows are v.
func (t isa) transpose(c *build.Context, v []reg.VecVirtual) []reg.VecVirtual {
	out := make([]reg.VecVirtual, len(v))
	// exchange replaces rows i and j, j > i, by lo(i, j) and hi(i, j).
	exchange := func(i, j int, lo, hi func(x, y, to reg.VecVirtual)) {
		first, second := t.vec(c), t.vec(c)
		lo(v[i], v[j], first)
		hi(v[i], v[j], second)
		v[i], v[j] = first, second
	}
	for i := 0; i < len(v); i += 2 {
		exchange(i, i+1,
			func(x, y, to reg.VecVirtual) { c.VUNPCKLPS(y, x, to) },
			func(x, y, to reg.VecVirtual) { c.VUNPCKHPS(y, x, to) })
	}
	for i := 0; i < len(v); i += 4 {
		for k := range 2 {
			exchange(i+k, i+k+2,
				func(x, y, to reg.VecVirtual) { c.VUNPCKLPD(y, x, to) },
				func(x, y, to reg.VecVirtual) { c.VUNPCKHPD(y, x, to) })
		}
	}
	// Row 4q+p now holds, in its 128-bit part h, column 4h+column[p] of rows 4q to 4q+3.
	column := [4]int{0, 2, 1, 3}
	if t.lanes == 8 {
		for p := range 4 {
			exchange(p, p+4,
				func(x, y, to reg.VecVirtual) { c.VPERM2F128(operand.U8(0x20), y, x, to) },
				func(x, y, to reg.VecVirtual) { c.VPERM2F128(operand.U8(0x31), y, x, to) })
			out[column[p]], out[4+column[p]] = v[p], v[p+4]
		}
		return out
	}
	pick := func(selector uint8) func(x, y, to reg.VecVirtual) {
		return func(x, y, to reg.VecVirtual) { c.VSHUFF32X4(operand.U8(selector), y, x, to) }
	}
	for p := range 4 {
		exchange(p, p+4, pick(0x88), pick(0xdd))
		exchange(p+8, p+12, pick(0x88), pick(0xdd))
		exchange(p, p+8, pick(0x88), pick(0xdd))
		exchange(p+4, p+12, pick(0x88), pick(0xdd))
		out[column[p]], out[8+column[p]], out[4+column[p]], out[12+column[p]] = v[p], v[p+8], v[p+4], v[p+12]
	}
	return out
}
