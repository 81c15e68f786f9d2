package metric

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
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
	Prefix  string  `json:"prefix,omitempty"`  // what is before METRIC on its line, without numbers
	Line    string  `json:"line,omitempty"`    // the line of the last number, without numbers
	Lines   int     `json:"lines,omitempty"`   // how many such lines there are, 0 if not known
	Repeats int     `json:"repeats,omitempty"` // how often the METRIC or the pattern was found, 0 if not known
	Varied  int     `json:"varied,omitempty"`  // how many different numbers were found there, 0 if all are the same
	Count   int     `json:"count"`             // how many numbers were found where Value was looked for
	Several bool    `json:"several,omitempty"` // there was more than one number, and nothing said which one counts
	Grouped bool    `json:"grouped,omitempty"` // Value was written with thousands separators
	Unit    string  `json:"unit,omitempty"`    // the unit behind the number, if pawl knows it
	// Joined is the number with the letters that follow it without a blank, if they are no unit that pawl knows.
	Joined string `json:"joined,omitempty"`
	// Others are the names in the METRIC lines that could have been meant as well.
	Others []string `json:"others,omitempty"`
}

// Guessed reports whether something else could have been meant.
func (r Reading) Guessed() bool { return r.Several || r.Grouped || r.Varied > 0 || len(r.Others) > 0 }

// Warning returns what a user should know about a reading that was a guess; "" if it was not.
func (r Reading) Warning() string {
	const hint = `; print a line "METRIC <name>=<number>" or set verify.pattern to say which is meant`
	switch {
	case r.Several:
		return fmt.Sprintf("%d numbers in the output, the last one, %s, was taken%s", r.Count, r.Value, hint)
	case len(r.Others) > 0:
		return fmt.Sprintf("METRIC lines of several names in the output, the last one, %s=%s, was taken, and not %s; print the metric last, or set verify.pattern to say which is meant", r.Name, r.Value, some(r.Others))
	case r.Varied > 0 && r.From == FromPattern:
		return fmt.Sprintf("verify.pattern matches %d different numbers in the output, the last one, %s, was taken", r.Varied, r.Value)
	case r.Varied > 0:
		return fmt.Sprintf("METRIC %s is printed with %d different numbers, the last one, %s, was taken; print it once", r.Name, r.Varied, r.Value)
	case r.Grouped:
		return fmt.Sprintf("the commas in the number were read as thousands separators: %s; print it without them (LC_ALL=C)", r.Value)
	}
	return ""
}

// some returns the first few of these names.
func some(names []string) string {
	const most = 5
	if further := len(names) - most; further > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), further)
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

// Extract is [Read] for the first output, of which nothing was left out.
func Extract(stdout []byte, pattern *regexp.Regexp, further ...string) (Reading, error) {
	return Read(Output{Stdout: stdout}, Search{Pattern: pattern, Further: further})
}

// readPattern reads the number that the pattern's last match found. If output was left out, that is the last match in
// what was kept of the end, else in one of the lines that matched while they passed.
func readPattern(out Output, pattern *regexp.Regexp) (Reading, error) {
	if out.Lost == 0 {
		text := Plain(out.Stdout)
		reading, err := byPattern(text, pattern)
		reading.Repeats = len(pattern.FindAllIndex(text, -1))
		return reading, err
	}
	start, end := anchors(pattern)
	_, whole, _ := bytes.Cut(Plain(out.Tail), []byte("\n")) // the first line may have begun in what was left out
	head := Plain(out.Stdout)
	switch {
	case start && !end && pattern.Match(head):
		return byPattern(head, pattern)
	case !start && pattern.Match(whole):
		return byPattern(whole, pattern)
	case start || end:
	default:
		for _, line := range slices.Backward(bytes.Split(Plain(out.Found), []byte("\n"))) {
			if pattern.Match(line) {
				return byPattern(line, pattern)
			}
		}
	}
	return Reading{}, &NoNumber{fmt.Sprintf("%d bytes of the output were left out, and the pattern %s matches in no line of it; it ends with", out.Lost, quote(pattern.String())), tail(whole)}
}

// anchors reports whether a pattern refers to the start and to the end of the whole output.
func anchors(pattern *regexp.Regexp) (start, end bool) {
	parsed, err := syntax.Parse(pattern.String(), syntax.Perl)
	if err != nil {
		return false, false
	}
	for rest := []*syntax.Regexp{parsed}; len(rest) > 0; {
		node := rest[0]
		rest = append(rest[1:], node.Sub...)
		start = start || node.Op == syntax.OpBeginText
		end = end || node.Op == syntax.OpEndText
	}
	return start, end
}

// AnchorHint is what a person is told about a pattern with ^ or $ that matches nothing.
const AnchorHint = " (^ and $ stand for the start and the end of the whole output; with (?m) before the pattern, for those of a line)"

func byPattern(out []byte, pattern *regexp.Regexp) (Reading, error) {
	matches := pattern.FindAllSubmatchIndex(out, -1)
	if len(matches) == 0 {
		hint := ""
		if start, end := anchors(pattern); start || end {
			hint = AnchorHint
		}
		return Reading{}, &NoNumber{"the pattern " + quote(pattern.String()) + " matches nothing" + hint + " in the output, which ends with", tail(out)}
	}
	match := matches[len(matches)-1]
	start, end := groupOf(match)
	if start < 0 {
		return Reading{}, &NoNumber{"the pattern's last match leaves its first group empty", quote(string(out[match[0]:match[1]]))}
	}
	found := out[start:end]
	last, count := lastNumber(found)
	last.pair = last.pair && !(last.seconds && last.to-last.from == len(found)) // else the pattern says that it is one
	reading, err := read(last, count, found)
	switch {
	case err != nil && last.pair:
		return Reading{}, err
	case err != nil:
		return Reading{}, &NoNumber{"what the pattern found is not a number", quote(string(found))}
	}
	if severalIn(found) {
		return Reading{}, &NoNumber{"what the pattern found has more than one number; put one in its first group", quote(string(found))}
	}
	if err := cutOff(found, last); err != nil {
		return Reading{}, err
	}
	if piece := beyond(out, start+last.from, start+last.to, match); piece != nil {
		return Reading{}, &NoNumber{"the pattern found only a part of a number", quote(string(piece))}
	}
	if last.to == len(found) && !last.seconds { // the group may leave the unit out
		reading.Unit = unitAt(out, end)
		if end == match[1] {
			reading.Joined = joined(out, token{from: start + last.from, to: end})
		}
	}
	reading.From = FromPattern
	reading.Varied = varied(matches, func(match []int) []byte {
		start, end := groupOf(match)
		return out[max(start, 0):max(end, 0)]
	})
	return reading, nil
}

// groupOf returns where a match has its first group, or the whole match without one. It is -1 for an empty group.
func groupOf(match []int) (start, end int) {
	if len(match) > 2 {
		return match[2], match[3]
	}
	return match[0], match[1]
}

// varied returns how many different numbers, with their units, begin what was found, 0 if it is one.
func varied[T any](found []T, text func(T) []byte) int {
	numbers := map[string]bool{}
	for _, f := range found {
		t, _ := scan(text(f), 0)
		if t.kind != number {
			continue
		}
		if reading, err := read(t, 1, text(f)); err == nil {
			numbers[reading.Value.value().String()+" "+reading.Unit] = true
		}
	}
	if len(numbers) < 2 {
		return 0
	}
	return len(numbers)
}

// joined returns a number with the letters that follow it at once, "" if there are none or they are a known unit.
func joined(out []byte, t token) string {
	end := letters(out, t.to)
	if end == t.to || t.seconds || units[unitAt(out, t.to)].name != "" {
		return ""
	}
	return string(out[t.from:end])
}

// severalIn reports whether there are several numbers in what a pattern found. Those in names do not count.
func severalIn(found []byte) bool {
	n := 0
	for i := 0; ; {
		t, next := scan(found, i)
		if t.kind == nothing {
			return n > 1
		}
		if t.kind == number && !endsName(found, t.from) {
			n++
		}
		i = next
	}
}

// beyond returns the number of which a pattern found only a part, nil if it found a whole one. What the match covers
// outside of its group was left out on purpose, unless it separates the digits of one number.
func beyond(out []byte, from, to int, match []int) []byte {
	end, start := to, from
	rest := out[to:min(len(out), to+40)]
	if m := numberContinues().FindIndex(rest); m != nil {
		end = to + m[1]
	}
	if m := numberEnds().FindIndex(rest); m != nil && to == match[1] {
		end = max(end, to+m[1])
	}
	if to == match[1] {
		end = max(end, to+behind(out, to))
		if m := thousandsGoOn().FindIndex(rest); m != nil && wholeGroup(out[from:to]) {
			end = max(end, to+m[1])
		}
	}
	prefix := out[max(0, from-40):from]
	if m := numberBegins().FindIndex(prefix); m != nil && !endsName(out, from-len(prefix)+m[0]) {
		start = from - len(prefix) + m[0]
	}
	if m := numberStarts().FindIndex(prefix); m != nil && from == match[0] && !endsName(out, from-len(prefix)+m[0]) {
		start = min(start, from-len(prefix)+m[0])
	}
	if m := blankThousands().FindIndex(prefix); m != nil && from == match[0] && digitsAlone(out[from:to], 3) && !inName(out, from-2) {
		start = min(start, from-len(prefix)+m[0]+1)
	}
	if start == from && end == to {
		return nil
	}
	return out[start:end]
}

// otherNames returns the names in METRIC lines besides that of the metric, none if the metric is the only one that is not a
// further metric.
func otherNames(lines [][][]byte, metric string, further []string) (names []string) {
	for _, line := range lines {
		if name := clean(string(line[1]), 80); name != metric && (slices.Contains(further, metric) || !slices.Contains(further, name)) && !slices.Contains(names, name) && len(names) < MostNames {
			names = append(names, name)
		}
	}
	return names
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
		reason := "a comma in a number may be a decimal point or separate two numbers; print a point (LC_ALL=C), or set verify.pattern"
		if text := out[t.from:t.to]; !bytes.ContainsRune(text, ',') {
			t.text, reason = string(text), "this may be one number or two; print one number, or set verify.pattern"
		}
		return Reading{}, &NoNumber{reason, quote(t.text)}
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
	return Reading{Value: value, Count: count, Grouped: t.grouped, Unit: unit, Joined: joined(out, t)}, nil
}

// tail returns the last line of out that is not blank, for an error.
func tail(out []byte) string {
	out = bytes.TrimSpace(out[max(0, len(out)-4096):])
	if lineEnd := bytes.LastIndexAny(out, "\r\n"); lineEnd >= 0 {
		out = out[lineEnd+1:]
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
