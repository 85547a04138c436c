package eval_test

import (
	"fmt"

	"github.com/dpmf-go/dpmf/eval"
)

func ExampleRMSE() {
	test := matrix{
		items:  3,
		ids:    [][]int32{{0, 2}, {1}},
		values: [][]float32{{4, 2}, {5}},
	}
	mean := eval.PredictorFunc(func(user, item int) float32 { return 4 })
	fmt.Printf("RMSE %.4f, MAE %.4f\n", eval.RMSE(mean, test), eval.MAE(mean, test))
	// Output: RMSE 1.2910, MAE 1.0000
}

func ExampleRank() {
	heldOut := matrix{
		items:  5,
		ids:    [][]int32{{3}, {0, 4}},
		values: [][]float32{{1}, {1, 1}},
	}
	mostPopular := []int32{0, 3, 1, 2, 4}
	ranker := func(user, k int, top []int32) []int32 { return append(top, mostPopular[:k]...) }
	ranking, err := eval.Rank(ranker, heldOut, []int{1, 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, at := range ranking.At {
		fmt.Printf("Recall@%d %.3f, NDCG@%d %.3f\n", at.K, at.Recall, at.K, at.NDCG)
	}
	// Output:
	// Recall@1 0.500, NDCG@1 0.500
	// Recall@2 0.750, NDCG@2 0.622
}

func ExampleKLGauge() {
	train := eval.Errors{Count: 80, Mean: 0, Variance: 0.25}
	test := eval.Errors{Count: 20, Mean: 0.1, Variance: 1}
	fmt.Printf("%.4f\n", eval.KLGauge(train, test))
	// Output: 0.3231
}
