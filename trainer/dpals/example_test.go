package dpals_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/privacy"
	"github.com/dpmf-go/dpmf/trainer/dpals"
)

// A small data set needs many users to hide one among them: here are 4000 with two opposite
// tastes. The noise of this example is seeded, so that its output stays the same; leave NoiseSeed out for
// real data.
func ExampleTrain() {
	var triples []dataset.Triple
	for u := range int32(4000) {
		for i := range int32(8) {
			if (u+i)%8 == 0 {
				continue // not rated
			}
			value := float32(1)
			if u%2 == i%2 {
				value = 5
			}
			triples = append(triples, dataset.Triple{User: u, Item: i, Value: value})
		}
	}
	ratings, err := dataset.New(4000, 8, triples, dataset.BuildOptions{Scale: dataset.Scale{Min: 1, Max: 5, Step: 1}})
	if err != nil {
		log.Fatal(err)
	}
	config := dpals.Defaults(privacy.Budget{Epsilon: 2, Delta: 1e-5})
	config.Rank, config.ItemsPerUser, config.CountItems, config.RatingBound = 2, 8, 8, 2
	seed := uint64(1)
	config.NoiseSeed = &seed
	model, err := dpals.Train(context.Background(), ratings, config)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("user 8, item 0:", model.Predict(8, 0) > 4)
	fmt.Println("user 7, item 1:", model.Predict(7, 1) > 4)
	fmt.Println("user 8, item 1:", model.Predict(8, 1) < 2)
	summary, _, _ := strings.Cut(model.Privacy(), "\n")
	fmt.Println(summary)
	// Output:
	// user 8, item 0: true
	// user 7, item 1: true
	// user 8, item 1: true
	// Differential privacy: ε = 2 at δ = 1e-05.
}
