package main

import (
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/dpmf-go/dpmf/internal/bench/report"
)

// section is a part of the printed results, in the order of printing.
type section int

const (
	machineSection section = iota
	dataSection
	memorySection
	kernelSection
	trainerSection
	sections
)

// recorder collects the results. They come from the working goroutine, while the main one may close and print what
// there is at any moment.
type recorder struct {
	mu      sync.Mutex
	report  report.Report
	printed section // sections below it are printed
	out     io.Writer
	log     *progress
	closed  bool
}

// update changes the report, unless it is closed.
func (r *recorder) update(change func(*report.Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		change(&r.report)
	}
}

// warn records a warning and shows it.
func (r *recorder) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.update(func(rep *report.Report) {
		if !slices.Contains(rep.Warnings, text) {
			rep.Warnings = append(rep.Warnings, text)
		}
	})
	r.log.note("warning: %s", text)
}

// print prints the sections up to and including last that are not printed yet.
func (r *recorder) print(last section) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.printLocked(last)
	}
}

func (r *recorder) printLocked(last section) {
	r.log.pause()
	for ; r.printed <= last; r.printed++ {
		printSection(r.out, &r.report, r.printed)
	}
}

// close prints everything that was measured, and returns the report, which no longer changes.
func (r *recorder) close(finish func(*report.Report)) *report.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		finish(&r.report)
		r.printLocked(sections - 1)
	}
	return &r.report
}
