package kernels

import "math"

func choleskySolveF32Generic(a, b []float32, r int) int {
	if column := choleskyF32Generic(a, r); column >= 0 {
		return column
	}
	choleskySolveFactoredF32Generic(a, b, r)
	return -1
}

// choleskyF32Generic subtracts each finished row from all later ones, which
// gives every element its updates in the order of the contract.
func choleskyF32Generic(a []float32, r int) int {
	ld := Stride(r)
	for k := range r {
		pivot := a[k*ld : k*ld+r]
		if !(pivot[k] > 0) {
			return k
		}
		pivot[k] = sqrt32(pivot[k])
		inv := 1 / pivot[k]
		for j := k + 1; j < r; j++ {
			pivot[j] *= inv
		}
		for i := k + 1; i < r; i++ {
			row := a[i*ld : i*ld+r]
			for j := i; j < r; j++ {
				row[j] = fma32(-pivot[i], pivot[j], row[j])
			}
		}
	}
	return -1
}

func choleskySolveFactoredF32Generic(a, b []float32, r int) {
	ld := Stride(r)
	for k := range r {
		row := a[k*ld : k*ld+r]
		b[k] *= 1 / row[k]
		for i := k + 1; i < r; i++ {
			b[i] = fma32(-row[i], b[k], b[i])
		}
	}
	for i := r - 1; i >= 0; i-- {
		row := a[i*ld : i*ld+r]
		end := (i/lane + 1) * lane
		var lanes [lane]float32
		for j := r - 1; j >= end; j-- {
			lanes[j%lane] = fma32(row[j], b[j], lanes[j%lane])
		}
		for half := lane / 2; half > 0; half /= 2 {
			for l := range half {
				lanes[l] += lanes[l+half]
			}
		}
		z := b[i] - lanes[0]
		for j := min(end, r) - 1; j > i; j-- {
			z = fma32(-row[j], b[j], z)
		}
		b[i] = z * (1 / row[i])
	}
}

// sqrt32 is the correctly rounded float32 root: rounding the float64 root of a
// float32 a second time never meets a midpoint.
func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }
