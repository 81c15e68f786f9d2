package render

import (
	"cmp"

	"pawl/internal/loop"
	reasons "pawl/internal/metric/reason"
	"pawl/internal/spec/kind"
)

// Iteration renders a finished iteration in one line: number, outcome, metric, delta, description.
func (s Style) Iteration(k kind.Kind, iter loop.Iteration) string {
	outcome, color := outcomeOf(k, iter), ""
	switch {
	case iter.Kept:
		color = green
	case iter.Reason != "":
		color = yellow
	}
	metric, delta, percent := "–", "", ""
	if iter.Measured() {
		reference := iter.Metric.Sub(iter.Delta)
		metric, delta, percent = iter.Metric.String(), signed(iter.Delta), share(iter.Delta, reference)
	}
	line := padLeft(itoa(iter.N), 4) + "  " + s.paint(color, pad(outcome, 18)) + "  "
	if iter.Metric != nil || k.Reference {
		line += padLeft(metric, 10) + "  " + padLeft(delta, 10) + "  " + padLeft(percent, 7) + "  "
	}
	line += Clean(iter.Description) + s.Dim(Around(" by ", Clean(iter.Agent), ""))
	line += s.Dim(Around(" (", Clean(iter.Why()), ")"))
	line += s.Dim(above(0, " (branch ", iter.Branch, ")"))
	line += s.Dim(Around(" (", evaluated(iter), ")"))
	line += s.Dim(above(1, " (", iter.Attempts, " attempts)"))
	if iter.DurationMs > 0 {
		line += s.Dim("  " + Duration(millis(float64(iter.DurationMs))))
	}
	return s.Hang(line, 26) // below what follows the outcome
}

// evaluated says how a metric was sampled, and against what: the reference is measured again and again. It is "" for a
// metric that is measured once.
func evaluated(iter loop.Iteration) string {
	if iter.Samples == 0 || !iter.Measured() {
		return ""
	}
	return plural(iter.Samples, "evaluation") + " against " + iter.Metric.Sub(iter.Delta).String()
}

// Baseline renders the same line for the unchanged code.
func (s Style) Baseline(metric string) string {
	return padLeft("0", 4) + "  " + pad("baseline", 18) + "  " + padLeft(metric, 10)
}

// outcomeOf returns the outcome of an iteration, in a word of its kind, or the reason why it was not kept.
func outcomeOf(k kind.Kind, iter loop.Iteration) string {
	switch {
	case iter.Kept && iter.Suspicious:
		return k.Kept.Word + ", suspicious"
	case iter.Kept && len(iter.Flaky) > 0:
		return k.Kept.Word + ", flaky"
	case iter.Kept:
		return k.Kept.Word
	case iter.Reason == "":
		return k.NotKept.Word
	}
	return Clean(iter.Reason)
}

// Meaning explains an iteration's outcome.
func Meaning(k kind.Kind, iter loop.Iteration) string {
	if iter.Kept {
		return k.Kept.Meaning
	}
	return cmp.Or(reasons.Meaning(iter.Reason), k.NotKept.Meaning)
}
