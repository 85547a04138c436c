package dataset

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"
)

// writeMovieLens writes ratings.csv of a MovieLens set: header, ids from 1, CRLF as in the small sets or LF.
func writeMovieLens(t testing.TB, path string, r *Ratings, eol string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	w.WriteString("userId,movieId,rating,timestamp" + eol)
	var line []byte
	for u := range r.NumUsers() {
		items, vals := r.User(u)
		for k, i := range items {
			line = strconv.AppendInt(line[:0], int64(u)+1, 10)
			line = append(line, ',')
			line = strconv.AppendInt(line, movieID(i), 10)
			line = append(line, ',')
			line = strconv.AppendFloat(line, float64(vals[k]), 'f', 1, 32)
			line = append(line, ",1112486027"...)
			w.Write(append(line, eol...))
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// movieID has gaps, like the ids of MovieLens, and runs up to about 131,000 for ML-20M.
func movieID(i int32) int64 { return int64(i)*4 + int64(i)*int64(i)%7 + 1 }

// bigCSV makes a file of the shape of ML-20M, or of a tenth of it with -short.
func bigCSV(b *testing.B) string {
	shape, _ := OfficialShape("ml20m")
	if testing.Short() {
		shape.Users, shape.Ratings = shape.Users/10, shape.Ratings/10
	}
	r, err := Synthetic(context.Background(), shape, 1, Options{})
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "ratings.csv")
	writeMovieLens(b, path, r, "\n")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkReadCSV reports megabytes of the plain file per second and core in the best run, through parsing, digest
// and both halves of the matrix, and the most memory the process held at any moment. The lines are sorted by user, as
// in MovieLens, or by item, so that all of them have to be moved.
func BenchmarkReadCSV(b *testing.B) {
	b.Run("by user", func(b *testing.B) { benchmarkRead(b, bigCSV(b)) })
	b.Run("by item", func(b *testing.B) {
		path := bigCSV(b)
		r := mustOpen(b, path, Options{NoCache: true})
		flipped := &Ratings{users: r.items, items: r.users, userPtr: r.itemPtr, rowItem: r.colUser, rowVal: r.colVal}
		writeMovieLens(b, path, flipped, "\n")
		text := []byte("movieId,userId,rating")
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.WriteAt(text, 0); err != nil {
			b.Fatal(err)
		}
		f.Close()
		benchmarkRead(b, path)
	})
}

func benchmarkRead(b *testing.B, path string) {
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	debug.FreeOSMemory()
	b.SetBytes(st.Size())
	b.ResetTimer()
	peak := watchMemory()
	best := time.Duration(1 << 62)
	for b.Loop() {
		start := time.Now()
		if _, err := OpenFile(context.Background(), path, Options{NoCache: true}); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
		runtime.GC()
	}
	b.ReportMetric(float64(peak())/1e6, "MB-peak")
	b.ReportMetric(float64(st.Size())/1e6/best.Seconds()/float64(runtime.GOMAXPROCS(0)), "MB/s/core-best")
}

// watchMemory samples what the Go runtime holds from the system until the returned function is called.
func watchMemory() func() uint64 {
	stop, result := make(chan struct{}), make(chan uint64)
	go func() {
		s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		most := uint64(0)
		for {
			metrics.Read(s)
			most = max(most, s[0].Value.Uint64()-s[1].Value.Uint64())
			select {
			case <-stop:
				result <- most
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(stop); return <-result }
}
