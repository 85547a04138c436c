package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Open returns a data set by name, or reads the file or folder at a path.
//
// The names are those of Names, in any case and with or without hyphens: "ml100k", "ml1m", "ml10m", "ml20m", "ml25m",
// "ml32m", "mllatest-small", "eachmovie". A named set is looked for in Options.Dir, the folder in $DPMF_DATA and the
// cache folder, in this order; if it is in none of them it is downloaded, and if that is forbidden or fails a
// synthetic set of the same shape takes its place, with Info.Synthetic set and the reason among the warnings.
// Options.RealOnly makes that last step an error.
//
// Cancelling ctx stops any stage within about 100 ms with its cause; a partial download is kept for the next time.
func Open(ctx context.Context, name string, opts Options) (*Ratings, error) {
	notes := &notices{warn: opts.Warn}
	r, err := open(ctx, name, &opts, notes)
	if err != nil {
		return nil, err
	}
	r.info.Warnings = notes.list
	return r, nil
}

// OpenFile reads one file of ratings: tab-separated u.data, "::"-separated .dat, CSV of MovieLens, or any text of
// user, item and rating columns, plain or in .zip, .gz or .zst. The form is found by content. Ids may be of any kind.
// Ratings must be finite, and of several for the same user and item the last one wins.
//
// A line that cannot be read is an error that names file and line, or is counted if Options.SkipBadLines is set. The matrix
// is kept in the binary cache and reopened from there as long as the file does not change.
func OpenFile(ctx context.Context, path string, opts Options) (*Ratings, error) {
	notes := &notices{warn: opts.Warn}
	r, err := openFile(ctx, path, &opts, notes, opts.Scale)
	if err != nil {
		return nil, err
	}
	r.info.Warnings = notes.list
	return r, nil
}

func open(ctx context.Context, name string, opts *Options, notes *notices) (*Ratings, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	s, known := lookupSet(name)
	if !known {
		st, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("dataset: there is neither a data set nor a file called %q; the data sets are %s", name, strings.Join(Names(), ", "))
		case err != nil:
			return nil, fileError(name, err)
		case st.IsDir():
			file, err := ratingsIn(name)
			if err != nil {
				return nil, err
			}
			return openFile(ctx, file, opts, notes, opts.Scale)
		}
		return openFile(ctx, name, opts, notes, opts.Scale)
	}
	path, err := s.locate(ctx, opts, notes)
	if err != nil {
		return nil, err
	}
	if path == "" {
		if opts.RealOnly {
			return nil, fmt.Errorf("dataset: %s is not available (%s); only real data were asked for", s.title, strings.Join(notes.list, "; "))
		}
		return s.standIn(ctx, opts, notes)
	}
	shape := shapes[s.key]
	scale := opts.Scale
	if scale == (Scale{}) {
		scale = shape.Scale
	}
	r, err := openFile(ctx, path, opts, notes, scale)
	if err != nil {
		return nil, err
	}
	if r.users == shape.Users && r.items == shape.Items && r.NumRatings() == shape.Ratings {
		r.info.Name = setName(s.key)
	} else {
		// Never let a result carry the name of a set it was not measured on.
		notes.add("%s is not %s as published: it has %d users, %d items and %d ratings instead of %d, %d and %d, and is called %s", path, s.title,
			r.users, r.items, r.NumRatings(), shape.Users, shape.Items, shape.Ratings, r.info.Name)
	}
	return r, nil
}

// check reports options that contradict themselves.
func (o *Options) check() error {
	if strings.ContainsAny(o.Delimiter, "0123456789.\"\r\n") {
		return fmt.Errorf("dataset: %q cannot be a delimiter; digits, points, quotes and line ends cannot occur in one", o.Delimiter)
	}
	if o.Scale != (Scale{}) && (!(o.Scale.Min < o.Scale.Max) || !(o.Scale.Step >= 0)) {
		return fmt.Errorf("dataset: the scale %v to %v in steps of %v is empty", o.Scale.Min, o.Scale.Max, o.Scale.Step)
	}
	return nil
}

// locate finds the file of a set or downloads it. The path is empty if there is none, with the reasons among the notes.
func (s set) locate(ctx context.Context, opts *Options, notes *notices) (string, error) {
	if opts.Dir != "" {
		st, err := os.Stat(opts.Dir)
		if err != nil {
			return "", fileError(opts.Dir, err)
		}
		if !st.IsDir() {
			return opts.Dir, nil
		}
		if path, ok := s.find(opts.Dir, true); ok {
			return path, nil
		}
		notes.add("%s is not in the folder %s", s.title, opts.Dir)
	}
	if dir := os.Getenv("DPMF_DATA"); dir != "" {
		if path, ok := s.find(dir, true); ok {
			return path, nil
		}
		notes.add("%s is not in the folder %s that DPMF_DATA names", s.title, dir)
	}
	dir, err := opts.cacheDir()
	if err != nil {
		notes.add("there is no folder for downloads: %v", err)
		return "", nil
	}
	if path, ok := s.find(dir, false); ok {
		return path, nil
	}
	switch {
	case s.archive.name == "":
		notes.add("%s cannot be downloaded any more", s.title)
		return "", nil
	case opts.Offline:
		notes.add("%s is not on this machine and downloads are switched off", s.title)
		return "", nil
	}
	path, err := download(ctx, opts, s.archive, dir)
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		notes.add("%s cannot be downloaded: %v", s.title, err)
		return "", nil
	}
	return path, nil
}

// standIn is the synthetic set of the shape of s.
func (s set) standIn(ctx context.Context, opts *Options, notes *notices) (*Ratings, error) {
	notes.add("using a synthetic stand-in of the shape of %s", s.title)
	shape, _ := OfficialShape(s.key)
	key := fmt.Sprintf("generator=%d shape=%+v seed=%d", synthGenerator, shape, opts.Seed)
	return cached(ctx, opts, notes, "", "synthetic-"+shape.Name, key, func() (*Ratings, error) {
		return Synthetic(ctx, shape, opts.Seed, *opts)
	})
}

func openFile(ctx context.Context, path string, opts *Options, notes *notices, scale Scale) (*Ratings, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	r, err := cached(ctx, opts, notes, path, path, cacheKey(opts, scale), func() (*Ratings, error) {
		return readFile(ctx, path, opts, scale)
	})
	if err != nil {
		return nil, err
	}
	r.info.Name, r.info.ScaleFromRatings = baseName(path), scale == Scale{}
	if r.info.Duplicates > 0 {
		notes.add("%s rates %d pairs of user and item more than once; the last rating counts", path, r.info.Duplicates)
	}
	if r.info.SkippedLines > 0 {
		notes.add("%d bad lines of %s were left out, the first because %s", r.info.SkippedLines, path, strings.TrimPrefix(r.info.FirstSkipped, "dataset: "))
	}
	return r, nil
}

// ratingsIn finds the file of ratings in a folder that is not named after a set.
func ratingsIn(dir string) (string, error) {
	for _, name := range ratingsFiles {
		for _, ext := range []string{"", ".gz", ".zst", ".zip"} {
			path := filepath.Join(dir, name+ext)
			if st, err := os.Stat(path); err == nil && !st.IsDir() {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("dataset: the folder %s has no file of ratings; looked for %s, also packed as .gz, .zst or .zip", dir, strings.Join(ratingsFiles, ", "))
}

// baseName is the name of a file without folder and extensions.
func baseName(path string) string {
	name := filepath.Base(path)
	if base, _, _ := strings.Cut(name, "."); base != "" {
		return base
	}
	return name
}
