package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lessOrEqual is the predicate of VCMPPS that is false if an operand is NaN.
const lessOrEqual = operand.U8(0x12)

const topkSignature = "func(ids *int32, scores *float32, n int, base int32, threshold float32) int"

// topk emits the filters that find the scores reaching a threshold.
func topk(c *build.Context) {
	topkFilterAVX2(c)
	topkFilterAVX512(c)
}

// topkFilterAVX2 compares 32 scores per turn, then 8, and visits the survivors
// one by one through the bits of the comparison.
func topkFilterAVX2(c *build.Context) {
	function(c, "TopKFilterF32AVX2", topkSignature,
		"TopKFilterF32AVX2 writes base+i for each scores[i] >= threshold, i < n, to ids and returns their number.")
	ids := c.Load(c.Param("ids"), c.GP64())
	scores := c.Load(c.Param("scores"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	base := c.Load(c.Param("base"), c.GP32())
	threshold := c.YMM()
	c.VBROADCASTSS(paramMem(c, "threshold"), threshold)
	position, left := iota8(c), c.YMM()
	passed, id := c.GP32(), c.GP32()

	// survivors writes the indices of the bits of passed, which are not all 0.
	survivors := func(label string) {
		c.Label(label)
		c.TZCNTL(passed, id)
		c.ADDL(base, id)
		c.MOVL(id, off(ids, 0))
		c.ADDQ(imm(4), ids)
		c.BLSRL(passed, passed)
		c.JNZ(operand.LabelRef(label))
	}
	advance := func(count int) {
		c.ADDQ(imm(4*count), scores)
		c.ADDL(imm(count), base)
		c.SUBQ(imm(count), n)
	}

	m := avx2.vecs(c, 4)
	pair, other := c.YMM(), c.YMM()
	part := c.GP32()
	c.Label("four")
	c.CMPQ(n, imm(32))
	c.JLT(operand.LabelRef("one"))
	for i := range m {
		c.VCMPPS(lessOrEqual, off(scores, 32*i), threshold, m[i])
	}
	c.VORPS(m[0], m[1], pair)
	c.VORPS(m[2], m[3], other)
	c.VORPS(pair, other, pair)
	c.VMOVMSKPS(pair, part)
	c.TESTL(part, part)
	c.JZ(operand.LabelRef("four_next"))
	c.VMOVMSKPS(m[3], passed)
	for i := 2; i >= 0; i-- {
		c.SHLL(operand.U8(8), passed)
		c.VMOVMSKPS(m[i], part)
		c.ORL(part, passed)
	}
	survivors("four_survivor")
	c.Label("four_next")
	advance(32)
	c.JMP(operand.LabelRef("four"))

	c.Label("one")
	c.TESTQ(n, n)
	c.JLE(operand.LabelRef("end"))
	broadcastInt(c, n.(reg.GP).As32(), left)
	c.VPCMPGTD(position, left, left)
	c.VMASKMOVPS(off(scores, 0), left, m[0])
	c.VCMPPS(lessOrEqual, m[0], threshold, m[0])
	c.VANDPS(left, m[0], m[0])
	c.VMOVMSKPS(m[0], passed)
	c.TESTL(passed, passed)
	c.JZ(operand.LabelRef("one_next"))
	survivors("one_survivor")
	c.Label("one_next")
	advance(8)
	c.JMP(operand.LabelRef("one"))

	c.Label("end")
	returnCount(c, ids)
	finish(c)
}

// topkFilterAVX512 compares 64 scores per turn, then 16, and compresses the
// indices of the survivors. The compressed vector is stored whole, because some
// CPUs are very slow at compressing into memory.
func topkFilterAVX512(c *build.Context) {
	function(c, "TopKFilterF32AVX512", topkSignature,
		"TopKFilterF32AVX512 does the same; it may overwrite 16 elements of ids beyond the survivors.")
	ids := c.Load(c.Param("ids"), c.GP64())
	scores := c.Load(c.Param("scores"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	threshold, sixteen, packed := c.ZMM(), c.ZMM(), c.ZMM()
	c.VBROADCASTSS(paramMem(c, "threshold"), threshold)
	constant, count := c.GP32(), c.GP32()
	c.MOVL(imm(16), constant)
	c.VPBROADCASTD(constant, sixteen)
	index := avx512.vecs(c, 4)
	c.VPBROADCASTD(c.Load(c.Param("base"), c.GP32()), index[0])
	c.VPADDD(iota16(c), index[0], index[0])
	for i := 1; i < 4; i++ {
		c.VPADDD(sixteen, index[i-1], index[i])
	}
	sixtyFour := c.ZMM()
	c.VPSLLD(operand.U8(2), sixteen, sixtyFour)
	all := c.GP32()
	c.MOVL(imm(-1), all)

	survivors := func(index, k reg.Register) {
		c.VPCOMPRESSD_Z(index, k, packed)
		c.VMOVDQU32(packed, off(ids, 0))
		c.KMOVW(k, count)
		c.POPCNTL(count, count)
		c.LEAQ(at(ids, count.As64(), 4, 0), ids)
	}

	k := []reg.OpmaskVirtual{c.K(), c.K(), c.K(), c.K()}
	some, other := c.K(), c.K()
	c.Label("four")
	c.CMPQ(n, imm(64))
	c.JLT(operand.LabelRef("one"))
	for i := range k {
		c.VCMPPS(lessOrEqual, off(scores, 64*i), threshold, k[i])
	}
	c.KORW(k[0], k[1], some)
	c.KORW(k[2], k[3], other)
	c.KORTESTW(some, other)
	c.JZ(operand.LabelRef("four_next"))
	for i := range k {
		survivors(index[i], k[i])
	}
	c.Label("four_next")
	for i := range index {
		c.VPADDD(sixtyFour, index[i], index[i])
	}
	c.ADDQ(imm(256), scores)
	c.SUBQ(imm(64), n)
	c.JMP(operand.LabelRef("four"))

	valid := c.GP32()
	c.Label("one")
	c.TESTQ(n, n)
	c.JLE(operand.LabelRef("end"))
	c.BZHIL(n.(reg.GP).As32(), all, valid)
	c.KMOVW(valid, some)
	c.VCMPPS(lessOrEqual, off(scores, 0), threshold, some, k[0])
	survivors(index[0], k[0])
	c.VPADDD(sixteen, index[0], index[0])
	c.ADDQ(imm(64), scores)
	c.SUBQ(imm(16), n)
	c.JMP(operand.LabelRef("one"))

	c.Label("end")
	returnCount(c, ids)
	finish(c)
}

// returnCount returns how many ids precede the address end.
func returnCount(c *build.Context, end reg.Register) {
	c.SUBQ(paramMem(c, "ids"), end)
	c.SHRQ(operand.U8(2), end)
	c.MOVQ(end, resultMem(c, 0))
}
