package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// scoreLanes is the number of virtual lanes of one row's inner product.
const scoreLanes = 16

// score emits the products of table rows with one vector. A block of rows is
// reduced side by side, so that one transposing reduction serves all its rows and the
// vector is loaded once for them.
func score(c *build.Context) {
	for _, t := range tiers {
		scoreF32(c, t)
		scoreRowsF32(c, t)
	}
}

// scoreBlock is what the emitters of one block share. Row addresses point to
// the end of a row's whole vectors: the column offset counts from −whole to 0, and
// the tail lies at offset 0.
type scoreBlock struct {
	t     isa
	rows  []reg.GPVirtual    // addresses
	sums  [][]reg.VecVirtual // lanes per row, scoreLanes/t.lanes registers
	x     reg.GPVirtual      // end of the whole vectors of x
	j     reg.GPVirtual      // column offset, bytes
	whole operand.Mem        // −4·(r − r mod 16), on the stack
	v     []reg.VecVirtual   // scratch, scoreLanes/t.lanes registers
	xTail []reg.VecVirtual   // x from the tail on, neutral beyond its end
	mask  []reg.VecVirtual   // AVX2: which columns the tail has
	kMask reg.OpmaskVirtual  // AVX-512: the same
	tail  operand.Mem        // r mod 16, on the stack
}

// blockRows is the number of rows reduced side by side: as many as the sums leave
// registers for, and a power of two for the reduction.
func blockRows(t isa) int {
	if t.lanes == scoreLanes {
		return 8
	}
	return 4
}

// newScoreBlock reads r and x and prepares the tail.
func newScoreBlock(c *build.Context, t isa) *scoreBlock {
	registers := scoreLanes / t.lanes
	b := &scoreBlock{t: t, x: c.GP64(), j: c.GP64(), whole: c.AllocLocal(8), tail: c.AllocLocal(8)}
	for range blockRows(t) {
		b.rows = append(b.rows, c.GP64())
		b.sums = append(b.sums, t.vecs(c, registers))
	}
	b.v, b.xTail = t.vecs(c, registers), t.vecs(c, registers)

	whole, tail := c.GP64(), c.GP64()
	c.MOVQ(paramMem(c, "r"), whole)
	c.MOVQ(whole, tail)
	c.ANDQ(imm(scoreLanes-1), tail)
	c.MOVQ(tail, b.tail)
	c.ANDQ(imm(-scoreLanes), whole)
	c.SHLQ(operand.U8(2), whole)
	c.MOVQ(paramMem(c, "x"), b.x)
	c.ADDQ(whole, b.x)
	c.NEGQ(whole)
	c.MOVQ(whole, b.whole)

	if t.embedded {
		bits := c.GP32()
		c.MOVL(imm(-1), bits)
		c.BZHIL(tail.As32(), bits, bits)
		b.kMask = c.K()
		c.KMOVW(bits, b.kMask)
		c.VMOVUPS_Z(off(b.x, 0), b.kMask, b.xTail[0])
		return b
	}
	// The tail multiplies the zeros of a masked load by −0: a sum of +0·−0 = −0 is
	// the only one that leaves every lane unchanged, a lane of −0 included.
	left, step := c.YMM(), c.YMM()
	sign, position := b.v[0], iota8(c)
	eights := c.GP32()
	broadcastInt(c, tail.As32(), left)
	c.MOVL(imm(t.lanes), eights)
	broadcastInt(c, eights, step)
	signBits(c, sign)
	b.mask = t.vecs(c, registers)
	for h := range registers {
		c.VPCMPGTD(position, left, b.mask[h])
		c.VMASKMOVPS(off(b.x, h*t.bytes()), b.mask[h], b.xTail[h])
		c.VANDNPS(sign, b.mask[h], b.v[1])
		c.VORPS(b.v[1], b.xTail[h], b.xTail[h])
		c.VPADDD(step, position, position)
	}
	return b
}

// accumulate sums the products of all rows of the block, lane by lane.
func (b *scoreBlock) accumulate(c *build.Context) {
	t := b.t
	for _, row := range b.sums {
		for _, s := range row {
			t.zero(c, s)
		}
	}
	c.MOVQ(b.whole, b.j)
	c.TESTQ(b.j, b.j)
	c.JZ(operand.LabelRef("tail"))
	c.Label("columns")
	for h := range b.v {
		t.load(c, at(b.x, b.j, 1, h*t.bytes()), b.v[h])
	}
	for k, row := range b.rows {
		for h := range b.v {
			c.VFMADD231PS(at(row, b.j, 1, h*t.bytes()), b.v[h], b.sums[k][h])
		}
	}
	c.ADDQ(imm(4*scoreLanes), b.j)
	c.JNZ(operand.LabelRef("columns"))

	c.Label("tail")
	c.CMPQ(b.tail, imm(0))
	c.JE(operand.LabelRef("reduce"))
	for k, row := range b.rows {
		if t.embedded {
			c.VFMADD231PS(off(row, 0), b.xTail[0], b.kMask, b.sums[k][0])
			continue
		}
		for h := range b.v {
			c.VMASKMOVPS(off(row, h*t.bytes()), b.mask[h], b.v[h])
			c.VFMADD231PS(b.xTail[h], b.v[h], b.sums[k][h])
		}
	}
	c.Label("reduce")
}

// reduce adds the lanes of every row by halving and returns a register with
// the sum of row k in lane k.
func (b *scoreBlock) reduce(c *build.Context) reg.VecVirtual {
	if b.t.embedded {
		return b.reduce512(c)
	}
	return b.reduce2(c)
}

// combine returns shuffle(imm0, a, b) + shuffle(imm1, a, b): one step of a
// transposing reduction. The result takes a's register.
func combine(c *build.Context, shuffle func(...operand.Op), a, b, tmp reg.VecVirtual, imm0, imm1 uint8) {
	shuffle(operand.U8(imm0), b, a, tmp)
	shuffle(operand.U8(imm1), b, a, a)
	c.VADDPS(a, tmp, a)
}

// reduce512 works on 128-bit quarters. In the comments, a digit is a row and
// its quarters hold ever fewer lanes of it; the order of rows is chosen such that they
// come out ascending.
func (b *scoreBlock) reduce512(c *build.Context) reg.VecVirtual {
	row := func(k int) reg.VecVirtual { return b.sums[k][0] }
	tmp := b.v[0]
	// Lanes i and i+8: halves of a register.
	for _, p := range [4][2]int{{0, 2}, {4, 6}, {1, 3}, {5, 7}} {
		combine(c, c.VSHUFF64X2, row(p[0]), row(p[1]), tmp, 0x44, 0xee)
	}
	// Now 0 holds 0022, 4 holds 4466, 1 holds 1133, 5 holds 5577. Lanes i and i+4.
	combine(c, c.VSHUFF64X2, row(0), row(4), tmp, 0x88, 0xdd)
	combine(c, c.VSHUFF64X2, row(1), row(5), tmp, 0x88, 0xdd)
	// Now 0 holds 0246 and 1 holds 1357. Lanes i and i+2, then 0 and 1.
	combine(c, c.VSHUFPS, row(0), row(1), tmp, 0x44, 0xee)
	c.VPERMILPS(operand.U8(0xb1), row(0), tmp)
	c.VADDPS(tmp, row(0), row(0))
	c.VPMOVQD(row(0), row(0).AsY())
	return row(0)
}

// reduce2 has lanes 0 to 7 and 8 to 15 of a row in two registers.
func (b *scoreBlock) reduce2(c *build.Context) reg.VecVirtual {
	row := func(k int) reg.VecVirtual { return b.sums[k][0] }
	tmp := b.v[0]
	for _, s := range b.sums {
		c.VADDPS(s[1], s[0], s[0])
	}
	// Lanes i and i+4: halves of a register. Now 0 holds 02 and 1 holds 13.
	halves := func(ops ...operand.Op) { c.VPERM2F128(ops[0], ops[1], ops[2], ops[3]) }
	combine(c, halves, row(0), row(2), tmp, 0x20, 0x31)
	combine(c, halves, row(1), row(3), tmp, 0x20, 0x31)
	// Lanes i and i+2, then 0 and 1.
	combine(c, c.VSHUFPS, row(0), row(1), tmp, 0x44, 0xee)
	c.VPERMILPS(operand.U8(0xb1), row(0), tmp)
	c.VADDPS(tmp, row(0), row(0))
	c.VEXTRACTF128(operand.U8(1), row(0), tmp.AsX())
	c.VSHUFPS(operand.U8(0x88), tmp.AsX(), row(0).AsX(), row(0).AsX())
	return row(0)
}

// run emits the loop over blocks. address sets the row addresses of a whole
// block, or of one with only n rows, where it repeats the last one; next moves on by
// a block. The caller has checked n > 0.
func (b *scoreBlock) run(c *build.Context, n reg.GPVirtual, address func(few bool), next func()) {
	rows := len(b.rows)
	scores := c.GP64()
	c.MOVQ(paramMem(c, "scores"), scores)
	c.Label("block")
	c.CMPQ(n, imm(rows))
	c.JLT(operand.LabelRef("few"))
	address(false)
	c.JMP(operand.LabelRef("addressed"))
	c.Label("few")
	c.TESTQ(n, n)
	c.JZ(operand.LabelRef("end"))
	address(true)
	c.Label("addressed")
	b.accumulate(c)
	sums := b.reduce(c)
	c.CMPQ(n, imm(rows))
	c.JLT(operand.LabelRef("store_few"))
	if b.t.embedded {
		c.VMOVUPS(sums.AsY(), off(scores, 0))
	} else {
		c.VMOVUPS(sums.AsX(), off(scores, 0))
	}
	c.ADDQ(imm(4*rows), scores)
	next()
	c.SUBQ(imm(rows), n)
	c.JMP(operand.LabelRef("block"))

	c.Label("store_few")
	if b.t.embedded {
		bits, k := c.GP32(), c.K()
		c.MOVL(imm(-1), bits)
		c.BZHIL(n.As32(), bits, bits)
		c.KMOVW(bits, k)
		c.VMOVUPS(sums.AsY(), k, off(scores, 0))
	} else {
		mask := c.XMM()
		c.VMOVD(n.As32(), mask)
		c.VPBROADCASTD(mask, mask)
		c.VPCMPGTD(iota8(c).AsX(), mask, mask)
		c.VMASKMOVPS(sums.AsX(), mask, off(scores, 0))
	}
	c.Label("end")
	finish(c)
}

// scoreF32 scores consecutive rows.
func scoreF32(c *build.Context, t isa) {
	function(c, "ScoreF32"+t.suffix, "func(scores, table, x *float32, r, n int)",
		"ScoreF32"+t.suffix+" computes scores[i] = row i of table times x for i < n; n > 0.")
	b := newScoreBlock(c, t)
	stride := c.AllocLocal(8)
	n := c.GP64()
	c.MOVQ(paramMem(c, "r"), n)
	c.SHLQ(operand.U8(2), n)
	c.MOVQ(n, stride)
	c.MOVQ(paramMem(c, "table"), b.rows[0])
	c.SUBQ(b.whole, b.rows[0])
	c.MOVQ(paramMem(c, "n"), n)
	following := func(from, to reg.GPVirtual) {
		if from != to {
			c.MOVQ(from, to)
		}
		c.ADDQ(stride, to)
	}
	b.run(c, n, func(few bool) {
		for k := 1; k < len(b.rows); k++ {
			following(b.rows[k-1], b.rows[k])
			if few {
				c.CMPQ(n, imm(k))
				c.CMOVQLE(b.rows[k-1], b.rows[k])
			}
		}
	}, func() {
		c.MOVQ(b.rows[len(b.rows)-1], b.rows[0])
		c.ADDQ(stride, b.rows[0])
	})
}

// prefetchRows is how many rows ahead scoreRowsF32 prefetches.
const prefetchRows = 16

// scoreRowsF32 scores the rows of an index list.
func scoreRowsF32(c *build.Context, t isa) {
	function(c, "ScoreRowsF32"+t.suffix, "func(scores, table, x *float32, r int, rows *int32, n int)",
		"ScoreRowsF32"+t.suffix+" computes scores[i] = row rows[i] of table times x for i < n; n > 0.")
	b := newScoreBlock(c, t)
	stride, table := c.AllocLocal(8), c.AllocLocal(8)
	n, index := c.GP64(), c.GP64()
	c.MOVQ(paramMem(c, "r"), n)
	c.SHLQ(operand.U8(2), n)
	c.MOVQ(n, stride)
	c.MOVQ(paramMem(c, "table"), n)
	c.SUBQ(b.whole, n)
	c.MOVQ(n, table)
	c.MOVQ(paramMem(c, "n"), n)
	c.MOVQ(paramMem(c, "rows"), index)

	rowAddress := func(index operand.Mem, row reg.GPVirtual) {
		c.MOVLQSX(index, row)
		c.IMULQ(stride, row)
		c.ADDQ(table, row)
	}
	b.run(c, n, func(few bool) {
		if few {
			// Position min(k, n−1) in the list.
			last, k := b.rows[len(b.rows)-1], b.j
			c.LEAQ(off(n, -1), last)
			for i, row := range b.rows {
				c.MOVQ(imm(i), k)
				c.CMPQ(k, last)
				c.CMOVQGT(last, k)
				rowAddress(at(index, k, 4, 0), row)
			}
			return
		}
		b.prefetch(c, n, index, rowAddress)
		for i, row := range b.rows {
			rowAddress(off(index, 4*i), row)
		}
	}, func() { c.ADDQ(imm(4*len(b.rows)), index) })
}

// prefetch fetches the rows of a block that comes prefetchRows later, as far as the
// list goes. It uses the registers of row addresses, which are free at this point.
func (b *scoreBlock) prefetch(c *build.Context, n, index reg.GPVirtual, rowAddress func(operand.Mem, reg.GPVirtual)) {
	position, end, row := b.rows[0], b.rows[1], b.rows[2]
	c.MOVQ(imm(prefetchRows+len(b.rows)), end)
	c.CMPQ(n, end)
	c.CMOVQLT(n, end)
	c.MOVQ(imm(prefetchRows), position)
	c.Label("prefetch_row")
	c.CMPQ(position, end)
	c.JGE(operand.LabelRef("prefetched"))
	rowAddress(at(index, position, 4, 0), row)
	c.MOVQ(b.whole, b.j)
	c.Label("prefetch_line")
	c.PREFETCHT0(at(row, b.j, 1, 0))
	c.ADDQ(imm(64), b.j)
	c.JLT(operand.LabelRef("prefetch_line"))
	c.INCQ(position)
	c.JMP(operand.LabelRef("prefetch_row"))
	c.Label("prefetched")
}
