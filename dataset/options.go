package dataset

import (
	"fmt"
	"net/http"
	"runtime"
)

// Options says where Open looks for data and how it reads them. The zero value is usable.
type Options struct {
	// Dir is a folder that holds data sets (in their official folders or zip files), the folder of one data set,
	// or a file. It is searched first; it must exist.
	Dir string

	// CacheDir holds the binary cache and downloads. Empty means the folder "dpmf" in os.UserCacheDir.
	CacheDir string

	// NoCache neither reads nor writes the binary cache. Downloads are still stored.
	NoCache bool

	// Offline forbids downloads.
	Offline bool

	// RealOnly makes Open fail where it would use a synthetic stand-in.
	RealOnly bool

	// SkipBadLines leaves out lines that cannot be read, counts them in Info and warns, instead of failing.
	SkipBadLines bool

	// Columns names the columns of a delimited file, where the defaults do not find them.
	Columns Columns

	// Delimiter separates fields: ",", "\t", "::", ";" or any other string without quotes, digits and line ends.
	// Empty means to detect it.
	Delimiter string

	// Scale is the scale of the ratings of a file. The zero value means the published scale of a named data set, and
	// for other files the smallest scale that fits the ratings. Ratings outside a given scale are bad lines.
	Scale Scale

	// Seed is the seed of a synthetic stand-in.
	Seed uint64

	// Workers is the number of goroutines that read or generate; 0 means GOMAXPROCS. Results do not depend on it.
	Workers int

	// Progress, if set, is told how far a stage ("download", "read", "build", "generate", "cache") has come, in the
	// unit of that stage; total is 0 when unknown. Calls come one at a time, but from several goroutines.
	Progress func(stage string, done, total int64)

	// Warn, if set, receives one sentence for each thing that deserves attention without being an error.
	// The same sentences are in Info.
	Warn func(message string)

	// BaseURL replaces the address of the GroupLens archive, which must end in a slash. For mirrors and tests.
	BaseURL string

	// HTTPClient replaces the client that downloads. The default gives up quickly when there is no network.
	HTTPClient *http.Client
}

// Columns names the columns of a delimited file, by header name (any case) or by number, "1" being the first.
// Empty fields mean: the usual names if there is a header, else the first three columns.
type Columns struct {
	User, Item, Rating string
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// notices collects the warnings of one call and forwards them as they come.
type notices struct {
	list []string
	warn func(string)
}

func (n *notices) add(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	n.list = append(n.list, s)
	if n.warn != nil {
		n.warn(s)
	}
}
