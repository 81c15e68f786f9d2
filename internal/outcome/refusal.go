package outcome

import (
	"strconv"
	"strings"
	"time"

	"pawl/internal/lazyregexp"
)

// Refusal is a provider's refusal to work, as the program reports it.
type Refusal struct {
	Class  Class
	Status int    // the status of HTTP, 0 if the program does not name it
	Said   string // the program's words
	// Until is when the provider works again, zero if the program names no time. After is the wait that the program
	// names, from the moment when it says so.
	Until time.Time
	After time.Duration
}

// ByStatus returns the class of an HTTP status, "" if the status is no refusal to work.
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

// words are what programs write in their own failures when a provider refused to work. pawl never looks for them in a
// model's text. The first match decides.
var words = []struct {
	class Class
	words lazyregexp.Regexp
}{
	{RateLimited, lazyregexp.New(`(?i)(usage|rate|session|weekly|5-hour|hit your|quota)[ _-]?limit|hit your limit|quota (was |is )?(exceeded|exhausted)|(exceeded|exhausted) your (\w+ )*quota|RESOURCE_EXHAUSTED|too many requests`)},
	{AuthMissing, lazyregexp.New(`(?i)unauthori[sz]ed|authentication[_ ](failed|error|required)|(invalid|incorrect|missing|no|set an?|provide an?) (\S+ )?(api[ _-]?key|auth method|credentials)|api[ _-]?key (is )?(not (valid|found|set)|invalid|missing)|not (logged|signed) in|/login\b|please (log|sign) in|missing environment variable`)},
	{ProviderDown, lazyregexp.New(`(?i)overloaded|internal server error|bad gateway|service unavailable|gateway timeout|high demand|stream (disconnected|ended without|closed before)|connection (refused|error|reset|closed|failed)|error sending request|fetch failed|request timed out|ECONN(REFUSED|RESET)|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|socket hang up|network error`)},
}

// statusIn finds the HTTP status in a failure.
var statusIn = lazyregexp.New(`(?i)(?:^\W*|(?:status|error|http|code)[^0-9a-z]{1,12}(?:code[^0-9a-z]{1,4})?)([45][0-9]{2})\b`)

// ByWords returns the class of a program's failure from its words, "" if it is no refusal to work.
func ByWords(failure string) Class {
	if m := statusIn().FindStringSubmatch(failure); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && ByStatus(n) != "" {
			return ByStatus(n)
		}
	}
	for _, w := range words {
		if w.words().MatchString(failure) {
			return w.class
		}
	}
	return ""
}

// In returns the refusal that the words of a failure report, nil if there is none.
func In(failure string) *Refusal {
	class := ByWords(failure)
	if class == "" {
		return nil
	}
	r := &Refusal{Class: class, Said: failure}
	if m := resets().FindStringSubmatch(failure); m != nil {
		if at, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			r.Until = time.Unix(at, 0).UTC()
		}
	}
	return r
}

// resets matches the forms in which programs say when a limit ends, in Unix seconds: a field of JSON, or after a bar.
var resets = lazyregexp.New(`(?:"?resets?_?[aA]t"?\s*[:=]\s*|\|)([0-9]{10})\b`)

// The forms for people: a time of day, with a date if it is not today, or a duration.
var (
	ofDay   = lazyregexp.New(`(?i)(?:try again at|resets(?: at)?) (?:([A-Z][a-z]{2}) ([0-9]{1,2})(?:st|nd|rd|th)?,? (?:([0-9]{4}),? )?)?([0-9]{1,2})(?::([0-9]{2}))? ?([ap]m)(?: \(?(UTC)\)?)?`)
	howLong = lazyregexp.New(`(?i)(?:(?:try again|retry|reset) (?:in|after)|retry[-_ ]?(?:delay|after)\W{1,4}) ?((?:[0-9.]+ ?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\b[, ]*(?:and )?)+)`)
	part    = lazyregexp.New(`(?i)([0-9.]+) ?(ms|milli|s|m|h|d)`)
)

// late is how long ago a time of day may be without meaning tomorrow.
const late = 15 * time.Minute

// When returns the time until which the provider refuses, zero if it is unknown. now is when the program said so, in
// the zone of the program's times of day.
func (r Refusal) When(now time.Time) time.Time {
	switch {
	case !r.Until.IsZero():
		return r.Until
	case r.After > 0:
		return now.Add(r.After).UTC()
	case r.Class != RateLimited:
		return time.Time{}
	}
	if m := howLong().FindStringSubmatch(r.Said); m != nil {
		var d time.Duration
		for _, p := range part().FindAllStringSubmatch(m[1], -1) {
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

// atTime finds a time of day and returns the end of that minute, because programs cut the seconds off.
func atTime(said string, now time.Time) time.Time {
	m := ofDay().FindStringSubmatch(said)
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
