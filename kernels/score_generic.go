package kernels

func scoreF32Generic(scores, table, x []float32, r int) {
	for i := range scores {
		scores[i] = scoreRow(table[i*r:][:r], x)
	}
}

func scoreRowsF32Generic(scores, table, x []float32, r int, rows []int32) {
	for i, row := range rows {
		scores[i] = scoreRow(table[int(row)*r:][:r], x)
	}
}

func scoreRow(row, x []float32) float32 {
	var lanes [scoreLanes]float32
	x = x[:len(row)]
	for j, v := range row {
		l := j % scoreLanes
		lanes[l] = fma32(v, x[j], lanes[l])
	}
	return halve(lanes[:])
}
