//go:build !(amd64 && gc && !noasm)

package kernels

func scoreF32(scores, table, x []float32, r int) { scoreF32Generic(scores, table, x, r) }

func scoreRowsF32(scores, table, x []float32, r int, rows []int32) {
	scoreRowsF32Generic(scores, table, x, r, rows)
}
