package dataset

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime"
)

// All splits are determined by the matrix and the seed, whatever the number of workers. Their parts share the id
// maps, dimensions and scale of the parent, so an index means the same user or item in all of them.

// SplitRandom puts a uniformly random ⌊trainFraction·NumRatings()+½⌋ of the ratings into train and the others into test.
// trainFraction is limited to 0..1; NaN counts as 0.
func (r *Ratings) SplitRandom(trainFraction float64, seed uint64) (train, test *Ratings) {
	label := make([]uint8, r.NumRatings())
	for k := range label {
		label[k] = 1
	}
	s := newStream(seed, purposeSplitRandom, 0)
	choose(&s, label, share(trainFraction, len(label)), 0)
	parts := r.partition(label, 2)
	return parts[0], parts[1]
}

// SplitRandom3 divides the ratings at random into train, validation and test; test takes what the two fractions leave.
// Fractions are limited as in SplitRandom, and the second to what the first leaves.
func (r *Ratings) SplitRandom3(trainFraction, validationFraction float64, seed uint64) (train, validation, test *Ratings) {
	n := r.NumRatings()
	label := make([]uint8, n)
	nTrain := share(trainFraction, n)
	nValidation := min(share(validationFraction, n), n-nTrain)
	s := newStream(seed, purposeSplitRandom, 0)
	left := [3]int{nTrain, nValidation, n - nTrain - nValidation}
	for k := range label {
		x := int(s.below(uint64(n - k)))
		part := uint8(0)
		for x >= left[part] {
			x -= left[part]
			part++
		}
		label[k] = part
		left[part]--
	}
	parts := r.partition(label, 3)
	return parts[0], parts[1], parts[2]
}

// SplitPerUser puts a random ⌊trainFraction·n+½⌋ of each user's n ratings into train, but at least one, and
// the others into test. trainFraction is limited as in SplitRandom.
func (r *Ratings) SplitPerUser(trainFraction float64, seed uint64) (train, test *Ratings) {
	return r.splitUsers(seed, purposeSplitUser, func(n int) int { return min(n, max(1, share(trainFraction, n))) })
}

// LeaveKOut puts k random ratings of each user who has more than k into test and everything else into train.
// A k below 1 leaves test empty.
func (r *Ratings) LeaveKOut(k int, seed uint64) (train, test *Ratings) {
	return r.splitUsers(seed, purposeLeaveOut, func(n int) int {
		if n > k {
			return n - max(k, 0)
		}
		return n
	})
}

// splitUsers divides the ratings of each user: keep(n) of n stay, the others are held out.
func (r *Ratings) splitUsers(seed uint64, purpose int, keep func(n int) int) (kept, out *Ratings) {
	label := make([]uint8, r.NumRatings())
	for u := range r.users {
		own := label[r.userPtr[u]:r.userPtr[u+1]]
		s := newStream(seed, purpose, u)
		choose(&s, own, len(own)-keep(len(own)), 1)
	}
	parts := r.partition(label, 2)
	return parts[0], parts[1]
}

// KFold yields k pairs of train and test for cross-validation. Each rating is in exactly one test part; the sizes of
// the test parts differ by at most one. Pairs are made one at a time, when asked for. It is an error unless
// 2 ≤ k ≤ min(255, NumRatings()).
func (r *Ratings) KFold(k int, seed uint64) (iter.Seq2[*Ratings, *Ratings], error) {
	n := r.NumRatings()
	if k < 2 || k > 255 || k > n {
		return nil, fmt.Errorf("dataset: cannot make %d folds of %d ratings; choose 2 to %d", k, n, min(255, n))
	}
	fold := make([]uint8, n)
	for i := range fold {
		fold[i] = uint8(i % k)
	}
	s := newStream(seed, purposeFolds, 0)
	shuffle(&s, fold)
	return func(yield func(train, test *Ratings) bool) {
		label := make([]uint8, n)
		for f := range k {
			for i := range label {
				label[i] = 0
				if fold[i] == uint8(f) {
					label[i] = 1
				}
			}
			parts := r.partition(label, 2)
			if !yield(parts[0], parts[1]) {
				return
			}
		}
	}, nil
}

// HeldOut is a group of users kept away from training: their history FoldIn, from which a model makes their factors,
// and Target, which it has to predict. Both have the dimensions of the parent and no rating of any other user.
type HeldOut struct {
	Users          []int32 // ascending
	FoldIn, Target *Ratings
}

// Generalization is a split by user: no rating of a validation or test user is in Train.
type Generalization struct {
	Train            *Ratings
	Validation, Test HeldOut
}

// StrongGeneralization holds out random users for validation and testing, and divides the ratings of each of them
// into a random ⌊foldInFraction·n+½⌋ for folding in and the rest as target (protocol of Liang, Krishnan, Hoffman & Jebara
// 2018, where the fraction is 0.8). Users with fewer than two ratings are never held out, and the others keep at least
// one rating on each side. It is an error if a count is negative, the fraction is not between 0 and 1, or fewer
// users with two ratings exist than are to be held out, plus one for training.
func (r *Ratings) StrongGeneralization(validationUsers, testUsers int, foldInFraction float64, seed uint64) (*Generalization, error) {
	if validationUsers < 0 || testUsers < 0 {
		return nil, fmt.Errorf("dataset: cannot hold out %d validation and %d test users", validationUsers, testUsers)
	}
	if !(foldInFraction > 0 && foldInFraction < 1) {
		return nil, fmt.Errorf("dataset: fold-in fraction %v is not between 0 and 1", foldInFraction)
	}
	var eligible []int32
	active := 0
	for u := range r.users {
		if r.UserCount(u) > 0 {
			active++
		}
		if r.UserCount(u) >= 2 {
			eligible = append(eligible, int32(u))
		}
	}
	held := validationUsers + testUsers
	if held > len(eligible) || held >= active {
		return nil, fmt.Errorf("dataset: cannot hold out %d users and train on others: %d have ratings, %d have at least two", held, active, len(eligible))
	}
	s := newStream(seed, purposeHoldOut, 0)
	shuffle(&s, eligible)

	const (
		inTrain = iota
		validationFoldIn
		validationTarget
		testFoldIn
		testTarget
	)
	group := make([]uint8, r.users)
	for k, u := range eligible[:held] {
		group[u] = validationFoldIn
		if k >= validationUsers {
			group[u] = testFoldIn
		}
	}
	g := &Generalization{}
	label := make([]uint8, r.NumRatings())
	for u := range r.users {
		if group[u] == inTrain {
			continue
		}
		own := label[r.userPtr[u]:r.userPtr[u+1]]
		for k := range own {
			own[k] = group[u]
		}
		keep := min(max(share(foldInFraction, len(own)), 1), len(own)-1)
		s := newStream(seed, purposeFoldIn, u)
		choose(&s, own, len(own)-keep, group[u]+1)
		if group[u] == validationFoldIn {
			g.Validation.Users = append(g.Validation.Users, int32(u))
		} else {
			g.Test.Users = append(g.Test.Users, int32(u))
		}
	}
	parts := r.partition(label, 5)
	g.Train = parts[inTrain]
	g.Validation.FoldIn, g.Validation.Target = parts[validationFoldIn], parts[validationTarget]
	g.Test.FoldIn, g.Test.Target = parts[testFoldIn], parts[testTarget]
	return g, nil
}

// share is ⌊fraction·n+½⌋ with the fraction limited to 0..1.
func share(fraction float64, n int) int {
	if !(fraction > 0) {
		return 0
	}
	return min(n, int(math.Floor(float64(min(fraction, 1)*float64(n))+0.5)))
}

// partition divides the ratings, in the order of the matrix by user, by their label 0..parts-1. Labels at or above
// parts are left out.
func (r *Ratings) partition(label []uint8, parts int) []*Ratings {
	workers := runtime.GOMAXPROCS(0)
	ctx := context.Background()
	must := func(err error) {
		if err != nil { // nothing can fail here without a deadline
			panic("dataset: " + err.Error())
		}
	}
	out := make([]*Ratings, parts)
	for p := range out {
		out[p] = &Ratings{
			users: r.users, items: r.items,
			userIDs: r.userIDs, itemIDs: r.itemIDs,
			scale: r.scale, info: r.Info(),
			userPtr: make([]int64, r.users+1),
		}
	}
	ranges := 1 + len(label)>>18
	must(parallel(ctx, workers, ranges, func(k int) error {
		from, to := rowRange(r.userPtr, ranges, k)
		for u := from; u < to; u++ {
			for _, l := range label[r.userPtr[u]:r.userPtr[u+1]] {
				if int(l) < parts {
					out[l].userPtr[u+1]++
				}
			}
		}
		return nil
	}))
	for _, part := range out {
		for u := range r.users {
			part.userPtr[u+1] += part.userPtr[u]
		}
		n := part.userPtr[r.users]
		part.rowItem, part.rowVal = make([]int32, n), make([]float32, n)
	}
	must(parallel(ctx, workers, ranges, func(k int) error {
		from, to := rowRange(r.userPtr, ranges, k)
		next := make([]int64, parts)
		for p, part := range out {
			next[p] = part.userPtr[from]
		}
		// One range of rows is one range of every part, so that positions just go on from row to row.
		for k := r.userPtr[from]; k < r.userPtr[to]; k++ {
			if l := label[k]; int(l) < parts {
				w := next[l]
				out[l].rowItem[w], out[l].rowVal[w] = r.rowItem[k], r.rowVal[k]
				next[l] = w + 1
			}
		}
		return nil
	}))
	for _, part := range out {
		must(part.finish(ctx, workers))
	}
	return out
}
