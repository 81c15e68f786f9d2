package metric

import (
	"fmt"
	"maps"
	"slices"

	"github.com/shopspring/decimal"
)

// MostNames is how many further metrics are read from an output, and how many a spec may name.
const MostNames = 32

// Named returns what METRIC <name>=<number> says in an output: the last of each name, for at most 32 names. It skips one
// without a whole number, one behind another prefix than in the first output, and in the first output one that is printed
// behind several prefixes.
func Named(out Output, form *Form) map[string]Reading {
	if form != nil && form.Sources == nil {
		return namedEarlier(out.Stdout)
	}
	found := out.metrics()
	named := map[string]Reading{}
	for _, name := range namesOf(found) {
		source, located := Search{Form: form}.wanted(name)
		if !located {
			last := found[lastOf(found, name)]
			source = Source{From: FromMetric, Name: name, Prefix: last.shape()}
		}
		if reading, err := readMetric(out, found, source, !located); err == nil && len(named) < MostNames {
			named[name] = reading
		}
	}
	return named
}

// namesOf returns the names, in their order.
func namesOf(found []metricAt) (names []string) {
	for _, m := range found {
		if !slices.Contains(names, m.name) && len(names) < MostNames {
			names = append(names, m.name)
		}
	}
	return names
}

// lastOf returns the index of the last METRIC of a name.
func lastOf(found []metricAt, name string) int {
	for i, m := range slices.Backward(found) {
		if m.name == name {
			return i
		}
	}
	return -1
}

// namedEarlier is Named for a loop that began before a form said where its numbers are.
func namedEarlier(stdout []byte) map[string]Reading {
	lines := metricLines(Plain(stdout))
	if lines == nil {
		return nil
	}
	named := map[string]Reading{}
	for _, line := range lines {
		reading, err := byMetricLine(line)
		if _, ok := named[reading.Name]; err == nil && (ok || len(named) < MostNames) {
			named[reading.Name] = reading
		}
	}
	return named
}

// Bound is a further metric that a spec names. A change that makes it worse than allowed is discarded.
type Bound struct {
	Name      string     `json:"name"`
	Direction string     `json:"direction,omitempty"` // Higher or Lower: which way is better
	AtWorst   *Threshold `json:"atWorst,omitempty"`   // a value, or a distance from the baseline; nil: only recorded
}

// Limit returns the worst value that is allowed, given the value at the baseline.
func (b Bound) Limit(baseline Decimal) Decimal {
	switch {
	case !b.AtWorst.Percent:
		return b.AtWorst.Value
	case b.Direction == Lower:
		return baseline.Add(b.AtWorst.Of(baseline))
	}
	return baseline.Sub(b.AtWorst.Of(baseline))
}

// BrokenBound is a bound that a change breaks.
type BrokenBound struct {
	Name    string  `json:"name"`
	Value   Decimal `json:"value"`
	Limit   Decimal `json:"limit"`
	Missing bool    `json:"missing,omitempty"` // there is no number to compare with the bound
}

// Broken returns the first bound that a change with these values breaks. A bound without a number counts as broken,
// because nobody knows that it is kept. The number may be missing in the change, or in the baseline if the bound
// refers to that.
func Broken(bounds []Bound, baseline, values map[string]Decimal) (broken BrokenBound, found bool) {
	for _, b := range bounds {
		if b.AtWorst == nil {
			continue
		}
		reference, ok := baseline[b.Name]
		value, found := values[b.Name]
		if !found || b.AtWorst.Percent && !ok {
			return BrokenBound{Name: b.Name, Missing: true}, true
		}
		if limit := b.Limit(reference); !TargetMet(b.Direction, value, limit) {
			return BrokenBound{Name: b.Name, Value: value, Limit: limit}, true
		}
	}
	return BrokenBound{}, false
}

// String returns what is wrong.
func (b BrokenBound) String() string {
	if b.Missing {
		return fmt.Sprintf("no line METRIC %s=<number> that can be compared with its bound", b.Name)
	}
	return fmt.Sprintf("%s is %s, at worst it may be %s", b.Name, b.Value, b.Limit)
}

// Average is the average of a further metric over some evaluations.
type Average struct {
	N   int     `json:"n"`
	Sum Decimal `json:"sum"`
}

// Mean returns the mean, with six digits more than the sum has, 0 if there are no values.
func (a Average) Mean() Decimal {
	if a.N <= 1 {
		return a.Sum
	}
	sum := a.Sum.value()
	return written(sum.DivRound(decimal.NewFromInt(int64(a.N)), max(0, -sum.Exponent())+6).String())
}

// Averages are the averages of further metrics, by their names.
type Averages map[string]Average

// With returns the averages with one more evaluation, for at most 32 names. It does not change a.
func (a Averages) With(values map[string]Decimal) Averages {
	out := Averages{}
	maps.Copy(out, a)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if average, ok := out[name]; ok {
			out[name] = Average{average.N + 1, average.Sum.Add(values[name])}
		} else if len(out) < MostNames {
			out[name] = Average{1, values[name]}
		}
	}
	return out
}

// Values returns the means.
func (a Averages) Values() map[string]Decimal {
	values := make(map[string]Decimal, len(a))
	for _, name := range slices.Sorted(maps.Keys(a)) {
		values[name] = a[name].Mean()
	}
	return values
}
