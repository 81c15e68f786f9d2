package render

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/guptarohit/asciigraph"

	"pawl/internal/loop"
)

// Course is the best metric after each iteration, the baseline first. The plot shows it.
type Course []float64

// Beside reports whether a loop explores a branch after an event. What is measured then is not about its head.
func Beside(explores bool, e loop.Event) bool {
	return (explores || e.Type == loop.BranchBegun) && e.Type != loop.BranchKept && e.Type != loop.BranchGivenUp
}

// Follow returns the course after an event. exploring says that the loop explores a branch.
func (c Course) Follow(e loop.Event, exploring bool) Course {
	switch {
	case exploring:
	case e.Type == loop.BranchKept && e.Metric != nil && len(c) > 0:
		return append(c[:len(c)-1:len(c)-1], e.Metric.Float())
	case e.Type == loop.BaselineMeasured && e.Metric != nil:
		return Course{e.Metric.Float()}
	case e.Judgement != nil && e.Judgement.Samples != nil && len(c) > 0:
		if c[len(c)-1] == c[0] { // nothing is kept: more samples of the unchanged code are no gain (loop.State.Reached)
			return c
		}
		// The latest estimate of the head.
		return append(c[:len(c)-1:len(c)-1], e.Judgement.Samples.Reference.Float())
	case e.Record != nil && e.Record.Kept && e.Record.Metric != nil && len(c) > 0:
		return append(c, e.Record.Metric.Float())
	}
	if e.Record != nil && len(c) > 0 { // else the baseline is not known, and so neither is the iteration of a value
		return append(c, c[len(c)-1])
	}
	return c
}

// Further are the courses of the further metrics by their names: the head's values after each iteration.
type Further map[string]Course

// Follow returns the courses after an event. exploring says that the loop explores a branch.
func (f Further) Follow(e loop.Event, exploring bool) Further {
	next := Further{}
	switch {
	case e.Type == loop.BaselineMeasured:
		for name, v := range e.Metrics {
			next[name] = Course{v.Float()}
		}
	case e.Record != nil:
		for name, c := range f {
			if v, measured := e.Record.Metrics[name]; measured && e.Record.Kept && !exploring {
				next[name] = append(c, v.Float())
			} else {
				next[name] = append(c, c[len(c)-1])
			}
		}
	default:
		return f
	}
	return next
}

// Plots draws the course of the metric, and below it those of the further metrics, if there is something to see.
func (s Style) Plots(c Course, f Further) (plots []string) {
	plots = []string{s.Plot(c)}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		plots = append(plots, s.plot(f[name], Clean(name)+" of what is kept, by iteration"))
	}
	return slices.DeleteFunc(plots, func(plot string) bool { return plot == "" })
}

// The size of the plot, without its axes, in rows and columns.
const (
	plotHeight = 8
	plotWidth  = 60
)

// Plot draws the course as steps, because there is nothing between two iterations. It is empty if there is nothing to
// see: no iteration, or numbers too large to draw.
func (s Style) Plot(c Course) string { return s.plot(c, "best metric by iteration") }

func (s Style) plot(c Course, caption string) string {
	if len(c) < 2 {
		return ""
	}
	low, high := slices.Min(c), slices.Max(c)
	if math.IsInf(high-low, 0) || math.IsNaN(high-low) {
		return ""
	}
	// The library counts its rows in integers. So it gets the distance from the lowest value as a share of the span,
	// and never a number as large as the metric.
	span := high - low
	if span == 0 {
		span = 1
	}
	// Tick k is in the middle of the part that shows the best value after iteration k.
	last := float64(len(c) - 1)
	width := max(20, min(plotWidth, s.Width-16))
	points := make([]float64, width)
	for i := range points {
		points[i] = (c[int(math.Round(float64(i)*last/float64(width-1)))] - low) / span
	}
	options := []asciigraph.Option{
		asciigraph.Height(plotHeight),
		asciigraph.XAxisRange(0, last),
		asciigraph.XAxisTickCount(min(len(c), 11)),
		asciigraph.XAxisValueFormatter(func(v float64) string { return strconv.Itoa(int(math.Round(v))) }),
		asciigraph.YAxisValueFormatter(func(v float64) string { return strconv.FormatFloat(low+v*span, 'g', 6, 64) }),
		asciigraph.Caption(caption),
	}
	if s.Color {
		options = append(options, asciigraph.SeriesColors(asciigraph.Green))
	}
	return asciigraph.Plot(points, options...)
}
