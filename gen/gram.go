package main

import (
	"math/bits"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gram emits the two halves of the Gram accumulation: packing gathered rows
// (with the right-hand side fused), and the register tiles over the packed rows.
func gram(c *build.Context) {
	tailMasks(c)
	for _, t := range tiers {
		gramPack(c, t)
		gramTiles(c, t)
	}
}

// tailMaskData names 8 words of ones followed by 8 of zeros: the window that
// starts at word 8−n masks the first n lanes of an AVX2 register.
const tailMaskData = "tail_masks"

func tailMasks(c *build.Context) {
	c.StaticGlobal(tailMaskData)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		ones := operand.U32(0)
		if i < 8 {
			ones = 0xffffffff
		}
		c.AddDatum(4*i, ones)
	}
}

// maskedLoad reads the lanes selected by the tail mask and zeroes the others;
// masked-out lanes are not accessed.
func (t isa) maskedLoad(c *build.Context, m operand.Mem, mask reg.Register, v reg.VecVirtual) {
	if t.lanes == 16 {
		c.VMOVUPS_Z(m, mask, v)
	} else {
		c.VMASKMOVPS(m, mask, v)
	}
}

// tailMask returns a mask register with the first n lanes set, 1 ≤ n ≤ lanes.
// It consumes n.
func (t isa) tailMask(c *build.Context, n reg.GPVirtual) reg.Register {
	if t.lanes == 16 {
		ones := c.GP32()
		c.MOVL(imm(-1), ones)
		c.BZHIL(n.As32(), ones, ones)
		k := c.K()
		c.KMOVW(ones, k)
		return k
	}
	base := c.GP64()
	c.LEAQ(operand.NewDataAddr(operand.Symbol{Name: tailMaskData, Static: true}, 32), base)
	c.NEGQ(n)
	mask := c.YMM()
	c.VMOVDQU(at(base, n, 4, 0), mask)
	return mask
}

// gramPack emits the packing of one block: row k of pack becomes
// √weight_k · table[rows[k]], padded with zeros to the stride, and
// rhs += (√weight_k · target_k) · that row. Column groups of four, two and one
// registers keep the right-hand side in registers while the rows go by.
func gramPack(c *build.Context, t isa) {
	function(c, "GramPackF32"+t.suffix,
		"func(pack, rhs, table *float32, rows *int32, weights, targets *float32, count, rowBytes, vectors, tail, strideBytes int)",
		"GramPackF32"+t.suffix+" packs count ≥ 1 gathered and weighted rows and adds their part of the right-hand side. weights and targets may be nil.")
	l := &labels{}
	pack := c.Load(c.Param("pack"), c.GP64()).(reg.GPVirtual)
	rhs := c.Load(c.Param("rhs"), c.GP64()).(reg.GPVirtual)
	table := c.Load(c.Param("table"), c.GP64()).(reg.GPVirtual)
	rowBytes := c.Load(c.Param("rowBytes"), c.GP64()).(reg.GPVirtual)
	vectors := c.Load(c.Param("vectors"), c.GP64()).(reg.GPVirtual) // left to do
	stride := c.Load(c.Param("strideBytes"), c.GP64()).(reg.GPVirtual)
	mask := t.tailMask(c, c.Load(c.Param("tail"), c.GP64()).(reg.GPVirtual))

	group := func(n int) {
		skip := l.next("skip")
		loop := l.next("group")
		c.Label(loop)
		c.CMPQ(vectors, imm(n))
		c.JLT(operand.LabelRef(skip))
		// Only the very last register of the row is partial.
		partial, next := l.next("partial"), l.next("next")
		c.JEQ(operand.LabelRef(partial))
		gramPackGroup(c, t, l, n, pack, rhs, table, rowBytes, stride, nil)
		c.JMP(operand.LabelRef(next))
		c.Label(partial)
		gramPackGroup(c, t, l, n, pack, rhs, table, rowBytes, stride, mask)
		c.Label(next)
		for _, p := range []reg.GPVirtual{pack, rhs, table} {
			c.ADDQ(imm(n*t.bytes()), p)
		}
		c.SUBQ(imm(n), vectors)
		c.JMP(operand.LabelRef(loop))
		c.Label(skip)
	}
	for _, n := range []int{4, 2, 1} {
		group(n)
	}
	finish(c)
}

// gramPackGroup packs n registers of every row of the block, in one of four
// loops: with or without weights, with or without targets. mask, if not nil,
// guards the last register.
func gramPackGroup(c *build.Context, t isa, l *labels, n int, pack, rhs, table, rowBytes, stride reg.GPVirtual, mask reg.Register) {
	rows := c.Load(c.Param("rows"), c.GP64()).(reg.GPVirtual)
	weights := c.Load(c.Param("weights"), c.GP64()).(reg.GPVirtual)
	targets := c.Load(c.Param("targets"), c.GP64()).(reg.GPVirtual)
	k := c.GP64()
	c.XORQ(k, k)
	out := c.GP64()
	c.MOVQ(pack, out)
	done := l.next("packed")
	unweighted, plain, weightedOnly := l.next("unweighted"), l.next("plain"), l.next("weighted")
	sum := t.vecs(c, n)

	body := func(weighted, targeted bool) {
		if targeted {
			for i := range n {
				t.load(c, off(rhs, i*t.bytes()), sum[i])
			}
		}
		loop := l.next("row")
		c.Label(loop)
		row := c.GP64()
		c.MOVLQSX(at(rows, k, 4, 0), row)
		c.IMULQ(rowBytes, row)
		var scale, target reg.VecVirtual
		if weighted {
			s := c.XMM()
			c.VMOVSS(at(weights, k, 4, 0), s)
			c.VSQRTSS(s, s, s)
			scale = t.vec(c)
			if targeted {
				m := c.XMM()
				c.VMULSS(at(targets, k, 4, 0), s, m)
				target = t.vec(c)
				c.VBROADCASTSS(m, target)
			}
			c.VBROADCASTSS(s, scale)
		} else if targeted {
			target = t.vec(c)
			t.broadcast(c, at(targets, k, 4, 0), target)
		}
		for i := range n {
			v := t.vec(c)
			from := at(table, row, 1, i*t.bytes())
			if mask != nil && i == n-1 {
				t.maskedLoad(c, from, mask, v)
			} else {
				t.load(c, from, v)
			}
			if weighted {
				c.VMULPS(scale, v, v)
			}
			t.store(c, v, off(out, i*t.bytes()))
			if targeted {
				c.VFMADD231PS(target, v, sum[i])
			}
		}
		c.ADDQ(stride, out)
		c.INCQ(k)
		c.CMPQ(k, paramMem(c, "count"))
		c.JNE(operand.LabelRef(loop))
		if targeted {
			for i := range n {
				t.store(c, sum[i], off(rhs, i*t.bytes()))
			}
		}
		c.JMP(operand.LabelRef(done))
	}

	c.TESTQ(weights, weights)
	c.JZ(operand.LabelRef(unweighted))
	c.TESTQ(targets, targets)
	c.JZ(operand.LabelRef(weightedOnly))
	body(true, true)
	c.Label(weightedOnly)
	body(true, false)
	c.Label(unweighted)
	c.TESTQ(targets, targets)
	c.JZ(operand.LabelRef(plain))
	body(false, true)
	c.Label(plain)
	body(false, false)
	c.Label(done)
}

// gramTiles emits gram += Σ_k pack_k pack_kᵀ over the upper triangle. With W
// lanes, the rows are cut into panels of W/2; a panel's columns run from the
// register that holds its diagonal to the right edge, in tiles of two or three
// registers whose accumulators nearly fill the register file. The last W rows
// are one tile of W rows by one register.
func gramTiles(c *build.Context, t isa) {
	function(c, "GramTilesF32"+t.suffix,
		"func(gram, pack *float32, count, vectors int, table *float32, rowBytes int, next *int32, nextCount, perTile, strideBytes int)",
		"GramTilesF32"+t.suffix+" adds the outer products of count ≥ 1 packed rows to the upper triangle of gram. Meanwhile it prefetches the rows listed in next, perTile ≤ count cache lines in every tile.")
	half := t.lanes / 2
	g := &gramTiler{
		c: c, t: t, labels: &labels{},
		gramRow: c.Load(c.Param("gram"), c.GP64()).(reg.GPVirtual),
		line:    c.Load(c.Param("table"), c.GP64()).(reg.GPVirtual),
		stride:  c.Load(c.Param("strideBytes"), c.GP64()).(reg.GPVirtual),
		row:     c.GP64(), column: c.GP64(),
		cursor: c.AllocLocal(8), rowsLeft: c.AllocLocal(8),
	}
	left := paramMem(c, "vectors") // registers from the diagonal to the right edge
	c.XORQ(g.row, g.row)
	g.resetCursor()

	c.CMPQ(left, imm(1))
	c.JEQ(operand.LabelRef("last"))
	c.Label("panel")
	remaining := c.GP64()
	c.MOVQ(left, remaining)
	c.MOVQ(g.row, g.column)
	c.ANDQ(imm(-t.bytes()), g.column)
	c.Label("columns")
	c.CMPQ(remaining, imm(3))
	c.JEQ(operand.LabelRef("three"))
	g.tile(half, 2)
	c.ADDQ(imm(2*t.bytes()), g.column)
	c.SUBQ(imm(2), remaining)
	c.JNZ(operand.LabelRef("columns"))
	c.JMP(operand.LabelRef("panel_done"))
	c.Label("three")
	g.tile(half, 3)
	c.Label("panel_done")
	for shift := 1; shift < half; shift *= 2 { // gramRow += half · stride
		c.ADDQ(g.stride, g.stride)
	}
	c.ADDQ(g.stride, g.gramRow)
	c.SHRQ(operand.U8(log2(half)), g.stride)
	c.ADDQ(imm(4*half), g.row)
	c.TESTQ(imm(4*half), g.row)
	c.JNZ(operand.LabelRef("panel"))
	c.DECQ(left)
	c.CMPQ(left, imm(1))
	c.JNE(operand.LabelRef("panel"))

	c.Label("last")
	c.MOVQ(g.row, g.column)
	g.tile(t.lanes, 1)
	finish(c)
}

// gramTiler holds what the tiles of one function share.
type gramTiler struct {
	c       *build.Context
	t       isa
	labels  *labels
	gramRow reg.GPVirtual // first row of the panel
	stride  reg.GPVirtual // bytes per row of gram and of pack
	row     reg.GPVirtual // byte offset, within a packed row, of the panel's first element
	column  reg.GPVirtual // byte offset, within a row, of the tile's first column

	// Prefetching goes through the rows of next once for each cache line of a row.
	line     reg.GPVirtual // table + 64 · lines done
	cursor   operand.Mem   // place in next
	rowsLeft operand.Mem   // of next, for this line
}

// resetCursor goes back to the first row of next.
func (g *gramTiler) resetCursor() {
	tmp := g.c.GP64()
	for _, m := range []struct {
		from string
		to   operand.Mem
	}{{"next", g.cursor}, {"nextCount", g.rowsLeft}} {
		g.c.MOVQ(paramMem(g.c, m.from), tmp)
		g.c.MOVQ(tmp, m.to)
	}
}

// tile adds the block's rows to rows × n registers of gram.
func (g *gramTiler) tile(rows, n int) {
	c, t := g.c, g.t
	acc := make([][]reg.VecVirtual, rows)
	for a := range acc {
		acc[a] = make([]reg.VecVirtual, n)
	}
	g.eachRow(acc, func(m operand.Mem, v *reg.VecVirtual) {
		*v = t.vec(c)
		t.load(c, m, *v)
	})

	// Lines to prefetch in this tile: none once all lines of a row are done.
	prefetches := c.GP64()
	c.MOVQ(g.rowsLeft, prefetches)
	c.CMPQ(prefetches, paramMem(c, "perTile"))
	c.CMOVQGT(paramMem(c, "perTile"), prefetches)
	end, none := c.GP64(), c.GP64()
	c.MOVQ(paramMem(c, "table"), end)
	c.ADDQ(paramMem(c, "rowBytes"), end)
	c.XORQ(none, none)
	c.CMPQ(g.line, end)
	c.CMOVQCC(none, prefetches)

	broadcasts, columns := c.GP64(), c.GP64()
	c.MOVQ(paramMem(c, "pack"), broadcasts)
	c.LEAQ(at(broadcasts, g.column, 1, 0), columns)
	c.ADDQ(g.row, broadcasts)
	k := c.GP64()
	c.XORQ(k, k)

	body := func() {
		x := t.vecs(c, n)
		for i := range x {
			t.load(c, off(columns, i*t.bytes()), x[i])
		}
		for a := range rows {
			if n == 1 {
				t.fmaBroadcast(c, off(broadcasts, 4*a), x[0], acc[a][0], t.vec(c))
				continue
			}
			b := t.vec(c)
			t.broadcast(c, off(broadcasts, 4*a), b)
			for i := range x {
				c.VFMADD231PS(x[i], b, acc[a][i])
			}
		}
		c.ADDQ(g.stride, columns)
		c.ADDQ(g.stride, broadcasts)
		c.INCQ(k)
	}
	prefetching, plain, done := g.labels.next("prefetching"), g.labels.next("plain"), g.labels.next("stored")
	c.TESTQ(prefetches, prefetches)
	c.JZ(operand.LabelRef(plain))
	c.Label(prefetching)
	row := c.GP64()
	c.MOVQ(g.cursor, row)
	c.MOVLQSX(at(row, k, 4, 0), row)
	c.IMULQ(paramMem(c, "rowBytes"), row)
	c.PREFETCHT0(at(g.line, row, 1, 0))
	body()
	c.CMPQ(k, prefetches)
	c.JNE(operand.LabelRef(prefetching))
	c.CMPQ(k, paramMem(c, "count"))
	c.JEQ(operand.LabelRef(done))
	c.Label(plain)
	body()
	c.CMPQ(k, paramMem(c, "count"))
	c.JNE(operand.LabelRef(plain))

	c.Label(done)
	g.eachRow(acc, func(m operand.Mem, v *reg.VecVirtual) { t.store(c, *v, m) })

	same := g.labels.next("same_line")
	c.SUBQ(prefetches, g.rowsLeft)
	c.SHLQ(operand.U8(2), prefetches)
	c.ADDQ(prefetches, g.cursor)
	c.CMPQ(g.rowsLeft, imm(0))
	c.JNE(operand.LabelRef(same))
	c.ADDQ(imm(64), g.line)
	g.resetCursor()
	c.Label(same)
}

// eachRow calls f for every accumulator of a tile with its place in gram.
func (g *gramTiler) eachRow(acc [][]reg.VecVirtual, f func(m operand.Mem, v *reg.VecVirtual)) {
	p := g.c.GP64()
	g.c.LEAQ(at(g.gramRow, g.column, 1, 0), p)
	for a := range acc {
		if a > 0 {
			g.c.ADDQ(g.stride, p)
		}
		for i := range acc[a] {
			f(off(p, i*g.t.bytes()), &acc[a][i])
		}
	}
}

func log2(n int) int { return bits.Len(uint(n)) - 1 }
