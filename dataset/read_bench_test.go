package dataset

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"runtime"
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

// BenchmarkReadCSV reports megabytes of the plain file per second and core, through parsing, digest and both halves
// of the matrix, and the most memory the process held at any moment.
func BenchmarkReadCSV(b *testing.B) {
	path := bigCSV(b)
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	b.SetBytes(st.Size())
	b.ResetTimer()
	peak := watchMemory()
	for b.Loop() {
		if _, err := OpenFile(context.Background(), path, Options{NoCache: true}); err != nil {
			b.Fatal(err)
		}
		runtime.GC()
	}
	b.ReportMetric(float64(peak())/1e6, "MB-peak")
	cores := float64(runtime.GOMAXPROCS(0))
	b.ReportMetric(float64(st.Size())*float64(b.N)/1e6/b.Elapsed().Seconds()/cores, "MB/s/core")
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
