package main

import (
	"fmt"
	"math/bits"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// cholesky emits the factorization A = UᵀU with and without a right-hand side,
// and the two triangular solves. All work on a matrix padded to a multiple of 16
// and on whole blocks of 16 rows.
func cholesky(c *build.Context) {
	one := c.ConstData("cholesky_one", operand.F32(1))
	steps := c.StaticGlobal("cholesky_steps")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		c.AppendDatum(operand.U32(i))
	}
	for _, t := range tiers {
		for _, rhs := range []bool{false, true} {
			choleskyRows(c, t, rhs, one)
		}
		choleskyForward(c, t, one, steps)
		choleskyBackward(c, t, one, steps)
	}
}

// factorizer emits the left-looking factorization in blocks of half a vector of
// rows. A block row is cut into tiles of a few vectors of columns, which stay in
// registers from the first subtraction to the final scaling. The tile on the
// diagonal is bound by the chain of square root and division, so it takes some
// vectors to its right along for free.
type factorizer struct {
	c     *build.Context
	t     isa
	rhs   bool
	rows  int // of a block: t.lanes/2
	wide  int // most vectors in a tile
	label labels

	ld, ld3     reg.Register // in bytes, ld3 = 3·ld
	row         reg.Register // first row of the block
	b           reg.Register // address of that row's right-hand side
	diag, diag4 reg.Register // addresses of the block's rows 0 and 4 in its diagonal vector of columns
	tile, tile4 reg.Register // like diag, diag4, of the tile at work
	top         operand.Mem  // address of row 0 of the matrix in the diagonal vector
	vectors     operand.Mem  // from the diagonal vector to the right end
	inv         operand.Mem  // reciprocals of the block's diagonal
	one         operand.Mem
}

func choleskyRows(c *build.Context, t isa, rhs bool, one operand.Mem) {
	f := &factorizer{c: c, t: t, rhs: rhs, rows: t.lanes / 2, wide: 3, one: one}
	if rhs {
		function(c, "CholeskySolveRowsF32"+t.suffix, "func(a, b *float32, ld, from, to int) int",
			"CholeskySolveRowsF32"+t.suffix+" factors the rows from ≤ i < to and turns b[i] into y[i]; it returns -1 or the column that failed.")
	} else {
		function(c, "CholeskyRowsF32"+t.suffix, "func(a *float32, ld, from, to int) int",
			"CholeskyRowsF32"+t.suffix+" is CholeskySolveRowsF32"+t.suffix+" without a right-hand side.")
	}
	a := c.Load(c.Param("a"), c.GP64())
	f.ld = c.Load(c.Param("ld"), c.GP64())
	f.row = c.Load(c.Param("from"), c.GP64())
	if rhs {
		f.b = c.Load(c.Param("b"), c.GP64())
		c.LEAQ(at(f.b, f.row, 4, 0), f.b)
	}
	f.inv = c.AllocLocal(4 * f.rows)
	// Two of the counters live on the stack: registers are short, and R14 is Go's.
	f.vectors, f.top = c.AllocLocal(8), c.AllocLocal(8)

	vectors, top := c.GP64(), c.GP64()
	c.MOVQ(f.ld, vectors)
	c.SUBQ(f.row, vectors)
	c.SHRQ(imm8(bits.TrailingZeros(uint(t.lanes))), vectors)
	c.MOVQ(vectors, f.vectors)
	c.LEAQ(at(a, f.row, 4, 0), top)
	c.MOVQ(top, f.top)
	c.SHLQ(imm8(2), f.ld)
	f.ld3 = c.GP64()
	c.LEAQ(at(f.ld, f.ld, 2, 0), f.ld3)
	f.diag, f.diag4 = c.GP64(), c.GP64()
	c.MOVQ(f.row, f.diag)
	c.IMULQ(f.ld, f.diag)
	c.ADDQ(top, f.diag)
	if f.rows > 4 {
		c.LEAQ(at(f.diag, f.ld, 4, 0), f.diag4)
	}
	f.tile, f.tile4 = c.GP64(), c.GP64()

	c.Label("block")
	for half := range 2 {
		f.blockRow(half)
		c.ADDQ(imm(f.rows), f.row)
		if rhs {
			c.ADDQ(imm(4*f.rows), f.b)
		}
		c.LEAQ(at(f.diag, f.ld, uint8(f.rows), 0), f.diag)
		if f.rows > 4 {
			c.LEAQ(at(f.diag4, f.ld, uint8(f.rows), 0), f.diag4)
		}
	}
	c.ADDQ(imm(t.bytes()), f.top)
	c.ADDQ(imm(t.bytes()), f.diag)
	if f.rows > 4 {
		c.ADDQ(imm(t.bytes()), f.diag4)
	}
	c.DECQ(f.vectors)
	c.CMPQ(f.row, paramMem(c, "to"))
	c.JLT(operand.LabelRef("block"))
	c.MOVQ(imm(-1), f.row)
	c.JMP(operand.LabelRef("end"))

	// A pivot fails in row `row` + k: fall through k increments.
	for k := f.rows - 1; k >= 0; k-- {
		c.Label(failLabel(k))
		if k > 0 {
			c.INCQ(f.row)
		}
	}
	c.Label("end")
	c.Store(f.row.(reg.GPVirtual), c.ReturnIndex(0))
	finish(c)
}

func failLabel(k int) string { return fmt.Sprintf("fail_%d", k) }

// blockRow emits one block row: half tells which half of the diagonal vector its
// diagonal lies in.
func (f *factorizer) blockRow(half int) {
	c := f.c
	left := c.GP64()
	c.MOVQ(f.vectors, left)
	trail, done := f.label.next("trail"), f.label.next("done")
	diagonalWide := f.wide
	if f.t.registers == 16 {
		diagonalWide = 2
	}
	for n := diagonalWide; n >= 1; n-- {
		next := f.label.next("narrower")
		if n > 1 {
			c.CMPQ(left, imm(n))
			c.JLT(operand.LabelRef(next))
		}
		f.diagonalTile(half, n-f.companions(n), f.companions(n))
		c.LEAQ(off(f.diag, n*f.t.bytes()), f.tile)
		c.SUBQ(imm(n), left)
		if n > 1 {
			c.JMP(operand.LabelRef(trail))
			c.Label(next)
		}
	}
	c.Label(trail)
	if f.rows > 4 {
		c.LEAQ(at(f.tile, f.ld, 4, 0), f.tile4)
	}
	// Four vectors are better cut 2 + 2 than 3 + 1.
	two, one := f.label.next("two"), f.label.next("one")
	next := f.label.next("next")
	c.Label(next)
	c.CMPQ(left, imm(3))
	c.JLT(operand.LabelRef(two))
	c.CMPQ(left, imm(4))
	c.JEQ(operand.LabelRef(two))
	f.trailingTile(half, 3)
	f.advance(left, 3)
	c.JMP(operand.LabelRef(next))
	c.Label(two)
	c.CMPQ(left, imm(2))
	c.JLT(operand.LabelRef(one))
	f.trailingTile(half, 2)
	f.advance(left, 2)
	c.JMP(operand.LabelRef(two))
	c.Label(one)
	c.TESTQ(left, left)
	c.JZ(operand.LabelRef(done))
	f.trailingTile(half, 1)
	c.Label(done)
}

// companions is how many of the n vectors that a diagonal tile takes along are
// worked on during its chain rather than with it. One is enough to fill the wait;
// AVX2 has no registers for it.
func (f *factorizer) companions(n int) int {
	if f.t.registers == 32 {
		return min(n-1, 1)
	}
	return 0
}

func (f *factorizer) advance(left reg.GPVirtual, n int) {
	f.c.SUBQ(imm(n), left)
	f.c.ADDQ(imm(n*f.t.bytes()), f.tile)
	if f.rows > 4 {
		f.c.ADDQ(imm(n*f.t.bytes()), f.tile4)
	}
}

// in is element displacement/4 of the block's row k, from the address pair of
// its rows 0 and 4.
func (f *factorizer) in(row0, row4 reg.Register, k, displacement int) operand.Mem {
	if k >= 4 {
		row0, k = row4, k-4
	}
	return f.strided(row0, k, displacement)
}

// strided is base + k·ld + displacement for k < 4.
func (f *factorizer) strided(base reg.Register, k, displacement int) operand.Mem {
	return stridedRow(base, f.ld, f.ld3, k, displacement)
}

func stridedRow(base, ld, ld3 reg.Register, k, displacement int) operand.Mem {
	switch k {
	case 0:
		return off(base, displacement)
	case 3:
		return at(base, ld3, 1, displacement)
	}
	return at(base, ld, uint8(k), displacement)
}

// subtractRows loads the tile and subtracts from it the products of the rows
// above the block: acc[h][v] −= U[k][row+h] · U[k][column+v] for k < row. y, if
// not nil, is one more row: y[v] −= y_k · U[k][v] for the first vector.
func (f *factorizer) subtractRows(half, n int, row0, row4 reg.Register, y reg.VecVirtual) [][]reg.VecVirtual {
	c, t := f.c, f.t
	acc := f.load(n, row0, row4, 0)
	loop, done := f.label.next("rows"), f.label.next("rows_done")
	k, left, right := c.GP64(), c.GP64(), c.GP64()
	c.MOVQ(f.row, k) // counts from -row to 0
	c.NEGQ(k)
	c.JZ(operand.LabelRef(done))
	c.MOVQ(f.top, left)
	c.MOVQ(f.top, right)
	c.ADDQ(row0, right)
	c.SUBQ(f.diag, right)
	tmp := t.vec(c)
	c.Label(loop)
	for u := range 4 {
		x := t.vecs(c, n)
		for v := range n {
			t.load(c, f.strided(right, u, v*t.bytes()), x[v])
		}
		if y != nil {
			t.fnmaBroadcast(c, at(f.b, k, 4, 4*u), x[0], y, tmp)
		}
		for h := range acc {
			m := f.strided(left, u, 4*(half*f.rows+h))
			if n == 1 {
				t.fnmaBroadcast(c, m, x[0], acc[h][0], tmp)
				continue
			}
			t.broadcast(c, m, tmp)
			for v := range n {
				c.VFNMADD231PS(tmp, x[v], acc[h][v])
			}
		}
	}
	c.LEAQ(at(left, f.ld, 4, 0), left)
	c.LEAQ(at(right, f.ld, 4, 0), right)
	c.ADDQ(imm(4), k)
	c.JNZ(operand.LabelRef(loop))
	c.Label(done)
	return acc
}

// load loads n vectors of the block's rows.
func (f *factorizer) load(n int, row0, row4 reg.Register, displacement int) [][]reg.VecVirtual {
	acc := make([][]reg.VecVirtual, f.rows)
	for h := range acc {
		acc[h] = f.t.vecs(f.c, n)
		for v := range n {
			f.t.load(f.c, f.in(row0, row4, h, displacement+v*f.t.bytes()), acc[h][v])
		}
	}
	return acc
}

// share loads n vectors of the block's rows at the displacement from the
// diagonal one. The function it returns emits, each time it is called, code for
// one part in f.rows of the subtraction of the rows above from them.
func (f *factorizer) share(half, n, displacement int) (acc [][]reg.VecVirtual, part func()) {
	c, t := f.c, f.t
	acc = f.load(n, f.diag, f.diag4, displacement)
	if n == 0 {
		return acc, func() {}
	}
	left, count := c.GP64(), c.GP64()
	c.MOVQ(f.top, left)
	return acc, func() {
		loop, done := f.label.next("share"), f.label.next("share_done")
		c.MOVQ(f.row, count)
		c.SHRQ(imm8(bits.TrailingZeros(uint(f.rows))), count)
		c.JZ(operand.LabelRef(done))
		c.Label(loop)
		x := t.vecs(c, n)
		for v := range n {
			t.load(c, off(left, displacement+v*t.bytes()), x[v])
		}
		for h := range acc {
			for v := range n {
				c.VFNMADD231PS_BCST(off(left, 4*(half*f.rows+h)), x[v], acc[h][v])
			}
		}
		c.ADDQ(f.ld, left)
		c.DECQ(count)
		c.JNZ(operand.LabelRef(loop))
		c.Label(done)
	}
}

// diagonalTile emits the tile of n vectors that begins with the diagonal one, and
// that of the companions to its right. The next pivot and the element to the right
// of the present one are kept as scalars beside the rows: the chain from one
// reciprocal to the next is then multiply, fma, root, division. The subtractions for
// the companions, which do not depend on it, are spread over its waiting times.
func (f *factorizer) diagonalTile(half, n, companions int) {
	c, t := f.c, f.t
	var y reg.VecVirtual
	if f.rhs {
		y = t.vec(c)
		t.load(c, off(f.b, -4*half*f.rows), y)
	}
	acc := f.subtractRows(half, n, f.diag, f.diag4, y)
	first := half * f.rows
	others, part := f.share(half, companions, n*t.bytes())

	d := extract(c, t, acc[0][0], first)
	w := extract(c, t, acc[0][0], first+1)
	for k := range f.rows {
		lane := first + k
		zero := c.XMM()
		c.VXORPS(zero, zero, zero)
		c.VUCOMISS(zero, d)
		c.JLS(operand.LabelRef(failLabel(k)))
		root, inv := c.XMM(), t.vec(c)
		c.VSQRTSS(d, d, root)
		c.VMOVSS(f.one, inv.AsX())
		c.VDIVSS(root, inv.AsX(), inv.AsX())
		var u reg.VecVirtual
		if k+1 < f.rows {
			next := extract(c, t, acc[k+1][0], lane+1)
			u = t.vec(c)
			c.VMULSS(inv.AsX(), w, u.AsX())
			d = next
			c.VFNMADD231SS(u.AsX(), u.AsX(), d)
		}
		c.VMOVSS(inv.AsX(), off4(f.inv, k))
		c.VBROADCASTSS(inv.AsX(), inv)
		for v := range n {
			c.VMULPS(inv, acc[k][v], acc[k][v])
			t.store(c, acc[k][v], f.in(f.diag, f.diag4, k, v*t.bytes()))
		}
		c.VMOVSS(root, f.in(f.diag, f.diag4, k, 4*lane))
		if k+1 < f.rows {
			c.VBROADCASTSS(u.AsX(), u)
			for v := range n {
				c.VFNMADD231PS(u, acc[k][v], acc[k+1][v])
			}
			if k+2 < f.rows {
				w = extract(c, t, acc[k+1][0], lane+2)
			}
		}
		if f.rhs {
			yk, ykAll := extract(c, t, y, lane), t.vec(c)
			c.VMULSS(inv.AsX(), yk, ykAll.AsX())
			c.VMOVSS(ykAll.AsX(), off(f.b, 4*k))
			if k+1 < f.rows {
				c.VBROADCASTSS(ykAll.AsX(), ykAll)
				c.VFNMADD231PS(ykAll, acc[k][0], y)
			}
		}
		for i := k + 2; i < f.rows; i++ {
			f.eliminate(acc, k, i, first)
		}
		part()
	}
	f.solveTile(others, first, f.diag, f.diag4, n*t.bytes())
}

// eliminate subtracts from row i of a tile the multiple U[k][i] of its row k.
func (f *factorizer) eliminate(acc [][]reg.VecVirtual, k, i, first int) {
	all := f.t.vec(f.c)
	m := f.in(f.diag, f.diag4, k, 4*(first+i))
	if len(acc[k]) == 1 {
		f.t.fnmaBroadcast(f.c, m, acc[k][0], acc[i][0], all)
		return
	}
	f.t.broadcast(f.c, m, all)
	for v := range acc[k] {
		f.c.VFNMADD231PS(all, acc[k][v], acc[i][v])
	}
}

// trailingTile emits a tile to the right of the diagonal one: subtract the rows
// above, then solve with the diagonal tile, whose factor is in memory.
func (f *factorizer) trailingTile(half, n int) {
	acc := f.subtractRows(half, n, f.tile, f.tile4, nil)
	f.solveTile(acc, half*f.rows, f.tile, f.tile4, 0)
}

// solveTile finishes the rows of a tile right of the diagonal one, whose factor
// is in memory, and stores them.
func (f *factorizer) solveTile(acc [][]reg.VecVirtual, first int, row0, row4 reg.Register, displacement int) {
	c, t := f.c, f.t
	if len(acc[0]) == 0 {
		return
	}
	for k := range acc {
		inv := t.vec(c)
		t.broadcast(c, off4(f.inv, k), inv)
		for v := range acc[k] {
			c.VMULPS(inv, acc[k][v], acc[k][v])
			t.store(c, acc[k][v], f.in(row0, row4, k, displacement+v*t.bytes()))
		}
		for i := k + 1; i < f.rows; i++ {
			f.eliminate(acc, k, i, first)
		}
	}
}

// extract returns an XMM register whose lowest lane is the given lane of v.
func extract(c *build.Context, t isa, v reg.VecVirtual, lane int) reg.Register {
	if lane == 0 {
		return v.AsX()
	}
	out := t.vec(c)
	if t.lanes == 16 {
		c.VALIGND(imm8(lane), v, v, out)
		return out.AsX()
	}
	from := v.AsX()
	if lane >= 4 {
		c.VEXTRACTF128(imm8(1), v, out.AsX())
		from = out.AsX()
	}
	if lane%4 != 0 {
		c.VPERMILPS(imm8(lane%4*0x55), from, out.AsX())
	}
	return out.AsX()
}

// off4 is element i of the float32 array at m.
func off4(m operand.Mem, i int) operand.Mem {
	m.Disp += 4 * i
	return m
}

func imm8(n int) operand.Op { return operand.U8(n) }
