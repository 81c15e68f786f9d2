package testreport

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/metric"
)

// eachLine calls f with each line of the outputs, without colours and line ends. If a line is too long, f gets only
// its start. Of a line that was written over, as progress bars are, it gets what was written last.
func eachLine(outputs [][]byte, f func(line string)) {
	eachRaw(outputs, math.MaxInt, func(line []byte) {
		line = bytes.TrimRight(line, "\r")
		line = line[bytes.LastIndexByte(line, '\r')+1:]
		f(string(metric.Plain(line[:min(len(line), maxLine)])))
	})
}

// eachRaw calls f with at most the first limit bytes of each line, unchanged.
func eachRaw(outputs [][]byte, limit int, f func(line []byte)) {
	for _, out := range outputs {
		for line := range bytes.Lines(out) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			f(bytes.TrimSuffix(line[:min(len(line), limit)], []byte("\r")))
		}
	}
}

// match has the groups of the expression that matched a line last.
type match []string

// by reports whether an expression matches a line.
func (m *match) by(e lazyregexp.Regexp, line string) bool {
	*m = e().FindStringSubmatch(line)
	return *m != nil
}

// excerpt keeps the start and the end of what is written to it. Its zero value is empty.
type excerpt struct {
	head, tail []byte
	lost       bool // something between head and tail was dropped
}

func (e *excerpt) line(s string) {
	e.write(s)
	e.write("\n")
}

// write returns by how many bytes the excerpt grew.
func (e *excerpt) write(s string) int {
	if e == nil {
		return 0
	}
	size, n := e.size(), min(headBytes-len(e.head), len(s))
	e.head, s = append(e.head, s[:n]...), s[n:]
	if len(s) > tailBytes {
		e.tail, e.lost = e.tail[:0], true
		s = s[len(s)-tailBytes:]
	}
	e.tail = append(e.tail, s...)
	if len(e.tail) > 2*tailBytes {
		e.tail, e.lost = append(e.tail[:0], e.tail[len(e.tail)-tailBytes:]...), true
	}
	return e.size() - size
}

func (e *excerpt) size() int {
	if e == nil {
		return 0
	}
	return len(e.head) + len(e.tail)
}

// excerpts has excerpts by name.
type excerpts map[string]*excerpt

// of returns the excerpt of a name. Beyond limit names it returns nil, which drops everything that is written to it.
func (e excerpts) of(name string, limit int) *excerpt {
	if e[name] == nil && len(e) < limit {
		e[name] = &excerpt{}
	}
	return e[name]
}

// String returns the kept text as valid text without blank lines around it.
func (e *excerpt) String() string {
	if e == nil {
		return ""
	}
	text := string(e.head) + string(e.tail)
	if e.lost {
		text = string(e.head) + "\n[…]\n" + string(e.tail[max(0, len(e.tail)-tailBytes):])
	}
	return tidy(text)
}

// blankLines matches the blank lines at the start of a text.
var blankLines = lazyregexp.New(`^\s*\n`)

// tidy makes text valid, without control characters, and without blank lines around it.
func tidy(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r == 0x7f:
			return -1
		}
		return r
	}, text)
	return strings.TrimRight(text[len(blankLines().FindString(text)):], " \t\n")
}

// tailOf returns the ends of standard output and standard error, at most n bytes together.
func tailOf(outputs [][]byte, n int) string { return parts(outputs, n, endOf) }

// parts returns a part of standard output and one of standard error, at most n bytes together. If both have text, each
// gets half. It ignores report files, which are not for people.
func parts(outputs [][]byte, n int, part func(out []byte, n int) string) string {
	outputs = slices.DeleteFunc(slices.Clone(outputs[:min(len(outputs), 2)]), func(out []byte) bool { return endOf(out, n) == "" })
	if len(outputs) > 1 {
		n = (n - 1) / 2
	}
	return strings.Join(list.Map(outputs, func(out []byte) string { return part(out, n) }), "\n")
}

// startOf returns the start of an output, at most n bytes, in whole lines if possible.
func startOf(out []byte, n int) string {
	text := tidy(string(metric.Plain(out[:min(len(out), 2*n)])))
	if len(text) > n {
		text = text[:n]
		if end := strings.LastIndexByte(text, '\n'); end > 0 {
			text = text[:end]
		}
	}
	return loop.Clip(tidy(text), n)
}

// endOf returns the end of an output, at most n bytes. It begins at the start of a line if possible.
func endOf(out []byte, n int) string {
	cut := len(out) > 2*n
	if cut {
		out = out[len(out)-2*n:] // twice as much, because colours are removed later
	}
	text := tidy(string(metric.Plain(out)))
	if len(text) > n {
		text, cut = text[len(text)-n:], true
	}
	if cut {
		if _, rest, hasMore := strings.Cut(text, "\n"); hasMore && strings.TrimSpace(rest) != "" {
			text = rest
		}
	}
	return loop.Clip(tidy(text), n)
}

// atoi returns a count, 0 if s is not a number.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return count(n)
}
