package metric

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Source is where in an output a number was found. A later number is read from the same place, or there is none.
type Source struct {
	From string `json:"from"` // FromPattern, FromMetric or FromLast
	// Name and Prefix are of a METRIC line: the prefix is what stands before METRIC, without its numbers.
	Name   string `json:"name,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	// Line is the line of the last number, without its numbers. Lines is how many such lines there are, 0 if not known.
	Line  string `json:"line,omitempty"`
	Lines int    `json:"lines,omitempty"`
	// Repeats is how often the METRIC or the pattern was found, 0 if that is not known, is one or varies. A later output
	// with fewer has no number.
	Repeats int `json:"repeats,omitempty"`
}

// Output is what a command printed. If part of its stdout was left out, Stdout is the start, Tail the end, and Found has
// the lines in between and elsewhere in which METRIC or the pattern was found while they passed.
type Output struct {
	Stdout []byte
	Tail   []byte
	Found  []byte
	Lost   int64 // how many bytes of stdout were left out
	Stderr []byte
}

// MetricWord is in every line with a METRIC. Found has those lines.
const MetricWord = FromMetric

// Search says what is looked for in an output.
type Search struct {
	Pattern *regexp.Regexp
	Further []string // the names of METRIC lines that are not the metric
	Form    *Form    // how the first output showed its numbers, nil for that one
	// Unchanged says that the output is of the code that the changes are compared with: how often it prints may vary.
	Unchanged bool
}

// earlier reports whether the loop began before a form said where its numbers are.
func (s Search) earlier() bool { return s.Form != nil && s.Form.Sources == nil }

// wanted returns where a number has to be, ok=false if this is the first output.
func (s Search) wanted(metric string) (Source, bool) {
	if s.Form == nil {
		return Source{}, false
	}
	source, ok := s.Form.Sources[metric]
	return source, ok
}

// Read finds the metric in an output (P5). In the first output it is the first group (without a group: the whole) of the
// pattern's last match, else the value in the last METRIC <name>=<number>, else the last number. In a later output it is
// the number in the same place: of the same name behind the same prefix, or the last one, in the same line but for the
// numbers. If there is none, or if it may be another one ("0,75"), the error is a *NoNumber. Nothing else is tried then,
// because that would judge a change by some other figure.
//
// The output may be large, coloured and not UTF-8. Escape sequences are removed first. [scan] says what counts as a
// number.
func Read(out Output, s Search) (Reading, error) {
	reading, err := s.find(out)
	if err != nil {
		return reading, err
	}
	source, located := s.wanted("")
	if located && !s.Unchanged && reading.Repeats > 0 && reading.Repeats < source.Repeats {
		reason := fmt.Sprintf("the unchanged code prints it %s, and this output %s; the last one is", Counted(source.Repeats, "time"), Counted(reading.Repeats, "time"))
		return Reading{}, &NoNumber{reason, quote(reading.Value.String())}
	}
	return reading, nil
}

func (s Search) find(out Output) (Reading, error) {
	if s.Pattern != nil {
		return readPattern(out, s.Pattern)
	}
	if s.earlier() {
		return readEarlier(Plain(out.Stdout), s.Further)
	}
	source, located := s.wanted("")
	found := out.metrics()
	if located && source.From == FromMetric {
		return readMetric(out, found, source, false)
	}

	found = slices.DeleteFunc(found, func(m metricAt) bool { return slices.Contains(s.Further, m.name) })
	if len(found) > 0 && located {
		last := found[len(found)-1]
		return Reading{}, &NoNumber{"the number of the unchanged code was the last in a line; now the output has a METRIC", quote(last.text())}
	}
	if len(found) > 0 {
		last := found[len(found)-1]
		reading, err := readMetric(out, found, Source{From: FromMetric, Name: last.name, Prefix: last.shape()}, true)
		reading.Others = otherMetrics(found, last.name)
		return reading, err
	}
	if m, ok := out.onStderr(s.Further); ok {
		return Reading{}, &NoNumber{"METRIC " + m.name + "= is on stderr, but only stdout is read", quote(m.text())}
	}
	reading, err := readLast(out, source, located)
	if noNumber, ok := errors.AsType[*NoNumber](err); ok && s.onlyFurther(out) {
		noNumber.Why, noNumber.Seen = "the output has only METRIC lines of metrics that are declared besides the metric", quote(strings.Join(s.Further, ", "))
	}
	return reading, err
}

// onlyFurther reports whether an output has further metrics, and no other number.
func (s Search) onlyFurther(out Output) bool {
	if len(out.metrics()) == 0 {
		return false
	}
	last, _ := lastNumber(withoutMetrics(Plain(out.end())))
	return last.kind == nothing
}

// readEarlier reads the output of a loop that began before a form said where its numbers are.
func readEarlier(out []byte, further []string) (Reading, error) {
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

// readMetric reads the last METRIC of a name behind a prefix. In the first output there must be no other prefix.
func readMetric(out Output, found []metricAt, source Source, first bool) (Reading, error) {
	var last, second *metricAt
	var printed []metricAt
	for i, m := range found {
		switch {
		case m.name != source.Name:
		case m.shape() != source.Prefix:
			second = &found[i]
		case last != nil && m.exactPrefix() != last.exactPrefix():
			return Reading{}, differently(*last, m)
		default:
			last, printed = &found[i], append(printed, m)
		}
	}
	if last == nil {
		return Reading{}, instead(out, found, source)
	}
	if first && second != nil {
		return Reading{}, differently(*second, *last)
	}
	reading, err := readValue(last.name, last.value)
	reading.Prefix = source.Prefix
	reading.Varied = varied(printed, func(m metricAt) []byte { return bytes.TrimSpace(m.value) })
	if out.Lost == 0 {
		reading.Repeats = len(printed)
	}
	return reading, err
}

// differently is the error for a METRIC that is printed behind two prefixes.
func differently(first, second metricAt) *NoNumber {
	return &NoNumber{"METRIC " + first.name + "= is printed behind different prefixes", quote(first.text()) + " and " + quote(second.text())}
}

// instead returns why there is no number where METRIC name= is expected, and what there is.
func instead(out Output, found []metricAt, source Source) *NoNumber {
	reason := "no line " + quote(source.text()) + ", as the unchanged code prints it; instead"
	if len(found) > 0 {
		return &NoNumber{reason, quote(found[len(found)-1].text())}
	}
	if m, ok := out.onStderr(nil); ok {
		return &NoNumber{reason + ", on stderr", quote(m.text())}
	}
	end := Plain(out.end())
	if len(bytes.TrimSpace(end)) == 0 {
		return &NoNumber{reason, "nothing"}
	}
	return &NoNumber{reason + ", the output ends with", tail(end)}
}

// with returns the source after another measurement, in which the number was found so often.
func (s Source) with(repeats int) Source {
	if repeats != 0 && repeats != s.Repeats {
		s.Repeats = 0
	}
	return s
}

// text returns how a METRIC of this source begins.
func (s Source) text() string {
	if s.Prefix == "" {
		return "METRIC " + s.Name + "="
	}
	return s.Prefix + " METRIC " + s.Name + "="
}

// readLast reads the last number of an output, in the line that it had before if there was one.
func readLast(out Output, source Source, located bool) (Reading, error) {
	text := Plain(out.end())
	if out.Lost > 0 { // its first line may have begun in what was left out
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	text = withoutMetrics(text)
	last, count := lastNumber(text)
	reading, err := read(last, count, text)
	if err == nil {
		err = cutOff(text, last)
	}
	if err != nil {
		if noNumber, ok := errors.AsType[*NoNumber](err); ok && out.Lost > 0 && last.kind == nothing {
			noNumber.Why = fmt.Sprintf("%d bytes of the output were left out, and there is %s", out.Lost, noNumber.Why)
		}
		return Reading{}, err
	}
	reading.From, reading.Several = FromLast, count > 1
	line := lineAround(text, last.from)
	reading.Line = bounded(shapeOf(line))
	if out.Lost == 0 {
		reading.Lines = countLines(text, reading.Line)
	}
	if !located {
		return reading, nil
	}
	if reading.Line != source.Line {
		return Reading{}, &NoNumber{"the last number is not in a line like " + quote(source.Line) + ", as that of the unchanged code; the line is", quote(string(bytes.TrimSpace(line)))}
	}
	if ok := source.Lines > 0 && reading.Lines > 0; ok && source.Lines != reading.Lines {
		return Reading{}, &NoNumber{
			fmt.Sprintf("the last number is in the last of %s like %s, that of the unchanged code in the last of %d; the line is", Counted(reading.Lines, "line"), quote(source.Line), source.Lines),
			quote(string(bytes.TrimSpace(line))),
		}
	}
	return reading, nil
}

// Source returns where the number was found.
func (r Reading) Source() Source {
	source := Source{From: r.From, Name: r.Name, Prefix: r.Prefix, Line: r.Line, Lines: r.Lines}
	if r.Repeats > 1 { // none of one can be missing
		source.Repeats = r.Repeats
	}
	return source
}

// end returns the end of stdout, all of it if nothing was left out.
func (o Output) end() []byte {
	if o.Lost > 0 {
		return o.Tail
	}
	return o.Stdout
}

// metrics returns what stdout says behind METRIC.
func (o Output) metrics() []metricAt {
	if o.Lost > 0 {
		return metricsIn(Plain(o.Found))
	}
	return metricsIn(Plain(o.Stdout))
}

// onStderr returns the last METRIC on stderr, of any but the further names.
func (o Output) onStderr(further []string) (metricAt, bool) {
	found := metricsIn(Plain(o.Stderr))
	for _, m := range slices.Backward(found) {
		if !slices.Contains(further, m.name) {
			return m, true
		}
	}
	return metricAt{}, false
}

// metricAt is METRIC <name>=<value> in a line.
type metricAt struct {
	prefix []byte // what is before METRIC on its line, and behind the value before, if that is another METRIC
	name   string
	value  []byte // the rest of the line
}

// text returns it as it was printed, with one blank between its parts.
func (m metricAt) text() string {
	prefix := string(m.prefix)
	return strings.TrimSpace(prefix + "METRIC " + m.name + "=" + string(m.value))
}

// shape returns the prefix without its numbers. Of a test runner's progress (...F.) one mark is left.
func (m metricAt) shape() string {
	prefix := bytes.TrimSpace(m.prefix)
	if len(prefix) > 0 && len(bytes.Trim(prefix, progress)) == 0 {
		return "."
	}
	return bounded(shapeOf(prefix))
}

// exactPrefix returns the prefix with its whole numbers, which may say whose METRIC it is, but without times.
func (m metricAt) exactPrefix() string {
	if shape := m.shape(); shape == "." {
		return shape
	}
	return string(times().ReplaceAll(bytes.TrimSpace(m.prefix), []byte("#")))
}

// metricsIn returns all METRIC <name>=<value> of a text. One that does not begin its line counts only with a number, or
// with what stands for one: other text shows how to print it.
func metricsIn(out []byte) (found []metricAt) {
	word := []byte("METRIC")
	for rest := out; ; {
		i := bytes.Index(rest, word)
		if i < 0 {
			return found
		}
		begin := bytes.LastIndexAny(rest[:i], "\r\n") + 1
		end := len(rest)
		if n := bytes.IndexAny(rest[i:], "\r\n"); n >= 0 {
			end = i + n
		}
		found = append(found, metricsOfLine(rest[begin:end])...)
		rest = rest[end:]
	}
}

// metricsOfLine is metricsIn for one line.
func metricsOfLine(line []byte) (found []metricAt) {
	start := 0
	for _, span := range metricInLine().FindAllSubmatchIndex(line, -1) {
		prefix, value := line[min(start, span[0]):span[0]], line[span[1]:]
		if glued(prefix) && len(bytes.Trim(prefix, progress)) > 0 {
			continue
		}
		first := len(bytes.TrimSpace(prefix)) == 0
		t, next := scan(bytes.TrimLeft(value, " \t"), 0)
		number := t.kind != nothing && startsValue(value)
		if !first && !number {
			continue
		}
		found = append(found, metricAt{prefix: prefix, name: clean(string(line[span[2]:span[3]]), 80), value: value})
		if number {
			start = span[1] + len(value) - len(bytes.TrimLeft(value, " \t")) + next
		}
	}
	for i := range found[:max(len(found)-1, 0)] { // the value ends where the next METRIC begins
		if j := bytes.Index(found[i].value, []byte("METRIC")); j >= 0 {
			found[i].value = found[i].value[:j]
		}
	}
	return found
}

// startsValue reports whether a value is empty, or begins with a number or with what stands for one.
func startsValue(value []byte) bool {
	value = bytes.TrimSpace(value)
	t, _ := scan(value, 0)
	sign := len(value) > 0 && (value[0] == '-' || value[0] == '+')
	return t.kind == number && t.from == 0 || t.kind == notFinite && (t.from == 0 || sign && t.from == 1)
}

// progress are the marks that a test runner prints for each test.
const progress = ".sxX"

// glued reports whether METRIC behind this prefix is the end of a longer word: BIOMETRIC, MY_METRIC.
func glued(prefix []byte) bool {
	last := at(prefix, len(prefix)-1)
	return last >= 'A' && last <= 'Z' || last == '_'
}

// otherMetrics returns the names besides that of the metric.
func otherMetrics(found []metricAt, metric string) (names []string) {
	for _, m := range found {
		if m.name != metric && !slices.Contains(names, m.name) && len(names) < MostNames {
			names = append(names, m.name)
		}
	}
	return names
}

// readValue reads the number of a METRIC line, which has to be whole.
func readValue(name string, value []byte) (Reading, error) {
	value = bytes.TrimSpace(value)
	reading, err := byMetricLine([][]byte{nil, []byte(name), value})
	if err != nil {
		return Reading{}, err
	}
	t, _ := scan(value, 0)
	if err := cutShort(value, t); err != nil {
		return Reading{}, err
	}
	return reading, nil
}

// withoutMetrics returns the text without its lines of METRIC, whose numbers are further metrics.
func withoutMetrics(out []byte) []byte {
	if !bytes.Contains(out, []byte("METRIC")) {
		return out
	}
	var kept []byte
	for line := range bytes.Lines(out) {
		if len(metricsOfLine(bytes.TrimRight(line, "\r\n"))) == 0 {
			kept = append(kept, line...)
		}
	}
	return kept
}

// lineAround returns the line of a byte.
func lineAround(out []byte, i int) []byte {
	start := bytes.LastIndexAny(out[:i], "\r\n") + 1
	if n := bytes.IndexAny(out[i:], "\r\n"); n >= 0 {
		return out[start : i+n]
	}
	return out[start:]
}

// countLines returns how many lines have a shape.
func countLines(out []byte, shape string) (n int) {
	for _, line := range bytes.FieldsFunc(out, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if bounded(shapeOf(line)) == shape && bytes.ContainsAny(line, "0123456789") {
			n++
		}
	}
	return n
}

// shapeOf returns a line without its numbers and their units. Blanks are counted once, and a word behind a number has no
// plural.
func shapeOf(line []byte) string {
	var shape []byte
	for i := 0; i < len(line); {
		t, next := scan(line, i)
		if t.kind != number {
			shape = append(shape, withoutDigits(line[i:])...)
			break
		}
		shape = append(shape, withoutDigits(line[i:t.from])...)
		shape = append(shape, '#')
		i = next
		if t.seconds {
			continue
		}
		start, end := unitSpan(line, t.to)
		word := string(line[start:end])
		if _, ok := units[word]; ok {
			i = end
		} else if end > start && !isWord(at(line, end)) {
			shape = append(shape, line[i:start]...)
			shape = append(shape, strings.TrimSuffix(word, "s")...)
			i = end
		}
	}
	text := strings.ReplaceAll(string(shape), "(cached)", "#") // go test
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}

// withoutDigits returns text between numbers with its dates, times and versions taken out.
func withoutDigits(text []byte) []byte { return digitRuns().ReplaceAll(text, []byte("#")) }

// bounded returns a shape that fits into history: a long one ends with its digest.
func bounded(shape string) string {
	const most = 120
	if len(shape) <= most {
		return shape
	}
	sum := sha256.Sum256([]byte(shape))
	return strings.ToValidUTF8(shape[:most], "") + "…" + hex.EncodeToString(sum[:8])
}

// foreignDigit reports whether a character is a digit or a fraction, but not of ASCII: ², ½, ３.
func foreignDigit(r rune) bool { return r >= 0x80 && unicode.IsNumber(r) }
