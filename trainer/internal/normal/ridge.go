package normal

import (
	"fmt"

	"github.com/dpmf-go/dpmf/kernels"
)

// SolveRidge solves (Gram + ridge·I)·x = RHS for the accumulated equations and
// returns the loss, which needs no second pass over the ratings: at the solution
//
//	Σ w(m − u·x)² + background + ridge‖x‖² = Σ w m² − RHS·x.
//
// The Cholesky factorization fails only by rounding, when ridge is tiny next to
// Gram; then refill must accumulate the equations again, and the spectral solve takes over. No exact
// eigenvalue lies below ridge, and one below the rounding error of Gram means nothing, so the floor is the larger of
// the two: otherwise rounding errors of RHS would come out divided by ridge.
func (w *Workspace) SolveRidge(r int, ridge float32, x []float32, refill func()) (RowLoss, error) {
	copy(w.copyRHS, w.RHS)
	w.addRidge(r, ridge)
	if column := kernels.CholeskySolveF32(w.Gram, w.RHS, r); column >= 0 {
		if !(ridge > 0) {
			return RowLoss{}, fmt.Errorf("normal equations are singular at column %d: choose a positive regularization", column)
		}
		refill()
		w.addRidge(r, ridge)
		floor := max(ridge, gramError*w.maxDiagonal(r))
		if _, err := kernels.SpectralSolveF32(w.Gram, w.RHS, r, floor, w.spectral); err != nil {
			return RowLoss{}, fmt.Errorf("normal equations cannot be solved: %w", err)
		}
	}
	copy(x, w.RHS)
	return w.loss(x, ridge), nil
}

// gramError is the relative error that a Gram matrix of float32 may have: 2⁻²⁴ for each addition, which
// grow like a random walk over a few hundred ratings.
const gramError = 0x1p-20

func (w *Workspace) maxDiagonal(r int) float32 {
	var largest float32
	for a, ld := 0, kernels.Stride(r); a < r; a++ {
		largest = max(largest, w.Gram[a*ld+a])
	}
	return largest
}

// SolveSpectral replaces x by f(Gram + ridge·I)·RHS with f(y) = 1/max(y, floor):
// the ridge solution of equations that noise may have made indefinite.
func (w *Workspace) SolveSpectral(r int, ridge, floor float32, x []float32) error {
	w.addRidge(r, ridge)
	if _, err := kernels.SpectralSolveF32(w.Gram, w.RHS, r, floor, w.spectral); err != nil {
		return err
	}
	copy(x, w.RHS)
	return nil
}

func (w *Workspace) addRidge(r int, ridge float32) {
	for a, ld := 0, kernels.Stride(r); a < r; a++ {
		w.Gram[a*ld+a] += ridge
	}
}

// loss evaluates the formula in SolveRidge's comment.
func (w *Workspace) loss(x []float32, ridge float32) RowLoss {
	var squares float64
	if w.Weights == nil {
		for _, m := range w.Targets {
			squares += float64(float64(m) * float64(m))
		}
	} else {
		for k, m := range w.Targets {
			squares += float64(float64(w.Weights[k]) * float64(float64(m)*float64(m)))
		}
	}
	objective := squares - float64(kernels.DotF32(w.copyRHS[:len(x)], x))
	return RowLoss{
		Squared:   objective - float64(float64(ridge)*float64(kernels.DotF32(x, x))),
		Objective: objective,
	}
}
