package privacy_test

import (
	"fmt"
	"math"

	"github.com/dpmf-go/dpmf/privacy"
)

func ExampleBudget_Mu() {
	mu, err := privacy.Budget{Epsilon: 1, Delta: 1e-5}.Mu()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("one release with sensitivity 1 needs noise %.4f\n", 1/mu)
	// Output: one release with sensitivity 1 needs noise 3.7306
}

func ExampleBudget_Validate() {
	fmt.Println(privacy.Budget{Epsilon: -1, Delta: 1e-5}.Validate())
	// Output: privacy: epsilon is -1: it must be positive (use +Inf for training without privacy)
}

func ExampleEpsilon() {
	fmt.Printf("%.4f\n", privacy.Epsilon(1, 1e-5))
	// Output: 4.3772
}

// One noisy histogram: calibrate, draw, record, report.
func Example() {
	budget := privacy.Budget{Epsilon: 1, Delta: 1e-5}
	counts := []float64{120, 45, 300} // each user is in at most two cells

	_, releases, err := privacy.Calibrate(budget, []privacy.Planned{{
		Scale: 1,
		Release: privacy.Release{
			Name: "item counts", Mechanism: privacy.Gaussian,
			Sensitivity: math.Sqrt2, Count: 1, Coordinates: 2,
		},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	noise := privacy.NewNoise()
	ledger, err := privacy.NewLedger(privacy.UserLevel, budget.Delta, noise.Source())
	if err != nil {
		fmt.Println(err)
		return
	}
	noise.Stream(0, 0, 0).AddVector64(counts, releases[0].Noise)
	if err := ledger.Record(releases[0]); err != nil {
		fmt.Println(err)
		return
	}
	ledger.Seal()
	fmt.Printf("ε = %.4f with noise of %.3f\n", ledger.Epsilon(budget.Delta), releases[0].Noise)
	// Output: ε = 1.0000 with noise of 5.276
}

func ExampleDPALSPlan_Calibrate() {
	plan := privacy.DPALSPlan{
		Iterations: 2, Items: 1000, Rank: 8,
		Clip: 0.5, RatingBound: 2, ItemBudget: 25, ItemsPerUser: 25,
	}
	releases, err := plan.Calibrate(privacy.Budget{Epsilon: 10, Delta: 1e-5})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("σ = %.2f, noise on Gram matrices %.3f, on right-hand sides %.3f\n", releases.Sigma, releases.Gram.Noise, releases.RHS.Noise)
	// Output: σ = 5.00, noise on Gram matrices 1.250, on right-hand sides 4.999
}

func ExampleLedger_String() {
	ledger, err := privacy.NewLedger(privacy.UserLevel, 1e-5, privacy.Source{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := ledger.Record(privacy.Release{Name: "item Gram matrices", Mechanism: privacy.Gaussian, Sensitivity: 1, Count: 3}); err != nil {
		fmt.Println(err)
		return
	}
	ledger.Seal()
	fmt.Print(ledger)
	// Output:
	// No privacy guarantee: item Gram matrices left the trainer without noise (ε = ∞).
	// Releases:
	//   item Gram matrices, 3 times: sensitivity 1, no noise
	// Noise: none was drawn.
}
