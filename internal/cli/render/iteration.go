package render

import (
	"cmp"

	"pawl/internal/loop"
	reasons "pawl/internal/metric/reason"
	"pawl/internal/spec/kind"
)

// Iteration renders a finished iteration in one line: number, outcome, metric, delta, description.
func (s Style) Iteration(k kind.Kind, it loop.Iteration) string {
	outcome, color := outcomeOf(k, it), ""
	switch {
	case it.Kept:
		color = green
	case it.Reason != "":
		color = yellow
	}
	metric, delta, percent := "–", "", ""
	if it.Measured() {
		reference := it.Metric.Sub(it.Delta)
		metric, delta, percent = it.Metric.String(), signed(it.Delta), share(it.Delta, reference)
	}
	line := padLeft(itoa(it.N), 4) + "  " + s.paint(color, pad(outcome, 18)) + "  "
	if it.Metric != nil || k.Reference {
		line += padLeft(metric, 10) + "  " + padLeft(delta, 10) + "  " + padLeft(percent, 7) + "  "
	}
	line += Clean(it.Description) + s.Dim(Around(" by ", Clean(it.Agent), ""))
	line += s.Dim(Around(" (", Clean(it.Why()), ")"))
	line += s.Dim(above(0, " (branch ", it.Branch, ")"))
	line += s.Dim(Around(" (", evaluated(it), ")"))
	line += s.Dim(above(1, " (", it.Attempts, " attempts)"))
	if it.DurationMs > 0 {
		line += s.Dim("  " + Duration(millis(float64(it.DurationMs))))
	}
	return s.Hang(line, 26) // below what follows the outcome
}

// evaluated says how a metric was sampled, and against what: the reference is measured again and again. It is "" for a
// metric that is measured once.
func evaluated(it loop.Iteration) string {
	if it.Samples == 0 || !it.Measured() {
		return ""
	}
	return plural(it.Samples, "evaluation") + " against " + it.Metric.Sub(it.Delta).String()
}

// Baseline renders the same line for the unchanged code.
func (s Style) Baseline(metric string) string {
	return padLeft("0", 4) + "  " + pad("baseline", 18) + "  " + padLeft(metric, 10)
}

// outcomeOf returns the outcome of an iteration, in a word of its kind, or the reason why it was not kept.
func outcomeOf(k kind.Kind, it loop.Iteration) string {
	switch {
	case it.Kept && it.Suspicious:
		return k.Kept.Word + ", suspicious"
	case it.Kept && len(it.Flaky) > 0:
		return k.Kept.Word + ", flaky"
	case it.Kept:
		return k.Kept.Word
	case it.Reason == "":
		return k.NotKept.Word
	}
	return Clean(it.Reason)
}

// Meaning explains an iteration's outcome.
func Meaning(k kind.Kind, it loop.Iteration) string {
	if it.Kept {
		return k.Kept.Meaning
	}
	return cmp.Or(reasons.Meaning(it.Reason), k.NotKept.Meaning)
}
