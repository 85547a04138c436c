package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// solver emits the triangular solves with a factor in memory, in blocks of rows
// whose part of the vector stays in registers.
type solver struct {
	c     *build.Context
	t     isa
	label labels

	a, b, ld, ld3 reg.Register   // ld in bytes, ld3 = 3·ld
	row           reg.Register   // first row of the block
	steps         reg.VecVirtual // lane i: i·(ld+1), the distance of diagonal elements
	one           operand.Mem
}

func newSolver(c *build.Context, t isa, one, steps operand.Mem) *solver {
	s := &solver{c: c, t: t, one: one}
	s.a = c.Load(c.Param("a"), c.GP64())
	s.b = c.Load(c.Param("b"), c.GP64())
	s.ld = c.Load(c.Param("ld"), c.GP64())
	s.ld3 = c.GP64()
	s.steps = t.vec(c)
	next := c.GP64()
	c.LEAQ(off(s.ld, 1), next)
	c.VMOVD(next.As32(), s.steps.AsX())
	c.VPBROADCASTD(s.steps.AsX(), s.steps)
	c.VPMULLD(steps, s.steps, s.steps)
	c.SHLQ(imm8(2), s.ld)
	c.LEAQ(at(s.ld, s.ld, 2, 0), s.ld3)
	return s
}

// reciprocals returns 1/U[i][i] of t.lanes rows, given the address of the first
// diagonal element.
func (s *solver) reciprocals(first reg.Register) reg.VecVirtual {
	c, t := s.c, s.t
	d, inv := t.vec(c), t.vec(c)
	t.zero(c, d)
	m := at(first, s.steps, 4, 0)
	if t.lanes == 16 {
		k := c.K()
		c.KXNORW(k, k, k)
		c.VGATHERDPS(m, k, d)
	} else {
		c.VPCMPEQD(inv, inv, inv)
		c.VGATHERDPS(inv, m, d)
	}
	t.broadcast(c, s.one, inv)
	c.VDIVPS(d, inv, inv)
	return inv
}

// rowsAt is the address of the row h of a block, given the addresses of every
// fourth row.
func (s *solver) rowsAt(every4 []reg.GPVirtual, h, displacement int) operand.Mem {
	return stridedRow(every4[h/4], s.ld, s.ld3, h%4, displacement)
}

// every4 makes n/4 addresses of every fourth row from the address of the first.
func (s *solver) every4(first reg.Register, n int) []reg.GPVirtual {
	p := make([]reg.GPVirtual, n/4)
	for g := range p {
		p[g] = s.c.GP64()
		if g == 0 {
			s.c.MOVQ(first, p[0])
		} else {
			s.c.LEAQ(at(p[g-1], s.ld, 4, 0), p[g])
		}
	}
	return p
}

// choleskyForward emits Uᵀy = b: a block's part of y is finished in a register
// and then subtracted from everything to its right.
func choleskyForward(c *build.Context, t isa, one, steps operand.Mem) {
	function(c, "CholeskyForwardF32"+t.suffix, "func(a, b *float32, ld, from, to int)",
		"CholeskyForwardF32"+t.suffix+" turns b[i] into y[i] for from ≤ i < to and subtracts their part from the later b[i].")
	s := newSolver(c, t, one, steps)
	s.row = c.Load(c.Param("from"), c.GP64())
	first := c.GP64()
	c.MOVQ(s.row, first)
	c.IMULQ(s.ld, first)
	c.ADDQ(s.a, first)
	c.LEAQ(at(first, s.row, 4, 0), first)
	end, col := c.GP64(), c.GP64()
	c.MOVQ(s.ld, end)
	c.ADDQ(s.b, end) // past b
	c.LEAQ(at(s.b, s.row, 4, 0), s.b)

	c.Label("block")
	rows := s.every4(first, t.lanes)
	inv := s.reciprocals(first)
	y := t.vec(c)
	t.load(c, off(s.b, 0), y)
	for k := range t.lanes {
		yk := t.vec(c)
		c.VMULSS(extract(c, t, y, k), extract(c, t, inv, k), yk.AsX())
		c.VMOVSS(yk.AsX(), off(s.b, 4*k))
		if k+1 < t.lanes {
			c.VBROADCASTSS(yk.AsX(), yk)
			c.VFNMADD231PS(s.rowsAt(rows, k, 0), yk, y)
		}
	}
	c.LEAQ(off(s.b, t.bytes()), col)
	c.Label("right")
	c.CMPQ(col, end)
	c.JGE(operand.LabelRef("next"))
	for _, p := range rows {
		c.ADDQ(imm(t.bytes()), p)
	}
	acc, all := t.vec(c), t.vec(c)
	t.load(c, off(col, 0), acc)
	for k := range t.lanes {
		t.broadcast(c, off(s.b, 4*k), all)
		c.VFNMADD231PS(s.rowsAt(rows, k, 0), all, acc)
	}
	t.store(c, acc, off(col, 0))
	c.ADDQ(imm(t.bytes()), col)
	c.JMP(operand.LabelRef("right"))
	c.Label("next")
	c.ADDQ(imm(t.bytes()), s.b)
	c.ADDQ(imm(t.bytes()), first)
	c.LEAQ(at(first, s.ld, 8, 0), first)
	if t.lanes == 16 {
		c.LEAQ(at(first, s.ld, 8, 0), first)
	}
	c.ADDQ(imm(t.lanes), s.row)
	c.CMPQ(s.row, paramMem(c, "to"))
	c.JLT(operand.LabelRef("block"))
	finish(c)
}

// choleskyBackward emits U·x = y in blocks of 16 rows from the last to the first.
func choleskyBackward(c *build.Context, t isa, one, steps operand.Mem) {
	function(c, "CholeskyBackwardF32"+t.suffix, "func(a, b *float32, ld, from, to int)",
		"CholeskyBackwardF32"+t.suffix+" turns y[i] into x[i] for to > i ≥ from; the later b[i] are x[i] already.")
	s := newSolver(c, t, one, steps)
	s.row = c.Load(c.Param("to"), c.GP64())

	c.Label("block")
	c.SUBQ(imm(16), s.row)
	first := c.GP64() // row `row`, column 0
	c.MOVQ(s.row, first)
	c.IMULQ(s.ld, first)
	c.ADDQ(s.a, first)
	z := s.subtractSolved(first)
	c.LEAQ(at(first, s.row, 4, 0), first)
	s.solveDiagonal(first, z)
	c.CMPQ(s.row, paramMem(c, "from"))
	c.JGT(operand.LabelRef("block"))
	finish(c)
}

// subtractSolved returns y − Σ U[i][j]·x[j] over the columns right of the block
// of 16 rows. The 16 lanes of the sum are one AVX-512 or two AVX2 registers for
// each row, which sets how many rows are summed at once.
func (s *solver) subtractSolved(first reg.Register) []reg.VecVirtual {
	c, t := s.c, s.t
	vectors := 16 / t.lanes
	together := t.lanes
	if t.registers == 16 {
		together = 4
	}
	z := make([]reg.VecVirtual, vectors)
	for v := range z {
		sums := make([]reg.VecVirtual, t.lanes)
		for r := 0; r < t.lanes; r += together {
			p := c.GP64()
			c.MOVQ(first, p)
			for range (v*t.lanes + r) / 4 {
				c.LEAQ(at(p, s.ld, 4, 0), p)
			}
			copy(sums[r:], s.rowSums(p, together))
		}
		z[v] = t.vec(c)
		t.load(c, at(s.b, s.row, 4, v*t.bytes()), z[v])
		c.VSUBPS(addLanes(c, t, sums), z[v], z[v])
	}
	return z
}

// rowSums returns for n rows, given the address of the first row's column 0, the
// lanes of the sum over the solved columns, folded to one register each.
func (s *solver) rowSums(row0 reg.Register, n int) []reg.VecVirtual {
	c, t := s.c, s.t
	vectors := 16 / t.lanes
	acc := make([][]reg.VecVirtual, n)
	for h := range acc {
		acc[h] = t.vecs(c, vectors)
		for _, v := range acc[h] {
			t.zero(c, v)
		}
	}
	rows := s.every4(row0, n)
	for _, p := range rows {
		c.ADDQ(s.ld, p) // the right end
	}
	x, left := c.GP64(), c.GP64()
	c.MOVQ(s.b, x)
	c.ADDQ(s.ld, x)
	c.LEAQ(off(s.row, 16), left) // columns up to here are not solved
	c.SHLQ(imm8(2), left)
	c.NEGQ(left)
	c.ADDQ(s.ld, left)
	loop, done := s.label.next("solved"), s.label.next("solved_done")
	c.JZ(operand.LabelRef(done))
	c.Label(loop)
	for v := range vectors {
		xv := t.vec(c)
		t.load(c, off(x, v*t.bytes()-64), xv)
		for h := range acc {
			c.VFMADD231PS(s.rowsAt(rows, h, v*t.bytes()-64), xv, acc[h][v])
		}
	}
	for _, p := range rows {
		c.SUBQ(imm(64), p)
	}
	c.SUBQ(imm(64), x)
	c.SUBQ(imm(64), left)
	c.JNZ(operand.LabelRef(loop))
	c.Label(done)
	sums := make([]reg.VecVirtual, n)
	for h := range acc {
		sums[h] = acc[h][0]
		if vectors == 2 {
			c.VADDPS(acc[h][1], sums[h], sums[h])
		}
	}
	return sums
}

// addLanes adds the lanes of each of t.lanes registers by halving and returns
// the sums in order. Two registers become one at each step: the halves to be
// added are brought side by side.
func addLanes(c *build.Context, t isa, v []reg.VecVirtual) reg.VecVirtual {
	pair := func(a, b reg.VecVirtual, low, high func(a, b, out reg.VecVirtual)) reg.VecVirtual {
		l := t.vec(c)
		low(a, b, l)
		high(a, b, a)
		c.VADDPS(a, l, l)
		return l
	}
	imm2 := func(op func(...operand.Op), n int) func(a, b, out reg.VecVirtual) {
		return func(a, b, out reg.VecVirtual) { op(imm8(n), b, a, out) }
	}
	op2 := func(op func(...operand.Op)) func(a, b, out reg.VecVirtual) {
		return func(a, b, out reg.VecVirtual) { op(b, a, out) }
	}
	perm2f128 := func(n int) func(a, b, out reg.VecVirtual) {
		return func(a, b, out reg.VecVirtual) { c.VPERM2F128(imm8(n), b, a, out) }
	}
	// Each step takes registers i and i+n/2; swapping the bits of an index undoes
	// the order in which the steps leave the rows.
	order := func(i int) int {
		i = i&^3 | i&1<<1 | i&2>>1
		if t.lanes == 16 {
			i = i&^12 | i&4<<1 | i&8>>1
		}
		return i
	}
	w := make([]reg.VecVirtual, len(v))
	for i := range w {
		w[i] = v[order(i)]
	}
	step := func(low, high func(a, b, out reg.VecVirtual)) {
		half := len(w) / 2
		for i := range half {
			w[i] = pair(w[i], w[i+half], low, high)
		}
		w = w[:half]
	}
	if t.lanes == 16 {
		step(imm2(c.VSHUFF64X2, 0x44), imm2(c.VSHUFF64X2, 0xee))
		step(imm2(c.VSHUFF32X4, 0x88), imm2(c.VSHUFF32X4, 0xdd))
	} else {
		step(perm2f128(0x20), perm2f128(0x31))
	}
	step(op2(c.VUNPCKLPD), op2(c.VUNPCKHPD))
	step(imm2(c.VSHUFPS, 0x88), imm2(c.VSHUFPS, 0xdd))
	return w[0]
}

// solveDiagonal finishes a block of 16 rows, given the address of its first
// diagonal element, from z, and stores x.
func (s *solver) solveDiagonal(first reg.Register, z []reg.VecVirtual) {
	c, t := s.c, s.t
	for v := len(z) - 1; v >= 0; v-- {
		p := c.GP64()
		c.MOVQ(first, p)
		for range v * t.lanes / 8 {
			c.LEAQ(at(p, s.ld, 8, 0), p)
		}
		rows := s.every4(p, t.lanes)
		for w := len(z) - 1; w > v; w-- {
			columns := s.transposed(rows, w*t.bytes())
			for j := t.lanes - 1; j >= 0; j-- {
				all := t.vec(c)
				t.broadcast(c, at(s.b, s.row, 4, 4*(w*t.lanes+j)), all)
				c.VFNMADD231PS(all, columns[j], z[v])
			}
		}
		if v > 0 {
			c.ADDQ(imm(v*t.bytes()), p)
		}
		inv := s.reciprocals(p)
		columns := s.transposed(rows, v*t.bytes())
		// Beside the vector, the next element is kept as a scalar, so that the
		// chain from one to the next is fma, multiply.
		zj, x := extract(c, t, z[v], t.lanes-1), t.vec(c)
		collect := s.laneCollector(x)
		for j := t.lanes - 1; j >= 0; j-- {
			xj := t.vec(c)
			c.VMULSS(extract(c, t, inv, j), zj, xj.AsX())
			if v > 0 { // for the rows above, as early as possible
				c.VMOVSS(xj.AsX(), at(s.b, s.row, 4, 4*(v*t.lanes+j)))
			}
			if j > 0 {
				next := extract(c, t, z[v], j-1)
				if j == 1 { // the vector itself: the scalar must not change it
					next = c.XMM()
					c.VMOVAPS(z[v].AsX(), next)
				}
				c.VFNMADD231SS(s.rowsAt(rows, j-1, 4*(v*t.lanes+j)), xj.AsX(), next)
				zj = next
			}
			c.VBROADCASTSS(xj.AsX(), xj)
			if j > 0 {
				c.VFNMADD231PS(xj, columns[j], z[v])
			}
			collect(xj, j)
		}
		z[v] = x
	}
	for v, x := range z {
		t.store(c, x, at(s.b, s.row, 4, v*t.bytes()))
	}
}

// laneCollector returns a function that copies lane j of a vector to x; it must
// be called for all lanes from the last to the first. (Storing them one by one
// would stall the next load of the whole vector.)
func (s *solver) laneCollector(x reg.VecVirtual) func(v reg.VecVirtual, j int) {
	c, t := s.c, s.t
	last := t.lanes - 1
	var k reg.OpmaskVirtual
	if t.lanes == 16 {
		bit := c.GP32()
		k = c.K()
		c.MOVL(operand.U32(1<<(last-1)), bit)
		c.KMOVW(bit, k)
	}
	return func(v reg.VecVirtual, j int) {
		switch {
		case j == last:
			c.VMOVAPS(v, x)
		case t.lanes == 16:
			c.VMOVAPS(v, k, x)
			c.KSHIFTRW(imm8(1), k, k)
		default:
			c.VBLENDPS(imm8(1<<j), v, x, x)
		}
	}
}

// transposed loads the block of t.lanes² elements at the rows' displacement and
// returns its columns.
func (s *solver) transposed(rows []reg.GPVirtual, displacement int) []reg.VecVirtual {
	c, t := s.c, s.t
	v := t.vecs(c, t.lanes)
	for h := range v {
		t.load(c, s.rowsAt(rows, h, displacement), v[h])
	}
	// swap replaces (a, b) by (low(a, b), high(a, b)).
	swap := func(i, j int, low, high func(b, a, out reg.VecVirtual)) {
		l := t.vec(c)
		low(v[j], v[i], l)
		high(v[j], v[i], v[j])
		v[i] = l
	}
	op := func(f func(...operand.Op)) func(b, a, out reg.VecVirtual) {
		return func(b, a, out reg.VecVirtual) { f(b, a, out) }
	}
	shuffle := func(f func(...operand.Op), n int) func(b, a, out reg.VecVirtual) {
		return func(b, a, out reg.VecVirtual) { f(imm8(n), b, a, out) }
	}
	for g := 0; g < t.lanes; g += 4 {
		swap(g, g+1, op(c.VUNPCKLPS), op(c.VUNPCKHPS))
		swap(g+2, g+3, op(c.VUNPCKLPS), op(c.VUNPCKHPS))
		swap(g, g+2, op(c.VUNPCKLPD), op(c.VUNPCKHPD))
		swap(g+1, g+3, op(c.VUNPCKLPD), op(c.VUNPCKHPD))
		v[g+1], v[g+2] = v[g+2], v[g+1]
	}
	// v[4g+m] holds of the rows 4g … 4g+3 the column 4q+m in its quarter q.
	for m := range 4 {
		if t.lanes == 8 {
			swap(m, 4+m, func(b, a, out reg.VecVirtual) { c.VPERM2F128(imm8(0x20), b, a, out) },
				func(b, a, out reg.VecVirtual) { c.VPERM2F128(imm8(0x31), b, a, out) })
			continue
		}
		low, high := shuffle(c.VSHUFF32X4, 0x88), shuffle(c.VSHUFF32X4, 0xdd)
		swap(m, 4+m, low, high)
		swap(8+m, 12+m, low, high)
		swap(m, 8+m, low, high)
		swap(4+m, 12+m, low, high)
	}
	return v
}
