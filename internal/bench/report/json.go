package report

import (
	"encoding/json"
	"io"
	"time"
)

// New is an empty report: its lists are empty and not null, as scripts expect.
func New(started time.Time, command []string) Report {
	return Report{
		Schema: Schema, Started: started.UTC().Truncate(time.Second), Command: append([]string{"bench"}, command...),
		Warnings: []string{}, Memory: []Memory{}, Kernels: []Kernel{}, Trainers: []Trainer{}, Baselines: []Trainer{},
	}
}

// WriteJSON writes the report in the form that docs/bench-json.md describes.
func WriteJSON(w io.Writer, r *Report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
