package eval

import "math"

// A Matrix is a set of ratings by user. Its methods must be safe for concurrent
// use. The slices of User have equal lengths and are read only.
type Matrix interface {
	NumUsers() int
	NumItems() int
	// User returns the items that a user rated and the values, users counting
	// from 0 to NumUsers−1.
	User(user int) (items []int32, values []float32)
}

// A Predictor predicts ratings. Predict must be safe for concurrent use.
type Predictor interface {
	Predict(user, item int) float32
}

// A BatchPredictor predicts one user's ratings of several items at once, which
// saves work that is the same for all of them. When a Predictor is one as well,
// it is used this way.
type BatchPredictor interface {
	// PredictItems sets out[i] to the prediction for items[i]; both have the
	// same length. It must be safe for concurrent use and leave items alone.
	PredictItems(user int, items []int32, out []float32)
}

// PredictorFunc makes a function a Predictor.
type PredictorFunc func(user, item int) float32

// Predict calls f.
func (f PredictorFunc) Predict(user, item int) float32 { return f(user, item) }

// Errors sums up the prediction errors (prediction − rating) on a set of
// ratings, in the units of the ratings. All but Count are NaN for an empty set.
type Errors struct {
	Count int
	// RMSE is √mean(error²), MAE is mean|error|.
	RMSE, MAE float64
	// Mean and Variance are those of the errors (dividing by Count).
	Mean, Variance float64
}

// RMSE returns the root mean square error of the predictions of every rating
// in test, NaN if there is none.
func RMSE(p Predictor, test Matrix, options ...Option) float64 {
	return Measure(p, test, options...).RMSE
}

// MAE returns the mean absolute error of the predictions of every rating in
// test, NaN if there is none.
func MAE(p Predictor, test Matrix, options ...Option) float64 {
	return Measure(p, test, options...).MAE
}

// Measure predicts every rating in test and returns its errors. A prediction
// that is not a number makes all of them NaN.
func Measure(p Predictor, test Matrix, options ...Option) Errors {
	var sums []errorSums
	var rows []rowBuffers
	batch, _ := p.(BatchPredictor)
	forBlocks(test.NumUsers(), options, func(workers, blocks int) {
		sums, rows = make([]errorSums, blocks), make([]rowBuffers, workers)
	}, func(worker, block, firstUser, endUser int) {
		for user := firstUser; user < endUser; user++ {
			items, values := test.User(user)
			if len(items) == 0 {
				continue
			}
			predictions, errors := rows[worker].sized(len(items))
			if batch != nil {
				batch.PredictItems(user, items, predictions)
			} else {
				for i, item := range items {
					predictions[i] = p.Predict(user, int(item))
				}
			}
			for i, value := range values {
				errors[i] = float64(predictions[i]) - float64(value)
			}
			sums[block].add(sumErrors(errors))
		}
	})
	var total errorSums
	for _, block := range sums {
		total.add(block)
	}
	n := float64(total.count)
	if total.count == 0 {
		n = math.NaN()
	}
	return Errors{
		Count:    total.count,
		RMSE:     math.Sqrt(total.squares / n),
		MAE:      total.absolute / n,
		Mean:     total.mean + 0*n, // NaN when there is nothing to average
		Variance: total.deviations / n,
	}
}

// rowBuffers holds one user's predictions and errors.
type rowBuffers struct {
	predictions []float32
	errors      []float64
}

func (b *rowBuffers) sized(n int) ([]float32, []float64) {
	if cap(b.predictions) < n {
		b.predictions, b.errors = make([]float32, n+n/2), make([]float64, n+n/2)
	}
	return b.predictions[:n], b.errors[:n]
}

// errorSums are the sums of a set of errors. deviations is Σ(error − mean)², kept
// apart from squares so that a small variance about a large mean survives.
type errorSums struct {
	count                               int
	squares, absolute, mean, deviations float64
}

func sumErrors(errors []float64) errorSums {
	s := errorSums{count: len(errors)}
	var sum float64
	for _, e := range errors {
		sum += e
		s.squares += float64(e * e)
		s.absolute += math.Abs(e)
	}
	s.mean = sum / float64(s.count)
	for _, e := range errors {
		d := e - s.mean
		s.deviations += float64(d * d)
	}
	return s
}

// add joins two sets (Chan, Golub & LeVeque 1983 for the deviations).
func (s *errorSums) add(other errorSums) {
	if other.count == 0 {
		return
	}
	n := float64(s.count + other.count)
	shift := other.mean - s.mean
	weight := float64(other.count) / n
	s.deviations += other.deviations + float64(float64(shift*shift)*float64(float64(s.count)*weight))
	s.mean += float64(shift * weight)
	s.squares += other.squares
	s.absolute += other.absolute
	s.count += other.count
}

// KLGauge returns the Kullback–Leibler divergence between normal distributions
// with the means and variances of the errors on train and on test,
//
//	½·(s²_train/s²_test + (m_train − m_test)²/s²_test − 1 + ln(s²_test/s²_train)),
//
// which Balu & Furon (2016) use as a gauge of how much a model remembers of the
// ratings it was trained on: 0 if both look alike. It proves nothing about
// privacy. It is NaN if a set is empty and +Inf or NaN if a variance is 0.
func KLGauge(train, test Errors) float64 {
	shift := train.Mean - test.Mean
	ratio := train.Variance / test.Variance
	return 0.5 * (ratio + shift*shift/test.Variance - 1 - math.Log(ratio))
}
