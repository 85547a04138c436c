package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// lastLine is what a terminal shows in the line of the cursor.
func lastLine(output string) string {
	output = output[strings.LastIndexByte(output, '\n')+1:]
	var line []rune
	at := 0
	for _, c := range output {
		if c == '\r' {
			at = 0
			continue
		}
		if at == len(line) {
			line = append(line, c)
		}
		line[at] = c
		at++
	}
	return strings.TrimRight(string(line), " ")
}

// TestBar follows the line of the bar through stages, and demands that nothing of it stays.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	p := &progress{w: &out, terminal: true, width: func() int { return 80 }, start: time.Now(), done: make(chan struct{})}
	expect := func(when string, parts ...string) {
		t.Helper()
		line := lastLine(out.String())
		for _, part := range parts {
			if !strings.Contains(line, part) {
				t.Errorf("%s the line is %q, without %q", when, line, part)
			}
		}
		if n := utf8.RuneCountInString(line); n > 80 || len(parts) == 0 && n > 0 {
			t.Errorf("%s the line is %q, %d characters", when, line, n)
		}
	}
	p.step("a step of unknown length")
	expect("in a step", "a step of unknown length")
	long := "a stage with a name that is much too long for the terminal"
	p.advance(long, ", loss 0.5", 1, 4)
	p.draw()
	expect("in a stage", "a stage with a name", "…, loss 0.5", "25%")
	p.advance(long, ", loss 0.4", 2, 4)
	p.draw()
	expect("later", "…, loss 0.4", "50%")
	p.advance(long, ", loss 0.3", 4, 4)
	expect("at the end")
	p.step("another step")
	p.note("a line that stays")
	expect("after a note")
	if !strings.Contains(out.String(), "  a line that stays\n") {
		t.Error("the note was not written")
	}
	p.step("one more step")
	p.pause()
	expect("in a pause")
	size := out.Len()
	time.Sleep(3 * redraw)
	p.draw()
	p.stop()
	p.step("too late")
	p.advance("too late", "", 1, 2)
	p.note("too late")
	if out.Len() != size {
		t.Errorf("written after the end: %q", out.String()[size:])
	}
}
