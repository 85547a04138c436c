// Package dataset holds the rating matrix every trainer reads, and the ways to get one: readers for the
// MovieLens formats and for delimited text in general, the official downloads, synthetic stand-ins of the official
// shapes, and the splits and filters of the evaluation protocols.
//
// There is one orientation everywhere: users are rows, items are columns. A Ratings value stores the matrix twice,
// by user (compressed sparse rows) and by item (compressed sparse columns), because a least-squares trainer needs
// both halves in every iteration.
//
//	ratings, err := dataset.Open(ctx, "ml1m", dataset.Options{})
//	train, test := ratings.SplitRandom(0.9, seed)
//
// Nothing is dropped in silence: duplicates, skipped lines and a synthetic replacement are counted or named in Info,
// and every one of them is also sent to Options.Warn.
package dataset
