package als

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/trainer"
)

// smallRatings has users × items with ratings 1 to 5, about a third of them observed; the first user
// and the last item have none.
func smallRatings(t testing.TB, users, items int, seed uint64) *dataset.Ratings {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	var triples []dataset.Triple
	for u := 1; u < users; u++ {
		for i := range items - 1 {
			if rng.IntN(3) == 0 {
				triples = append(triples, dataset.Triple{User: int32(u), Item: int32(i), Value: float32(1 + rng.IntN(5))})
			}
		}
	}
	r, err := dataset.New(users, items, triples, dataset.BuildOptions{Scale: dataset.Scale{Min: 1, Max: 5, Step: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ml1m reads the real data, and skips the test where they are not.
func ml1m(t testing.TB) *dataset.Ratings {
	t.Helper()
	dir := os.Getenv("DPMF_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	path := filepath.Join(dir, "ml-1m", "ratings.dat")
	if _, err := os.Stat(path); err != nil {
		t.Skip("MovieLens 1M is not here: set DPMF_DATA to the folder that holds ml-1m/ratings.dat")
	}
	r, err := dataset.OpenFile(context.Background(), path, dataset.Options{NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func rmse(m *trainer.Model, test *dataset.Ratings) float64 {
	var sum float64
	for u := range test.NumUsers() {
		items, values := test.User(u)
		out := make([]float32, len(items))
		m.PredictItems(u, items, out)
		for k, v := range values {
			sum += (float64(v) - float64(out[k])) * (float64(v) - float64(out[k]))
		}
	}
	return math.Sqrt(sum / float64(test.NumRatings()))
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for k := range got {
		if math.Float32bits(got[k]) != math.Float32bits(want[k]) {
			t.Fatalf("%s: element %d is %v, want %v", what, k, got[k], want[k])
		}
	}
}
