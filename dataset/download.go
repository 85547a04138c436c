package dataset

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// stallTimeout is how long a download may bring nothing before it is given up.
const stallTimeout = 30 * time.Second

// newClient gives up within seconds where there is no network.
func newClient() *http.Client {
	dialer := &net.Dialer{Timeout: 3 * time.Second}
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 20 * time.Second,
		ForceAttemptHTTP2:     true,
	}}
}

// errMismatch is a complete download with the wrong content.
var errMismatch = errors.New("the content is wrong")

// download fetches an archive into dir and returns its path. The bytes go to a file ending in ".part", which a later
// call continues; once it is complete and has the published digest it is renamed.
func download(ctx context.Context, opts *Options, a archive, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", plainError(err)
	}
	final := filepath.Join(dir, a.name)
	part, cleanup, err := openPart(final + ".part")
	if err != nil {
		return "", plainError(err)
	}
	defer cleanup()
	defer part.Close()
	d := &transfer{archive: a, client: opts.HTTPClient, file: part, progress: opts.Progress, url: opts.BaseURL + a.name}
	if opts.BaseURL == "" {
		d.url = groupLens + a.name
	}
	if d.client == nil {
		d.client = newClient()
	}
	resumed, err := d.run(ctx)
	if errors.Is(err, errMismatch) && resumed {
		// The part may have come from another version of the file: once more, from the beginning.
		if err = part.Truncate(0); err == nil {
			_, err = d.run(ctx)
		}
	}
	if err != nil {
		// What has arrived is worth keeping, unless it is wrong or the disk is needed.
		if errors.Is(err, errMismatch) || errors.Is(err, syscall.ENOSPC) {
			os.Remove(part.Name())
		} else if st, e := part.Stat(); e == nil && st.Size() == 0 {
			os.Remove(part.Name())
		}
		return "", plainError(err)
	}
	if err := part.Sync(); err != nil {
		return "", plainError(err)
	}
	if err := os.Rename(part.Name(), final); err != nil {
		return "", plainError(err)
	}
	return final, nil
}

// openPart opens the file that a download goes to. If another process is busy with it, the download gets a file of its
// own, which nobody will continue.
func openPart(path string) (f *os.File, cleanup func(), err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	if lockFile(f) {
		// The file may have been completed and renamed between opening and locking it.
		mine, err1 := f.Stat()
		there, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return f, func() {}, nil // closing the file unlocks it
		}
	}
	f.Close()
	f, err = os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return nil, nil, err
	}
	return f, func() { os.Remove(f.Name()) }, nil
}

// transfer brings one archive into a file.
type transfer struct {
	archive
	client   *http.Client
	url      string
	file     *os.File
	progress func(stage string, done, total int64)
}

// run continues the file to its end and checks it. resumed tells whether it had begun before.
func (d *transfer) run(ctx context.Context) (resumed bool, err error) {
	h, err := d.digest()
	if err != nil {
		return false, err
	}
	have, err := d.rehash(ctx, h)
	if err != nil {
		return false, err
	}
	if d.size > 0 && have > d.size {
		if err := d.file.Truncate(0); err != nil {
			return false, err
		}
		h.Reset()
		have = 0
	}
	resumed = have > 0
	if d.size == 0 || have < d.size {
		if have, err = d.fetch(ctx, h, have); err != nil {
			return resumed, err
		}
	}
	if d.size > 0 && have != d.size {
		return resumed, d.mismatch("has %d bytes instead of %d", have, d.size)
	}
	want := d.sha256
	if want == "" {
		want = d.md5
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return resumed, d.mismatch("has the digest %s instead of %s", got, want)
	}
	return resumed, nil
}

func (d *transfer) mismatch(format string, args ...any) error {
	hint := "try again, or bring it another way and name its folder with --data"
	if d.refreshed {
		hint = "GroupLens refreshes this set now and then; bring it another way and name its folder with --data"
	}
	return fmt.Errorf("%w: %s %s and was thrown away; %s", errMismatch, d.url, fmt.Sprintf(format, args...), hint)
}

func (d *transfer) digest() (hash.Hash, error) {
	switch {
	case d.sha256 != "":
		return sha256.New(), nil
	case d.md5 != "":
		return md5.New(), nil // the publisher gives nothing better
	}
	return nil, fmt.Errorf("no digest of %s is known", d.name)
}

// rehash digests what the file holds already and returns its length.
func (d *transfer) rehash(ctx context.Context, h hash.Hash) (int64, error) {
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return copyChunks(ctx, h, d.file, nil)
}

// fetch appends the rest of the archive and returns the length of the file.
func (d *transfer) fetch(ctx context.Context, h hash.Hash, have int64) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return have, err
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return have, err
	}
	defer resp.Body.Close()
	total := d.size
	switch resp.StatusCode {
	case http.StatusPartialContent:
		from := int64(-1)
		fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &from)
		if from != have {
			return have, fmt.Errorf("%s answered with another range (%q) than asked for", d.url, resp.Header.Get("Content-Range"))
		}
		if total == 0 && resp.ContentLength >= 0 {
			total = have + resp.ContentLength
		}
	case http.StatusOK:
		// From the beginning: either nothing was there, or the server does not continue downloads.
		if err := d.file.Truncate(0); err != nil {
			return have, err
		}
		h.Reset()
		have = 0
		if total == 0 {
			total = max(resp.ContentLength, 0)
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return have, nil // there is no more; the digest will tell whether it is the file
	default:
		return have, fmt.Errorf("%s answered %s", d.url, resp.Status)
	}
	if _, err := d.file.Seek(have, io.SeekStart); err != nil {
		return have, err
	}
	stall := time.AfterFunc(stallTimeout, func() {
		cancel(fmt.Errorf("%s sent nothing for %v", d.url, stallTimeout))
	})
	defer stall.Stop()
	n, err := copyChunks(ctx, io.MultiWriter(d.file, h), resp.Body, func(n int64) {
		stall.Reset(stallTimeout)
		if d.progress != nil {
			d.progress("download", have+n, total)
		}
	})
	have += n
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || (err == nil && d.size > 0 && have < d.size) {
		err = fmt.Errorf("the connection to %s ended after %d of %d bytes; the next try will continue there", d.url, have, total)
	}
	return have, err
}

// copyChunks copies until the end, telling how far it is, and stops between pieces when ctx is cancelled.
func copyChunks(ctx context.Context, to io.Writer, from io.Reader, report func(done int64)) (int64, error) {
	buf := make([]byte, 256<<10)
	done := int64(0)
	for {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return done, err
			}
			done += int64(n)
			if report != nil {
				report(done)
			}
		}
		if err == io.EOF {
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
}

// plainError puts what can go wrong with a download into words.
func plainError(err error) error {
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var verification *tls.CertificateVerificationError
	var op *net.OpError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the server's certificate has expired, so it cannot be told from an impostor; bring the archive another way and name its folder with --data: %w", err)
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &host), errors.As(err, &verification):
		return fmt.Errorf("the server's certificate is not valid, so it cannot be told from an impostor; bring the archive another way and name its folder with --data: %w", err)
	case errors.As(err, &dns):
		return fmt.Errorf("there seems to be no network (the name %s is not found)", dns.Name)
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("there seems to be no network (%v)", op.Err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk is full: %w", err)
	}
	return err
}
