package result

import (
	"cmp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // so that every host knows the same time zones

	"pawl/internal/lib/lazyregexp"
)

// clock matches the forms for people in which programs say when a limit ends: a time of day, with a date if it is not
// today, and with a zone if it is not that of the machine.
var clock = lazyregexp.New(`(?i)(?:try again|resets?|available again|retry)(?:_?at"?\s*[:=]\s*"?| at| on|:)? ` + "?" +
	`(?:(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]|, )` +
	`|(?:on )?(?:(?P<weekday>today|tomorrow|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?)\b,? )?` +
	`(?:(?P<month>[a-z]{3,9})\.? (?P<day>[0-9]{1,2})(?:st|nd|rd|th)?,? (?:(?P<year>[0-9]{4}),? )?)?(?:at )?)` +
	`(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))?(?::(?P<second>[0-9]{2})(?:\.[0-9]+)?)? ?(?P<half>[ap]\.?m\b\.?)?` +
	`(?:` + zoneAfter + `(?P<zone>` + someZone + `))?(?: (?P<dayAfter>today|tomorrow)\b(?:` + zoneAfter + `(?P<zoneAfterDay>` + someZone + `))?)?`)

const (
	// zoneAfter is what stands between a time and its zone.
	zoneAfter = `(?: in |,? ?| [-–—] )`
	// someZone is a zone in brackets or without: a name, an abbreviation, an offset.
	someZone = `\([^)]*\)|\[[^\]]*\]|(?-i:(?:US )?(?:Pacific|Mountain|Central|Eastern)(?: Standard| Daylight)?(?: [Tt]ime)?\b|(?:your )?local time` +
		`|[A-Z][A-Za-z]+/[A-Za-z_/+0-9-]+|(?:UTC|GMT|utc|gmt) ?[-+−] ?[0-9]{1,2}(?::?[0-9]{2})?\b|[-+−][0-9]{1,2}(?::?[0-9]{2})?\b|[A-Z]{1,5}(?:[0-9][A-Z]{3})?\b)|(?:utc|gmt|[pmce][sd]?t|cest)\b`
)

// goesOn matches how a message goes on after a time and its zone. What else follows may be a zone that has another form, or
// a date.
var goesOn = lazyregexp.New(`(?i)^(?:\s*$|\s*[\r\n]|\s*[^\w\s(\[,+−–—-]|\s*[-–—,]?\s*(?:or|and|but|so|to|if|for|with|when|while|until|unless|then|once|because|please|local` +
	`|in [0-9]|try|wait|see|visit|upgrade|run|use|switch|contact|check|get|buy|add|purchase|request|continue|you|your|we|this|it)\b)`)

// late is how long ago a time of day may be without meaning tomorrow.
const late = 15 * time.Minute

// atTime finds a time of day, and returns the end of that minute, because programs cut the seconds off. It returns zero
// for a time that does not exist, and in a zone that it does not know.
func atTime(said string, now time.Time) time.Time {
	m := clock().FindStringSubmatch(said)
	if m == nil {
		return time.Time{}
	}
	field := func(name string) string { return m[clock().SubexpIndex(name)] }
	named := field("zone") + field("zoneAfterDay")
	rest := said[strings.Index(said, m[0])+len(m[0]):]
	restated := named != "" && strings.HasPrefix(rest, " (") // the same zone in other words: GMT+0100 (CET)
	if !restated && !goesOn().MatchString(rest) {
		return time.Time{}
	}
	zone := zoneOf(named, now.Location())
	hour, minute, ok := timeOfDay(field("hour"), field("minute"), field("half"))
	if zone == nil || !ok {
		return time.Time{}
	}
	local := now.In(zone)
	second := number(field("second"))
	if field("second") == "" {
		minute++
	}
	onDay := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, hour, minute, second, 0, zone).UTC()
	}
	year, month, day := local.Date()
	if field("iso") != "" {
		date, err := time.Parse(time.DateOnly, field("iso"))
		if err != nil {
			return time.Time{}
		}
		return onDay(date.Date())
	}
	if field("month") != "" {
		return onDate(field("month"), field("day"), field("year"), local, onDay)
	}
	name := strings.ToLower(field("weekday"))
	if field("dayAfter") != "" {
		name = strings.ToLower(field("dayAfter"))
	}
	switch name {
	case "":
		return nearest(onDay, local)
	case "today":
		return onDay(year, month, day)
	case "tomorrow":
		return onDay(year, month, day+1)
	}
	for days := range 8 {
		candidate := onDay(year, month, day+days)
		if strings.HasPrefix(strings.ToLower(candidate.In(zone).Weekday().String()), name[:3]) && now.Sub(candidate) <= late {
			return candidate
		}
	}
	return time.Time{}
}

// nearest returns the next time of day, or one that has just passed.
func nearest(onDay func(int, time.Month, int) time.Time, now time.Time) time.Time {
	year, month, day := now.Date()
	for _, days := range []int{-1, 0} {
		if candidate := onDay(year, month, day+days); now.Sub(candidate) <= late {
			return candidate
		}
	}
	return onDay(year, month, day+1)
}

// onDate returns the time on a date, whose year may be missing.
func onDate(name, digits, inYear string, now time.Time, onDay func(int, time.Month, int) time.Time) time.Time {
	month, err := time.Parse("Jan", name[:3])
	if err != nil || !strings.HasPrefix(strings.ToLower(month.Month().String()), strings.ToLower(name)) {
		return time.Time{}
	}
	year, day := now.Year(), number(digits)
	if inYear != "" {
		year = number(inYear)
	} else if month.Month() < now.Month() {
		year++
	}
	if date := time.Date(year, month.Month(), day, 0, 0, 0, 0, time.UTC); date.Day() != day {
		return time.Time{}
	}
	return onDay(year, month.Month(), day)
}

// timeOfDay reads a time of a clock with twelve hours or, without a half, with twenty-four. ok is false for another time.
func timeOfDay(hours, minutes, half string) (hour, minute int, ok bool) {
	hour, minute = number(hours), number(minutes)
	if minute > 59 {
		return 0, 0, false
	}
	if half == "" {
		return hour, minute, hour < 24 && minutes != ""
	}
	if hour < 1 || hour > 12 {
		return 0, 0, false
	}
	if hour %= 12; strings.EqualFold(half[:1], "p") {
		hour += 12
	}
	return hour, minute, true
}

// zones are the abbreviations that mean one offset, in seconds from UTC. IST, which means three, is none of them.
var zones = map[string]int{
	"UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 3600, "BST": 3600, "CET": 3600, "CEST": 7200, "EET": 7200, "EEST": 10800, "MSK": 10800,
	"PST": -8 * 3600, "PDT": -7 * 3600, "MST": -7 * 3600, "MDT": -6 * 3600, "CST": -6 * 3600, "CDT": -5 * 3600, "EST": -5 * 3600, "EDT": -4 * 3600,
	"AKST": -9 * 3600, "AKDT": -8 * 3600, "HST": -10 * 3600, "BRT": -3 * 3600, "ART": -3 * 3600,
	"JST": 9 * 3600, "KST": 9 * 3600, "HKT": 8 * 3600, "SGT": 8 * 3600, "AWST": 8 * 3600, "AEST": 10 * 3600, "AEDT": 11 * 3600,
	"NZST": 12 * 3600, "NZDT": 13 * 3600,
}

// regions are the words for zones whose offset depends on the date.
var regions = map[string]string{
	"PT": "America/Los_Angeles", "PACIFIC": "America/Los_Angeles", "MT": "America/Denver", "MOUNTAIN": "America/Denver",
	"CT": "America/Chicago", "CENTRAL": "America/Chicago", "ET": "America/New_York", "EASTERN": "America/New_York",
	"PACIFIC STANDARD": "Etc/GMT+8", "PACIFIC DAYLIGHT": "Etc/GMT+7", "MOUNTAIN STANDARD": "Etc/GMT+7", "MOUNTAIN DAYLIGHT": "Etc/GMT+6",
	"CENTRAL STANDARD": "Etc/GMT+6", "CENTRAL DAYLIGHT": "Etc/GMT+5", "EASTERN STANDARD": "Etc/GMT+5", "EASTERN DAYLIGHT": "Etc/GMT+4",
}

var offset = lazyregexp.New(`^(?:UTC|GMT)? ?([-+−]) ?([0-9]{1,2})(?::?([0-9]{2}))?$`)

// zoneOf returns the zone that a text names: local for none, nil for one that is not known.
func zoneOf(text string, local *time.Location) *time.Location {
	text = strings.TrimSpace(strings.Trim(text, "()[]"))
	name := strings.TrimSuffix(strings.TrimPrefix(strings.ToUpper(text), "US "), " TIME")
	switch name {
	case "", "LOCAL", "YOUR LOCAL":
		return local
	}
	if seconds, ok := zones[name]; ok {
		return time.FixedZone(name, seconds)
	}
	if m := offset().FindStringSubmatch(name); m != nil {
		hours, minutes := number(m[2]), number(m[3])
		if hours > 14 || minutes > 59 {
			return nil
		}
		seconds := hours*3600 + minutes*60
		if m[1] != "+" {
			seconds = -seconds
		}
		return time.FixedZone(name, seconds)
	}
	zone, err := time.LoadLocation(cmp.Or(regions[name], text))
	if err != nil {
		return nil
	}
	return zone
}

// number returns a number of a few digits, 0 for none.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
