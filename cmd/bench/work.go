package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/bench/kernelbench"
	"github.com/dpmf-go/dpmf/internal/bench/report"
	"github.com/dpmf-go/dpmf/internal/bench/stat"
	"github.com/dpmf-go/dpmf/internal/bench/trainerbench"
	"github.com/dpmf-go/dpmf/internal/cpu"
	"github.com/dpmf-go/dpmf/internal/machine"
	"github.com/dpmf-go/dpmf/trainer"
)

// work does everything in order. What it finds goes to the recorder at once.
func work(ctx context.Context, o *options, rec *recorder) error {
	if err := refuseShape(o); err != nil {
		return err
	}
	if err := refuseCache(o); err != nil {
		return err
	}
	if err := measureMachine(ctx, o, rec); err != nil {
		return err
	}
	rec.print(machineSection)
	debug.FreeOSMemory() // what the read bandwidth was measured with
	data, err := openData(ctx, o, rec)
	if err != nil {
		return err
	}
	rec.print(dataSection)
	if data.Info().ScaleFromRatings && privateExplicit(o) {
		return fmt.Errorf("the rating scale of %s is not public, and a private model of explicit ratings would release it: give --scale=min,max", o.dataset)
	}
	params := trainerParams(o, data.NumUsers())
	if err := trainerbench.Check(o.trainers, params, data.NumUsers(), data.NumItems()); err != nil {
		return err
	}
	kernels := kernelbench.Config{
		Kernels: o.kernels, Items: data.NumItems(), PerUser: max(1, data.NumRatings()/data.NumUsers()),
		Ranks: kernelRanks(o.rank), Rounds: o.rounds, Seed: o.seed,
	}
	if err := planMemory(o, data, kernels, params, rec); err != nil {
		return err
	}
	rec.print(memorySection)
	if err := measureKernels(ctx, kernels, rec); err != nil {
		return err
	}
	rec.print(kernelSection)
	// The kernels' tables are garbage now; trainers that look at the memory limit should not count them.
	debug.FreeOSMemory()
	if err := trainerbench.Run(ctx, data, o.trainers, params, observer(rec)); err != nil {
		return err
	}
	rec.print(trainerSection)
	return nil
}

// trainerParams are the options for data of that many users.
func trainerParams(o *options, users int) trainerbench.Params {
	p := trainerbench.Params{
		Rank: o.rank, Iterations: o.iters, Threads: o.threads, Seed: o.seed, Repeats: o.repeats, Epsilons: o.epsilons, Delta: o.delta,
	}
	if p.Delta == 0 {
		p.Delta = min(0.5, 1/float64(users))
	}
	return p
}

// kernelRanks are those of the requirements, and the one that was asked for, unless it is so large that the slower
// contestants would take minutes.
func kernelRanks(rank int) []int {
	ranks := slices.Clone(kernelbench.DefaultRanks)
	if rank > 0 && rank <= largestKernelRank && !slices.Contains(ranks, rank) {
		ranks = append(ranks, rank)
		slices.Sort(ranks)
	}
	return ranks
}

const (
	largestKernelRank = 512

	readSet      = 256 << 20 // larger than any cache that one core has to itself
	smallestPage = 4096
)

func measureMachine(ctx context.Context, o *options, rec *recorder) error {
	rec.update(func(r *report.Report) {
		r.Machine = report.Machine{
			CPU: machine.CPU(), Model: machine.Stepping(), Cores: runtime.NumCPU(), Threads: o.threads,
			Tier: cpu.Active().String(), TierReason: machine.TierReason(),
			Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
			FMAPeak: report.Number(math.NaN()), ReadGBs: report.Number(math.NaN()),
		}
		if bytes, ok := machine.MemoryAvailable(); ok {
			r.Machine.Memory = bytes
		}
	})
	rec.log.step("machine: multiply-add peak and read bandwidth of one core")
	top := cpu.Active()
	peaks := map[string]report.Number{}
	for tier := top; ; tier-- {
		if err := ctx.Err(); err != nil {
			return err
		}
		peaks[tier.String()] = report.Number(peakOf(tier))
		if tier == cpu.Generic {
			break
		}
	}
	useTier(top)
	array := make([]float32, readSet/4)
	for i := 0; i < len(array); i += smallestPage / 4 {
		array[i] = 1 // pages that were never written are all the same one
	}
	var rates []float64
	for range 8 {
		if err := ctx.Err(); err != nil {
			return err
		}
		rates = append(rates, machine.PeakRead(array, 0))
	}
	rec.update(func(r *report.Report) {
		r.Machine.FMAPeaks, r.Machine.FMAPeak = peaks, peaks[top.String()]
		r.Machine.ReadGBs, r.Machine.ReadBytes = report.Number(stat.SpreadOf(rates).Max), readSet
	})
	return nil
}

// peakOf is the best of several short measurements: anything else on the machine can only lower them.
func peakOf(tier cpu.Tier) float64 {
	useTier(tier)
	best := 0.0
	for range 10 {
		best = max(best, machine.PeakFMA(4*time.Millisecond))
	}
	return best
}

// useTier selects a tier at or below one that was active.
func useTier(t cpu.Tier) {
	if err := cpu.Select(t.String()); err != nil {
		panic(err)
	}
}

// ratingBytes is what a rating takes in the matrix by user and by item: the least that opening a data set needs.
const ratingBytes = 16

// refuseShape refuses a named data set that cannot fit, and budgets that cannot be met on it, before anything else: its size
// is known without it.
func refuseShape(o *options) error {
	shape, ok := dataset.OfficialShape(o.dataset)
	if !ok {
		return nil
	}
	if err := trainerbench.Check(o.trainers, trainerParams(o, shape.Users), shape.Users, shape.Items); err != nil {
		return err
	}
	if need := int64(shape.Ratings) * ratingBytes; o.maxMemory > 0 && need > o.maxMemory {
		return fmt.Errorf("%s needs at least %s for its %s ratings, but --max-memory allows %s: allow more or choose a smaller data set",
			shape.Name, gigabytes(need), thousands(shape.Ratings), gigabytes(o.maxMemory))
	}
	return nil
}

// privateExplicit reports whether a trainer with a finite ε takes explicit ratings.
func privateExplicit(o *options) bool {
	return slices.ContainsFunc(o.trainers, func(t trainerbench.Trainer) bool { return t.Private && t.Protocol != trainerbench.Implicit }) &&
		slices.ContainsFunc(o.epsilons, func(epsilon float64) bool { return !math.IsInf(epsilon, 1) })
}

// refuseCache refuses a cache folder that cannot be written, because without a cache every run would parse or generate
// the data again.
func refuseCache(o *options) error {
	opts := dataset.Options{NoCache: o.noCache}
	if err := opts.CheckCache(); err != nil {
		return fmt.Errorf("the cache folder cannot be written: %w: free it, point XDG_CACHE_HOME elsewhere, or use --no-cache", err)
	}
	return nil
}

func openData(ctx context.Context, o *options, rec *recorder) (*dataset.Ratings, error) {
	opts := dataset.Options{
		Dir: o.data, Offline: o.offline, RealOnly: o.realOnly, SkipBadLines: o.skipBadLines, NoCache: o.noCache,
		Seed: o.seed, Workers: o.threads, Scale: o.scale,
		Progress: func(stage string, done, total int64) { rec.log.advance("data: "+stage, "", done, total) },
		Warn:     func(message string) { rec.warn("%s", message) },
	}
	if column := strings.Split(o.columns, ","); len(column) == 3 {
		opts.Columns = dataset.Columns{User: column[0], Item: column[1], Rating: column[2]}
	}
	rec.log.step("open %s", o.dataset)
	began := time.Now()
	data, err := dataset.Open(ctx, o.dataset, opts)
	took := time.Since(began)
	if err != nil {
		return nil, err
	}
	if data.NumRatings() == 0 {
		return nil, fmt.Errorf("%s holds no ratings", o.dataset)
	}
	info := data.Info()
	d := &report.Data{
		Name: info.Name, Users: data.NumUsers(), Items: data.NumItems(), Ratings: data.NumRatings(),
		Synthetic: info.Synthetic, SHA256: info.SHA256, Source: info.Source, Mean: report.Number(data.Mean()),
		FromCache: info.FromCache, OpenSeconds: report.Number(took.Seconds()), OpenMBs: report.Number(math.NaN()),
		MemoryBytes: data.MemoryBytes(), Duplicates: info.Duplicates, SkippedLines: info.SkippedLines,
	}
	if d.Name == "" {
		d.Name = filepath.Base(o.dataset)
	}
	if file, err := os.Stat(info.Source); err == nil && !info.Synthetic {
		d.SourceBytes = file.Size()
		if !info.FromCache {
			d.OpenMBs = report.Number(float64(file.Size()) / 1e6 / took.Seconds())
		}
	}
	rec.update(func(r *report.Report) { r.Data, r.Synthetic = d, info.Synthetic })
	return data, nil
}

func planMemory(o *options, data *dataset.Ratings, kernels kernelbench.Config, params trainerbench.Params, rec *recorder) error {
	plan := []report.Memory{
		{Phase: "machine", What: "read bandwidth", Bytes: readSet, Parts: "an array larger than a core's caches; over by now"},
		{Phase: report.DataPhase, What: "ratings", Bytes: data.MemoryBytes(), Shared: true, Parts: "the matrix by user and by item, ids"},
	}
	if len(kernels.Kernels) > 0 {
		plan = append(plan, report.Memory{Phase: "kernels", What: "kernel measurements", Bytes: kernelbench.Bytes(kernels), Parts: "the largest of them"})
	}
	plan = append(plan, trainerbench.Plan(data, o.trainers, params)...)
	peak, uses := report.Peak(plan)
	rec.update(func(r *report.Report) { r.Memory, r.MemoryPeak = plan, peak })
	if o.maxMemory > 0 && peak > o.maxMemory {
		var parts []string
		for _, use := range uses {
			parts = append(parts, fmt.Sprintf("%s %s", use.What, gigabytes(use.Bytes)))
		}
		return fmt.Errorf("this run needs %s at a time (%s), but --max-memory allows %s: allow more, lower --rank, or leave out what needs it",
			gigabytes(peak), strings.Join(parts, ", "), gigabytes(o.maxMemory))
	}
	if available, ok := machine.MemoryAvailable(); ok && peak-data.MemoryBytes() > available {
		rec.warn("this run needs %s besides the data, but only %s of memory are available", gigabytes(peak-data.MemoryBytes()), gigabytes(available))
	}
	if o.maxMemory > 0 {
		debug.SetMemoryLimit(o.maxMemory)
	}
	return nil
}

func measureKernels(ctx context.Context, cfg kernelbench.Config, rec *recorder) error {
	if len(cfg.Kernels) == 0 {
		return nil
	}
	cfg.Step = func(done, total int, name string) {
		if rec.log.terminal {
			rec.log.advance("kernels", ": "+name, int64(done), int64(total))
			return
		}
		rec.log.step("kernel %d of %d: %s", done+1, total, name)
	}
	cfg.Emit = func(rows []report.Kernel) {
		rec.update(func(r *report.Report) { r.Kernels = append(r.Kernels, rows...) })
	}
	return kernelbench.Run(ctx, cfg)
}

func observer(rec *recorder) trainerbench.Observer {
	running := ""
	return trainerbench.Observer{
		Step: func(name string) {
			running = name
			rec.log.step("%s", name)
		},
		Iteration: func(p trainer.Progress) {
			if rec.log.terminal {
				remark := fmt.Sprintf(", objective %.5g", p.Objective)
				if p.TrainRMSE > 0 {
					remark = fmt.Sprintf(", train RMSE %.4f", p.TrainRMSE)
				}
				rec.log.advance(running, remark, int64(p.Iteration), int64(p.Iterations))
				return
			}
			rec.log.note("%s: iteration %d of %d, %.3f s (users %.3f, items %.3f), objective %.6g", running, p.Iteration, p.Iterations,
				(p.UserTime + p.ItemTime).Seconds(), p.UserTime.Seconds(), p.ItemTime.Seconds(), p.Objective)
		},
		Baseline: func(row report.Trainer) {
			rec.update(func(r *report.Report) { r.Baselines = report.Put(r.Baselines, row) })
		},
		Trained: func(row report.Trainer) {
			rec.update(func(r *report.Report) { r.Trainers = report.Put(r.Trainers, row) })
			if row.Epsilon.Finite() && row.Target.Finite() && row.Epsilon > row.Target*(1+1e-9) {
				rec.warn("%s at ε=%g: the ledger proves only ε=%g", row.Name, row.Target, row.Epsilon)
			}
		},
	}
}
