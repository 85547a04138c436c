package kernels

import "math"

func gramF32Generic(gram, rhs, table []float32, r int, b *gramRows, work []float32) {
	ld := Stride(r)
	t := work[:r]
	for k, row := range b.rows {
		u := table[int(row)*r:][:r]
		s := float32(1)
		if b.weights == nil {
			copy(t, u)
		} else {
			s = float32(math.Sqrt(float64(b.weights[k])))
			for a, v := range u {
				t[a] = s * v
			}
		}
		for a, ta := range t {
			out := gram[a*ld:][a:r]
			for c, tc := range t[a:] {
				out[c] = fma32(ta, tc, out[c])
			}
		}
		if b.targets != nil {
			m := s * b.targets[k]
			for c, tc := range t {
				rhs[c] = fma32(m, tc, rhs[c])
			}
		}
	}
}
