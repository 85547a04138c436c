package dataset_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dpmf-go/dpmf/dataset"
)

func ExampleOpen() {
	// Offline and without the data, a synthetic set of the same shape takes the place of ML-100K.
	cache, err := os.MkdirTemp("", "dpmf")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(cache)
	ratings, err := dataset.Open(context.Background(), "ml100k", dataset.Options{Offline: true, CacheDir: cache})
	if err != nil {
		fmt.Println(err)
		return
	}
	train, test := ratings.SplitRandom(0.9, 1)
	fmt.Println(ratings.NumUsers(), "users,", ratings.NumItems(), "items")
	fmt.Println(train.NumRatings(), "ratings to train on,", test.NumRatings(), "to test")
	// Output:
	// 943 users, 1682 items
	// 90000 ratings to train on, 10000 to test
}

func ExampleOpenFile() {
	dir, err := os.MkdirTemp("", "dpmf")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "votes.csv")
	if err := os.WriteFile(path, []byte("stars,reader,book\n5,anna,Emma\n3,bert,Emma\n4,anna,Persuasion\n"), 0o666); err != nil {
		fmt.Println(err)
		return
	}
	ratings, err := dataset.OpenFile(context.Background(), path, dataset.Options{
		Columns: dataset.Columns{User: "reader", Item: "book", Rating: "stars"},
		NoCache: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	anna, _ := ratings.UserIDs().Lookup("anna")
	items, values := ratings.User(int(anna))
	for k, i := range items {
		fmt.Println(ratings.ItemIDs().Name(int(i)), values[k])
	}
	// Output:
	// Emma 5
	// Persuasion 4
}
