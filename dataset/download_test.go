package dataset

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// content is an incompressible body of n bytes.
func content(n int) []byte {
	s := newStream(1, 99, 0)
	b := make([]byte, n)
	for k := range b {
		b[k] = byte(s.next())
	}
	return b
}

func archiveOf(b []byte) archive {
	sum := sha256.Sum256(b)
	return archive{name: "set.zip", size: int64(len(b)), sha256: hex.EncodeToString(sum[:])}
}

// serve answers requests for set.zip and records their Range headers.
func serve(t *testing.T, h http.HandlerFunc) (opts *Options, ranges *[]string) {
	ranges = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ml/set.zip" {
			http.NotFound(w, r)
			return
		}
		*ranges = append(*ranges, r.Header.Get("Range"))
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return &Options{BaseURL: s.URL + "/ml/"}, ranges
}

// file serves b with all that http.ServeContent knows about ranges.
func file(b []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "set.zip", time.Time{}, strings.NewReader(string(b)))
	}
}

func checkDownloaded(t *testing.T, path string, err error, want []byte) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != string(want) {
		t.Fatalf("the file has %d bytes, want %d: %v", len(got), len(want), err)
	}
	if path != onlyFile(t, filepath.Dir(path)) {
		t.Errorf("the folder holds more than %s", path)
	}
}

func TestDownload(t *testing.T) {
	ctx, body := context.Background(), content(1<<20)
	sum := md5.Sum(body)
	for name, a := range map[string]archive{
		"sha256":   archiveOf(body),
		"md5 only": {name: "set.zip", md5: hex.EncodeToString(sum[:])},
	} {
		t.Run(name, func(t *testing.T) {
			opts, _ := serve(t, file(body))
			var last, total int64
			opts.Progress = func(stage string, done, of int64) {
				if stage != "download" || done < last {
					t.Errorf("progress %q %d after %d", stage, done, last)
				}
				last, total = done, of
			}
			dir := filepath.Join(t.TempDir(), "new", "folder")
			path, err := download(ctx, opts, a, dir)
			checkDownloaded(t, path, err, body)
			if last != int64(len(body)) || total != last {
				t.Errorf("progress ended at %d of %d", last, total)
			}
		})
	}
}

func TestDownloadResumes(t *testing.T) {
	ctx, body := context.Background(), content(1<<20)
	sum := md5.Sum(body)
	for name, c := range map[string]struct {
		part    []byte
		archive archive
		handler http.HandlerFunc
		ranges  []string
	}{
		"in the middle":  {body[:300_000], archiveOf(body), file(body), []string{"bytes=300000-"}},
		"complete":       {body, archiveOf(body), file(body), nil},
		"size unknown":   {body[:5], archive{name: "set.zip", md5: hex.EncodeToString(sum[:])}, file(body), []string{"bytes=5-"}},
		"all, no size":   {body, archive{name: "set.zip", md5: hex.EncodeToString(sum[:])}, file(body), []string{fmt.Sprintf("bytes=%d-", len(body))}},
		"too long":       {append(body[:len(body):len(body)], 1), archiveOf(body), file(body), []string{""}},
		"another file":   {content(2 << 20)[1<<20 : 1<<20+1000], archiveOf(body), file(body), []string{"bytes=1000-", ""}},
		"without ranges": {body[:300_000], archiveOf(body), func(w http.ResponseWriter, r *http.Request) { w.Write(body) }, []string{"bytes=300000-"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts, ranges := serve(t, c.handler)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "set.zip.part"), c.part, 0o666); err != nil {
				t.Fatal(err)
			}
			path, err := download(ctx, opts, c.archive, dir)
			checkDownloaded(t, path, err, body)
			if strings.Join(*ranges, " ") != strings.Join(c.ranges, " ") {
				t.Errorf("asked for %q, want %q", *ranges, c.ranges)
			}
		})
	}
}

func TestDownloadFailures(t *testing.T) {
	body := content(1 << 20)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
		kept    int // bytes of the part that stay for the next try; 0: no part
	}{
		"wrong content": {file(append([]byte{body[0] ^ 1}, body[1:]...)), "has the digest", 0},
		"too short":     {file(body[:1000]), "ended after 1000 of 1048576 bytes", 1000},
		"cut off": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.Write(body[:70_000])
		}, "ended after 70000 of 1048576 bytes", 70_000},
		"not there":    {http.NotFound, "answered 404", 0},
		"server error": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }, "answered 503", 0},
	} {
		t.Run(name, func(t *testing.T) {
			opts, _ := serve(t, c.handler)
			dir := t.TempDir()
			_, err := download(context.Background(), opts, archiveOf(body), dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v does not say %q in one line", err, c.want)
			}
			files, _ := os.ReadDir(dir)
			if c.kept == 0 {
				if len(files) != 0 {
					t.Errorf("left %v behind", files)
				}
				return
			}
			if st, err := os.Stat(filepath.Join(dir, "set.zip.part")); err != nil || len(files) != 1 || st.Size() != int64(c.kept) {
				t.Errorf("the folder holds %v, want a part of %d bytes: %v", files, c.kept, err)
			}
			// The next try goes on from there.
			opts, _ = serve(t, file(body))
			path, err := download(context.Background(), opts, archiveOf(body), dir)
			checkDownloaded(t, path, err, body)
		})
	}
}

func TestDownloadCancel(t *testing.T) {
	body := content(1 << 20)
	release := make(chan struct{})
	opts, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write(body[:100_000])
		w.(http.Flusher).Flush()
		<-release
	})
	t.Cleanup(func() { close(release) }) // before the server closes, which waits for the handler
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	var at atomic.Int64
	opts.Progress = func(_ string, done, _ int64) {
		if done == 100_000 {
			at.Store(time.Now().UnixNano())
			cancel(why)
		}
	}
	dir := t.TempDir()
	_, err := download(ctx, opts, archiveOf(body), dir)
	if !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(time.Unix(0, at.Load())); d > 500*time.Millisecond {
		t.Errorf("took %v to stop", d)
	}
	if st, err := os.Stat(filepath.Join(dir, "set.zip.part")); err != nil || st.Size() != 100_000 {
		t.Errorf("what had arrived is not there: %v", err)
	}
}

func TestDownloadsAtTheSameTime(t *testing.T) {
	body := content(1 << 20)
	opts, _ := serve(t, file(body))
	dir := t.TempDir()
	busy, cleanup, err := openPart(filepath.Join(dir, "set.zip.part"))
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()
	if _, err := download(context.Background(), opts, archiveOf(body), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := busy.WriteAt([]byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	busy.Close()
	if got, _ := os.ReadFile(filepath.Join(dir, "set.zip")); string(got) != string(body) {
		t.Error("the other download spoiled the file")
	}
}

func TestCertificateIsExplained(t *testing.T) {
	s := httptest.NewUnstartedServer(file(nil))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it will report the handshake that we refuse
	s.StartTLS()
	defer s.Close()
	_, err := download(context.Background(), &Options{BaseURL: s.URL + "/"}, archiveOf(content(10)), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "certificate is not valid") || !strings.Contains(err.Error(), "--data") {
		t.Errorf("error %v", err)
	}
}

func TestNoNetworkFailsFast(t *testing.T) {
	// Nobody listens on a port just closed.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	start := time.Now()
	_, err = download(context.Background(), &Options{BaseURL: "http://" + l.Addr().String() + "/"}, archiveOf(content(10)), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no network") {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > 4*time.Second {
		t.Errorf("took %v", d)
	}
}
