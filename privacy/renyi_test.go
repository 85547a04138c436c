package privacy

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"pgregory.net/rapid"
)

// integratedRenyi is the divergence from its definition, with P = N(0, σ²) and
// Q = (1−q)·N(0, σ²) + q·N(1, σ²): ln E_P[(Q/P)^α]/(α−1).
func integratedRenyi(rate, multiplier float64, order int) float64 {
	integrand := func(x float64) float64 {
		ratio := 1 - rate + rate*math.Exp((2*x-1)/(2*multiplier*multiplier))
		return math.Exp(float64(order)*math.Log(ratio)-x*x/(2*multiplier*multiplier)) / (multiplier * math.Sqrt(2*math.Pi))
	}
	// Between 12 deviations below 0 and 12 above the largest shift, which is
	// the order.
	var sum float64
	low, high := -12*multiplier, float64(order)+12*multiplier
	const pieces = 400
	for i := range pieces {
		a := low + (high-low)*float64(i)/pieces
		b := low + (high-low)*float64(i+1)/pieces
		sum += quad.Fixed(integrand, a, b, 20, quad.Legendre{}, 0)
	}
	return math.Log(sum) / float64(order-1)
}

func TestSubsampledRenyiAgainstIntegration(t *testing.T) {
	for _, rate := range []float64{1e-3, 0.01, 0.1, 0.5, 0.9} {
		for _, multiplier := range []float64{0.7, 1, 2, 5} {
			for _, order := range []int{2, 3, 5, 16, 32} {
				got, want := SubsampledGaussianRenyi(rate, multiplier, order), integratedRenyi(rate, multiplier, order)
				if math.Abs(got-want) > 1e-9*want+2e-12 {
					t.Errorf("q=%v σ=%v α=%d: %.12g, integral %.12g", rate, multiplier, order, got, want)
				}
			}
		}
	}
}

func TestSubsampledRenyiLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		multiplier := logUniform(-0.5, 2).Draw(t, "multiplier")
		order := rapid.IntRange(2, 256).Draw(t, "order")
		plain := float64(order) / (2 * multiplier * multiplier)
		if got := SubsampledGaussianRenyi(1, multiplier, order); !near(got, plain, 1e-14) {
			t.Fatalf("at q=1: %v, want %v", got, plain)
		}
		// The sum itself, next to q = 1 where it must meet the closed form.
		if got := SubsampledGaussianRenyi(1-1e-13, multiplier, order); !near(got, plain, 1e-6) && math.Abs(got-plain) > 1e-9 {
			t.Fatalf("near q=1: %v, want %v", got, plain)
		}
		low := logUniform(-4, -0.01).Draw(t, "rate")
		less := SubsampledGaussianRenyi(low/2, multiplier, order)
		more := SubsampledGaussianRenyi(low, multiplier, order)
		if less > more+1e-9*more || more > plain*(1+1e-9)+1e-9 {
			t.Fatalf("not monotone in q: %v at q/2, %v at q, %v at 1", less, more, plain)
		}
	})
	if got := SubsampledGaussianRenyi(0, 1, 2); got != 0 {
		t.Errorf("at q=0: %v", got)
	}
	for _, got := range []float64{
		SubsampledGaussianRenyi(0.5, 1, 1), SubsampledGaussianRenyi(2, 1, 2),
		SubsampledGaussianRenyi(0.5, 0, 2), SubsampledGaussianRenyi(math.NaN(), 1, 2),
	} {
		if !math.IsNaN(got) {
			t.Errorf("bad arguments gave %v", got)
		}
	}
}

// Rényi accounting is an upper bound of the exact one, and a close one.
func TestRenyiBoundsExactGaussian(t *testing.T) {
	for _, mu := range []float64{0.1, 0.25, 0.5, 1, 2, 4} {
		for _, delta := range []float64{1e-4, 1e-5, 1e-6} {
			release := Release{Name: "x", Mechanism: SubsampledGaussian, Sensitivity: mu, Noise: 1, Count: 1, SamplingRate: 1}
			got, exact := epsilonByRenyi([]Release{release}, delta), Epsilon(mu, delta)
			if got < exact || got > 1.15*exact {
				t.Errorf("μ=%v δ=%v: %v by Rényi, %v exactly", mu, delta, got, exact)
			}
		}
	}
}

func TestRenyiToEpsilonEdges(t *testing.T) {
	for _, c := range [][3]float64{{math.NaN(), 2, 1e-5}, {1, 1, 1e-5}, {1, 2, 0}, {math.Inf(1), 2, 1e-5}} {
		if got := RenyiToEpsilon(c[0], c[1], c[2]); !math.IsInf(got, 1) {
			t.Errorf("RenyiToEpsilon(%v) = %v", c, got)
		}
	}
	if got := RenyiToEpsilon(0, 2, 0.5); got != 0 {
		t.Errorf("a negative ε was not raised to 0: %v", got)
	}
}
