package privacy

import (
	"encoding/json"
	"math"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"pgregory.net/rapid"
)

// near reports whether got equals want to the given relative precision.
func near(got, want, relative float64) bool {
	return math.Abs(got-want) <= relative*math.Abs(want)
}

func TestMuCheckValues(t *testing.T) {
	for _, c := range []struct{ epsilon, delta, mu, precision float64 }{
		{0.5, 1e-5, 0.1422106, 5e-8},
		{1, 1e-5, 0.2680511, 5e-8},
		{2, 1e-5, 0.50155, 5e-6},
		{5, 1e-5, 1.1212418, 5e-8},
		{10, 1e-5, 2.0004456, 5e-8},
		{20, 1e-5, 3.4477834, 5e-8},
		{1, 1e-6, 0.2367044, 5e-8},
	} {
		got, err := Budget{c.epsilon, c.delta}.Mu()
		if err != nil || math.Abs(got-c.mu) > c.precision {
			t.Errorf("μ*(%v, %v) = %.8f, %v; want %v", c.epsilon, c.delta, got, err, c.mu)
		}
	}
}

func TestEpsilonCheckValues(t *testing.T) {
	for mu, want := range map[float64]float64{
		0.25: 0.9263, 0.5: 1.9931, 1: 4.3772, 2: 9.9973, 3: 16.6755, 4: 24.3816,
	} {
		if got := Epsilon(mu, 1e-5); math.Abs(got-want) > 5e-5 {
			t.Errorf("ε(%v, 1e-5) = %.6f, want %v", mu, got, want)
		}
	}
}

// integratedDelta is δ(ε) from its definition, the integral of the part of
// N(μ, 1) that exceeds e^ε times N(0, 1), with no normal distribution function
// and no cancellation in it.
func integratedDelta(mu, epsilon float64) float64 {
	start := epsilon/mu + mu/2
	excess := func(x float64) float64 {
		return math.Exp(-(x-mu)*(x-mu)/2) / math.Sqrt(2*math.Pi) * -math.Expm1(epsilon-mu*x+mu*mu/2)
	}
	// The integrand decays at least like exp(−d·y) with d the distance of the
	// start from the mode, so pieces of width ~1/d resolve it.
	width := 1 / max(1, start-mu)
	var sum float64
	for piece := range 60 {
		low := start + float64(piece)*width
		sum += quad.Fixed(excess, low, low+width, 30, quad.Legendre{}, 0)
	}
	return sum
}

func TestDeltaAgainstIntegration(t *testing.T) {
	for _, mu := range []float64{1e-4, 0.01, 0.1, 0.2680511, 0.5, 1, 2, 3.4477834, 6, 12} {
		for _, shift := range []float64{-1, 0, 0.5, 1, 2, 4, 6, 10, 20} {
			epsilon := mu*mu/2 + shift*mu
			if epsilon < 0 {
				continue
			}
			got, want := Delta(mu, epsilon), integratedDelta(mu, epsilon)
			if want < 1e-290 {
				continue
			}
			// Not below the truth by more than the integral's own error, and
			// above it by no more than float64 needs: its error grows as the two
			// terms of δ approach each other, that is, with 1/μ.
			if got < want*(1-1e-12) || got > want*(1+2e-11+2e-13*(1+shift)/mu)+1e-300 {
				t.Errorf("δ(μ=%v, ε=%v) = %.15g, integral %.15g, relative %g", mu, epsilon, got, want, got/want-1)
			}
		}
	}
}

func TestDeltaEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct{ mu, epsilon, want float64 }{
		{0, 0, 0}, {0, 1, 0}, {1, inf, 0}, {inf, 1, 1}, {inf, inf, 1},
		{nan, 1, 1}, {1, nan, 1}, {-1, 1, 1}, {1, -1, 1},
	} {
		if got := Delta(c.mu, c.epsilon); got != c.want {
			t.Errorf("Delta(%v, %v) = %v, want %v", c.mu, c.epsilon, got, c.want)
		}
	}
	// δ(0) = 2Φ(μ/2) − 1.
	if got, want := Delta(0.3, 0), math.Erf(0.15/math.Sqrt2); !near(got, want, 1e-11) {
		t.Errorf("Delta(0.3, 0) = %v, want %v", got, want)
	}
	if got := Delta(0.001, 1000); got <= 0 {
		t.Errorf("δ underflowed to %v, which would claim pure differential privacy", got)
	}
	for _, c := range []struct{ mu, delta, want float64 }{
		{0, 1e-5, 0}, {0, 0, 0}, {1, 0, inf}, {1, -1, inf}, {1, nan, inf}, {nan, 1e-5, inf},
		{-1, 1e-5, inf}, {inf, 1e-5, inf}, {1, 1, 0}, {1e-7, 1e-5, 0},
	} {
		if got := Epsilon(c.mu, c.delta); got != c.want {
			t.Errorf("Epsilon(%v, %v) = %v, want %v", c.mu, c.delta, got, c.want)
		}
	}
}

// logUniform draws a positive number between two powers of ten.
func logUniform(low, high float64) *rapid.Generator[float64] {
	return rapid.Map(rapid.Float64Range(low, high), func(x float64) float64 { return math.Pow(10, x) })
}

func TestAccountantProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epsilon := logUniform(-3, 2.3).Draw(t, "epsilon")
		delta := logUniform(-12, -0.3).Draw(t, "delta")
		mu, err := Budget{epsilon, delta}.Mu()
		if err != nil {
			t.Fatal(err)
		}
		// Safe, and tight.
		if got := Delta(mu, epsilon); got > delta*(1+1e-13) {
			t.Fatalf("μ* = %v is unsafe: δ = %v", mu, got)
		}
		if got := Delta(mu*(1+1e-9), epsilon); got <= delta {
			t.Fatalf("μ* = %v is not the largest", mu)
		}
		back := Epsilon(mu, delta)
		if back > epsilon*(1+1e-10) || !near(back, epsilon, 1e-7) && math.Abs(back-epsilon) > 1e-9 {
			t.Fatalf("ε(μ*) = %v", back)
		}
		if Delta(mu, back) > delta*(1+1e-13) {
			t.Fatalf("ε(μ*, δ) = %v is unsafe", back)
		}
		// Monotone in both.
		factor := rapid.Float64Range(1.001, 3).Draw(t, "factor")
		if more, _ := (Budget{epsilon * factor, delta}).Mu(); more <= mu {
			t.Fatalf("μ* fell from %v to %v as ε grew", mu, more)
		}
		if more, _ := (Budget{epsilon, min(0.999, delta*factor)}).Mu(); more <= mu {
			t.Fatalf("μ* fell from %v to %v as δ grew", mu, more)
		}
		if Epsilon(mu*factor, delta) <= back {
			t.Fatalf("ε fell as μ grew from %v", mu)
		}
		if Delta(mu*factor, epsilon) <= Delta(mu, epsilon) {
			t.Fatalf("δ fell as μ grew from %v", mu)
		}
	})
}

func TestBudgetValidate(t *testing.T) {
	for _, b := range []Budget{
		{0, 1e-5}, {-1, 1e-5}, {math.NaN(), 1e-5}, {math.Inf(-1), 1e-5},
		{1, 0}, {1, -1e-5}, {1, 1}, {1, 2}, {1, math.NaN()}, {1, math.Inf(1)}, {math.Inf(1), 0},
	} {
		if err := b.Validate(); err == nil {
			t.Errorf("%v passed", b)
		}
		if _, err := b.Mu(); err == nil {
			t.Errorf("Mu of %v gave no error", b)
		}
	}
	unlimited := Budget{math.Inf(1), 1e-5}
	if mu, err := unlimited.Mu(); err != nil || !math.IsInf(mu, 1) || unlimited.IsPrivate() {
		t.Errorf("μ*(∞) = %v, %v", mu, err)
	}
	if got, want := unlimited.String(), "no privacy guarantee (ε = ∞, no noise)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (Budget{1, 1e-5}).String(), "(ε = 1, δ = 1e-05)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBudgetJSON(t *testing.T) {
	for _, b := range []Budget{{1, 1e-5}, {0.1, 0.25}, {math.Inf(1), 1e-6}} {
		data, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		var read Budget
		if err := json.Unmarshal(data, &read); err != nil || read != b {
			t.Errorf("%v became %s, then %v, %v", b, data, read, err)
		}
	}
	if _, err := json.Marshal(Budget{0, 1e-5}); err == nil {
		t.Error("an invalid budget was written")
	}
	for _, bad := range []string{`{}`, `{"epsilon":1}`, `{"epsilon":"much","delta":1e-5}`, `{"epsilon":-1,"delta":1e-5}`, `{"epsilon":true,"delta":1e-5}`, `[]`} {
		kept := Budget{2, 0.5}
		if err := kept.UnmarshalJSON([]byte(bad)); err == nil || kept != (Budget{2, 0.5}) {
			t.Errorf("%s: %v, %v", bad, err, kept)
		}
	}
}
