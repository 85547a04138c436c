package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// outputFile is a file that will hold results. It is opened, and shown to accept data, before the long work; a
// regular file appears under its name only when it is complete. Devices and pipes are written directly.
type outputFile struct {
	flag   string // that named it, for messages
	path   string
	file   *os.File
	rename bool
}

// openOutput prepares an output file; an empty path gives nil.
func openOutput(flag, path string) (*outputFile, error) {
	if path == "" {
		return nil, nil
	}
	o := &outputFile{flag: flag, path: path}
	if err := o.open(); err != nil {
		return nil, o.wrap(err)
	}
	if err := o.probe(); err != nil {
		o.discard()
		return nil, o.wrap(err)
	}
	return o, nil
}

func (o *outputFile) open() error {
	info, err := os.Stat(o.path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("it is a folder")
	case err == nil && !info.Mode().IsRegular():
		o.file, err = os.OpenFile(o.path, os.O_WRONLY, 0)
		return err
	case err == nil:
		// Replace the file that a link points to, not the link.
		if o.path, err = filepath.EvalSymlinks(o.path); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	o.rename = true
	o.file, err = os.CreateTemp(filepath.Dir(o.path), "."+filepath.Base(o.path)+".*.tmp")
	return err
}

// probeBytes is more than any report takes.
const probeBytes = 1 << 20

// probe finds out whether there is room. White space may precede both JSON and HTML.
func (o *outputFile) probe() error {
	if !o.rename {
		_, err := o.file.WriteString("\n")
		return err
	}
	if _, err := o.file.Write(make([]byte, probeBytes)); err != nil {
		return err
	}
	if err := o.file.Sync(); err != nil {
		return err
	}
	if err := o.file.Truncate(0); err != nil {
		return err
	}
	_, err := o.file.Seek(0, io.SeekStart)
	return err
}

// write completes the file with what render produces.
func (o *outputFile) write(render func(io.Writer) error) error {
	if o == nil {
		return nil
	}
	err := render(o.file)
	if o.rename && err == nil {
		err = errors.Join(o.file.Chmod(0o644), o.file.Sync())
	}
	name := o.file.Name()
	err = errors.Join(err, o.file.Close())
	o.file = nil
	if o.rename {
		if err == nil {
			err = os.Rename(name, o.path)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}
	if err != nil {
		return o.wrap(err)
	}
	return nil
}

// discard leaves nothing behind. It does nothing after write.
func (o *outputFile) discard() {
	if o == nil || o.file == nil {
		return
	}
	name := o.file.Name()
	o.file.Close()
	o.file = nil
	if o.rename {
		os.Remove(name)
	}
}

// wrap says which file, and why, without the temporary name.
func (o *outputFile) wrap(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("--%s: cannot write %s: %w", o.flag, o.path, err)
}

// stickyWriter remembers the first error, so that tables can be printed without looking at each call.
type stickyWriter struct {
	w   io.Writer
	err error
}

func (s *stickyWriter) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	if err != nil {
		s.err = fmt.Errorf("cannot write to standard output: %w", err)
	}
	return n, s.err
}
