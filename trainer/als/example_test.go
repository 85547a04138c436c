package als_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/trainer/als"
)

// Two groups of users with opposite tastes: the model learns both, and recommends to each user what
// her group likes and she has not rated.
func ExampleTrain() {
	var triples []dataset.Triple
	for u := range int32(8) {
		for i := range int32(6) {
			if u == i {
				continue // not rated
			}
			value := float32(1)
			if u%2 == i%2 {
				value = 5
			}
			triples = append(triples, dataset.Triple{User: u, Item: i, Value: value})
		}
	}
	ratings, err := dataset.New(8, 6, triples, dataset.BuildOptions{})
	if err != nil {
		log.Fatal(err)
	}
	config := als.Defaults(2)
	config.UserRidge.Lambda, config.ItemRidge.Lambda = 0.05, 0.05 // few data
	model, err := als.Train(context.Background(), ratings, config)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("user 2 and item 2: %.1f\n", model.Predict(2, 2))
	fmt.Printf("user 3 and item 0: %.1f\n", model.Predict(3, 0))
	fmt.Println("for user 4:", model.Recommend(4, 1)[0].Item)
	fmt.Println(model.Privacy())
	// Output:
	// user 2 and item 2: 4.9
	// user 3 and item 0: 1.0
	// for user 4: 4
	// No privacy guarantee: als computes the model from exact ratings.
}
