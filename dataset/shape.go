package dataset

import (
	"fmt"
	"math"
)

// Shape describes a synthetic data set: its dimensions, and how activity and popularity are spread.
//
// Activity (ratings per user) is log-normal above an offset, a = 0.6·MinUserRatings + exp(μ + ActivitySpread·Z) with Z
// standard normal, levels off as d = a/(1 + a/(0.8·Items)) since nobody has seen everything, and is cut off below at
// MinUserRatings. μ follows from the total. At an offset of 12 for the least 20 ratings of MovieLens, the logarithms
// lose their skewness, and their standard deviation is 1.12 in ML-100K, 1.19 in ML-1M and 1.28 in ml-latest-small. The
// levelling puts the most active user of ML-100K, ML-1M, ml-latest-small and ML-20M (737, 2314, 2698 and 9254
// ratings) within 20 %. Where users rate more than 0.4·Items on average, d is only cut off at Items.
//
// Popularity (ratings per item) by rank k = 1..Items is (Items+1-k)^Tail / (k + HeadOffset·Items)^Head, a law of Zipf and
// Mandelbrot with the finite cut-off of the discrete generalised beta distribution. Least squares on the
// logarithms of the counts, weighted by their square roots, gives (Head, HeadOffset, Tail) with root mean square error
//
//	ML-1M            0.69  0.03  1.42   0.10
//	ML-100K          1.20  0.10  1.02   0.17
//	ml-latest-small  1.73  0.05  0.04   0.15
//
// The official shapes that were not at hand for a fit have values that put the share of the most rated and of the
// median item near that of the real sets, where it is smaller the longer the catalogue.
type Shape struct {
	Name    string
	Users   int
	Items   int
	Ratings int
	Scale   Scale // zero means 1..5 in steps of 1

	MinUserRatings int     // every user has at least so many; 0 means 1
	ActivitySpread float64 // 0 means 1.2

	Head, HeadOffset, Tail float64 // all 0 means the fit of ML-1M
}

// Official shapes, by the name that Open knows them under.
var shapes = map[string]Shape{
	"ml100k":        {Users: 943, Items: 1682, Ratings: 100_000, Scale: wholeStars, MinUserRatings: 20, ActivitySpread: 1.12, Head: 1.196, HeadOffset: 0.1, Tail: 1.024},
	"ml1m":          {Users: 6040, Items: 3706, Ratings: 1_000_209, Scale: wholeStars, MinUserRatings: 20, ActivitySpread: 1.19, Head: 0.69, HeadOffset: 0.03, Tail: 1.418},
	"ml10m":         {Users: 69_878, Items: 10_677, Ratings: 10_000_054, Scale: halfStars, MinUserRatings: 20, ActivitySpread: 1.2, Head: 1.2, HeadOffset: 0.015, Tail: 1.3},
	"ml20m":         {Users: 138_493, Items: 26_744, Ratings: 20_000_263, Scale: halfStars, MinUserRatings: 20, ActivitySpread: 1.2, Head: 1.95, HeadOffset: 0.012, Tail: 1.15},
	"ml25m":         {Users: 162_541, Items: 59_047, Ratings: 25_000_095, Scale: halfStars, MinUserRatings: 20, ActivitySpread: 1.2, Head: 1.95, HeadOffset: 0.005, Tail: 1},
	"ml32m":         {Users: 200_948, Items: 84_432, Ratings: 32_000_204, Scale: halfStars, MinUserRatings: 20, ActivitySpread: 1.2, Head: 1.95, HeadOffset: 0.0035, Tail: 1},
	"mllatestsmall": {Users: 610, Items: 9724, Ratings: 100_836, Scale: halfStars, MinUserRatings: 20, ActivitySpread: 1.28, Head: 1.733, HeadOffset: 0.05, Tail: 0.037},
	"eachmovie":     {Users: 61_265, Items: 1623, Ratings: 2_811_718, Scale: Scale{1, 6, 1}, MinUserRatings: 1, ActivitySpread: 1.3, Head: 0.75, HeadOffset: 0.01, Tail: 1.1},
}

var (
	wholeStars = Scale{Min: 1, Max: 5, Step: 1}
	halfStars  = Scale{Min: 0.5, Max: 5, Step: 0.5}
)

// OfficialShape is the shape of a data set that Open knows by name, and false for other names.
func OfficialShape(name string) (Shape, bool) {
	key := setKey(name)
	s, ok := shapes[key]
	s.Name = setName(key)
	return s, ok
}

// withDefaults replaces zero values, and reports shapes that cannot be.
func (s Shape) withDefaults() (Shape, error) {
	if s.Scale == (Scale{}) {
		s.Scale = wholeStars
	}
	if s.MinUserRatings == 0 {
		s.MinUserRatings = 1
	}
	if s.ActivitySpread == 0 {
		s.ActivitySpread = 1.2
	}
	if s.Head == 0 && s.HeadOffset == 0 && s.Tail == 0 {
		fit := shapes["ml1m"]
		s.Head, s.HeadOffset, s.Tail = fit.Head, fit.HeadOffset, fit.Tail
	}
	fail := func(format string, args ...any) (Shape, error) {
		return s, fmt.Errorf("dataset: a synthetic set of %d users, %d items and %d ratings is impossible: %s", s.Users, s.Items, s.Ratings, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Users <= 0 || s.Items <= 0 || s.Users > math.MaxInt32 || s.Items > math.MaxInt32:
		return fail("users and items must be 1 to %d", math.MaxInt32)
	case s.MinUserRatings < 0 || s.MinUserRatings > s.Items:
		return fail("at least %d ratings per user do not fit", s.MinUserRatings)
	case s.Ratings < s.Users*s.MinUserRatings:
		return fail("%d per user need %d", s.MinUserRatings, s.Users*s.MinUserRatings)
	case s.Ratings < s.Items:
		return fail("every item needs one")
	case s.Ratings/s.Users > s.Items || s.Ratings > s.Users*s.Items:
		return fail("there are only %d pairs", s.Users*s.Items)
	case !(s.ActivitySpread > 0 && s.ActivitySpread < 10):
		return fail("the activity spread %v is not between 0 and 10", s.ActivitySpread)
	case !(s.Head >= 0 && s.Head < 10 && s.Tail >= 0 && s.Tail < 10 && s.HeadOffset >= 0 && s.HeadOffset < 10):
		return fail("the popularity law (%v, %v, %v) is not within 0 to 10", s.Head, s.HeadOffset, s.Tail)
	case !(s.Scale.Min < s.Scale.Max) || s.Scale.Step < 0 || s.Scale.Max-s.Scale.Min > math.MaxFloat32/4 || math.IsNaN(float64(s.Scale.Step)):
		return fail("the scale %v to %v in steps of %v is empty", s.Scale.Min, s.Scale.Max, s.Scale.Step)
	}
	return s, nil
}

// activity is the number of ratings of each user, in descending order.
func (s Shape) activity() []int {
	quantile := make([]float64, s.Users) // of the log-normal factor, descending
	for k := range quantile {
		p := (float64(k) + 0.5) / float64(s.Users)
		z := math.Sqrt2 * math.Erfcinv(2*p)
		quantile[k] = math.Exp(s.ActivitySpread * z)
	}
	offset := 0.6 * float64(s.MinUserRatings)
	ceiling := 0.8 * float64(s.Items)
	if float64(s.Ratings) > 0.4*float64(s.Items)*float64(s.Users) {
		ceiling = math.Inf(1)
	}
	count := func(k int, scale float64) float64 {
		d := offset + scale*quantile[k]
		d /= 1 + d/ceiling
		return min(max(d, float64(s.MinUserRatings)), float64(s.Items))
	}
	total := func(scale float64) float64 {
		sum := 0.0
		for k := range quantile {
			sum += count(k, scale)
		}
		return sum
	}
	lo, hi := 0.0, 1.0
	for total(hi) < float64(s.Ratings) && hi < 1e30 {
		hi *= 4
	}
	for range 60 {
		mid := (lo + hi) / 2
		if total(mid) < float64(s.Ratings) {
			lo = mid
		} else {
			hi = mid
		}
	}
	counts := make([]int, s.Users)
	left := s.Ratings
	for k := range counts {
		counts[k] = int(math.Round(count(k, hi)))
		left -= counts[k]
	}
	// Rounding leaves a few too many or too few: spread them one by one from the most active user on.
	for left != 0 {
		for k := range counts {
			switch {
			case left > 0 && counts[k] < s.Items:
				counts[k]++
				left--
			case left < 0 && counts[k] > s.MinUserRatings:
				counts[k]--
				left++
			}
		}
	}
	return counts
}

// popularity is the expected number of ratings of each item beyond its first, in descending order. No item is
// expected from more than 95 % of the users.
func (s Shape) popularity() []float64 {
	n := float64(s.Items)
	p := make([]float64, s.Items)
	for k := range p {
		r := float64(k + 1)
		p[k] = math.Exp(s.Tail*math.Log(n+1-r) - s.Head*math.Log(r+s.HeadOffset*n))
	}
	most := 0.95 * float64(s.Users)
	share := float64(s.Ratings - s.Items)
	// Scaling up pushes some items against the limit, which leaves more for the others.
	scale := 1.0
	for range 50 {
		sum, fixed := 0.0, 0.0
		for _, v := range p {
			if scale*v >= most {
				fixed += most
			} else {
				sum += v
			}
		}
		if sum == 0 || fixed >= share {
			break
		}
		next := (share - fixed) / sum
		if math.Abs(next-scale) <= 1e-12*scale {
			break
		}
		scale = next
	}
	for k := range p {
		p[k] = min(scale*p[k], most)
	}
	return p
}
