package dpals

import (
	"errors"

	"gonum.org/v1/gonum/mat"

	"github.com/dpmf-go/dpmf/kernels"
)

// projectPSD replaces a symmetric matrix (storage of package kernels) by the nearest
// positive semidefinite one: negative eigenvalues become zero.
func projectPSD(a []float32, r int) error {
	ld := kernels.Stride(r)
	s := mat.NewSymDense(r, nil)
	for i := range r {
		for j := i; j < r; j++ {
			s.SetSym(i, j, float64(a[i*ld+j]))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(s, true) {
		return errors.New("the eigenvalues of a noisy matrix did not converge")
	}
	values := eigen.Values(nil)
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	for i := range r {
		for j := i; j < r; j++ {
			var sum float64
			for k, v := range values {
				if v > 0 {
					sum += float64(float64(v*vectors.At(i, k)) * vectors.At(j, k))
				}
			}
			a[i*ld+j] = float32(sum)
		}
	}
	return nil
}
