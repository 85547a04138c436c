package dataset

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestX(t *testing.T) {
	for _, n := range []string{"ml100k", "ml1m", "mllatestsmall", "eachmovie", "ml20m"} {
		s, _ := OfficialShape(n)
		t0 := time.Now()
		r, err := Synthetic(context.Background(), s, 1, Options{})
		if err != nil {
			t.Fatal(err)
		}
		by := r.ItemsByCount()
		q := func(f float64) int { return r.ItemCount(int(by[int(f*float64(r.items-1))])) }
		mn, mx := 1<<30, 0
		for u := range r.users {
			mn, mx = min(mn, r.UserCount(u)), max(mx, r.UserCount(u))
		}
		v := 0.0
		for _, x := range r.rowVal {
			v += (float64(x) - r.mean) * (float64(x) - r.mean)
		}
		t.Log(n, time.Since(t0), r.users, r.items, r.NumRatings(), "items", q(0), q(.001), q(.01), q(.03), q(.1), q(.2), q(.3), q(.5), q(.7), q(.8), q(.9), q(1), "users", mn, mx, med(r), "mean", r.mean, "var", v/float64(r.NumRatings()), r.info.SHA256[:8])
	}
}

func med(r *Ratings) []int {
	var d []int
	for u := range r.users {
		d = append(d, r.UserCount(u))
	}
	slices.Sort(d)
	return []int{d[len(d)/10], d[len(d)/4], d[len(d)/2], d[len(d)*3/4], d[len(d)*9/10], d[len(d)*99/100]}
}
