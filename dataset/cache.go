package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	mmap "github.com/edsrzf/mmap-go"
)

// mapping is a file mapped read-only into memory.
type mapping struct{ data mmap.MMap }

func (m *mapping) unmap() error { return m.data.Unmap() }

// freshness is how long before the digest was taken a file must have been modified for its size and modification
// time to prove that it has not changed since: file systems keep times as coarsely as two seconds.
const freshness = int64(2 * time.Second)

// cacheDir is the folder for caches and downloads, or an error that says why there is none.
func (o *Options) cacheDir() (string, error) {
	if o.CacheDir != "" {
		return o.CacheDir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "dpmf"), nil
}

// CheckCache reports why the cache folder cannot be written, or nil; it makes the folder if it is not there. Opening a
// data set does not need it to succeed: without a cache it only warns and takes longer.
func (o *Options) CheckCache() error {
	if o.NoCache {
		return nil
	}
	dir, err := o.cacheDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".writable.*.tmp")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// cacheKey tells apart matrices made from one file in different ways.
func cacheKey(opts *Options, scale Scale) string {
	return fmt.Sprintf("columns=%q,%q,%q delimiter=%q scale=%v skip=%v", opts.Columns.User, opts.Columns.Item, opts.Columns.Rating, opts.Delimiter, scale, opts.SkipBadLines)
}

// cachePath is where the cache of a source belongs.
func cachePath(dir, source, key string) string {
	sum := sha256.Sum256([]byte(source + "\x00" + key))
	return filepath.Join(dir, filepath.Base(source)+"-"+hex.EncodeToString(sum[:6])+".dpmf")
}

// cached opens the cache of a matrix, or makes the matrix and then the cache. source is the file it is made from, or ""
// for generated data, which never change under one key. Trouble with the cache is only worth a warning.
func cached(ctx context.Context, opts *Options, notes *notices, source, name, key string, produce func() (*Ratings, error)) (*Ratings, error) {
	if opts.NoCache {
		return produce()
	}
	dir, err := opts.cacheDir()
	if err != nil {
		notes.add("working without a cache: %v", err)
		return produce()
	}
	id := name
	if source != "" {
		if id, err = filepath.Abs(source); err != nil {
			id = source
		}
	}
	path := cachePath(dir, id, key)
	r, err := openCache(ctx, opts, path, source, key)
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errStale):
	default:
		notes.add("the cache %s cannot be used and is made anew: %v", path, err)
	}
	var before os.FileInfo
	if source != "" {
		if before, err = os.Stat(source); err != nil {
			return nil, fileError(source, err)
		}
	}
	started := time.Now()
	if r, err = produce(); err != nil {
		return nil, err
	}
	src := cacheSource{size: -1}
	if before != nil {
		if !before.Mode().IsRegular() {
			return r, nil // a pipe cannot be read again to see whether it has changed
		}
		src = cacheSource{size: before.Size(), mtime: before.ModTime().UnixNano(), verified: started.UnixNano()}
	}
	sum, err := hex.DecodeString(r.info.SHA256)
	if err != nil || len(sum) != len(src.sha) {
		return r, nil
	}
	copy(src.sha[:], sum)
	if err := storeCache(ctx, path, r, src, key, opts.Progress); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		switch {
		case errors.Is(err, syscall.ENOSPC):
			notes.add("working without a cache: the disk of %s is full", dir)
		default:
			notes.add("working without a cache: %v", err)
		}
	}
	return r, nil
}

var errStale = errors.New("the source has changed since")

// openCache maps the cache at path if it belongs to the present state of its source.
func openCache(ctx context.Context, opts *Options, path, source, key string) (_ *Ratings, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() < cacheHeader || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("it has only %d bytes", st.Size())
	}
	data, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, data.Unmap())
		}
	}()
	r, src, gotKey, err := decodeCache(ctx, data, opts.workers())
	if err != nil {
		return nil, err
	}
	if gotKey != key {
		return nil, errStale
	}
	if source != "" {
		now, err := os.Stat(source)
		if err != nil {
			return nil, fileError(source, err)
		}
		if now.Size() != src.size {
			return nil, errStale
		}
		mtime := now.ModTime().UnixNano()
		if mtime != src.mtime || src.verified-src.mtime < freshness {
			// Of the same size, but perhaps rewritten: only the digest can tell.
			started := time.Now().UnixNano()
			digest, err := hashFile(ctx, source)
			if err != nil {
				return nil, err
			}
			if digest != hex.EncodeToString(src.sha[:]) {
				return nil, errStale
			}
			src.mtime, src.verified = mtime, started
			// If the folder is read-only the digest is simply taken again next time.
			_ = touchCache(path, data, src)
		}
		r.info.Source = source
	}
	r.info.FromCache = true
	r.mapping = &mapping{data}
	return r, nil
}

// storeCache writes the cache under a temporary name and renames it. The file is not synced: if the machine fails
// before it is on disk, its checksums give it away.
func storeCache(ctx context.Context, path string, r *Ratings, src cacheSource, key string, progress func(string, int64, int64)) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	report := func(done, total int64) {
		if progress != nil {
			progress("cache", done, total)
		}
	}
	if err := writeCache(ctx, f, r, src, key, report); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
