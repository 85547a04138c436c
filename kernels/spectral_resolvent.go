package kernels

import "math"

// With t = T - floor·I and any h that is 0 for negative and 1 for positive
// arguments, f(T) = (1 - g(t))/floor where g(x) = h(x)·x/(x + floor). Let
// h(x) = (1 + S(x/m))/2, m/1.25 ≥ floor a bound of |t|, and S the best rational
// approximation of the sign function (Zolotarev 1877; van den Eshof, Frommer,
// Lippert, Schilling & van der Vorst 2002, Computer Physics Communications 146)
//
//	S(u) = Σ_j weight_j·u/(u² + pole_j²)        |S(u) - sign u| ≤ 3.8e-9 for 1e-6 ≤ |u| ≤ 1
//
// Then, with φ = floor/m, g has the poles ±i·pole_j and -φ in u. The last one, at
// the eigenvalue zero of X, is an artefact: f is flat there, and its residue is of the
// size of the approximation's error. Without it the approximation is smooth, and
// the error stays below 4e-8; the 1.25 keeps -φ away from the end of the interval,
// where S oscillates fastest. In partial fractions
//
//	g ≈ ½ + Re Σ_j ρ_j/(u - i·pole_j)      ρ_j = ½·i·pole_j·weight_j/(φ + i·pole_j)
//
// so that f(T)·c costs one tridiagonal solve with a complex shift per j, all of
// them at once in the lanes of vectors, whatever the spectrum looks like. Near
// the floor, where S is not yet a sign, f is continuous: the error of f there is at
// most 5e-8·m/floor², less than a rounding of T to float32 makes.
//
// The shifts are purely imaginary, so elimination needs no pivoting: no pivot is
// smaller than pole_j, hence the growth is at most 1/pole_j ≤ 4.2e6, which float64
// bears.

// poles is the number of poles above the real axis: four vectors of eight float64.
const poles = 32

// resolventPoles are the (pole, weight) of S: for δ = 1e-6 and K the complete
// elliptic integral of modulus √(1-δ²), pole_j = δ·sc((2j-1)·K/64), zeros of S
// at δ·sc(2j·K/64), scaled to equal errors above and below one.
var resolventPoles = [poles]struct{ pole, weight float64 }{
	{2.3976805398725424e-07, 3.1100199247986014e-07},
	{7.744399957688989e-07, 3.8251841798320852e-07},
	{1.4871981929556865e-06, 5.4199681995277618e-07},
	{2.5419448704337369e-06, 8.2611003499450445e-07},
	{4.1812241726487848e-06, 1.3001912830601903e-06},
	{6.7819963729764185e-06, 2.0732578601428938e-06},
	{1.0942321727793117e-05, 3.3230801974380376e-06},
	{1.7618887350590396e-05, 5.3370610395965991e-06},
	{2.8347002082559079e-05, 8.578325109234225e-06},
	{4.5593648256583317e-05, 1.3792216901320289e-05},
	{7.3324776343258063e-05, 2.2177696306728037e-05},
	{0.00011791729470454133, 3.5663045373580361e-05},
	{0.00018962547117342462, 5.7349286525444819e-05},
	{0.00030493895359004101, 9.2223279266659536e-05},
	{0.00049037465151219968, 0.00014830447896454769},
	{0.00078857445696150022, 0.00023848907519886551},
	{0.0012681110720389741, 0.00038351563906558606},
	{0.0020392571208895809, 0.0006167344985160678},
	{0.003279344892566257, 0.00099177863725234705},
	{0.0052735531456395753, 0.0015949044634301142},
	{0.0084805202027882602, 0.0025648585098528836},
	{0.013637954997894053, 0.0041249143777869748},
	{0.021932879649647446, 0.0066347626251432017},
	{0.03527709904163958, 0.010675500132490095},
	{0.056757273038952186, 0.017192744616645987},
	{0.091388283481012522, 0.027753762196596376},
	{0.14744920890618662, 0.045075257272755222},
	{0.2391644070512739, 0.074370438996937391},
	{0.39339956252842262, 0.12785144561762771},
	{0.67240533557439353, 0.24505244514462379},
	{1.2912556240166224, 0.63778867466350164},
	{4.1706974026371277, 5.4097915909683598},
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
//	m = 1.25·max(floor, the largest row sum of |t|)
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
	inverse := 1 / (1.25 * m)
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
const resolventRows = 256

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
