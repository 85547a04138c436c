package privacy

import "math"

// renyiOrders are the integer orders that Rényi accounting minimises over.
var renyiOrders = func() []int {
	var orders []int
	for order := 2; order <= 128; order++ {
		orders = append(orders, order)
	}
	for order := 144; order <= 1024; order += order / 8 {
		orders = append(orders, order)
	}
	return orders
}()

// SubsampledGaussianRenyi returns the Rényi divergence of the given integer
// order α ≥ 2 that one Poisson-subsampled Gaussian release spends under
// add/remove, with sampling rate q and noise multiplier σ = s/Δ:
//
//	ln( Σ_{k=0…α} C(α,k)·(1−q)^{α−k}·q^k·e^{(k²−k)/(2σ²)} ) / (α−1)
//
// (Mironov, Talwar & Zhang 2019, section 3.3). At q = 1 it is α/(2σ²), the plain
// Gaussian's. NaN for an order below 2, a rate outside [0, 1] or σ ≤ 0.
func SubsampledGaussianRenyi(rate, multiplier float64, order int) float64 {
	switch {
	case order < 2 || !(rate >= 0 && rate <= 1) || !(multiplier > 0):
		return math.NaN()
	case rate == 0:
		return 0
	case rate == 1:
		return GaussianRenyi(1/multiplier, float64(order))
	}
	logRate, logRest := math.Log(rate), math.Log1p(-rate)
	terms := make([]float64, order+1)
	largest := math.Inf(-1)
	for k := range terms {
		n := float64(k)
		terms[k] = logBinomial(order, k) + float64(float64(order)-n)*logRest + n*logRate + n*(n-1)/(2*multiplier*multiplier)
		largest = max(largest, terms[k])
	}
	if math.IsInf(largest, 1) {
		return largest
	}
	var sum float64
	for _, term := range terms {
		sum += math.Exp(term - largest)
	}
	// The terms' logarithms carry errors of a few ulp of their largest part.
	total := largest + math.Log(sum) + 1e-13*(1+math.Abs(largest))
	return max(0, total/float64(order-1))
}

// GaussianRenyi is the Rényi divergence of order α that a μ-GDP Gaussian
// release spends: α·μ²/2.
func GaussianRenyi(mu, order float64) float64 { return order * mu * mu / 2 }

// logBinomial is ln C(n, k).
func logBinomial(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// RenyiToEpsilon converts a Rényi divergence of order α > 1 into the ε of an
// (ε, δ) guarantee (Canonne, Kamath & Steinke 2020, Proposition 12):
//
//	ε = divergence + ln((α−1)/α) − (ln δ + ln α)/(α−1)
func RenyiToEpsilon(divergence, order, delta float64) float64 {
	if math.IsNaN(divergence) || !(order > 1) || !(delta > 0) {
		return math.Inf(1)
	}
	return max(0, divergence+math.Log1p(-1/order)-(math.Log(delta)+math.Log(order))/(order-1))
}

// epsilonByRenyi composes the Gaussian and subsampled Gaussian releases at
// every integer order and returns the best ε. Laplace releases are left out.
func epsilonByRenyi(releases []Release, delta float64) float64 {
	best := math.Inf(1)
	mu := gaussianMu(releases)
	for _, order := range renyiOrders {
		total := GaussianRenyi(mu, float64(order))
		for _, r := range releases {
			if r.Mechanism == SubsampledGaussian {
				total += float64(float64(r.Count) * SubsampledGaussianRenyi(r.SamplingRate, 1/r.ratio(), order))
			}
		}
		best = min(best, RenyiToEpsilon(total, float64(order), delta))
	}
	return best
}
