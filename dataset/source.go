package dataset

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// textSource is the text inside a file, unpacked if need be.
type textSource struct {
	io.Reader
	name  string // for messages: the file, and the member of an archive
	size  int64  // bytes of text; 0 if unknown
	plain bool   // the text is the file itself
	close []func() error
}

func (s *textSource) Close() error {
	var err error
	for k := len(s.close) - 1; k >= 0; k-- {
		err = errors.Join(err, s.close[k]())
	}
	return err
}

// Signatures of packed files.
const (
	zipMagic   = "PK\x03\x04"
	zipEmpty   = "PK\x05\x06"
	gzipMagic  = "\x1f\x8b"
	zstdMagic  = "\x28\xb5\x2f\xfd"
	bzip2Magic = "BZh"
	xzMagic    = "\xfd7zXZ\x00"
	sevenMagic = "7z\xbc\xaf\x27\x1c"
)

// openText opens the file at name and unpacks it as its first bytes demand.
func openText(name string) (_ *textSource, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	s := &textSource{Reader: f, name: name, plain: true, close: []func() error{f.Close}}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	st, err := f.Stat()
	if err != nil {
		return nil, fileError(name, err)
	}
	if st.IsDir() {
		return nil, fmt.Errorf("dataset: %s is a folder, not a file of ratings", name)
	}
	s.size = st.Size()
	if st.Mode().IsRegular() && s.size == 0 {
		return nil, fmt.Errorf("dataset: %s is empty", name)
	}
	var magic [6]byte
	n, err := io.ReadFull(f, magic[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fileError(name, err)
	}
	head := string(magic[:n])
	if strings.HasPrefix(head, zipMagic) || strings.HasPrefix(head, zipEmpty) {
		if err = s.openZip(f, name); err != nil {
			return nil, err
		}
	} else if _, err = f.Seek(0, io.SeekStart); err != nil {
		return nil, fileError(name, err)
	}
	if s.plain && !packed(head) {
		return s, nil // read without another layer of buffering
	}
	// A packed file may hold another: ratings.csv.gz in a zip archive, say.
	for range 3 {
		b := bufio.NewReaderSize(s.Reader, 1<<16)
		s.Reader = b
		peek, _ := b.Peek(6)
		head := string(peek)
		switch {
		case strings.HasPrefix(head, gzipMagic):
			z, err := gzip.NewReader(b)
			if err != nil {
				return nil, packedError(s.name, err)
			}
			s.Reader, s.size, s.plain = z, 0, false
			s.close = append(s.close, z.Close)
		case strings.HasPrefix(head, zstdMagic):
			z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
			if err != nil {
				return nil, packedError(s.name, err)
			}
			s.Reader, s.size, s.plain = z, 0, false
			s.close = append(s.close, func() error { z.Close(); return nil })
		case packed(head):
			return nil, fmt.Errorf("dataset: %s is packed in a way that is not supported (zip, gzip and zstd are); unpack it first", s.name)
		default:
			return s, nil
		}
	}
	return nil, fmt.Errorf("dataset: %s is packed more than three times", s.name)
}

func packed(head string) bool {
	for _, magic := range []string{zipMagic, zipEmpty, gzipMagic, zstdMagic, bzip2Magic, xzMagic, sevenMagic} {
		if strings.HasPrefix(head, magic) {
			return true
		}
	}
	return false
}

// openZip turns s into the member of the archive that holds the ratings.
func (s *textSource) openZip(f *os.File, name string) error {
	z, err := zip.NewReader(f, s.size)
	if err != nil {
		return packedError(name, err)
	}
	z.RegisterDecompressor(zip.Deflate, flate.NewReader)
	member, err := ratingsMember(z, name)
	if err != nil {
		return err
	}
	r, err := member.Open()
	if err != nil {
		return packedError(name, err)
	}
	s.Reader, s.plain = r, false
	s.name = name + "/" + member.Name
	s.size = int64(member.UncompressedSize64)
	s.close = append(s.close, r.Close)
	return nil
}

// ratingsFiles are the names under which MovieLens and others publish the ratings, the preferred one first.
var ratingsFiles = []string{"ratings.csv", "ratings.dat", "u.data", "ratings.tsv", "ratings.txt", "vote.txt"}

func ratingsMember(z *zip.Reader, name string) (*zip.File, error) {
	var tables []*zip.File
	var all []string
	var first *zip.File
	for _, f := range z.File {
		base := path.Base(f.Name)
		// Archives made on a Mac carry a shadow "._x" of every file.
		if f.FileInfo().IsDir() || strings.HasPrefix(base, "._") || strings.HasPrefix(f.Name, "__MACOSX/") {
			continue
		}
		if all = append(all, f.Name); first == nil {
			first = f
		}
		switch path.Ext(strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".zst")) {
		case ".csv", ".tsv", ".dat", ".data", ".inter":
			tables = append(tables, f)
		}
	}
	for _, want := range ratingsFiles {
		for _, f := range z.File {
			base := strings.ToLower(path.Base(f.Name))
			if base == want || base == want+".gz" || base == want+".zst" {
				return f, nil
			}
		}
	}
	switch {
	case len(tables) == 1:
		return tables[0], nil
	case len(all) == 1:
		return first, nil
	case len(all) == 0:
		return nil, fmt.Errorf("dataset: the archive %s is empty", name)
	}
	if len(all) > 8 {
		all = append(all[:8], "…")
	}
	return nil, fmt.Errorf("dataset: cannot tell which member of %s holds the ratings: %s", name, strings.Join(all, ", "))
}

// fileError says in words what went wrong with a file.
func fileError(name string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("dataset: cannot read %s: %w", name, err)
}

// packedError reports damage to a packed file.
func packedError(name string, err error) error {
	return fmt.Errorf("dataset: %s is truncated or damaged: %w", name, err)
}

// trimBOM takes the byte order mark off the start of a text.
func trimBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte(bom)) }
