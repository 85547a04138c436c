package kernels

import "math"

// With t = T - floor·I and any h that is 0 for negative and 1 for positive
// arguments, f(T) = (1 - g(t))/floor where g(x) = h(x)·x/(x + floor). Let
// h(x) = (1 + S(x/m))/2, m ≥ floor a bound of |t|, and S the best rational
// approximation of the sign function (Zolotarev 1877; van den Eshof, Frommer,
// Lippert, Schilling & van der Vorst 2002, Computer Physics Communications 146)
//
//	S(u) = Σ_j weight_j·u/(u² + pole_j²)        |S(u) - sign u| ≤ 2.1e-7 for 3e-6 ≤ |u| ≤ 1
//
// Then, with φ = floor/m, g has the poles ±i·pole_j and -φ in u. The last has a
// residue of the size of the approximation's error, and dropping it is the right
// thing: it leaves an approximation that is smooth there. In partial fractions
//
//	g ≈ ½ + Re Σ_j ρ_j/(u - i·pole_j)      ρ_j = ½·i·pole_j·weight_j/(φ + i·pole_j)
//
// so that f(T)·c costs one tridiagonal solve with a complex shift per j, all of
// them at once in the lanes of vectors, whatever the spectrum looks like. Near
// the floor, where S is not yet a sign, f is continuous: the error there is at most
// 8e-8·m/floor², as much as a rounding of T in float32 makes.
//
// The shifts are purely imaginary, so elimination needs no pivoting: no pivot is
// smaller than pole_j, hence the growth is at most 1/pole_j ≤ 1.2e6, which
// float64 bears.

// poles is the number of poles above the real axis: three vectors of eight float64.
const poles = 24

// resolventPoles are the (pole, weight) of S: for δ = 3e-6 and K the complete
// elliptic integral of modulus √(1-δ²), pole_j = δ·sc((2j-1)·K/48), zeros of S
// at δ·sc(2j·K/48), scaled to equal errors above and below one.
var resolventPoles = [poles]struct{ pole, weight float64 }{
	{8.9418671113888124e-07, 1.1710887960423069e-06},
	{3.0003222473302313e-06, 1.5872520500661623e-06},
	{6.1726654646214116e-06, 2.5674681584812645e-06},
	{1.1538554171096772e-05, 4.4600710195950287e-06},
	{2.1004834127503204e-05, 7.9376242933973414e-06},
	{3.7935484130068447e-05, 1.4235926580865852e-05},
	{6.8347054307144964e-05, 2.5593170270152084e-05},
	{0.00012304673394279752, 4.6045315592123598e-05},
	{0.00022147284265521558, 8.2860328244253883e-05},
	{0.0003986025225935256, 0.00014912096189642854},
	{0.00071738140199343453, 0.00026837393978028774},
	{0.0012910924211837053, 0.00048299783631873354},
	{0.0023236136707002943, 0.00086926416494288229},
	{0.0041818759054300884, 0.0015644488542412623},
	{0.0075262945665279853, 0.0028156577584262251},
	{0.013545678847272209, 0.0050678872502499415},
	{0.024380980330568163, 0.0091236061111640739},
	{0.043893625415344077, 0.01643636350403329},
	{0.079081632112930858, 0.029676708613700201},
	{0.14282426520435479, 0.053972592703372568},
	{0.25999791269470995, 0.10049865332888655},
	{0.48601370302578012, 0.20215330220767108},
	{0.99989259576016598, 0.52897037105551492},
	{3.3550040082557802, 4.3939454207686195},
}

// resolventCoefficients are the numbers that spectralForwardF64 and
// spectralBackwardF64 need per pole.
type resolventCoefficients struct {
	pole [poles]float64
	rho  [2 * poles]float64 // real parts, then imaginary parts
}

// applyToTridiagonal replaces c by f(T)·c and returns the number of eigenvalues
// of T below the floor.
//
//	m = max(floor, the largest row sum of |t|)
//	alpha, beta = diagonal and off-diagonal of t/m; s = the sum of partial fractions times c
//	c[i] = (½·c[i] - s[i])/floor
func (p *spectralProblem) applyToTridiagonal() (below int) {
	r := p.r
	m := p.floor
	left := 0.0
	for i := range r {
		right := math.Abs(float64(p.e[i]))
		m = max(m, math.Abs(float64(p.d[i])-p.floor)+left+right)
		left = right
	}
	inverse := 1 / m
	for i := range r {
		p.alpha[i] = (float64(p.d[i]) - p.floor) * inverse
		beta := float64(p.e[i]) * inverse
		p.beta[i] = beta
		p.beta2[i] = beta * beta
		p.rhs[i] = float64(p.c[i])
	}

	var k resolventCoefficients
	phi := p.floor * inverse
	for j, q := range resolventPoles {
		scale := 0.5 * q.pole * q.weight / (float64(phi*phi) + float64(q.pole*q.pole))
		k.pole[j] = q.pole
		k.rho[j] = scale * q.pole
		k.rho[poles+j] = scale * phi
	}

	clear(p.state)
	for lo := 0; lo < r; lo += resolventRows {
		spectralForwardF64(p, &k, lo, min(lo+resolventRows, r))
	}
	clear(p.state)
	for hi := r; hi > 0; hi -= resolventRows {
		spectralBackwardF64(p, &k, max(0, hi-resolventRows), hi)
	}
	scale := 1 / p.floor
	for i := range r {
		p.c[i] = float32((float64(0.5*float64(p.c[i])) - p.rhs[i]) * scale)
	}
	return p.countNegative()
}

// resolventRows bounds one call.
const resolventRows = 1024

// countNegative is the number of negative pivots of LDLᵀ of the matrix with alpha
// and beta2, that is, of its negative eigenvalues (Sylvester). A pivot
// that vanishes counts as positive: such an eigenvalue is not below the floor.
func (p *spectralProblem) countNegative() (n int) {
	const smallest = 0x1p-500
	q, beta2 := 1.0, 0.0
	for i := range p.r {
		q = p.alpha[i] - beta2/q
		beta2 = p.beta2[i]
		if math.Abs(q) < smallest {
			q = smallest
		}
		if q < 0 {
			n++
		}
	}
	return n
}
