package dataset

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// writeFile puts content into a file of a fresh folder.
func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// named is a rating with the ids of its source.
type named struct {
	User, Item string
	Value      float32
}

func namedEntries(t testing.TB, r *Ratings) []named {
	t.Helper()
	var out []named
	for _, e := range entries(t, r) {
		n := named{r.UserIDs().Name(int(e.User)), r.ItemIDs().Name(int(e.Item)), e.Value}
		if u, ok := r.UserIDs().Lookup(n.User); !ok || u != e.User {
			t.Fatalf("user %q is looked up as %d, %v instead of %d", n.User, u, ok, e.User)
		}
		if i, ok := r.ItemIDs().Lookup(n.Item); !ok || i != e.Item {
			t.Fatalf("item %q is looked up as %d, %v instead of %d", n.Item, i, ok, e.Item)
		}
		out = append(out, n)
	}
	return out
}

var threeRatings = []named{{"1", "20", 4}, {"1", "31", 3.5}, {"7", "20", 1}}

func TestFormats(t *testing.T) {
	words := []named{{"7", "sci,fi", 1}, {"anna", "sci,fi", 4}, {"anna", `the "x"`, 3.5}}
	for name, c := range map[string]struct {
		text string
		opts Options
		want []named
	}{
		"u.data":             {"1\t20\t4\t881250949\n7\t20\t1\t881250949\n1\t31\t3.5\t5\n", Options{}, threeRatings},
		"dat":                {"1::20::4::0\n1::31::3.5::0\n7::20::1::0\n", Options{}, threeRatings},
		"dat, three fields":  {"1::20::4\n1::31::3.5\n7::20::1", Options{}, threeRatings},
		"movielens":          {"userId,movieId,rating,timestamp\n1,20,4.0,1\n1,31,3.5,1\n7,20,1.0,1\n", Options{}, threeRatings},
		"crlf":               {"userId,movieId,rating,timestamp\r\n1,20,4.0,1\r\n1,31,3.5,1\r\n7,20,1.0,1\r\n", Options{}, threeRatings},
		"crlf, three fields": {"userId,movieId,rating\r\n1,20,4.0\r\n1,31,3.5\r\n7,20,1.0\r\n", Options{}, threeRatings},
		"bom":                {"\ufeffuserId,movieId,rating\n1,20,4\n1,31,3.5\n7,20,1\n", Options{}, threeRatings},
		"bom without header": {"\ufeff1,20,4\n1,31,3.5\n7,20,1\n", Options{}, threeRatings},
		"quotes":             {"\"userId\",\"movieId\",\"rating\"\n\"1\",\"20\",\"4\"\n1,\"31\",3.5\n\"7\",20,1\n", Options{}, threeRatings},
		"blanks":             {"user, item, rating\n\n1, 20, 4\n 1 ,31 , 3.5 \n\n7,20,1\n\n", Options{}, threeRatings},
		"exponents":          {"1,20,4e0\n1,31,.35e+1\n7,20,+1\n", Options{}, threeRatings},
		"order":              {"rating;when;Movie ID;USER_ID\n4;x;20;1\n3.5;y;31;1\n1;z;20;7\n", Options{}, threeRatings},
		"typed names":        {"user_id:token\titem_id:token\trating:float\n1\t20\t4\n1\t31\t3.5\n7\t20\t1\n", Options{}, threeRatings},
		"named columns":      {"who,what,how much\n1,20,4\n1,31,3.5\n7,20,1\n", Options{Columns: Columns{"who", "what", "how much"}}, threeRatings},
		"numbered columns":   {"4,1,20\n3.5,1,31\n1,7,20\n", Options{Columns: Columns{"2", "3", "1"}}, threeRatings},
		"named by number":    {"how much,who,what\n4,1,20\n3.5,1,31\n1,7,20\n", Options{Columns: Columns{"2", "3", "1"}}, threeRatings},
		"own delimiter":      {"1~~20~~4\n1~~31~~3.5\n7~~20~~1\n", Options{Delimiter: "~~"}, threeRatings},
		"spaces":             {"1 20 4\n1 31 3.5\n7 20 1\n", Options{}, threeRatings},
		"bars":               {"1|20|4\n1|31|3.5\n7|20|1\n", Options{}, threeRatings},
		"duplicates":         {"1,20,2\n1,31,1\n7,20,1\n1,31,3.5\n1,20,5\n1,20,4\n", Options{}, threeRatings},
		"words":              {"anna,\"sci,fi\",4\nanna,\"the \"\"x\"\"\",3.5\n7,\"sci,fi\",1\n", Options{}, words},
		"words late":         {"user,item,rating\n7,\"sci,fi\",1\nanna,\"sci,fi\",4\nanna,\"the \"\"x\"\"\",3.5\n", Options{}, words},
		"large ids":          {"99999999999,1,4\n5,1,3\n", Options{}, []named{{"5", "1", 3}, {"99999999999", "1", 4}}},
		"leading zeros":      {"007,1,4\n7,1,3\n", Options{}, []named{{"007", "1", 4}, {"7", "1", 3}}},
		"zero":               {"0,0,4\n1,0,3\n", Options{}, []named{{"0", "0", 4}, {"1", "0", 3}}},
		"negative":           {"user,item,rating\n1,1,-2.25\n1,2,10\n", Options{}, []named{{"1", "1", -2.25}, {"1", "2", 10}}},
		"long decimals":      {"1,1,3.1415926535\n1,2,0.1\n1,3,1234567\n", Options{}, []named{{"1", "1", 3.1415926535}, {"1", "2", 0.1}, {"1", "3", 1234567}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, workers := range []int{1, 3} {
				c.opts.NoCache, c.opts.Workers = true, workers
				r, err := OpenFile(context.Background(), writeFile(t, "x.txt", c.text), c.opts)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, namedEntries(t, r)); diff != "" {
					t.Fatalf("with %d workers (-want +got):\n%s", workers, diff)
				}
			}
		})
	}
}

func TestDuplicatesAreReported(t *testing.T) {
	var warned []string
	r, err := OpenFile(context.Background(), writeFile(t, "x.csv", "1,20,2\n1,31,1\n1,20,5\n1,20,4\n"), Options{NoCache: true, Warn: func(s string) { warned = append(warned, s) }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Info().Duplicates != 2 || len(warned) != 1 || !strings.Contains(warned[0], "2 pairs") || cmp.Diff(warned, r.Info().Warnings) != "" {
		t.Errorf("%d duplicates, warnings %q and %q", r.Info().Duplicates, warned, r.Info().Warnings)
	}
	if v, ok := r.Value(0, 0); !ok || v != 4 {
		t.Errorf("the rating is %v, %v; the last one in the file is 4", v, ok)
	}
}

func TestBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		opts Options
		want string // of the message
	}{
		"empty":                {"", Options{}, "x.txt is empty"},
		"blank":                {"\n \n", Options{}, "x.txt has no ratings"},
		"header only":          {"userId,movieId,rating\n", Options{}, "x.txt has no ratings"},
		"no delimiter":         {"hello\n", Options{}, `x.txt:1: expected user, item and rating separated`},
		"not a number":         {"1,2,3\n1,3,good\n", Options{}, `x.txt:2: the rating "good" is not a number`},
		"nan":                  {"1,2,3\n\n1,3,NaN\n", Options{}, `x.txt:3: the rating "NaN" is not a finite number`},
		"infinite":             {"user,item,rating\n1,2,3\n1,3,-inf\n", Options{}, `x.txt:3: the rating "-inf" is not a finite number`},
		"too large":            {"1,2,3\n1,3,1e39\n", Options{}, `x.txt:2: the rating "1e39" is too large`},
		"empty rating":         {"1,2,3\n1,3,\n", Options{}, "x.txt:2: the rating is empty"},
		"empty user":           {"1,2,3\n,3,1\n", Options{}, "x.txt:2: the user id is empty"},
		"empty item":           {"1,2,3\n1,\"\",1\n", Options{}, "x.txt:2: the item id is empty"},
		"short line":           {"1,2,3\n1,2\n", Options{}, `x.txt:2: 3 fields are needed, but "1,2" has 2`},
		"cut off":              {"1::2::3::0\n1::2", Options{}, `x.txt:2: 3 fields are needed, but "1::2" has 2`},
		"junk after rating":    {"1,2,3\n1,3,3x\n", Options{}, `x.txt:2: the rating "3x" is not a number`},
		"two points":           {"1,2,3\n1,3,3.5.1\n", Options{}, `x.txt:2: the rating "3.5.1" is not a number`},
		"open quote":           {"1,2,3\n\"1,3,3\n", Options{}, "x.txt:2: the quoted field"},
		"after quote":          {"1,2,3\n\"1\"x,3,3\n", Options{}, `x.txt:2: a quoted field is followed by "x,3,3"`},
		"unknown header":       {"a,b,c\n1,2,3\n", Options{}, `x.txt:1: no column of the header "a,b,c" looks like the user`},
		"no rating column":     {"userId,movieId,tag\n1,2,3\n", Options{}, "looks like the rating"},
		"wrong column":         {"userId,movieId,rating\n1,2,3\n", Options{Columns: Columns{Rating: "stars"}}, `x.txt:1: there is no rating column "stars"`},
		"wrong number":         {"1,2,3\n", Options{Columns: Columns{Rating: "4"}}, "x.txt:1: the rating should be in field 4, but the line has 3 fields"},
		"one column twice":     {"1,2,3\n", Options{Columns: Columns{User: "2"}}, "must be different columns"},
		"outside the scale":    {"1,2,3\n1,3,6\n", Options{Scale: Scale{1, 5, 1}}, `x.txt:2: the rating "6" is outside the scale 1 to 5`},
		"binary":               {"\x00\x01\x02\n", Options{}, "not text"},
		"utf-16":               {"\xff\xfe1\x00,\x00", Options{}, "UTF-16"},
		"xz":                   {"\xfd7zXZ\x00abc", Options{}, "packed in a way that is not supported"},
		"truncated gzip":       {"\x1f\x8b\x08\x00", Options{}, "truncated or damaged"},
		"truncated zip":        {"PK\x03\x04\x14\x00", Options{}, "truncated or damaged"},
		"bad delimiter":        {"1,2,3\n", Options{Delimiter: "."}, "cannot be a delimiter"},
		"bad scale":            {"1,2,3\n", Options{Scale: Scale{5, 1, 1}}, "is empty"},
		"all lines bad":        {"1,2,x\n1,3,y\n", Options{SkipBadLines: true}, "all of its 2 lines are bad"},
		"bad before needNames": {"1,2,3\n1,2,x\nanna,2,3\n", Options{}, "x.txt:2:"},
		"bad after needNames":  {"1,2,3\nanna,2,3\n1,2,x\n", Options{}, "x.txt:3:"},
	} {
		t.Run(name, func(t *testing.T) {
			c.opts.NoCache = true
			_, err := OpenFile(context.Background(), writeFile(t, "x.txt", c.text), c.opts)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q does not say %q in one line", err, c.want)
			}
		})
	}
	if _, err := OpenFile(context.Background(), filepath.Join(t.TempDir(), "none.csv"), Options{NoCache: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gave %v", err)
	}
	if _, err := OpenFile(context.Background(), t.TempDir(), Options{NoCache: true}); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder gave %v", err)
	}
}

func TestSkipBadLines(t *testing.T) {
	path := writeFile(t, "x.csv", "user,item,rating\n1,20,4\n1,31,bad\n1,31,3.5\nshort\n7,20,1\n7,20,NaN\n")
	r, err := OpenFile(context.Background(), path, Options{NoCache: true, SkipBadLines: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(threeRatings, namedEntries(t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	i := r.Info()
	if i.SkippedLines != 3 || !strings.Contains(i.FirstSkipped, `x.csv:3: the rating "bad" is not a number`) || len(i.Warnings) != 1 {
		t.Errorf("info %+v", i)
	}
}

// TestLineNumbersAcrossChunks puts bad lines far into a file of several chunks, whose length workers do not know.
func TestLineNumbersAcrossChunks(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("userId,movieId,rating,timestamp\r\n")
	lines := 1
	for lines < 600_000 {
		fmt.Fprintf(&b, "%d,%d,3.5,1112486027\r\n", lines/100, lines%100)
		lines++
	}
	b.WriteString("1,2,many\r\n3,4,more\r\n")
	path := writeFile(t, "x.csv", b.String())
	for _, workers := range []int{1, 2, 5} {
		_, err := OpenFile(context.Background(), path, Options{NoCache: true, Workers: workers})
		if want := fmt.Sprintf("x.csv:%d: the rating \"many\"", lines+1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %d workers: error %v does not say %q", workers, err, want)
		}
		r, err := OpenFile(context.Background(), path, Options{NoCache: true, Workers: workers, SkipBadLines: true})
		if err != nil {
			t.Fatal(err)
		}
		if r.NumRatings() != lines-1 || r.Info().SkippedLines != 2 || !strings.Contains(r.Info().FirstSkipped, fmt.Sprint(lines+1)) {
			t.Errorf("with %d workers: %d ratings, info %+v", workers, r.NumRatings(), r.Info())
		}
	}
}

func TestLineTooLong(t *testing.T) {
	path := writeFile(t, "x.csv", "1,2,3\n"+strings.Repeat("x", chunkBytes+10))
	if _, err := OpenFile(context.Background(), path, Options{NoCache: true}); err == nil || !strings.Contains(err.Error(), "x.csv:2: the line is longer") {
		t.Errorf("error %v", err)
	}
}

func gzipped(t testing.TB, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstded(t testing.TB, text string) string {
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(e.EncodeAll([]byte(text), nil))
}

func zipped(t testing.TB, files ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for k := 0; k < len(files); k += 2 {
		f, err := w.Create(files[k])
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(files[k+1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPacked(t *testing.T) {
	const text = "1,20,4\n1,31,3.5\n7,20,1\n"
	const movies = "movieId,title\n20,x\n"
	for name, content := range map[string]string{
		"gzip":                   gzipped(t, text),
		"zstd":                   zstded(t, text),
		"zip":                    zipped(t, "ml-20m/", "", "ml-20m/movies.csv", movies, "ml-20m/ratings.csv", text, "ml-20m/tags.csv", movies),
		"zip of one":             zipped(t, "whatever", text),
		"zip of one in a folder": zipped(t, "a/", "", "__MACOSX/a/._whatever", "x", "a/whatever", text),
		"zip of csv":             zipped(t, "README", movies, "a/votes.csv", text, "__MACOSX/a/._votes.csv", "x"),
		"gzip in zip":            zipped(t, "README", movies, "ratings.csv.gz", gzipped(t, text)),
		"zstd in zip":            zipped(t, "a/ratings.csv.zst", zstded(t, text)),
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, "packed", content)
			r, err := OpenFile(context.Background(), path, Options{NoCache: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(threeRatings, namedEntries(t, r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want, _ := hashFile(context.Background(), path); r.Info().SHA256 != want {
				t.Errorf("digest %s, of the file %s", r.Info().SHA256, want)
			}
			// Cut anywhere, it must fail with a message, not crash or give other ratings.
			for _, n := range []int{len(content) / 3, len(content) / 2, len(content) - 1} {
				r, err := OpenFile(context.Background(), writeFile(t, "cut", content[:n]), Options{NoCache: true})
				if err == nil {
					t.Fatalf("the first %d of %d bytes gave %d ratings", n, len(content), r.NumRatings())
				}
				if !strings.Contains(err.Error(), "truncated or damaged") {
					t.Errorf("the first %d of %d bytes: %v", n, len(content), err)
				}
			}
		})
	}
	_, err := OpenFile(context.Background(), writeFile(t, "two.zip", zipped(t, "a.csv", text, "b.csv", text)), Options{NoCache: true})
	if err == nil || !strings.Contains(err.Error(), "cannot tell which member") {
		t.Errorf("an archive of two tables gave %v", err)
	}
	_, err = OpenFile(context.Background(), writeFile(t, "bad.zip", zipped(t, "ml/ratings.csv", "1,2,x\n")), Options{NoCache: true})
	if err == nil || !strings.Contains(err.Error(), "bad.zip/ml/ratings.csv:1: ") {
		t.Errorf("a bad line in an archive gave %v", err)
	}
}

func TestCancelWhileReading(t *testing.T) {
	var b bytes.Buffer
	for k := range 1_000_000 {
		fmt.Fprintf(&b, "%d,%d,3\n", k%5000, k/5000)
	}
	path := writeFile(t, "x.csv", b.String())
	cache := t.TempDir()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	var cancelled time.Time
	_, err := OpenFile(ctx, path, Options{CacheDir: cache, Progress: func(stage string, done, total int64) {
		if stage == "read" && cancelled.IsZero() {
			cancelled = time.Now()
			cancel(why)
		}
	}})
	if !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(cancelled); d > 500*time.Millisecond {
		t.Errorf("took %v to stop", d)
	}
	if files, _ := os.ReadDir(cache); len(files) != 0 {
		t.Errorf("left %v behind", files)
	}
}

func TestFitScale(t *testing.T) {
	for _, c := range []struct {
		values []float32
		want   Scale
	}{
		{[]float32{1, 5, 3}, Scale{1, 5, 1}},
		{[]float32{0.5, 5, 3}, Scale{0.5, 5, 0.5}},
		{[]float32{0.25, 1}, Scale{0.25, 1, 0.25}},
		{[]float32{0.25, 0.2}, Scale{0.2, 0.25, 0}},
		{[]float32{0.2, 0.6, -1}, Scale{-1, 0.6, 0.2}},
		{[]float32{0.1, 0.7}, Scale{0.1, 0.7, 0.1}},
		{[]float32{float32(math.Pi), 1}, Scale{1, math.Pi, 0}},
		{[]float32{1, 1}, Scale{1, 1, 0}},
		{[]float32{0, 0}, Scale{}},
	} {
		if got := fitScale(c.values); got != c.want {
			t.Errorf("scale of %v is %v, want %v", c.values, got, c.want)
		}
	}
}
