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

// progress tells the user what is happening: a bar on a terminal, one line per step elsewhere.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	width    func() int // of the terminal, in characters
	start    time.Time
	silent   bool          // after stop
	done     chan struct{} // closed by stop

	stage string // what the bar, or the last line, is about
	bar   *progressbar.ProgressBar
	total int64 // of the bar; below zero if it is not known
	shown int64
	// What is to be shown when the bar is drawn again.
	next   int64
	remark string
}

// redraw is how often a bar is drawn. The library's own timer draws bars that were taken away.
const redraw = 100 * time.Millisecond

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, start: time.Now(), done: make(chan struct{})}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.terminal = true
		p.width = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil || width <= 0 {
				return 80
			}
			return width
		}
		go p.animate()
	}
	return p
}

// animate draws the bar until stop.
func (p *progress) animate() {
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// step announces a piece of work of unknown length.
func (p *progress) step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	text := fmt.Sprintf(format, args...)
	if p.terminal {
		p.open(text, "", -1)
		return
	}
	p.line(text)
}

// advance shows how far a stage is, and a remark beside its name. Off a terminal only its beginning is worth a line.
func (p *progress) advance(stage, remark string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
	if p.bar == nil || p.stage != stage || p.total != total {
		p.clear()
		p.open(stage, remark, total)
	}
	p.remark, p.next = remark, done
	if total > 0 && done >= total {
		p.clear()
	}
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

// stop is pause, and lets nothing more be printed. It must be called once.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.silent = true
	close(p.done)
}

// timesWidth is what a bar of the full width has after its description: percentage, times and a little bar.
const timesWidth = 34

func (p *progress) open(stage, remark string, total int64) {
	if p.silent {
		return
	}
	p.stage, p.remark, p.total, p.shown, p.next = stage, remark, total, 0, 0
	p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(p.description()),
		progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth(), progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionSetRenderBlankState(true), progressbar.OptionSetPredictTime(total > 0))
}

// draw shows what advance has said. The bar writes to a terminal; there is nothing to do about one that fails.
func (p *progress) draw() {
	if p.bar == nil {
		return
	}
	if p.next != p.shown {
		p.shown = p.next
		_ = p.bar.Set64(p.next)
	}
	p.bar.Describe(p.description()) // which draws, also when nothing has changed but the time
}

// description is the stage and the remark, the stage shortened so that the line does not wrap: a wrapped line cannot be
// taken away.
func (p *progress) description() string {
	stage, remark := []rune(p.stage), []rune(p.remark)
	room := max(8, p.width()-timesWidth)
	remark = remark[:min(len(remark), room-7)]
	if room -= len(remark); len(stage) > room {
		stage = append(stage[:room-1], '…')
	}
	return string(stage) + string(remark)
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
