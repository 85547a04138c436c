package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/bench/kernelbench"
	"github.com/dpmf-go/dpmf/internal/bench/trainerbench"
	"github.com/dpmf-go/dpmf/privacy"
)

// options is the command line, checked as far as it can be without the data.
type options struct {
	dataset, data, columns                   string
	scale                                    dataset.Scale
	offline, realOnly, skipBadLines, noCache bool

	kernels  []string
	rounds   int
	trainers []trainerbench.Trainer
	rank     int // 0: each trainer's own
	epsilons []float64
	delta    float64 // 0: one over the number of users
	iters    int     // 0: each trainer's own
	seed     uint64
	repeats  int
	threads  int
	isa      string

	json, html, cpuProfile string
	maxMemory              int64 // 0: no limit
}

// rawOptions holds the flags that are lists or units, before they are read.
type rawOptions struct {
	kernels, trainers, protocols, epsilons, maxMemory, scale string
}

// parseOptions reads the arguments. It returns flag.ErrHelp after writing the help to out, and otherwise an error of
// one sentence.
func parseOptions(args []string, out io.Writer) (*options, error) {
	o, raw := new(options), new(rawOptions)
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	define(flags, o, raw)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, errors.Join(err, writeHelp(out, flags))
		}
		return nil, fmt.Errorf("%w; bench --help lists the flags", err)
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: every option is a flag, such as --dataset=%[1]s", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := o.complete(raw); err != nil {
		return nil, err
	}
	return o, o.validate(given)
}

func define(flags *flag.FlagSet, o *options, raw *rawOptions) {
	flags.StringVar(&o.dataset, "dataset", "ml20m", "`name` of a data set ("+strings.Join(dataset.Names(), ", ")+") or path of a file of ratings")
	flags.StringVar(&o.data, "data", "", "`folder` or file to look for the data set in, before $DPMF_DATA, the cache and a download")
	flags.StringVar(&o.columns, "columns", "", "`user,item,rating` columns of a delimited file, by name or number")
	flags.BoolVar(&o.offline, "offline", false, "never download; use what is on this machine, or a synthetic stand-in")
	flags.BoolVar(&o.realOnly, "real-only", false, "fail rather than use a synthetic stand-in")
	flags.BoolVar(&o.skipBadLines, "skip-bad-lines", false, "leave out lines that cannot be read, and count them, rather than fail")
	flags.BoolVar(&o.noCache, "no-cache", false, "neither read nor write the binary cache of parsed data")
	flags.StringVar(&raw.kernels, "kernels", "all", "`list` of kernels to measure: "+strings.Join(kernelbench.Names(), ", ")+", all or none")
	flags.IntVar(&o.rounds, "rounds", 15, "`number` of rounds in which all tiers of a kernel take turns")
	flags.StringVar(&raw.scale, "scale", "", "public rating scale `min,max` or min,max,step of a file; private trainers of explicit ratings need it")
	flags.StringVar(&raw.trainers, "trainers", "all", "`list` of trainers to run: "+strings.Join(trainerbench.Names(), ", ")+", all or none")
	flags.StringVar(&raw.protocols, "protocol", "all", "`list` of protocols: speed (all ratings, time only), explicit (RMSE), implicit (recall@20) or all")
	flags.IntVar(&o.rank, "rank", 0, "`number` of factors of all trainers, also measured for the kernels (default 64; dpals also at the rank that suits ε)")
	flags.StringVar(&raw.epsilons, "epsilon", "1,5,20", "`list` of privacy budgets ε for the private trainers; inf trains without noise")
	flags.Float64Var(&o.delta, "delta", 0, "`probability` δ of the budgets (default one over the number of users)")
	flags.IntVar(&o.iters, "iters", 0, "`number` of iterations (default: each trainer's own)")
	flags.Uint64Var(&o.seed, "seed", 1, "`number` that determines splits, initial factors, synthetic data and, for reproducible figures, the noise")
	flags.IntVar(&o.repeats, "repeat", 1, "`number` of runs of each trainer, with seed, seed+1, ...: quality becomes their mean, least and most")
	flags.IntVar(&o.threads, "threads", runtime.NumCPU(), "`number` of threads of the trainers (default: all cores)")
	flags.StringVar(&o.isa, "isa", "", "highest `tier` of kernels to use: generic, avx2 or avx512 (default: the machine's, or $DPMF_ISA)")
	flags.StringVar(&raw.maxMemory, "max-memory", "", "refuse to start what is planned to need more than this `size`, such as 6GB")
	flags.StringVar(&o.json, "json", "", "also write the results to this `file` (docs/bench-json.md describes it)")
	flags.StringVar(&o.html, "html", "", "also write the results to this `file` as a page with charts")
	flags.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile for go tool pprof to this `file`")
}

// complete reads the lists and units.
func (o *options) complete(raw *rawOptions) (err error) {
	if o.kernels, err = kernelbench.Select(raw.kernels); err != nil {
		return fmt.Errorf("--kernels: %w", err)
	}
	if o.trainers, err = trainerbench.Select(raw.trainers, raw.protocols); err != nil {
		return fmt.Errorf("--trainers, --protocol: %w", err)
	}
	if o.epsilons, err = parseEpsilons(raw.epsilons); err != nil {
		return fmt.Errorf("--epsilon: %w", err)
	}
	if o.scale, err = parseScale(raw.scale); err != nil {
		return fmt.Errorf("--scale: %w", err)
	}
	if o.maxMemory, err = parseSize(raw.maxMemory); err != nil {
		return fmt.Errorf("--max-memory: %w", err)
	}
	return nil
}

func (o *options) validate(given map[string]bool) error {
	switch {
	case o.dataset == "":
		return errors.New("--dataset is empty: give a name such as ml20m, or the path of a file")
	case given["rank"] && o.rank < 1:
		return fmt.Errorf("--rank is %d: it must be at least 1", o.rank)
	case o.rank > maxRank:
		return fmt.Errorf("--rank is %d: it must be at most %d", o.rank, maxRank)
	case o.rounds < 1:
		return fmt.Errorf("--rounds is %d: it must be at least 1", o.rounds)
	case given["iters"] && o.iters < 1:
		return fmt.Errorf("--iters is %d: it must be at least 1", o.iters)
	case o.repeats < 1:
		return fmt.Errorf("--repeat is %d: it must be at least 1", o.repeats)
	case o.threads < 1:
		return fmt.Errorf("--threads is %d: it must be at least 1", o.threads)
	case o.threads > maxThreads:
		return fmt.Errorf("--threads is %d: it must be at most %d", o.threads, maxThreads)
	case o.json != "" && o.json == o.html:
		return fmt.Errorf("--json and --html both name %s: one would overwrite the other", o.json)
	case o.columns != "" && strings.Count(o.columns, ",") != 2:
		return fmt.Errorf("--columns is %q: it must be three columns, such as user,item,rating", o.columns)
	}
	delta := o.delta
	if !given["delta"] {
		delta = 0.5 // any legal value: the real one needs the number of users
	}
	for _, epsilon := range o.epsilons {
		if err := (privacy.Budget{Epsilon: epsilon, Delta: delta}).Validate(); err != nil {
			return fmt.Errorf("impossible budget: %s", strings.TrimPrefix(err.Error(), "privacy: "))
		}
	}
	return nil
}

const (
	maxRank    = 4096 // a Gram matrix of 64 MiB per thread
	maxThreads = 4096
)

// parseScale reads min,max or min,max,step; the empty string is the zero Scale.
func parseScale(list string) (s dataset.Scale, err error) {
	if list == "" {
		return s, nil
	}
	words := strings.Split(list, ",")
	if len(words) != 2 && len(words) != 3 {
		return s, fmt.Errorf("%q is not a scale: give min,max or min,max,step, such as 1,5,1", list)
	}
	for k, to := range []*float32{&s.Min, &s.Max, &s.Step}[:len(words)] {
		v, err := strconv.ParseFloat(strings.TrimSpace(words[k]), 32)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return s, fmt.Errorf("%q is not a finite number: give min,max or min,max,step, such as 1,5,1", words[k])
		}
		*to = float32(v)
	}
	if s.Min >= s.Max || s.Step < 0 {
		return s, fmt.Errorf("%q is empty: the least rating must be below the greatest", list)
	}
	return s, nil
}

func parseEpsilons(list string) ([]float64, error) {
	var epsilons []float64
	for word := range strings.SplitSeq(list, ",") {
		epsilon, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number: give a list such as 1,5,20", word)
		}
		if !slices.Contains(epsilons, epsilon) {
			epsilons = append(epsilons, epsilon)
		}
	}
	return epsilons, nil
}

// sizeUnits are decimal without the i and binary with it.
var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12}, {"b", 1}, {"", 1},
}

// parseSize reads a size in bytes such as 6GB, 5.5GiB or 500000000; the empty string is 0.
func parseSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	word := strings.ToLower(strings.TrimSpace(text))
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(word, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n > 0) || math.IsInf(n, 1) || n*unit.bytes >= math.MaxInt64 {
			break
		}
		return max(1, int64(n*unit.bytes)), nil
	}
	return 0, fmt.Errorf("%q is not a size: give a positive number with a unit, such as 6GB or 500MiB", text)
}

// writeHelp explains each flag in one line.
func writeHelp(out io.Writer, flags *flag.FlagSet) error {
	var b strings.Builder
	b.WriteString("bench measures the kernels and trainers of dpmf on a data set, next to the limits of this machine.\n\n" +
		"Usage: bench [--flag=value ...]    (-flag and --flag are the same)\n\n")
	flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		head := "--" + f.Name
		if value != "" {
			head += " " + strings.ToUpper(value)
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && !strings.Contains(usage, "default") {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&b, "  %-28s %s\n", head, usage)
	})
	b.WriteString("\nResults go to standard output, progress to standard error. Exit status: 0 done, 1 internal error, 2 wrong use\n" +
		"or unusable data, 130 stopped by Ctrl-C (what was measured by then is printed and written; a second one kills).\n")
	_, err := io.WriteString(out, b.String())
	return err
}
