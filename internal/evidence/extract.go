package evidence

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pawl/internal/lazyregexp"
)

// Where a Reading was found.
const (
	FromPattern = "pattern"
	FromMetric  = "METRIC"
	FromLast    = "last"
)

// Reading is a metric that was found in a command's output.
type Reading struct {
	Value   Decimal `json:"value"`
	From    string  `json:"from"`              // "pattern", "METRIC" or "last"
	Name    string  `json:"name,omitempty"`    // the name in the METRIC line
	Count   int     `json:"count"`             // how many numbers were found where Value was looked for
	Several bool    `json:"several,omitempty"` // there was more than one number, and nothing said which one counts
	Grouped bool    `json:"grouped,omitempty"` // Value was written with thousands separators
	Unit    string  `json:"unit,omitempty"`    // the unit behind the number, if pawl knows it
	// Others are the names in the METRIC lines that could have been meant as well.
	Others []string `json:"others,omitempty"`
}

// Guessed reports whether something else could have been meant.
func (r Reading) Guessed() bool { return r.Several || r.Grouped || len(r.Others) > 0 }

// Warning returns what a user should know about a reading that was a guess; "" if it was not.
func (r Reading) Warning() string {
	const hint = `; print a line "METRIC <name>=<number>" or set verify.pattern to say which is meant`
	switch {
	case r.Several:
		return fmt.Sprintf("%d numbers in the output, the last one, %s, was taken%s", r.Count, r.Value, hint)
	case len(r.Others) > 0:
		return fmt.Sprintf("METRIC lines of several names in the output, the last one, %s=%s, was taken, and not %s; print the metric last, or set verify.pattern to say which is meant", r.Name, r.Value, some(r.Others))
	case r.Grouped:
		return fmt.Sprintf("the commas in the number were read as thousands separators: %s; print it without them (LC_ALL=C)", r.Value)
	}
	return ""
}

// some returns the first few of these names.
func some(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// NoNumber is the error for output without a metric. The change is undone with error:no-number (P5).
type NoNumber struct {
	Why  string // what was expected and not found
	Seen string // the piece of output in its place, short and printable; may be empty
}

func (e *NoNumber) Error() string {
	if e.Seen == "" {
		return e.Why
	}
	return e.Why + ": " + e.Seen
}

// Extract finds the metric in a command's output (P5). With a pattern it is the first group (without a group: the
// whole) of the pattern's last match, else the value in the last line "METRIC <name>=<number>", else the last number
// in the output. If the value that a rule finds is not a number (NaN, Inf, nothing, beyond 10^308) or may be another one
// ("0,75"), the error is a *NoNumber. The next rule is not tried then, because that would judge a change by some other
// figure. Further are the names of METRIC lines that are not the metric, unless such a line is the last.
//
// The output may be large, coloured and not UTF-8. Escape sequences are removed first. [scan] says what counts as a
// number.
func Extract(stdout []byte, pattern *regexp.Regexp, further ...string) (Reading, error) {
	out := Plain(stdout)
	if pattern != nil {
		return byPattern(out, pattern)
	}
	if lines := metricLines(out); len(lines) > 0 {
		reading, err := byMetricLine(lines[len(lines)-1])
		reading.Others = otherNames(lines, reading.Name, further)
		return reading, err
	}
	last, count := lastNumber(out)
	reading, err := read(last, count, out)
	reading.From = FromLast
	reading.Several = count > 1
	return reading, err
}

func byPattern(out []byte, pattern *regexp.Regexp) (Reading, error) {
	matches := pattern.FindAllSubmatchIndex(out, -1)
	if len(matches) == 0 {
		return Reading{}, &NoNumber{"the pattern " + quote(pattern.String()) + " matches nothing in the output, which ends with", tail(out)}
	}
	match := matches[len(matches)-1]
	from, to := match[0], match[1]
	if len(match) > 2 {
		from, to = match[2], match[3]
	}
	if from < 0 {
		return Reading{}, &NoNumber{"the pattern's last match leaves its first group empty", quote(string(out[match[0]:match[1]]))}
	}
	found := out[from:to]
	last, count := lastNumber(found)
	last.pair = last.pair && !(last.seconds && last.to-last.from == len(found)) // else the pattern says that it is one
	reading, err := read(last, count, found)
	switch {
	case err != nil && last.pair:
		return Reading{}, err
	case err != nil:
		return Reading{}, &NoNumber{"what the pattern found is not a number", quote(string(found))}
	case last.to == len(found) && !last.seconds: // the group may leave the unit out
		reading.Unit = unitAt(out, to)
	}
	reading.From = FromPattern
	return reading, nil
}

// otherNames returns the names in METRIC lines besides that of the metric, none if the metric is the only one that is not a
// further metric.
func otherNames(lines [][][]byte, metric string, further []string) (others []string) {
	for _, line := range lines {
		if name := clean(string(line[1]), 80); name != metric && (slices.Contains(further, metric) || !slices.Contains(further, name)) && !slices.Contains(others, name) && len(others) < MostNames {
			others = append(others, name)
		}
	}
	return others
}

// byMetricLine reads a match of metricPattern.
func byMetricLine(line [][]byte) (Reading, error) {
	name, value := clean(string(line[1]), 80), bytes.TrimSpace(line[2])
	t, _ := scan(value, 0)
	if t.kind != number || t.from != 0 {
		return Reading{}, &NoNumber{"the line METRIC " + name + "= has no number", quote(string(value))}
	}
	reading, err := read(t, 1, value)
	if err != nil {
		return Reading{}, err
	}
	reading.From, reading.Name = FromMetric, name
	return reading, nil
}

// metricPattern matches a line METRIC <name>=<value>, but not METRICS=5, METRIC = 5 or "METRIC of the day = 5".
var metricPattern = lazyregexp.New(`(?:^|[\r\n])[ \t]*METRIC[ \t]+([^ \t=\r\n]+)[ \t]*=([^\r\n]*)`)

// metricLines returns the matches of metricPattern.
func metricLines(out []byte) [][][]byte {
	if !bytes.Contains(out, []byte("METRIC")) { // the pattern is slow on megabytes
		return nil
	}
	return metricPattern().FindAllSubmatch(out, -1)
}

// lastNumber returns the last token in out, and how many numbers there are.
func lastNumber(out []byte) (last token, count int) {
	for i := 0; ; {
		t, next := scan(out, i)
		if t.kind == nothing {
			return last, count
		}
		if t.kind == number {
			count++
		}
		last, i = t, next
	}
}

// read returns the value of a token, or why it has none.
func read(t token, count int, out []byte) (Reading, error) {
	switch t.kind {
	case nothing:
		if len(bytes.TrimSpace(out)) == 0 {
			return Reading{}, &NoNumber{Why: "the output is empty, a number was expected on stdout"}
		}
		return Reading{}, &NoNumber{"no number in the output, which ends with", tail(out)}
	case notFinite:
		return Reading{}, &NoNumber{"the last value in the output is not a number", quote(t.text)}
	}
	if t.pair {
		why := "a comma in a number may be a decimal point or separate two numbers; print a point (LC_ALL=C), or set verify.pattern"
		if text := out[t.from:t.to]; !bytes.ContainsRune(text, ',') {
			t.text, why = string(text), "this may be one number or two; print one number, or set verify.pattern"
		}
		return Reading{}, &NoNumber{why, quote(t.text)}
	}
	text := t.text
	if t.grouped {
		text = strings.ReplaceAll(text, ",", "")
	}
	value, err := ParseDecimal(text)
	if err != nil {
		return Reading{}, &NoNumber{"the number is out of range", quote(t.text)}
	}
	unit := "s"
	if !t.seconds {
		unit = unitAt(out, t.to)
	}
	return Reading{Value: value, Count: count, Grouped: t.grouped, Unit: unit}, nil
}

// tail returns the last line of out that is not blank, for an error.
func tail(out []byte) string {
	out = bytes.TrimSpace(out[max(0, len(out)-4096):])
	if at := bytes.LastIndexAny(out, "\r\n"); at >= 0 {
		out = out[at+1:]
	}
	return quote(string(out))
}

// escape matches a terminal's escape sequences: CSI (colours and cursor movement, whose parameters look like numbers)
// and OSC (titles, links). Of an OSC without an end it matches only the introducer.
var escape = lazyregexp.New(`\x1b(?:\[[ -?]*[@-~]?|\](?:[^\a\r\n\x1b]*(?:\a|\x1b\\))?|(?s:.))`)

// Plain removes terminal escape sequences.
func Plain(out []byte) []byte {
	if bytes.IndexByte(out, 0x1b) < 0 {
		return out
	}
	return escape().ReplaceAll(out, nil)
}
