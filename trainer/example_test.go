package trainer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/als"
)

// trained is a model of users who like either even or odd items.
func trained() *trainer.Model {
	var triples []dataset.Triple
	for u := range int32(20) {
		for i := range int32(10) {
			value := float32(1)
			if u%2 == i%2 {
				value = 5
			}
			triples = append(triples, dataset.Triple{User: u, Item: i, Value: value})
		}
	}
	ratings, err := dataset.New(20, 10, triples, dataset.BuildOptions{})
	if err != nil {
		log.Fatal(err)
	}
	model, err := als.Train(context.Background(), ratings, als.Defaults(2))
	if err != nil {
		log.Fatal(err)
	}
	return model
}

func ExampleModel_Save() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "model.safetensors")

	model := trained()
	if err := model.Save(path); err != nil {
		log.Fatal(err)
	}
	loaded, err := trainer.Load(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(loaded.NumUsers(), "users,", loaded.NumItems(), "items, rank", loaded.Rank)
	fmt.Println("same predictions:", loaded.Predict(3, 4) == model.Predict(3, 4))
	// Output:
	// 20 users, 10 items, rank 2
	// same predictions: true
}

// A user who was not in the training data tells what she likes, and is served without retraining.
func ExampleModel_NewUser() {
	model := trained()
	user, err := model.NewUser([]int32{2, 4, 7}, []float32{5, 5, 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range model.RecommendNew(user, 3) {
		fmt.Println("item", s.Item%2, "modulo 2:", s.Score > 4)
	}
	fmt.Println("item 9:", model.PredictNew(user, 9) < 2)
	// Output:
	// item 0 modulo 2: true
	// item 0 modulo 2: true
	// item 0 modulo 2: true
	// item 9: true
}
