package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// entries lists the ratings of a matrix by user and checks that both halves of it agree.
func entries(t testing.TB, r *Ratings) []Triple {
	t.Helper()
	var rows, cols []Triple
	for u := range r.NumUsers() {
		items, vals := r.User(u)
		if !slices.IsSorted(items) {
			t.Fatalf("items of user %d do not ascend: %v", u, items)
		}
		for k, i := range items {
			rows = append(rows, Triple{int32(u), i, vals[k]})
		}
	}
	for i := range r.NumItems() {
		users, vals := r.Item(i)
		if !slices.IsSorted(users) {
			t.Fatalf("users of item %d do not ascend: %v", i, users)
		}
		for k, u := range users {
			cols = append(cols, Triple{u, int32(i), vals[k]})
		}
	}
	slices.SortFunc(cols, byPair)
	if !slices.Equal(rows, cols) {
		t.Fatalf("the matrix by user (%d entries) and by item (%d entries) differ", len(rows), len(cols))
	}
	if len(rows) != r.NumRatings() {
		t.Fatalf("NumRatings() = %d for %d entries", r.NumRatings(), len(rows))
	}
	for k := 1; k < len(rows); k++ {
		if byPair(rows[k-1], rows[k]) == 0 {
			t.Fatalf("user %d has item %d twice", rows[k].User, rows[k].Item)
		}
	}
	return rows
}

func byPair(a, b Triple) int { return cmp.Compare(pairKey(a), pairKey(b)) }

// anyRatings draws a small matrix, with empty rows and columns and duplicates.
func anyRatings(t *rapid.T) *Ratings {
	users, items := rapid.IntRange(1, 12).Draw(t, "users"), rapid.IntRange(1, 12).Draw(t, "items")
	triples := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Triple {
		return Triple{
			int32(rapid.IntRange(0, users-1).Draw(t, "user")),
			int32(rapid.IntRange(0, items-1).Draw(t, "item")),
			float32(rapid.IntRange(1, 10).Draw(t, "half stars")) / 2,
		}
	}), 1, 80).Draw(t, "triples")
	r, err := New(users, items, triples, BuildOptions{Workers: rapid.IntRange(1, 3).Draw(t, "workers")})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkPartition fails unless the parts are disjoint and together the whole, and share its dimensions and ids.
func checkPartition(t *rapid.T, tb testing.TB, whole *Ratings, parts ...*Ratings) {
	t.Helper()
	var all []Triple
	for _, p := range parts {
		if p.NumUsers() != whole.NumUsers() || p.NumItems() != whole.NumItems() {
			t.Fatalf("a part is %d×%d, the whole %d×%d", p.NumUsers(), p.NumItems(), whole.NumUsers(), whole.NumItems())
		}
		if p.UserIDs() != whole.UserIDs() || p.ItemIDs() != whole.ItemIDs() {
			t.Fatal("a part has id maps of its own")
		}
		if p.scale != whole.scale {
			t.Fatalf("a part has scale %v, the whole %v", p.scale, whole.scale)
		}
		all = append(all, entries(tb, p)...)
	}
	slices.SortFunc(all, byPair)
	if want := entries(tb, whole); !slices.Equal(all, want) {
		t.Fatalf("the parts hold %v, the whole %v", all, want)
	}
}

func sameEntries(t *rapid.T, tb testing.TB, what string, a, b *Ratings) {
	t.Helper()
	if !slices.Equal(entries(tb, a), entries(tb, b)) {
		t.Fatalf("%s differs between two calls with one seed", what)
	}
}

func TestSplitsPartition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyRatings(rt)
		seed := rapid.Uint64().Draw(rt, "seed")
		f := rapid.Float64Range(0, 1).Draw(rt, "fraction")
		g := rapid.Float64Range(0, 1).Draw(rt, "second fraction")
		k := rapid.IntRange(0, 5).Draw(rt, "k")
		n := r.NumRatings()

		train, test := r.SplitRandom(f, seed)
		checkPartition(rt, t, r, train, test)
		if train.NumRatings() != share(f, n) {
			rt.Fatalf("SplitRandom(%v) of %d put %d into train", f, n, train.NumRatings())
		}
		again, _ := r.SplitRandom(f, seed)
		sameEntries(rt, t, "SplitRandom", train, again)

		a, b, c := r.SplitRandom3(f, g, seed)
		checkPartition(rt, t, r, a, b, c)
		if a.NumRatings() != share(f, n) || b.NumRatings() != min(share(g, n), n-share(f, n)) {
			rt.Fatalf("SplitRandom3(%v, %v) of %d gave %d, %d, %d", f, g, n, a.NumRatings(), b.NumRatings(), c.NumRatings())
		}

		train, test = r.SplitPerUser(f, seed)
		checkPartition(rt, t, r, train, test)
		for u := range r.NumUsers() {
			if n := r.UserCount(u); train.UserCount(u) != min(n, max(1, share(f, n))) {
				rt.Fatalf("SplitPerUser(%v) left user %d %d of %d ratings", f, u, train.UserCount(u), n)
			}
		}

		train, test = r.LeaveKOut(k, seed)
		checkPartition(rt, t, r, train, test)
		for u := range r.NumUsers() {
			want := k
			if r.UserCount(u) <= k {
				want = 0
			}
			if test.UserCount(u) != want {
				rt.Fatalf("LeaveKOut(%d) took %d of the %d ratings of user %d", k, test.UserCount(u), r.UserCount(u), u)
			}
		}
	})
}

func TestKFold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyRatings(rt)
		k := rapid.IntRange(0, 8).Draw(rt, "k")
		folds, err := r.KFold(k, 7)
		if k < 2 || k > r.NumRatings() {
			if err == nil {
				rt.Fatalf("KFold(%d) of %d ratings succeeded", k, r.NumRatings())
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		var tests []*Ratings
		for train, test := range folds {
			checkPartition(rt, t, r, train, test)
			if d := test.NumRatings() - r.NumRatings()/k; d < 0 || d > 1 {
				rt.Fatalf("a fold of %d in %d ratings has %d", k, r.NumRatings(), test.NumRatings())
			}
			tests = append(tests, test)
		}
		if len(tests) != k {
			rt.Fatalf("KFold(%d) made %d folds", k, len(tests))
		}
		checkPartition(rt, t, r, tests...)
	})
}

func TestStrongGeneralization(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyRatings(rt)
		nv, nt := rapid.IntRange(0, 4).Draw(rt, "validation"), rapid.IntRange(0, 4).Draw(rt, "test")
		g, err := r.StrongGeneralization(nv, nt, 0.8, 3)
		able, active := 0, 0
		for u := range r.NumUsers() {
			if r.UserCount(u) >= 2 {
				able++
			}
			if r.UserCount(u) >= 1 {
				active++
			}
		}
		if possible := nv+nt <= able && nv+nt < active; possible != (err == nil) {
			rt.Fatalf("holding out %d of %d users gave error %v", nv+nt, able, err)
		}
		if err != nil {
			return
		}
		checkPartition(rt, t, r, g.Train, g.Validation.FoldIn, g.Validation.Target, g.Test.FoldIn, g.Test.Target)
		if len(g.Validation.Users) != nv || len(g.Test.Users) != nt {
			rt.Fatalf("held out %d and %d users, want %d and %d", len(g.Validation.Users), len(g.Test.Users), nv, nt)
		}
		for _, h := range []HeldOut{g.Validation, g.Test} {
			if !slices.IsSorted(h.Users) {
				rt.Fatal("held-out users do not ascend")
			}
			total := 0
			for _, u := range h.Users {
				if g.Train.UserCount(int(u)) != 0 {
					rt.Fatalf("held-out user %d has ratings in train", u)
				}
				if h.FoldIn.UserCount(int(u)) < 1 || h.Target.UserCount(int(u)) < 1 {
					rt.Fatalf("held-out user %d has an empty side", u)
				}
				total += r.UserCount(int(u))
			}
			if got := h.FoldIn.NumRatings() + h.Target.NumRatings(); got != total {
				rt.Fatalf("a held-out part has %d ratings, its users %d", got, total)
			}
		}
	})
}

func TestSplitIsUniform(t *testing.T) {
	// Every rating should land in train equally often: 4000 seeds, 20 ratings, expected 1000, standard deviation 27.
	var triples []Triple
	for i := range 20 {
		triples = append(triples, Triple{int32(i / 7), int32(i % 7), 1})
	}
	r, err := New(3, 7, triples, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for seed := range uint64(4000) {
		train, _ := r.SplitRandom(0.25, seed)
		for _, e := range entries(t, train) {
			count[fmt.Sprint(e)]++
		}
	}
	for _, e := range triples {
		if c := count[fmt.Sprint(e)]; c < 1000-140 || c > 1000+140 {
			t.Errorf("rating %v was in train for %d of 4000 seeds, expected about 1000", e, c)
		}
	}
}
