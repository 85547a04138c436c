package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa describes one vector tier. Kernels that differ between tiers only in the
// width of a register are emitted once per isa by the same Go function.
type isa struct {
	suffix    string // of the function's name: GramF32 + suffix
	lanes     int    // float32 per register
	registers int    // architectural vector registers
	embedded  bool   // FMA can broadcast its memory operand
}

var (
	avx2   = isa{suffix: "AVX2", lanes: 8, registers: 16}
	avx512 = isa{suffix: "AVX512", lanes: 16, registers: 32, embedded: true}
	tiers  = []isa{avx2, avx512}
)

// bytes is the size of one register.
func (t isa) bytes() int { return 4 * t.lanes }

// vec allocates a full-width vector register.
func (t isa) vec(c *build.Context) reg.VecVirtual {
	if t.lanes == 16 {
		return c.ZMM()
	}
	return c.YMM()
}

// vecs allocates n full-width vector registers.
func (t isa) vecs(c *build.Context, n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = t.vec(c)
	}
	return v
}

// zero clears v. VXORPS of a ZMM needs AVX-512DQ, which the avx512 bundle has.
func (t isa) zero(c *build.Context, v reg.VecVirtual) { c.VXORPS(v, v, v) }

// load reads a full vector from memory, any alignment.
func (t isa) load(c *build.Context, m operand.Mem, v reg.VecVirtual) { c.VMOVUPS(m, v) }

// store writes a full vector to memory, any alignment.
func (t isa) store(c *build.Context, v reg.VecVirtual, m operand.Mem) { c.VMOVUPS(v, m) }

// broadcast fills v with the float32 at m.
func (t isa) broadcast(c *build.Context, m operand.Mem, v reg.VecVirtual) { c.VBROADCASTSS(m, v) }

// fmaBroadcast computes acc += x · broadcast(m). Without embedded broadcasts
// it needs the scratch register tmp.
func (t isa) fmaBroadcast(c *build.Context, m operand.Mem, x, acc, tmp reg.VecVirtual) {
	if t.embedded {
		c.VFMADD231PS_BCST(m, x, acc)
		return
	}
	t.broadcast(c, m, tmp)
	c.VFMADD231PS(tmp, x, acc)
}

// fnmaBroadcast computes acc −= x · broadcast(m), rounded once.
func (t isa) fnmaBroadcast(c *build.Context, m operand.Mem, x, acc, tmp reg.VecVirtual) {
	if t.embedded {
		c.VFNMADD231PS_BCST(m, x, acc)
		return
	}
	t.broadcast(c, m, tmp)
	c.VFNMADD231PS(tmp, x, acc)
}

// at is the operand base + index·scale + displacement bytes.
func at(base, index reg.Register, scale uint8, displacement int) operand.Mem {
	return operand.Mem{Base: base, Index: index, Scale: scale, Disp: displacement}
}

// off is the operand base + displacement bytes.
func off(base reg.Register, displacement int) operand.Mem {
	return operand.Mem{Base: base, Disp: displacement}
}

// imm is a signed 32-bit immediate.
func imm(n int) operand.Op { return operand.I32(n) }

// paramMem is the stack slot of a parameter, to be used as a memory operand.
func paramMem(c *build.Context, name string) operand.Mem {
	b, err := c.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// labels hands out label names that are unique within one function.
type labels struct{ n int }

func (l *labels) next(name string) string {
	l.n++
	return fmt.Sprintf("%s_%d", name, l.n)
}

// function starts a new assembly function with its documentation.
func function(c *build.Context, name, signature, doc string) {
	c.Function(name)
	c.SignatureExpr(signature)
	c.Doc(doc)
}

// finish ends the function: VZEROUPPER, then RET.
func finish(c *build.Context) {
	c.VZEROUPPER()
	c.RET()
}

// resultMem is the stack slot of result i. Writing to it with a vector
// instruction avoids the legacy SSE move that avo's Store emits.
func resultMem(c *build.Context, i int) operand.Mem {
	b, err := c.ReturnIndex(i).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// broadcastInt fills all lanes of the AVX2 register v with a 32-bit integer.
func broadcastInt(c *build.Context, n reg.Register, v reg.VecVirtual) {
	c.VMOVD(n, v.AsX())
	c.VPBROADCASTD(v.AsX(), v)
}

// iota8 returns a register with the integers 0 to 7.
func iota8(c *build.Context) reg.VecVirtual {
	v, bytes := c.YMM(), c.GP64()
	c.MOVQ(operand.U64(0x0706050403020100), bytes)
	c.VMOVQ(bytes, v.AsX())
	c.VPMOVZXBD(v.AsX(), v)
	return v
}

// signBits fills the AVX2 register v with −0.
func signBits(c *build.Context, v reg.VecVirtual) {
	c.VPCMPEQD(v, v, v)
	c.VPSLLD(operand.U8(31), v, v)
}

// iota16 returns a register with the integers 0 to 15.
func iota16(c *build.Context) reg.VecVirtual {
	v, bytes := c.ZMM(), c.GP64()
	c.MOVQ(operand.U64(0x0706050403020100), bytes)
	c.VMOVQ(bytes, v.AsX())
	c.MOVQ(operand.U64(0x0f0e0d0c0b0a0908), bytes)
	c.VPINSRQ(operand.U8(1), bytes, v.AsX(), v.AsX())
	c.VPMOVZXBD(v.AsX(), v)
	return v
}
