// Package interval reckons with spans of a day, as a calendar needs them: what is taken, what is
// free.
package interval

import (
	"fmt"
	"slices"
)

// Interval is a span of a day in minutes since midnight. Its end is no part of it.
type Interval struct{ Start, End int }

// String returns the interval as people write it: 09:00-10:30.
func (i Interval) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", i.Start/60, i.Start%60, i.End/60, i.End%60)
}

// Parse reads what String writes.
func Parse(text string) (Interval, error) {
	var h1, m1, h2, m2 int
	if n, err := fmt.Sscanf(text, "%d:%d-%d:%d", &h1, &m1, &h2, &m2); n != 4 || err != nil {
		return Interval{}, fmt.Errorf("%q is not like 09:00-10:30", text)
	}
	i := Interval{60*h1 + m1, 60*h2 + m2}
	if h1 < 0 || i.End > 24*60 || m1 > 59 || m2 > 59 || i.Start >= i.End {
		return Interval{}, fmt.Errorf("%q is no span of a day", text)
	}
	return i, nil
}

// Merge returns the intervals in order, with those that overlap or touch as one.
func Merge(all []Interval) []Interval {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b Interval) int { return a.Start - b.Start })
	var merged []Interval
	for _, next := range sorted {
		if n := len(merged); n > 0 && next.Start <= merged[n-1].End {
			merged[n-1].End = next.End
			continue
		}
		merged = append(merged, next)
	}
	return merged
}

// Free returns what of a day none of the intervals takes.
func Free(day Interval, taken []Interval) []Interval {
	var free []Interval
	at := day.Start
	for _, t := range Merge(taken) {
		if end := min(t.Start, day.End); at < end {
			free = append(free, Interval{at, end})
		}
		at = max(at, t.End)
	}
	if at < day.End {
		free = append(free, Interval{at, day.End})
	}
	return free
}
