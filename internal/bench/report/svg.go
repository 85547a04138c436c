package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Measures of a chart, in pixels.
const (
	chartWidth  = 960
	labelWidth  = 270
	barsWidth   = 420 // what remains is for the text after a bar
	barHeight   = 18
	barDistance = 24
)

// drawBars writes a chart of horizontal bars, or nothing if there are none. On a logarithmic scale a bar begins at half
// the smallest value.
func drawBars(b *strings.Builder, title string, bars []bar, logarithmic bool) {
	if len(bars) == 0 {
		return
	}
	length := scale(bars, logarithmic)
	height := barDistance*len(bars) + 6
	fmt.Fprintf(b, "<figure><figcaption>%s</figcaption>\n", template.HTMLEscapeString(title))
	fmt.Fprintf(b, `<svg viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		chartWidth, height, chartWidth, height, template.HTMLEscapeString(title))
	for i, x := range bars {
		y := barDistance*i + 3
		end := labelWidth + length(x.Value)
		fmt.Fprintf(b, `<text class="label" x="%d" y="%d">%s</text>`, labelWidth-8, y+barHeight-4, template.HTMLEscapeString(x.Label))
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`, x.Class, labelWidth, y, length(x.Value), barHeight)
		if x.Max > x.Min {
			low, high, middle := labelWidth+length(x.Min), labelWidth+length(x.Max), y+barHeight/2
			fmt.Fprintf(b, `<path class="whisker" d="M%.1f %dH%.1f"/>`, low, middle, high)
			end = max(end, high)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`+"\n", end+6, y+barHeight-4, template.HTMLEscapeString(x.Text))
	}
	b.WriteString("</svg></figure>\n")
}

// scale returns the function from a value to the length of its bar, whiskers fitting as well.
func scale(bars []bar, logarithmic bool) func(v float64) float64 {
	low, high := math.Inf(1), 0.0
	for _, x := range bars {
		for _, v := range []float64{x.Value, x.Min, x.Max} {
			if v > 0 && !math.IsInf(v, 1) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return func(v float64) float64 {
		switch {
		case !(v > 0) || math.IsInf(v, 1) || high == 0:
			return 0
		case logarithmic:
			return barsWidth * math.Log(2*v/low) / math.Log(2*high/low)
		}
		return barsWidth * v / high
	}
}
