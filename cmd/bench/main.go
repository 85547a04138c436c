// Command bench measures the kernels and trainers of dpmf on a data set, next to the limits of the machine.
//
//	bench --dataset=ml20m
//
// needs no other argument. bench --help lists the flags; docs/bench-json.md describes the file that --json writes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/dpmf-go/dpmf/internal/bench/report"
	"github.com/dpmf-go/dpmf/internal/cpu"
	"github.com/dpmf-go/dpmf/internal/machine"
)

// Exit statuses.
const (
	exitDone        = 0
	exitInternal    = 1
	exitUser        = 2
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its surroundings as arguments. It returns the exit status.
func run(args []string, stdout, stderr io.Writer) (status int) {
	started := time.Now()
	defer func() {
		if p := recover(); p != nil {
			status = fail(stderr, &panicError{p, debug.Stack()})
		}
	}()
	o, err := parseOptions(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err == nil {
		err = chooseTier(o.isa)
	}
	if err != nil {
		return fail(stderr, err)
	}
	files, err := openFiles(o)
	if err != nil {
		return fail(stderr, err)
	}
	defer files.discard()
	stopProfile, err := startProfile(o.cpuProfile)
	if err != nil {
		return fail(stderr, err)
	}
	defer stopProfile()
	runtime.GOMAXPROCS(o.threads)

	out := &stickyWriter{w: stdout}
	rec := &recorder{out: out, log: newProgress(stderr)}
	rec.report = report.New(started, args)
	err = supervise(func(ctx context.Context) error { return work(ctx, o, rec) })
	rec.log.stop()
	final := rec.close(func(r *report.Report) {
		r.Seconds = report.Number(time.Since(started).Seconds())
		r.Interrupted = errors.Is(err, errInterrupted)
		r.Resident, _ = machine.PeakResident()
	})
	interrupted := errors.Is(err, errInterrupted)
	if err != nil && !interrupted {
		return fail(stderr, err)
	}
	if err := errors.Join(files.write(final), out.err); err != nil {
		return fail(stderr, err)
	}
	if interrupted {
		fmt.Fprintln(stderr, "bench: interrupted; what was measured by then is above")
		return exitInterrupted
	}
	fmt.Fprintf(stdout, "%.1f s in all, at most %s of memory resident\n", float64(final.Seconds), gigabytes(final.Resident))
	return exitDone
}

// chooseTier follows --isa, and makes an error of a DPMF_ISA that the library only warns about.
func chooseTier(isa string) error {
	if isa != "" {
		if err := cpu.Select(isa); err != nil {
			return fmt.Errorf("--isa: %w", err)
		}
		return nil
	}
	if word, ok := os.LookupEnv(cpu.Variable); ok && word != "" {
		if err := cpu.Select(word); err != nil {
			return fmt.Errorf("%s: %w", cpu.Variable, err)
		}
	}
	return nil
}

// errInterrupted says that the user stopped the run.
var errInterrupted = errors.New("interrupted")

// grace is how long an interrupted run may take to stop by itself. What it does then is abandoned.
const grace = 700 * time.Millisecond

// supervise runs f until it returns or the user interrupts, which gives errInterrupted. The first SIGINT or SIGTERM
// cancels f's context and restores the default, so that a second one kills.
func supervise(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- &panicError{p, debug.Stack()}
			}
		}()
		done <- f(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-signals:
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		cancel()
	}
	select {
	case err := <-done:
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	case <-time.After(grace):
	}
	return errInterrupted
}

// panicError is a defect of this program.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("internal error: %v; please report it with the lines below", e.value)
}

// fail prints one sentence and returns the exit status that goes with the error.
func fail(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "bench: %v\n", err)
	var defect *panicError
	if errors.As(err, &defect) {
		fmt.Fprintf(stderr, "%s\n", defect.stack)
		return exitInternal
	}
	return exitUser
}

// startProfile returns the function that ends the profile.
func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--cpuprofile: cannot write %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("--cpuprofile: %w", err), file.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}, nil
}
