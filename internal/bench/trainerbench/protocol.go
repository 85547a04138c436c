package trainerbench

import (
	"fmt"

	"github.com/dpmf-go/dpmf/dataset"
)

// Protocol is a way to divide ratings into training and test data, and the quality measured on the latter.
type Protocol string

const (
	// Explicit: random 80/10/10 over all ratings, RMSE over all test ratings.
	Explicit Protocol = "explicit"
	// Implicit (Liang, Krishnan, Hoffman & Jebara 2018): ratings above 3.5 of 5, users with at least five of them;
	// held-out users, 80 % of whose items are folded in, Recall@20, Recall@50 and NDCG@100 on the rest.
	Implicit Protocol = "implicit"
	// Speed: a few iterations on all ratings, whose time alone is measured.
	Speed Protocol = "speed"
)

// protocols in the order they are run in.
var protocols = []Protocol{Speed, Explicit, Implicit}

// heldOut is how many users are for validation, and as many for testing: the published 10,000 where that is at most a
// tenth of the users, and otherwise a tenth in round hundreds, or in units below one hundred.
func heldOut(users int) int {
	tenth := min(10_000, users/10)
	if tenth >= 100 {
		tenth -= tenth % 100
	}
	return tenth
}

// Split is the data of one protocol. The validation part is made, so that the test part is the published one, and
// left unused: nothing is tuned here.
type Split struct {
	Protocol Protocol
	Train    *dataset.Ratings
	Test     *dataset.Ratings // explicit
	Users    dataset.HeldOut  // implicit
}

// MakeSplit divides the ratings.
func MakeSplit(data *dataset.Ratings, protocol Protocol, seed uint64) (*Split, error) {
	switch protocol {
	case Speed:
		return &Split{Protocol: Speed, Train: data}, nil
	case Explicit:
		train, _, test := data.SplitRandom3(0.8, 0.1, seed)
		if train.NumRatings() == 0 || test.NumRatings() == 0 {
			return nil, fmt.Errorf("%d ratings are too few to train and to test on", data.NumRatings())
		}
		return &Split{Protocol: Explicit, Train: train, Test: test}, nil
	}
	_, top, _ := data.Scale()
	positive := data.Implicit(0.7*top, 5)
	held := heldOut(positive.NumUsers())
	if held == 0 {
		return nil, fmt.Errorf("only %d users have five ratings above %g: too few to hold some out", positive.NumUsers(), 0.7*top)
	}
	g, err := positive.StrongGeneralization(held, held, 0.8, seed)
	if err != nil {
		return nil, err
	}
	return &Split{Protocol: Implicit, Train: g.Train, Users: g.Test}, nil
}

// SplitBytes is an upper bound of the memory that MakeSplit takes besides the data: the parts together hold every
// rating once by user and once by item, and there is a label per rating. The implicit protocol filters twice first.
func SplitBytes(data *dataset.Ratings, protocol Protocol) int64 {
	if protocol == Speed {
		return 0
	}
	n := int64(data.NumRatings())
	copies := int64(1)
	if protocol == Implicit {
		copies = 3
	}
	return copies*16*n + n + 5*16*int64(data.NumUsers()+data.NumItems())
}
