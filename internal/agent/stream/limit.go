package stream

import (
	"regexp"
	"strconv"
	"time"

	"pawl/internal/loop"
	"pawl/internal/task"
)

// limits are the words by which the programs say that they were refused work for a while. They are looked for in
// what a program says of its failure alone, never in what a model says.
var limits = regexp.MustCompile(`(?i)(usage|rate|session|weekly|5-hour|hit your|quota)[ _-]?limit|hit your limit|quota (was |is )?(exceeded|exhausted)|RESOURCE_EXHAUSTED|too many requests|\b429\b`)

// resets are the forms in which they say when that ends, in Unix seconds: a field of JSON, or behind a bar.
var resets = regexp.MustCompile(`(?:"?resets?_?[aA]t"?\s*[:=]\s*|\|)([0-9]{10})\b`)

// refused returns the rate limit that a failure is, nil for any other. Until is zero where it does not say when the
// limit ends; a time of day without a date and a zone says nothing.
func refused(failure string) *task.RateLimit {
	if failure == "" || !limits.MatchString(failure) {
		return nil
	}
	l := &task.RateLimit{Said: loop.Clip(failure, 300)}
	if m := resets.FindStringSubmatch(failure); m != nil {
		if at, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			l.Until = time.Unix(at, 0).UTC()
		}
	}
	return l
}
