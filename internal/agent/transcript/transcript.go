// Package transcript turns the output of an agent program's call into a text for people: who said what, which tools
// were called with which arguments, and what they returned. The text is bounded, contains nothing that looks like a
// credential, and shows invisible characters. The package reads no program's lines (internal/agent/stream does), writes
// no file (activities/calls/transcript.go does) and decides nothing. Pure. Start at Writer.
package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pawl/internal/agent/stream"
	"pawl/internal/secret"
	"pawl/internal/visible"
)

const (
	// Bound is how large a transcript is at most, in bytes, but for the line that says what was left out. A tool call
	// takes about 700 with what it came to, so that those of about 350 calls are whole, and a thousand calls of agents
	// take no more than 256 MB. What an agent does first and what it did last say most: each has half of it.
	Bound = 256 << 10

	// What is kept of one thing: of what the agent says nearly all, of a prompt, which is a file of its own, the begin.
	keepSaid   = 8 << 10
	keepPrompt = 2 << 10
	keepInput  = 1200
	keepResult = 600
	keepNote   = 4 << 10
	keepPart   = 2 << 10
	// beyond is how much more than what is kept of a text is looked through for credentials, since one of them may
	// begin in what is kept.
	beyond = 2 << 10
)

// entry is one thing in a transcript: what it is, on a line, and its text below that.
type entry struct {
	what, text string
	keep       int // bytes of the text
}

// size is what it takes at most: with its margin, and what can't be seen written out.
func (e entry) size() int {
	n := len(e.what) + len("\n   \n   …\n")
	for i := range min(len(e.text), e.keep) {
		switch c := e.text[i]; {
		case c == '\n':
			n += len("   \n")
		case c >= utf8.RuneSelf:
			n += 3
		case c < ' ' && c != '\t', c == 0x7f:
			n += len(`\u{7f}`)
		default:
			n++
		}
	}
	return n
}

// Writer takes what an agent did in the order in which it did it. The zero Writer is empty.
type Writer struct {
	head, tail         []entry
	headSize, tailSize int
	left, leftSize     int // entries that are not kept, and what they would have taken

	calls  map[string]int // the number of each tool call
	named  []string       // tools that were called, of which the arguments are not known yet
	saying string         // what is being said, which some programs say in pieces
}

// Prompt takes what the agent was asked; file is where all of it is.
func (w *Writer) Prompt(text, file string) {
	w.add(entry{"prompt, all of which is in " + file, text, keepPrompt})
}

// Printed takes what a program printed whose stdout is no stream.
func (w *Writer) Printed(text string) {
	what := "the program"
	for text = strings.Trim(text, "\r\n"); text != ""; what = "" {
		n := len(text)
		if n > keepPart {
			if n = strings.LastIndexByte(text[:keepPart], '\n') + 1; n == 0 { // a long line is a part of its own
				n = strings.IndexByte(text+"\n", '\n')
			}
		}
		w.add(entry{what, text[:n], keepPart})
		text = strings.TrimLeft(text[n:], "\r\n")
	}
}

// Note takes a remark of pawl's, and a text with it, "" for none.
func (w *Writer) Note(what, text string) {
	w.flush()
	w.add(entry{what, text, keepNote})
}

// Take takes the next events of a stream.
func (w *Writer) Take(events []stream.Event) {
	for _, e := range events {
		if e.Kind != stream.Text && e.Kind != stream.Usage {
			w.say()
		}
		switch e.Kind {
		case stream.Started:
			w.add(entry{what: strings.TrimRight(fmt.Sprintf("session %s %s %s", visible.Clean(e.Session), visible.Clean(e.Model), visible.Clean(e.Version)), " ")})
		case stream.Text:
			if w.saying != "" && !strings.HasPrefix(e.Text, w.saying) {
				w.say()
			}
			w.saying = e.Text
		case stream.Aside:
			w.add(entry{"an agent of its own", e.Text, keepSaid})
		case stream.ToolCall:
			w.named = append(w.named, e.Tool)
		case stream.Asked:
			if i := slices.Index(w.named, e.Tool); i >= 0 {
				w.named = slices.Delete(w.named, i, i+1)
			}
			if n, isNew := w.number(e.Call); isNew {
				w.add(entry{fmt.Sprintf("tool %d: %s", n, visible.Clean(e.Tool)), input(e.Text), keepInput})
			}
		case stream.Answered:
			n, isNew := w.number(e.Call)
			what := fmt.Sprintf("result of tool %d", n)
			if isNew {
				what = "result of a tool"
			}
			if e.Failed {
				what += ", which failed"
			}
			w.add(entry{what, e.Text, keepResult})
		case stream.Ended:
			if e.End.Failure != "" {
				w.add(entry{"the program says that it failed", e.End.Failure, keepNote})
			}
		}
	}
}

// maxCalls bounds how many tool calls are told apart by their IDs.
const maxCalls = 1 << 16

// number is that of a tool call by its ID. One without an ID is a new one.
func (w *Writer) number(call string) (n int, isNew bool) {
	if n, known := w.calls[call]; known && call != "" {
		return n, false
	}
	if w.calls == nil || len(w.calls) >= maxCalls {
		w.calls = map[string]int{}
	}
	if call == "" {
		call = "\x00" + strconv.Itoa(len(w.calls))
	}
	w.calls[call] = len(w.calls) + 1
	return w.calls[call], true
}

// say adds what has been said.
func (w *Writer) say() {
	if w.saying != "" {
		w.add(entry{"the agent", w.saying, keepSaid})
	}
	w.saying = ""
}

// flush adds what is complete now that nothing more comes.
func (w *Writer) flush() {
	w.say()
	for _, tool := range w.named {
		w.add(entry{what: "tool " + visible.Clean(tool) + ", called with what the program does not say"})
	}
	w.named = nil
}

func (w *Writer) add(e entry) {
	e.text = strings.Trim(e.text, "\r\n")
	if end := e.keep + beyond; len(e.text) > end {
		e.text = strings.ToValidUTF8(e.text[:end], "")                    // and no more is held
		if last := strings.LastIndexAny(e.text, " \t\n"); last > e.keep { // not in the middle of a word, which may be a credential
			e.text = e.text[:last]
		}
	}
	size := e.size()
	if len(w.tail) == 0 && w.headSize+size <= Bound/2 {
		w.head, w.headSize = append(w.head, e), w.headSize+size
		return
	}
	w.tail, w.tailSize = append(w.tail, e), w.tailSize+size
	for w.tailSize > Bound/2 && len(w.tail) > 1 {
		gone := w.tail[0].size()
		w.tail, w.tailSize = w.tail[1:], w.tailSize-gone
		w.left, w.leftSize = w.left+1, w.leftSize+gone
	}
}

// Bytes returns the transcript.
func (w *Writer) Bytes() []byte {
	w.flush()
	var b strings.Builder
	for _, e := range w.head {
		e.write(&b)
	}
	if w.left > 0 {
		fmt.Fprintf(&b, "\n… left out here, since a transcript has %d kB at most: %d of %d entries, about %d kB …\n\n",
			Bound>>10, w.left, w.left+len(w.head)+len(w.tail), (w.leftSize+1023)>>10)
	}
	for _, e := range w.tail {
		e.write(&b)
	}
	return []byte(b.String())
}

// write writes an entry. Credentials are looked for before anything is cut, so that no part of one stays.
func (e entry) write(b *strings.Builder) {
	if e.what != "" {
		b.WriteString(secret.Redact(e.what) + "\n")
	}
	text := secret.Redact(strings.ToValidUTF8(e.text, "\uFFFD"))
	more := len(text) > e.keep
	if more {
		text = strings.TrimRight(cut(text, e.keep), "\n")
	}
	if text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			b.WriteString("   " + visible.Line(strings.TrimSuffix(line, "\r"), nil) + "\n")
		}
	}
	if more {
		b.WriteString("   …\n")
	}
}

// cut is the begin of a text, of n bytes at most.
func cut(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// escapes are those of JSON that hide where a line or a word ends.
var escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "", `\t`, "\t", `\"`, `"`, `\/`, `/`)

// input is what a tool is called with, a line or more for each argument.
func input(text string) string {
	var args map[string]any
	if json.Unmarshal([]byte(text), &args) != nil {
		return escapes.Replace(text) // no object, or so long that it was cut
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		value, is := args[name].(string)
		if !is {
			b, err := json.Marshal(args[name])
			if err != nil {
				continue // what was JSON is
			}
			value = escapes.Replace(string(b))
		}
		if value = strings.TrimRight(value, "\n"); strings.Contains(value, "\n") {
			value = "\n" + value
		}
		lines = append(lines, name+": "+value)
	}
	return strings.Join(lines, "\n")
}
