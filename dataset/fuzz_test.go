package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
)

// parseSmall parses a text in one chunk, as parseText does with the first one.
func parseSmall(text []byte, fast, names bool) (l layout, out []named, skipped int64, ok bool) {
	if len(text) == 0 || text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	r := &chunkReader{}
	l, skip, _, fault := r.begin(text, &Options{})
	if fault != nil {
		return l, nil, 0, false
	}
	p := newParser(l, names, Scale{}, true)
	p.fast = p.fast && fast
	res := p.chunk(text[skip:], 4)
	if res.needNames {
		return parseSmall(text, fast, true)
	}
	users, items := IdentityIDs(1<<28), IdentityIDs(1<<28)
	if names {
		var to []map[int32]string
		for _, set := range []nameSet{p.userNames, p.itemNames} {
			m := map[int32]string{}
			for name, k := range set {
				m[k] = name
			}
			to = append(to, m)
		}
		for _, t := range res.triples {
			out = append(out, named{to[0][t.User], to[1][t.Item], t.Value})
		}
		return l, out, res.skipped, true
	}
	for _, t := range res.triples {
		out = append(out, named{users.Name(int(t.User)), items.Name(int(t.Item)), t.Value})
	}
	return l, out, res.skipped, true
}

// FuzzParse compares the fast parser with the careful one on any text, and that one with itself on names.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"196\t242\t3\t881250949\n186\t302\t3\t891717742\n",
		"1::122::5::838985046\r\n1::185::4.5::838983525\r\n",
		"userId,movieId,rating,timestamp\r\n1,1,4.0,964982703\r\n1,3,4.0,964981247",
		"\ufeffa;b;c\n\"x;y\";\"p\"\"q\";1e-3\n",
		"1,2,3\n1,,\n,,\n1,2,NaN\n1,2,.5\n1,2,5.\n1,2,00000001\n01,2,3\n999999999,268435456,1\n",
		"1,2,3\r1,2,3\r\n1,2,3\r\r\n1,2,3,\"open\n1:2:3\n1::2:3\n",
		"user,item,rating\n268435455,268435455,9999999\n1,1,12345678\n1,1,1.234567\n1,1,-0\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lFast, fast, skippedFast, ok1 := parseSmall(slices.Clone(text), true, false)
		_, slow, skippedSlow, ok2 := parseSmall(slices.Clone(text), false, false)
		if ok1 != ok2 || skippedFast != skippedSlow || len(fast) != len(slow) {
			t.Fatalf("fast: %v, %d ratings, %d skipped; careful: %v, %d, %d", ok1, len(fast), skippedFast, ok2, len(slow), skippedSlow)
		}
		if !ok1 {
			return
		}
		for k := range fast {
			if fast[k].User != slow[k].User || fast[k].Item != slow[k].Item || math.Float32bits(fast[k].Value) != math.Float32bits(slow[k].Value) {
				t.Fatalf("rating %d is %v, carefully %v", k, fast[k], slow[k])
			}
			if math.IsNaN(float64(fast[k].Value)) || math.IsInf(float64(fast[k].Value), 0) {
				t.Fatalf("rating %d is %v", k, fast[k])
			}
			if fast[k].User == "" || fast[k].Item == "" {
				t.Fatalf("rating %d has an empty id", k)
			}
		}
		_, names, _, _ := parseSmall(slices.Clone(text), false, true)
		if !slices.Equal(names, slow) && !hasNaN(names) {
			t.Fatalf("with names %v, with numbers %v", names, slow)
		}
		if lFast.delim == "" {
			t.Fatal("a layout without delimiter")
		}
	})
}

func hasNaN(list []named) bool {
	return slices.ContainsFunc(list, func(n named) bool { return n.Value != n.Value })
}

// FuzzReadFile reads anything as a file, packed or not: it must give a sound matrix or a one-line error.
func FuzzReadFile(f *testing.F) {
	const text = "user,item,rating\n1,20,4\n1,31,3.5\n7,20,1\n1,20,2\n"
	for _, s := range []string{text, gzipped(f, text), zstded(f, text), zipped(f, "ratings.csv", text), zipped(f, "a/ratings.csv.gz", gzipped(f, text)), "a::b::1\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := writeFile(t, "x", string(content))
		r, err := OpenFile(context.Background(), path, Options{NoCache: true, SkipBadLines: true, Workers: 2})
		if err != nil {
			// What a message quotes from libraries is theirs; ours is one line.
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("an error of several lines: %v", err)
			}
			return
		}
		namedEntries(t, r)
		if r.NumRatings() == 0 || r.UserIDs().Len() != r.NumUsers() || r.ItemIDs().Len() != r.NumItems() {
			t.Fatalf("%d ratings, %d ids for %d users, %d for %d items", r.NumRatings(), r.UserIDs().Len(), r.NumUsers(), r.ItemIDs().Len(), r.NumItems())
		}
	})
}

// FuzzDecodeCache opens damaged caches, with checksums corrected so that the checks behind them are reached. The input is
// the damage rather than the file, most of which is padding: edits of three bytes, place (16 bits) and new value, and a
// number of bytes cut off the end.
func FuzzDecodeCache(f *testing.F) {
	var good [][]byte
	for form, ids := range []string{"identity", "numbers", "words"} {
		good = append(good, goodCache(f, ids))
		f.Add(byte(form), []byte{}, uint16(0))
		f.Add(byte(form), []byte{0, 16, 4}, uint16(0))
		f.Add(byte(form), []byte{1, 40, 200, 1, 44, 7}, uint16(1))
	}
	const used = 128 + 16*cacheSections // bytes of the header that are not padding
	f.Fuzz(func(t *testing.T, form byte, edits []byte, cut uint16) {
		b := bytes.Clone(good[int(form)%len(good)])
		for ; len(edits) >= 3; edits = edits[3:] {
			at := int(binary.BigEndian.Uint16(edits)) % (used + len(b) - cacheHeader)
			if at >= used {
				at += cacheHeader - used
			}
			b[at] = edits[2]
		}
		b = b[:len(b)-int(cut)%len(b)]
		reseal(b)
		r, _, _, err := decodeCache(context.Background(), b, 1)
		if err != nil {
			return
		}
		// The two halves may disagree in a forged file; each must be sound on its own.
		for u := range r.NumUsers() {
			items, vals := r.User(u)
			for k, i := range items {
				if int(i) < 0 || int(i) >= r.NumItems() || vals[k]-vals[k] != 0 {
					t.Fatalf("user %d has rating %v of item %d", u, vals[k], i)
				}
			}
			r.UserIDs().Lookup(r.UserIDs().Name(u))
		}
		for i := range r.NumItems() {
			users, _ := r.Item(i)
			for _, u := range users {
				if int(u) < 0 || int(u) >= r.NumUsers() {
					t.Fatalf("item %d has user %d", i, u)
				}
			}
			r.ItemIDs().Lookup(r.ItemIDs().Name(i))
		}
	})
}

// FuzzUnmarshalIDs decodes any bytes as ids; what is accepted must encode to the same bytes.
func FuzzUnmarshalIDs(f *testing.F) {
	for _, names := range [][]string{{}, {"0", "1"}, {"5", "3"}, {"x", "", "abc"}} {
		ids, err := NewIDs(names)
		if err != nil {
			f.Fatal(err)
		}
		b, _ := ids.MarshalBinary()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var ids IDs
		if ids.UnmarshalBinary(b) != nil {
			return
		}
		if got, err := ids.MarshalBinary(); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%x became %x: %v", b, got, err)
		}
		for i := range min(ids.Len(), 1000) {
			if k, ok := ids.Lookup(ids.Name(i)); !ok || int(k) != i {
				t.Fatalf("index %d is called %q, which is looked up as %d, %v", i, ids.Name(i), k, ok)
			}
		}
	})
}
