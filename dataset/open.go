package dataset

import "context"

// Open finds a data set by name, or reads the file at a path.
func Open(ctx context.Context, name string, opts Options) (*Ratings, error) {
	return OpenFile(ctx, name, opts)
}

// OpenFile reads one file of ratings.
func OpenFile(ctx context.Context, path string, opts Options) (*Ratings, error) {
	return readFile(ctx, path, &opts, opts.Scale)
}
