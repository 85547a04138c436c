package dataset

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNew(t *testing.T) {
	triples := []Triple{{1, 2, 3}, {0, 0, 5}, {1, 0, 2}, {1, 2, 4}}
	r, err := New(3, 3, triples, BuildOptions{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Triple{{0, 0, 5}, {1, 0, 2}, {1, 2, 4}}, entries(t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if i := r.Info(); i.Duplicates != 1 || i.Name != "mine" || i.Synthetic {
		t.Errorf("info %+v", i)
	}
	if min, max, step := r.Scale(); min != 2 || max != 5 || step != 1 {
		t.Errorf("scale %v to %v by %v", min, max, step)
	}
	if r.Mean() != 11.0/3 {
		t.Errorf("mean %v", r.Mean())
	}
	if r.UserCount(1) != 2 || r.UserCount(2) != 0 || r.ItemCount(0) != 2 || r.ItemCount(1) != 0 {
		t.Error("wrong counts")
	}
	if diff := cmp.Diff([]Triple{{1, 2, 3}, {0, 0, 5}, {1, 0, 2}, {1, 2, 4}}, triples); diff != "" {
		t.Errorf("New changed its argument (-want +got):\n%s", diff)
	}
	if r.MemoryBytes() != 3*16+8*8 {
		t.Errorf("%d bytes", r.MemoryBytes())
	}
	for _, p := range [][2]int{{0, 1}, {2, 0}, {-1, 0}, {0, -1}, {3, 0}, {0, 3}} {
		if v, ok := r.Value(p[0], p[1]); ok || v != 0 {
			t.Errorf("Value(%d, %d) = %v, %v", p[0], p[1], v, ok)
		}
	}
}

func TestNewErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	one := []Triple{{0, 0, 1}}
	for want, c := range map[string]struct {
		users, items int
		triples      []Triple
		opts         BuildOptions
	}{
		"0 users":                      {0, 1, one, BuildOptions{}},
		"-1 items":                     {1, -1, one, BuildOptions{}},
		"no rating":                    {1, 1, nil, BuildOptions{}},
		"rating 1 has user index 2":    {2, 2, []Triple{{0, 0, 1}, {2, 0, 1}}, BuildOptions{}},
		"rating 0 has user index -1":   {2, 2, []Triple{{-1, 0, 1}}, BuildOptions{}},
		"rating 0 has item index 9":    {2, 2, []Triple{{0, 9, 1}}, BuildOptions{}},
		"is NaN, not a finite":         {2, 2, []Triple{{0, 0, nan}}, BuildOptions{}},
		"is +Inf, not a finite":        {2, 2, []Triple{{0, 0, inf}}, BuildOptions{}},
		"outside the scale 2 to 5":     {2, 2, one, BuildOptions{Scale: Scale{2, 5, 1}}},
		"3 user ids and 2 item ids":    {2, 2, one, BuildOptions{UserIDs: IdentityIDs(3)}},
		"2 user ids and 0 item ids do": {2, 2, one, BuildOptions{ItemIDs: IdentityIDs(0)}},
	} {
		if _, err := New(c.users, c.items, c.triples, c.opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

// TestBuildAgainstMap compares the counting sorts, for any number of workers and blocks, with a map.
func TestBuildAgainstMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		users, items := rapid.IntRange(1, 9).Draw(rt, "users"), rapid.IntRange(1, 9).Draw(rt, "items")
		want := map[[2]int32]float32{}
		n := 0
		var blocks [][]Triple
		for range rapid.IntRange(1, 4).Draw(rt, "blocks") {
			var block []Triple
			for range rapid.IntRange(0, 200).Draw(rt, "length") {
				n++
				e := Triple{int32(rapid.IntRange(0, users-1).Draw(rt, "u")), int32(rapid.IntRange(0, items-1).Draw(rt, "i")), float32(n)}
				block = append(block, e)
				want[[2]int32{e.User, e.Item}] = e.Value
			}
			if rapid.Bool().Draw(rt, "sorted") {
				slices.SortStableFunc(block, byPair)
				for _, e := range block {
					want[[2]int32{e.User, e.Item}] = e.Value
				}
			}
			blocks = append(blocks, block)
		}
		if n == 0 {
			return
		}
		r, err := build(t.Context(), rapid.IntRange(1, 4).Draw(rt, "workers"), users, items, blocks, nil)
		if err != nil {
			rt.Fatal(err)
		}
		got := map[[2]int32]float32{}
		for _, e := range entries(t, r) {
			got[[2]int32{e.User, e.Item}] = e.Value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("(-want +got):\n%s", diff)
		}
		if r.info.Duplicates != int64(n-len(want)) {
			rt.Fatalf("%d duplicates, want %d", r.info.Duplicates, n-len(want))
		}
	})
}

// TestBuildSortedBlocks covers the way that MovieLens files take, with users that have no rating.
func TestBuildSortedBlocks(t *testing.T) {
	blocks := [][]Triple{{}, {{1, 0, 1}, {1, 3, 2}}, {}, {{1, 4, 3}, {4, 0, 4}}, {{4, 1, 5}}, {}}
	r, err := build(t.Context(), 3, 7, 5, blocks, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Triple{{1, 0, 1}, {1, 3, 2}, {1, 4, 3}, {4, 0, 4}, {4, 1, 5}}, entries(t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{0, 0, 3, 3, 3, 5, 5, 5}, r.userPtr); diff != "" {
		t.Errorf("offsets (-want +got):\n%s", diff)
	}
}

func TestIDs(t *testing.T) {
	for name, names := range map[string][]string{
		"identity":  {"0", "1", "2"},
		"numbers":   {"3", "17", "123456789012345678"},
		"unordered": {"17", "3", "5"},
		"mixed":     {"17", "x", "03"},
		"words":     {"zoë", "", "anna", "ann"},
		"none":      {},
	} {
		ids, err := NewIDs(names)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ids.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var again IDs
		if err := again.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		for _, d := range []*IDs{ids, &again} {
			if d.Len() != len(names) {
				t.Errorf("%s: %d ids", name, d.Len())
			}
			for i, want := range names {
				if k, ok := d.Lookup(want); d.Name(i) != want || !ok || int(k) != i {
					t.Errorf("%s: index %d is called %q, looked up as %d, %v", name, i, d.Name(i), k, ok)
				}
			}
			for _, other := range []string{"4", "-1", "00", "an", "zz", "99999999999999999999"} {
				if k, ok := d.Lookup(other); ok {
					t.Errorf("%s: %q is found at %d", name, other, k)
				}
			}
			if d.Name(-1) != "" || d.Name(len(names)) != "" {
				t.Errorf("%s: an index outside has a name", name)
			}
		}
	}
	for _, names := range [][]string{{"1", "2", "1"}, {"a", "b", "a"}} {
		if _, err := NewIDs(names); err == nil || !strings.Contains(err.Error(), "index 0 and index 2") {
			t.Errorf("%q: error %v", names, err)
		}
	}
	if n := IdentityIDs(138_493).memoryBytes(); n != 0 {
		t.Errorf("identity ids take %d bytes", n)
	}
}

func TestFilters(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyRatings(rt)
		all := entries(t, r)
		limit := float32(rapid.IntRange(0, 11).Draw(rt, "limit")) / 2
		n := rapid.IntRange(-1, 5).Draw(rt, "n")
		top := map[int32]bool{}
		for k, i := range r.ItemsByCount() {
			if k < n {
				top[i] = true
			}
			if k > 0 && r.ItemCount(int(i)) > r.ItemCount(int(r.ItemsByCount()[k-1])) {
				rt.Fatal("items are not in order of their counts")
			}
		}
		for what, c := range map[string]struct {
			got  *Ratings
			want func(e Triple) bool
		}{
			"Above":          {r.Above(limit), func(e Triple) bool { return e.Value > limit }},
			"MinUserRatings": {r.MinUserRatings(n), func(e Triple) bool { return r.UserCount(int(e.User)) >= n }},
			"MinItemRatings": {r.MinItemRatings(n), func(e Triple) bool { return r.ItemCount(int(e.Item)) >= n }},
			"TopItems":       {r.TopItems(n), func(e Triple) bool { return top[e.Item] }},
		} {
			var want []Triple
			for _, e := range all {
				if c.want(e) {
					want = append(want, e)
				}
			}
			if got := entries(t, c.got); !slices.Equal(got, want) {
				rt.Fatalf("%s kept %v, want %v", what, got, want)
			}
			if c.got.NumUsers() != r.NumUsers() || c.got.NumItems() != r.NumItems() {
				rt.Fatalf("%s changed the dimensions", what)
			}
			// Without empty rows and columns, the same ratings have the same names.
			compact := c.got.Compact()
			if diff := cmp.Diff(namedEntries(t, c.got), namedEntries(t, compact)); diff != "" {
				rt.Fatalf("Compact after %s (-want +got):\n%s", what, diff)
			}
			for u := range compact.NumUsers() {
				if compact.UserCount(u) == 0 {
					rt.Fatalf("user %d of a compact matrix has no ratings", u)
				}
			}
			for i := range compact.NumItems() {
				if compact.ItemCount(i) == 0 {
					rt.Fatalf("item %d of a compact matrix has no ratings", i)
				}
			}
		}
		implicit := r.Implicit(2.5, 2)
		for _, e := range entries(t, implicit) {
			if e.Value != 1 || implicit.UserCount(int(e.User)) < 2 {
				rt.Fatalf("Implicit kept %v of a user with %d ratings", e, implicit.UserCount(int(e.User)))
			}
		}
	})
}
