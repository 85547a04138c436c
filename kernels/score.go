package kernels

// ScoreF32 multiplies the leading rows of a table by a vector, as when all items
// are scored for one user: scores[i] is the inner product of x[:r] and row i,
//
//	for i < len(scores):
//		lane[0:16] = 0
//		for j < r: lane[j mod 16] = fma(table[i·r+j], x[j], lane[j mod 16])
//		for h in 8, 4, 2, 1: for l < h: lane[l] += lane[l+h]
//		scores[i] = lane[0]
//
// table is row-major with r ≥ 1 columns and at least len(scores) rows; x has at
// least r elements. scores must not overlap table or x, which may overlap each
// other. NaN and Inf propagate as in IEEE arithmetic. With u = 2⁻²⁴ the error of a
// score is at most about (r/16 + 5)·u·Σ|table[i·r+j]·x[j]|.
func ScoreF32(scores, table, x []float32, r int) {
	checkScore("ScoreF32", x, r)
	if len(table)/r < len(scores) {
		panic("kernels: ScoreF32: table has fewer rows than scores has elements")
	}
	for chunk := scoreRows(r); len(scores) > 0; {
		m := min(chunk, len(scores))
		scoreF32(scores[:m], table[:m*r], x, r)
		scores, table = scores[m:], table[m*r:]
	}
}

// ScoreRowsF32 is ScoreF32 for chosen rows: scores[i] is the inner product of x[:r]
// and row rows[i] of the table, summed in the order of ScoreF32.
//
// rows must be as long as scores; it may be in any order and repeat rows.
func ScoreRowsF32(scores, table, x []float32, r int, rows []int32) {
	checkScore("ScoreRowsF32", x, r)
	if len(rows) != len(scores) {
		panic("kernels: ScoreRowsF32: rows and scores differ in length")
	}
	// An index below 0 or above last makes one of the differences negative.
	last := int64(len(table)/r) - 1
	var bad int64
	for _, row := range rows {
		bad |= int64(row) | (last - int64(row))
	}
	if bad < 0 {
		panic("kernels: ScoreRowsF32: row index outside the table")
	}
	for chunk := scoreRows(r); len(scores) > 0; {
		m := min(chunk, len(scores))
		scoreRowsF32(scores[:m], table, x, r, rows[:m])
		scores, rows = scores[m:], rows[m:]
	}
}

func checkScore(name string, x []float32, r int) {
	if r < 1 {
		panic("kernels: " + name + ": r is less than 1")
	}
	if len(x) < r {
		panic("kernels: " + name + ": x has fewer than r elements")
	}
}

const (
	scoreLanes = 16

	// scoreChunk, in table elements, bounds one assembly call to some tens of
	// microseconds even if the table comes from main memory.
	scoreChunk = 1 << 17

	// scoreBlock is a multiple of the rows that any tier reduces side by side.
	scoreBlock = 8
)

// scoreRows is the number of rows for one assembly call.
func scoreRows(r int) int { return max(scoreBlock, scoreChunk/r&^(scoreBlock-1)) }
