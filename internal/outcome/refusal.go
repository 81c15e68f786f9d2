package outcome

import (
	"strconv"
	"strings"
	"time"

	"pawl/internal/lazyregexp"
)

// Refusal is what a provider answered instead of work, as its program tells.
type Refusal struct {
	Class  Class
	Status int    // of HTTP, 0 where the program does not say it
	Said   string // by the program
	// Until is when the provider works again, zero where the program does not say it as a time. After is how long it
	// says that to be, from when it said so.
	Until time.Time
	After time.Duration
}

// ByStatus is the class of an HTTP status, "" for one that is no refusal to work.
func ByStatus(status int) Class {
	switch {
	case status == 429:
		return RateLimited
	case status == 401 || status == 403:
		return AuthMissing
	case status == 408 || status >= 500 && status < 600:
		return ProviderDown
	}
	return ""
}

// words are those by which the programs say in their own failures that they were refused work. They are never looked for
// in what a model says. The first that is found counts.
var words = []struct {
	class Class
	words *lazyregexp.Regexp
}{
	{RateLimited, lazyregexp.New(`(?i)(usage|rate|session|weekly|5-hour|hit your|quota)[ _-]?limit|hit your limit|quota (was |is )?(exceeded|exhausted)|(exceeded|exhausted) your (\w+ )*quota|RESOURCE_EXHAUSTED|too many requests`)},
	{AuthMissing, lazyregexp.New(`(?i)unauthori[sz]ed|authentication[_ ](failed|error|required)|(invalid|incorrect|missing|no|set an?|provide an?) (\S+ )?(api[ _-]?key|auth method|credentials)|api[ _-]?key (is )?(not (valid|found|set)|invalid|missing)|not (logged|signed) in|/login\b|please (log|sign) in|missing environment variable`)},
	{ProviderDown, lazyregexp.New(`(?i)overloaded|internal server error|bad gateway|service unavailable|gateway timeout|high demand|stream (disconnected|ended without|closed before)|connection (refused|error|reset|closed|failed)|error sending request|fetch failed|request timed out|ECONN(REFUSED|RESET)|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|socket hang up|network error`)},
}

// statusIn finds the HTTP status that a failure names.
var statusIn = lazyregexp.New(`(?i)(?:^\W*|(?:status|error|http|code)[^0-9a-z]{1,12}(?:code[^0-9a-z]{1,4})?)([45][0-9]{2})\b`)

// ByWords is the class of a failure that a program names in words, "" where it is no refusal to work.
func ByWords(failure string) Class {
	if m := statusIn.FindStringSubmatch(failure); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && ByStatus(n) != "" {
			return ByStatus(n)
		}
	}
	for _, w := range words {
		if w.words.MatchString(failure) {
			return w.class
		}
	}
	return ""
}

// In returns the refusal that a failure is by its words, nil where it is none.
func In(failure string) *Refusal {
	class := ByWords(failure)
	if class == "" {
		return nil
	}
	r := &Refusal{Class: class, Said: failure}
	if m := resets.FindStringSubmatch(failure); m != nil {
		if at, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			r.Until = time.Unix(at, 0).UTC()
		}
	}
	return r
}

// resets are the forms in which programs say when a limit ends, in Unix seconds: a field of JSON, or behind a bar.
var resets = lazyregexp.New(`(?:"?resets?_?[aA]t"?\s*[:=]\s*|\|)([0-9]{10})\b`)

// The forms in which they say it to people: a time of day, with a date where it is not today, or how long it takes.
var (
	ofDay   = lazyregexp.New(`(?i)(?:try again at|resets(?: at)?) (?:([A-Z][a-z]{2}) ([0-9]{1,2})(?:st|nd|rd|th)?,? (?:([0-9]{4}),? )?)?([0-9]{1,2})(?::([0-9]{2}))? ?([ap]m)(?: \(?(UTC)\)?)?`)
	howLong = lazyregexp.New(`(?i)(?:(?:try again|retry|reset) (?:in|after)|retry[-_ ]?(?:delay|after)\W{1,4}) ?((?:[0-9.]+ ?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\b[, ]*(?:and )?)+)`)
	part    = lazyregexp.New(`(?i)([0-9.]+) ?(ms|milli|s|m|h|d)`)
)

// late is how long ago a time of day may have been that is not tomorrow's.
const late = 15 * time.Minute

// When returns until when the provider refuses, zero where nobody can tell. now is when the program has said so, in the
// zone that it tells times of day in.
func (r Refusal) When(now time.Time) time.Time {
	switch {
	case !r.Until.IsZero():
		return r.Until
	case r.After > 0:
		return now.Add(r.After).UTC()
	case r.Class != RateLimited:
		return time.Time{}
	}
	if m := howLong.FindStringSubmatch(r.Said); m != nil {
		var d time.Duration
		for _, p := range part.FindAllStringSubmatch(m[1], -1) {
			n, err := strconv.ParseFloat(p[1], 64)
			if err != nil || n > 1e6 {
				return time.Time{}
			}
			unit := map[string]time.Duration{"ms": time.Millisecond, "milli": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[strings.ToLower(p[2])]
			d += time.Duration(n * float64(unit))
		}
		return now.Add(d).UTC()
	}
	return atTime(r.Said, now)
}

// atTime finds a time of day. Programs cut its seconds off, so it is the end of that minute.
func atTime(said string, now time.Time) time.Time {
	m := ofDay.FindStringSubmatch(said)
	if m == nil {
		return time.Time{}
	}
	zone := now.Location()
	if m[7] != "" {
		zone = time.UTC
	}
	here := now.In(zone)
	hour, _ := strconv.Atoi(m[4])
	minute, _ := strconv.Atoi(m[5])
	if hour < 1 || hour > 12 || minute > 59 {
		return time.Time{}
	}
	if hour %= 12; strings.EqualFold(m[6], "pm") {
		hour += 12
	}
	at := time.Date(here.Year(), here.Month(), here.Day(), hour, minute+1, 0, 0, zone)
	if m[1] != "" {
		month, err := time.Parse("Jan", m[1])
		day, _ := strconv.Atoi(m[2])
		if err != nil || day > 31 {
			return time.Time{}
		}
		year := here.Year()
		if m[3] != "" {
			year, _ = strconv.Atoi(m[3])
		} else if month.Month() < here.Month() {
			year++
		}
		return time.Date(year, month.Month(), day, hour, minute+1, 0, 0, zone).UTC()
	}
	switch {
	case now.Sub(at) > late:
		at = at.AddDate(0, 0, 1)
	case at.AddDate(0, 0, -1).After(now.Add(-late)): // midnight has just passed
		at = at.AddDate(0, 0, -1)
	}
	return at.UTC()
}
