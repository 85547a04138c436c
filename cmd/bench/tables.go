package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dpmf-go/dpmf/internal/bench/report"
)

// printSection prints one section, or nothing if there is nothing in it.
func printSection(w io.Writer, r *report.Report, s section) {
	switch s {
	case machineSection:
		printMachine(w, r)
	case dataSection:
		printData(w, r)
	case memorySection:
		printMemory(w, r)
	case kernelSection:
		printKernels(w, r)
	case trainerSection:
		printTrainers(w, r)
	}
}

func newTable(r *report.Report, title string) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Title.Align = text.AlignLeft
	t.Style().Format.Header = text.FormatDefault
	if r.Synthetic {
		title += " (synthetic data)"
	}
	t.SetTitle(title)
	return t
}

// rightAligned is for columns of numbers, counted from 1.
func rightAligned(columns ...int) (list []table.ColumnConfig) {
	for _, c := range columns {
		list = append(list, table.ColumnConfig{Number: c, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	return list
}

func render(w io.Writer, t table.Writer) { fmt.Fprintf(w, "%s\n\n", t.Render()) }

func printMachine(w io.Writer, r *report.Report) {
	m := r.Machine
	if m.CPU == "" {
		return
	}
	t := newTable(r, "Machine")
	cpu := m.CPU
	if m.Model != "" {
		cpu += ", " + m.Model
	}
	t.AppendRow(table.Row{"CPU", cpu})
	t.AppendRow(table.Row{"cores", fmt.Sprintf("%d, %d used by trainers", m.Cores, m.Threads)})
	t.AppendRow(table.Row{"tier", m.Tier + ": " + m.TierReason})
	t.AppendRow(table.Row{"Go", m.Go + " " + m.OS + "/" + m.Arch})
	if m.Memory > 0 {
		t.AppendRow(table.Row{"memory available", gigabytes(m.Memory)})
	}
	var peaks []string
	for _, tier := range []string{"avx512", "avx2", "generic"} {
		if peak, ok := m.FMAPeaks[tier]; ok {
			peaks = append(peaks, fmt.Sprintf("%s %s", tier, number(peak)))
		}
	}
	if len(peaks) > 0 {
		t.AppendRow(table.Row{"float32 FMA peak, one core", strings.Join(peaks, ", ") + " GFLOP/s"})
		t.AppendRow(table.Row{"read bandwidth, one core", fmt.Sprintf("%s GB/s (%s)", number(m.ReadGBs), gigabytes(m.ReadBytes))})
	}
	render(w, t)
}

func printData(w io.Writer, r *report.Report) {
	d := r.Data
	if d == nil {
		return
	}
	t := newTable(r, "Data")
	t.AppendRow(table.Row{"name", d.Name})
	t.AppendRow(table.Row{"shape", fmt.Sprintf("%s users × %s items, %s ratings, mean %.3f", thousands(d.Users), thousands(d.Items), thousands(d.Ratings), d.Mean)})
	t.AppendRow(table.Row{"source", d.Source})
	t.AppendRow(table.Row{"SHA-256", d.SHA256})
	opened := fmt.Sprintf("%s s", number(d.OpenSeconds))
	switch {
	case d.FromCache:
		opened += ", from the binary cache"
	case d.OpenMBs.Finite():
		opened += fmt.Sprintf(", %s MB at %s MB/s", number(report.Number(float64(d.SourceBytes)/1e6)), number(d.OpenMBs))
	case d.Synthetic:
		opened += ", generated"
	}
	t.AppendRow(table.Row{"opened in", opened})
	t.AppendRow(table.Row{"in memory", gigabytes(d.MemoryBytes)})
	if d.Duplicates > 0 || d.SkippedLines > 0 {
		t.AppendRow(table.Row{"left out", fmt.Sprintf("%d duplicates (the last one counts), %d bad lines", d.Duplicates, d.SkippedLines)})
	}
	render(w, t)
}

func printMemory(w io.Writer, r *report.Report) {
	if len(r.Memory) == 0 {
		return
	}
	t := newTable(r, "Planned memory")
	t.AppendHeader(table.Row{"phase", "what", "size", "parts"})
	for _, m := range r.Memory {
		t.AppendRow(table.Row{m.Phase, m.What, gigabytes(m.Bytes), m.Parts})
	}
	t.AppendFooter(table.Row{"", "most at a time", gigabytes(r.MemoryPeak), ""})
	t.Style().Format.Footer = text.FormatDefault
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 3, Align: text.AlignRight, AlignFooter: text.AlignRight}, {Number: 4, WidthMax: 80}})
	render(w, t)
}

func printKernels(w io.Writer, r *report.Report) {
	if len(r.Kernels) == 0 {
		return
	}
	t := newTable(r, "Kernels, one core: medians of "+strconv.Itoa(r.Kernels[0].Rounds)+" rounds in which the tiers take turns")
	t.AppendHeader(table.Row{"kernel", "size", "tier", "median", "min–max", "share", "speed", "µs at 115", "required"})
	previous := ""
	for _, k := range r.Kernels {
		id := k.Name + " " + k.Size
		name, size := k.Name, k.Size
		if id == previous {
			name, size = "", ""
		} else if previous != "" {
			t.AppendSeparator()
		}
		previous = id
		t.AppendRow(table.Row{
			name, size, k.Tier, number(k.Rate) + " " + k.Unit, number(k.Min) + "–" + number(k.Max),
			fmt.Sprintf("%.2f %s", float64(k.Share), k.ShareOf), speed(k), blankNumber(k.Scaled), required(k),
		})
	}
	t.SetColumnConfigs(rightAligned(4, 5, 6, 8))
	t.SetCaption("share: of fma, useful operations by the float32 multiply-add peak of the same tier; of read, bytes by the rate of reading the\n" +
		"same data; limits measured in the same rounds. speed: against the tier below; of a library against the highest tier. µs at 115:\n" +
		"the time if the tier's FMA peak were 115 GFLOP/s. required: the project's own floor and whether it is reached; of avx512 the\n" +
		"share or the µs at 115, of avx2 its share by avx512's.")
	render(w, t)
}

func speed(k report.Kernel) string {
	if !k.Ratio.Finite() {
		return ""
	}
	return number(k.Ratio) + "× " + k.RatioTo
}

func required(k report.Kernel) string {
	if k.OK == nil {
		return ""
	}
	mark := "✗"
	if *k.OK {
		mark = "✓"
	}
	relation := "≥"
	if strings.HasSuffix(k.RequiredWhat, "≤") {
		relation = "≤"
	}
	return fmt.Sprintf("%s %.4g %s %.3g", relation, float64(k.Required), mark, float64(k.Reached))
}

// number prints three significant digits or so, without an exponent.
func number(n report.Number) string {
	switch v := float64(n); {
	case !n.Finite():
		return "–"
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.1 || v == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(float64(n), 'g', 2, 64)
}

func blankNumber(n report.Number) string {
	if !n.Finite() {
		return ""
	}
	return number(n)
}

func gigabytes(bytes int64) string {
	if bytes < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(bytes)/1e9)
}

// thousands puts a comma before every group of three digits.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
