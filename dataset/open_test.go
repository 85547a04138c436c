package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ml100kText is a file of exactly the shape of ML-100K.
func ml100kText(t testing.TB, path string) {
	shape, _ := OfficialShape("ml100k")
	r, err := Synthetic(context.Background(), shape, 1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	writeMovieLens(t, path, r, "\n")
}

func TestOpenFindsFiles(t *testing.T) {
	t.Setenv("DPMF_DATA", "")
	source := filepath.Join(t.TempDir(), "x.csv")
	ml100kText(t, source)
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	content := string(text)
	put := func(parts ...string) string {
		path := filepath.Join(parts...)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		c := content
		switch filepath.Ext(path) {
		case ".zip":
			c = zipped(t, "ml-100k/u.info", "943 users", "ml-100k/u.data", content)
		case ".gz":
			c = gzipped(t, content)
		}
		if err := os.WriteFile(path, []byte(c), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		place func(dir string) (opts Options, want string)
	}{
		"folder of sets": {func(dir string) (Options, string) { return Options{Dir: dir}, put(dir, "ml-100k", "u.data") }},
		"packed file":    {func(dir string) (Options, string) { return Options{Dir: dir}, put(dir, "ml-100k", "u.data.gz") }},
		"archive":        {func(dir string) (Options, string) { return Options{Dir: dir}, put(dir, "ml-100k.zip") }},
		"its own folder": {func(dir string) (Options, string) { return Options{Dir: dir}, put(dir, "u.data") }},
		"the file":       {func(dir string) (Options, string) { p := put(dir, "my.csv"); return Options{Dir: p}, p }},
		"environment": {func(dir string) (Options, string) {
			t.Setenv("DPMF_DATA", dir)
			return Options{}, put(dir, "ml-100k", "u.data")
		}},
		"cache folder": {func(dir string) (Options, string) { return Options{CacheDir: dir}, put(dir, "ml-100k.zip") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DPMF_DATA", "")
			opts, want := c.place(t.TempDir())
			opts.Offline, opts.RealOnly, opts.NoCache = true, true, true
			if opts.CacheDir == "" {
				opts.CacheDir = t.TempDir()
			}
			r, err := Open(context.Background(), "ML-100K", opts)
			if err != nil {
				t.Fatal(err)
			}
			i := r.Info()
			if i.Source != want || i.Name != "ml100k" || i.Synthetic || r.NumRatings() != 100_000 || len(i.Warnings) != 0 {
				t.Errorf("%d ratings, info %+v; want the file %s", r.NumRatings(), i, want)
			}
		})
	}
}

func TestOpenByDownload(t *testing.T) {
	t.Setenv("DPMF_DATA", "")
	source := filepath.Join(t.TempDir(), "u.data")
	ml100kText(t, source)
	text, _ := os.ReadFile(source)
	body := []byte(zipped(t, "ml-100k/u.data", string(text)))
	real := sets["ml100k"]
	t.Cleanup(func() { sets["ml100k"] = real })
	fake := real
	fake.archive = archiveOf(body)
	sets["ml100k"] = fake
	opts, ranges := serve(t, file(body))
	opts.CacheDir, opts.RealOnly = t.TempDir(), true
	for range 2 {
		// The name of the archive is not that of the folder here, so that the second call has to resort to the network.
		r, err := Open(context.Background(), "ml100k", *opts)
		if err != nil {
			t.Fatal(err)
		}
		if r.NumRatings() != 100_000 || r.Info().Synthetic || r.Info().Name != "ml100k" {
			t.Errorf("info %+v", r.Info())
		}
	}
	if len(*ranges) != 2 {
		t.Errorf("%d requests", len(*ranges))
	}
}

func TestOpenStandIn(t *testing.T) {
	t.Setenv("DPMF_DATA", "")
	var warned []string
	opts := Options{Offline: true, CacheDir: t.TempDir(), Seed: 3, Warn: func(s string) { warned = append(warned, s) }}
	for _, fromCache := range []bool{false, true} {
		warned = nil
		r, err := Open(context.Background(), "ml100k", opts)
		if err != nil {
			t.Fatal(err)
		}
		i := r.Info()
		if !i.Synthetic || i.Seed != 3 || i.Name != "ml100k" || i.Source != "synthetic" || i.FromCache != fromCache || len(i.SHA256) != 64 {
			t.Errorf("info %+v", i)
		}
		if len(warned) != 2 || !strings.Contains(warned[0], "downloads are switched off") || !strings.Contains(warned[1], "synthetic stand-in") {
			t.Errorf("warnings %q", warned)
		}
		if r.NumUsers() != 943 || r.NumItems() != 1682 || r.NumRatings() != 100_000 {
			t.Errorf("%d × %d, %d ratings", r.NumUsers(), r.NumItems(), r.NumRatings())
		}
	}
	opts.RealOnly = true
	if _, err := Open(context.Background(), "ml100k", opts); err == nil || !strings.Contains(err.Error(), "only real data") {
		t.Errorf("error %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Setenv("DPMF_DATA", "")
	ctx := context.Background()
	opts := Options{Offline: true, CacheDir: t.TempDir()}
	if _, err := Open(ctx, "ml7m", opts); err == nil || !strings.Contains(err.Error(), "ml100k, ml10m") {
		t.Errorf("an unknown name: %v", err)
	}
	opts.Dir = filepath.Join(t.TempDir(), "none")
	if _, err := Open(ctx, "ml1m", opts); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	opts.Dir = ""
	if _, err := Open(ctx, t.TempDir(), opts); err == nil || !strings.Contains(err.Error(), "has no file of ratings") {
		t.Errorf("an empty folder: %v", err)
	}
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "ratings.csv"), []byte("1,2,3\n"), 0o666)
	r, err := Open(ctx, dir, opts)
	if err != nil || r.NumRatings() != 1 || r.Info().Name != "ratings" {
		t.Errorf("a folder with ratings.csv: %v", err)
	}
	// A set that is not what its name says must not keep the name.
	opts.Dir = dir
	if r, err = Open(ctx, "ml20m", opts); err != nil || r.Info().Name != "ratings" || len(r.Info().Warnings) != 1 || !strings.Contains(r.Info().Warnings[0], "is not MovieLens 20M as published") {
		t.Errorf("another file in place of ML-20M: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	opts.Dir = ""
	if _, err := Open(cancelled, "ml100k", opts); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
}

func TestOpenRealByName(t *testing.T) {
	dir := dataDir(t)
	for name, ratings := range map[string]int{"ml1m": 1000209, "ml-100k": 100000, "ml-latest-small": 100836} {
		r, err := Open(context.Background(), name, Options{Dir: dir, NoCache: true, RealOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if r.NumRatings() != ratings || len(r.Info().Warnings) != 0 || setKey(r.Info().Name) != setKey(name) {
			t.Errorf("%s: %d ratings, info %+v", name, r.NumRatings(), r.Info())
		}
	}
}
