package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// age sets the modification time of a file back, so that it can be trusted.
func age(t testing.TB, path string, by time.Duration) {
	t.Helper()
	when := time.Now().Add(-by)
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, path string, opts Options) *Ratings {
	t.Helper()
	r, err := OpenFile(context.Background(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// onlyFile is the one file in a folder.
func onlyFile(t testing.TB, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("folder %s has %v, %v instead of one file", dir, files, err)
	}
	return filepath.Join(dir, files[0].Name())
}

func TestCache(t *testing.T) {
	for name, text := range map[string]string{
		"numbers":  "user,item,rating\n1,20,4\n1,31,bad\n1,31,3.5\n7,20,2\n7,20,1\n",
		"identity": "0,0,4\n1,1,3\n0,1,2\n",
		"words":    "anna,x,4\nbert,y,3\nanna,y,2\nanna,,2\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, "ratings.csv", text)
			age(t, path, time.Hour)
			opts := Options{CacheDir: filepath.Join(t.TempDir(), "new"), SkipBadLines: true}
			first := mustOpen(t, path, opts)
			second := mustOpen(t, path, opts)
			if first.Info().FromCache || !second.Info().FromCache {
				t.Fatalf("from the cache: first %v, second %v", first.Info().FromCache, second.Info().FromCache)
			}
			if diff := cmp.Diff(namedEntries(t, first), namedEntries(t, second)); diff != "" {
				t.Errorf("(-first +second):\n%s", diff)
			}
			want := first.Info()
			want.FromCache = true
			if diff := cmp.Diff(want, second.Info()); diff != "" {
				t.Errorf("info (-first +second):\n%s", diff)
			}
			if first.Mean() != second.Mean() || first.scale != second.scale || first.ContentSHA256() != second.ContentSHA256() {
				t.Errorf("mean, scale or content differ: %v %v, %v %v", first.Mean(), first.scale, second.Mean(), second.scale)
			}
			// Parts of a mapped matrix outlive it.
			train, test := second.SplitRandom(0.5, 1)
			if err := second.Close(); err != nil {
				t.Fatal(err)
			}
			if err := second.Close(); err != nil {
				t.Errorf("closing twice: %v", err)
			}
			if second.NumRatings() != 0 || second.NumUsers() != 0 {
				t.Error("a closed matrix still claims to hold ratings")
			}
			if n := len(namedEntries(t, train)) + len(namedEntries(t, test)); n != first.NumRatings() {
				t.Errorf("the parts hold %d of %d ratings", n, first.NumRatings())
			}
			onlyFile(t, opts.CacheDir)
		})
	}
}

func TestCacheFollowsTheSource(t *testing.T) {
	path := writeFile(t, "ratings.csv", "1,20,4\n")
	age(t, path, time.Hour)
	opts := Options{CacheDir: t.TempDir()}
	open := func(what string, fromCache bool, value float32) {
		t.Helper()
		r := mustOpen(t, path, opts)
		if v, _ := r.Value(0, 0); r.Info().FromCache != fromCache || v != value {
			t.Fatalf("%s: from the cache %v with rating %v, want %v and %v", what, r.Info().FromCache, v, fromCache, value)
		}
		if len(r.Info().Warnings) != 0 {
			t.Fatalf("%s: warnings %q", what, r.Info().Warnings)
		}
	}
	open("at first", false, 4)
	open("unchanged", true, 4)
	age(t, path, 2*time.Hour)
	open("touched", true, 4)
	cache := onlyFile(t, opts.CacheDir)
	b, err := os.ReadFile(cache)
	if err != nil {
		t.Fatal(err)
	}
	st, _ := os.Stat(path)
	if got := int64(binary.LittleEndian.Uint64(b[48:])); got != st.ModTime().UnixNano() {
		t.Errorf("the new modification time %v was not recorded: %v", st.ModTime().UnixNano(), got)
	}
	os.WriteFile(path, []byte("1,20,3\n"), 0o666)
	age(t, path, 3*time.Hour)
	open("same size, other content", false, 3)
	open("and again", true, 3)
	os.WriteFile(path, []byte("1,20,2.5\n"), 0o666)
	age(t, path, 3*time.Hour)
	open("other size, same time", false, 2.5)

	// Rewritten within the resolution of the clock of the file system: nothing but the content tells.
	os.WriteFile(path, []byte("1,20,1.0\n"), 0o666)
	now := time.Now()
	os.Chtimes(path, now, now)
	open("fresh", false, 1)
	os.WriteFile(path, []byte("1,20,2.0\n"), 0o666)
	os.Chtimes(path, now, now)
	open("fresh, same size and time, other content", false, 2)

	opts.Scale = Scale{0, 10, 1}
	open("other options", false, 2)
}

func TestCacheUnusable(t *testing.T) {
	path := writeFile(t, "ratings.csv", "1,20,4\n")
	file := writeFile(t, "a file", "")
	for _, dir := range []string{filepath.Join(file, "below"), readOnly(t)} {
		r := mustOpen(t, path, Options{CacheDir: dir})
		w := r.Info().Warnings
		if r.NumRatings() != 1 || len(w) == 0 || !strings.Contains(w[len(w)-1], "working without a cache") {
			t.Errorf("in %s: %d ratings, warnings %q", dir, r.NumRatings(), w)
		}
	}
	// A device that is always full stands for a full disk.
	if f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
		defer f.Close()
		r := mustOpen(t, path, Options{NoCache: true})
		if err := writeCache(context.Background(), f, r, cacheSource{}, "", nil); err == nil {
			t.Error("writing to a full disk succeeded")
		}
	}
}

// readOnly is a folder nothing can be created in, even by root where the system has one.
func readOnly(t testing.TB) string {
	if os.Getuid() == 0 {
		return "/proc/dpmf"
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	return dir
}

func TestFailedCacheLeavesNothing(t *testing.T) {
	r := mustOpen(t, writeFile(t, "ratings.csv", "1,20,4\n"), Options{NoCache: true})
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	err := storeCache(ctx, filepath.Join(dir, "x"), r, cacheSource{}, "", func(string, int64, int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("left %v behind", files)
	}
}

// memory is a file in memory.
type memory struct{ b []byte }

func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	if need := int(at) + len(p); need > len(m.b) {
		m.b = append(m.b, make([]byte, need-len(m.b))...)
	}
	return copy(m.b[at:], p), nil
}

// goodCache is a small valid cache file.
func goodCache(t testing.TB, ids string) []byte {
	triples := []Triple{{0, 1, 4}, {0, 2, 3}, {2, 0, 1}, {2, 2, 5}}
	opts := BuildOptions{Name: "x", Scale: Scale{1, 5, 1}}
	switch ids {
	case "numbers":
		opts.UserIDs, _ = NewIDs([]string{"5", "9", "7"})
	case "words":
		opts.ItemIDs, _ = NewIDs([]string{"a", "c", "b"})
	}
	r, err := New(3, 3, triples, opts)
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	if err := writeCache(context.Background(), m, r, cacheSource{}, "key", nil); err != nil {
		t.Fatal(err)
	}
	return m.b
}

// reseal corrects all checksums of a damaged cache, so that the checks behind them are reached.
func reseal(b []byte) {
	if len(b) < cacheHeader {
		return
	}
	le := binary.LittleEndian
	at, n := le.Uint64(b[128+16*secSums:]), le.Uint64(b[136+16*secSums:])
	if at >= cacheHeader && at <= uint64(len(b)) && n == uint64(len(b))-at {
		payload := b[cacheHeader:at]
		for k := 0; 4*k+4 <= int(n) && k*cacheBlock < len(payload); k++ {
			le.PutUint32(b[int(at)+4*k:], crc32.Checksum(payload[k*cacheBlock:min((k+1)*cacheBlock, len(payload))], castagnoli))
		}
	}
	sealHeader(b)
}

func TestCorruptCacheIsRejected(t *testing.T) {
	ctx := context.Background()
	good := goodCache(t, "words")
	r, _, key, err := decodeCache(ctx, slices.Clone(good), 2)
	if err != nil || key != "key" || r.NumRatings() != 4 || r.ItemIDs().Name(1) != "c" {
		t.Fatalf("the good file: %v, %q, %+v", err, key, r)
	}
	for n := range len(good) {
		if _, _, _, err := decodeCache(ctx, good[:n:n], 1); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", n, len(good))
		}
	}
	for at := range good {
		bad := slices.Clone(good)
		bad[at] ^= 0x40
		if _, _, _, err := decodeCache(ctx, bad, 1); err == nil {
			// Zero bytes between sections are part of a block and so under its checksum, too.
			t.Fatalf("a wrong byte at %d was accepted", at)
		}
	}
	le := binary.LittleEndian
	section := func(b []byte, k int) []byte {
		at, n := le.Uint64(b[128+16*k:]), le.Uint64(b[136+16*k:])
		return b[at : at+n]
	}
	for name, c := range map[string]struct {
		damage func(b []byte)
		want   string
	}{
		"magic":            {func(b []byte) { b[0] = 'X' }, "signature"},
		"version":          {func(b []byte) { b[8] = 9 }, "version 9"},
		"users":            {func(b []byte) { b[16] = 200 }, "section 0"},
		"no users":         {func(b []byte) { b[16] = 0 }, "claims"},
		"ratings":          {func(b []byte) { le.PutUint64(b[32:], math.MaxUint64/4+1) }, "claims"},
		"section past end": {func(b []byte) { le.PutUint64(b[136:], math.MaxUint64) }, "does not fit"},
		"item too large":   {func(b []byte) { le.PutUint32(section(b, secRowItem), 3) }, "row 0 has index"},
		"item negative":    {func(b []byte) { le.PutUint32(section(b, secRowItem), math.MaxUint32) }, "row 0 has index -1"},
		"items descend":    {func(b []byte) { le.PutUint32(section(b, secRowItem), 2) }, "index 2 after 2"},
		"user too large":   {func(b []byte) { le.PutUint32(section(b, secColUser), 77) }, "by item is broken"},
		"offset too large": {func(b []byte) { le.PutUint64(section(b, secUserPtr)[8:], 1<<40) }, "below the one before"},
		"offset negative":  {func(b []byte) { le.PutUint64(section(b, secUserPtr)[8:], math.MaxUint64) }, "below the one before"},
		"first offset":     {func(b []byte) { le.PutUint64(section(b, secUserPtr), 1) }, "offsets run from 1"},
		"nan":              {func(b []byte) { le.PutUint32(section(b, secRowVal), 0x7fc00000) }, "not finite"},
		"infinite":         {func(b []byte) { le.PutUint32(section(b, secColVal)[4:], 0xff800000) }, "not finite"},
		"ids form":         {func(b []byte) { section(b, secUserIDs)[0] = 7 }, "unknown form"},
		"ids twice":        {func(b []byte) { s := section(b, secItemIDs); s[len(s)-1] = 'a' }, "given to both"},
		"json":             {func(b []byte) { section(b, secMeta)[0] = 'x' }, "description"},
		"mean":             {func(b []byte) { le.PutUint64(b[96:], math.Float64bits(math.NaN())) }, "mean"},
		"scale":            {func(b []byte) { le.PutUint32(b[104:], math.Float32bits(9)) }, "scale"},
	} {
		bad := slices.Clone(good)
		c.damage(bad)
		reseal(bad)
		if _, _, _, err := decodeCache(ctx, bad, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", name, err, c.want)
		}
	}

	// Through OpenFile a broken cache is replaced.
	path := writeFile(t, "ratings.csv", "1,20,4\n")
	age(t, path, time.Hour)
	opts := Options{CacheDir: t.TempDir()}
	mustOpen(t, path, opts)
	cache := onlyFile(t, opts.CacheDir)
	for _, content := range [][]byte{nil, []byte("nonsense"), good[:len(good)/2], bytes.Repeat([]byte("x"), 10000)} {
		if err := os.WriteFile(cache, content, 0o666); err != nil {
			t.Fatal(err)
		}
		r := mustOpen(t, path, opts)
		if w := r.Info().Warnings; r.Info().FromCache || len(w) != 1 || !strings.Contains(w[0], "made anew") {
			t.Errorf("a cache of %d bad bytes: warnings %q, from the cache %v", len(content), w, r.Info().FromCache)
		}
		if r = mustOpen(t, path, opts); !r.Info().FromCache || len(r.Info().Warnings) != 0 {
			t.Errorf("the cache was not replaced: %+v", r.Info())
		}
	}
}

func TestCacheLargerThanABlock(t *testing.T) {
	shape := Shape{Users: 3000, Items: 800, Ratings: 600_000}
	r, err := Synthetic(context.Background(), shape, 5, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	if err := writeCache(context.Background(), m, r, cacheSource{}, "", nil); err != nil {
		t.Fatal(err)
	}
	if len(m.b) < 2*cacheBlock {
		t.Fatalf("the file has only %d bytes", len(m.b))
	}
	got, _, _, err := decodeCache(context.Background(), m.b, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got.ContentSHA256() != r.ContentSHA256() || fmt.Sprint(got.scale) != fmt.Sprint(r.scale) {
		t.Error("the content differs")
	}
	for _, at := range []int{cacheHeader + cacheBlock - 1, cacheHeader + cacheBlock, cacheHeader + 2*cacheBlock + 5} {
		m.b[at] ^= 1
		if _, _, _, err := decodeCache(context.Background(), m.b, 2); err == nil || !strings.Contains(err.Error(), "checksum of block") {
			t.Errorf("a wrong bit at %d: %v", at, err)
		}
		m.b[at] ^= 1
	}
}

// BenchmarkReopen maps the cache of a file of the shape of ML-20M.
func BenchmarkReopen(b *testing.B) {
	path := bigCSV(b)
	opts := Options{CacheDir: b.TempDir()}
	mustOpen(b, path, opts)
	b.ResetTimer()
	for b.Loop() {
		r := mustOpen(b, path, opts)
		if !r.Info().FromCache {
			b.Fatal("not from the cache")
		}
		b.StopTimer()
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
