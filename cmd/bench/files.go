package main

import (
	"errors"
	"io"

	"github.com/dpmf-go/dpmf/internal/bench/report"
)

// resultFiles are the files the results go to; nil where not asked for.
type resultFiles struct{ json, html *outputFile }

func openFiles(o *options) (f resultFiles, err error) {
	if f.json, err = openOutput("json", o.json); err != nil {
		return f, err
	}
	if f.html, err = openOutput("html", o.html); err != nil {
		f.discard()
	}
	return f, err
}

func (f resultFiles) write(r *report.Report) error {
	return errors.Join(
		f.json.write(func(w io.Writer) error { return report.WriteJSON(w, r) }),
		f.html.write(func(w io.Writer) error { return report.WriteHTML(w, r) }),
	)
}

func (f resultFiles) discard() {
	f.json.discard()
	f.html.discard()
}
