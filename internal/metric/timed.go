package metric

import (
	"slices"
	"strings"
	"unicode"
)

// timed are the words in the name of a metric that say that it is a time or a rate.
var timed = []string{
	"s", "ms", "us", "ns", "sec", "secs", "second", "seconds", "millis", "nanos", "time", "latency", "duration", "elapsed",
	"rps", "qps", "tps", "ops", "throughput", "rate",
}

// Timed reports whether the metric of the form is a time or a rate, by its unit or else by its name.
func (f *Form) Timed() bool {
	if f == nil {
		return false
	}
	if unit := f.Units[""]; unit != "" && (units[unit].base == "s" || strings.HasSuffix(unit, "/s")) {
		return true
	}
	words := strings.FieldsFunc(f.Sources[""].Name, func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(timed, strings.ToLower(word)) })
}
