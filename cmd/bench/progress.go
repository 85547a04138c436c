package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress tells the user what is happening: a bar on a terminal, one line per step elsewhere. A nil bar means lines.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	start    time.Time
	bar      *progressbar.ProgressBar
	stage    string // of the bar
	silent   bool   // after stop
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, start: time.Now()}
	if f, ok := w.(*os.File); ok {
		p.terminal = term.IsTerminal(int(f.Fd()))
	}
	return p
}

// step announces a piece of work. On a terminal it becomes a bar when advance is called.
func (p *progress) step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	text := fmt.Sprintf(format, args...)
	if p.terminal {
		p.open(text, -1)
		return
	}
	p.line(text)
}

// advance shows how far a stage is. Off a terminal only its beginning is worth a line.
func (p *progress) advance(stage string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent {
		return
	}
	if !p.terminal {
		if p.stage != stage {
			p.stage = stage
			p.line(stage)
		}
		return
	}
	if total <= 0 {
		total = -1
	}
	if p.bar == nil || p.stage != stage || p.bar.GetMax64() != total {
		p.clear()
		p.open(stage, total)
	}
	// The bar writes to a terminal; there is nothing to do about one that fails.
	_ = p.bar.Set64(done)
}

// note prints a line that stays, such as a finished iteration or a warning.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.line(fmt.Sprintf(format, args...))
}

// pause removes the bar, so that something else can be printed.
func (p *progress) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// stop is pause, and lets nothing more be printed.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.silent = true
}

func (p *progress) open(stage string, total int64) {
	if p.silent {
		return
	}
	p.stage = stage
	p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(stage),
		progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetRenderBlankState(true), progressbar.OptionSetPredictTime(total > 0))
}

func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
		p.bar, p.stage = nil, ""
	}
}

func (p *progress) line(text string) {
	if !p.silent {
		fmt.Fprintf(p.w, "bench: %6.1fs  %s\n", time.Since(p.start).Seconds(), text)
	}
}
