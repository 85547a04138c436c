package dpals

import (
	"math"
	"strings"
	"testing"

	"github.com/dpmf-go/dpmf/privacy"
)

// Check and Train must agree on what can start.
func TestCheckFindsWhatTrainWouldRefuse(t *testing.T) {
	good := Defaults(privacy.Budget{Epsilon: 1, Delta: 1e-5})
	if err := good.Check(100); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	open := Defaults(privacy.Budget{Epsilon: math.Inf(1), Delta: 1e-5})
	if err := open.Check(100); err != nil {
		t.Errorf("the defaults without privacy are refused: %v", err)
	}
	spent := good
	spent.CountNoise = 0.1
	if err := spent.Check(100); err == nil || !strings.HasPrefix(err.Error(), "dpals: ") || !strings.Contains(err.Error(), "item counts already take") {
		t.Errorf("counts that exceed the budget: %v", err)
	}
	invalid := good
	invalid.Rank = 0
	if err := invalid.Check(100); err == nil || !strings.Contains(err.Error(), "rank") {
		t.Errorf("rank 0: %v", err)
	}
}
