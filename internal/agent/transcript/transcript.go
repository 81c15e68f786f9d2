// Package transcript turns the output of an agent program's call into a text for people: who said what, which tools
// were called with which arguments, and what they returned. The length of the text is limited. It contains nothing
// that looks like a credential, and shows invisible characters. The package does not read the programs' lines
// (internal/agent/adapter does), writes no file (activities/agentcall/transcript.go does) and decides nothing. It is pure.
// Start at Writer.
package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pawl/internal/agent/adapter"
	"pawl/internal/lib/secretscan"
	"pawl/internal/lib/text/visible"
)

const (
	// Bound is the maximum size of a transcript in bytes, without the line that says what was left out. A tool call
	// with its result takes about 700 bytes, so that transcripts of up to about 350 calls are complete, and a
	// thousand calls of agents take no more than 256 MB. What an agent did first and last is the most useful, so the
	// beginning and the end get half of it each.
	Bound = 256 << 10

	// How many bytes of each part are kept: nearly everything that the agent says, and the beginning of a prompt,
	// which has its own file.
	keepSaid   = 8 << 10
	keepPrompt = 2 << 10
	keepInput  = 1200
	keepResult = 600
	keepNote   = 4 << 10
	keepPart   = 2 << 10
	// beyond is how many bytes after the kept part of a text are also searched for credentials, because one may begin
	// in the kept part.
	beyond = 2 << 10
)

// entry is one thing in a transcript: a heading on one line, and the text below it.
type entry struct {
	what, text string
	keep       int // how many bytes of the text are kept
}

// size returns the maximum size of the entry: with its margin, and with invisible characters written out.
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

// Writer collects what an agent did, in order. The zero Writer is empty.
type Writer struct {
	head, tail         []entry
	headSize, tailSize int
	left, leftSize     int // the number of entries that are not kept, and their size

	calls  map[string]int // the number of each tool call
	named  []string       // called tools whose arguments are not known yet
	saying string         // the open text, which some programs send in pieces
}

// Prompt adds the prompt of the agent; file contains all of it.
func (w *Writer) Prompt(text, file string) {
	w.add(entry{"prompt; all of it is in " + file, text, keepPrompt})
}

// Printed adds the output of a program whose stdout is not a stream.
func (w *Writer) Printed(text string) {
	what := "the program"
	for text = strings.Trim(text, "\r\n"); text != ""; what = "" {
		n := len(text)
		if n > keepPart {
			if n = strings.LastIndexByte(text[:keepPart], '\n') + 1; n == 0 { // a long line is its own part
				n = strings.IndexByte(text+"\n", '\n')
			}
		}
		w.add(entry{what, text[:n], keepPart})
		text = strings.TrimLeft(text[n:], "\r\n")
	}
}

// Note adds a remark of pawl, with a text, "" for none.
func (w *Writer) Note(what, text string) {
	w.flush()
	w.add(entry{what, text, keepNote})
}

// Take adds the next events of a stream.
func (w *Writer) Take(events []adapter.Event) {
	for _, e := range events {
		if e.Kind != adapter.Text && e.Kind != adapter.Usage {
			w.say()
		}
		switch e.Kind {
		case adapter.Started:
			w.add(entry{what: strings.TrimRight(fmt.Sprintf("session %s %s %s", visible.Clean(e.Session), visible.Clean(e.Model), visible.Clean(e.Version)), " ")})
		case adapter.Text:
			if w.saying != "" && !strings.HasPrefix(e.Text, w.saying) {
				w.say()
			}
			w.saying = e.Text
		case adapter.Aside:
			w.add(entry{"an agent of its own", e.Text, keepSaid})
		case adapter.ToolCall:
			w.named = append(w.named, e.Tool)
		case adapter.Asked:
			if i := slices.Index(w.named, e.Tool); i >= 0 {
				w.named = slices.Delete(w.named, i, i+1)
			}
			if n, isNew := w.number(e.Call); isNew {
				w.add(entry{fmt.Sprintf("tool %d: %s", n, visible.Clean(e.Tool)), input(e.Text), keepInput})
			}
		case adapter.Answered:
			n, isNew := w.number(e.Call)
			what := fmt.Sprintf("result of tool %d", n)
			if isNew {
				what = "result of a tool"
			}
			if e.Failed {
				what += ", which failed"
			}
			w.add(entry{what, e.Text, keepResult})
		case adapter.Ended:
			if e.End.Failure != "" {
				w.add(entry{"the program says that it failed", e.End.Failure, keepNote})
			}
		}
	}
}

// maxCalls is how many tool calls are distinguished by their IDs.
const maxCalls = 1 << 16

// number returns the number of a tool call by its ID. A call without an ID is a new one.
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

// say adds the open text.
func (w *Writer) say() {
	if w.saying != "" {
		w.add(entry{"the agent", w.saying, keepSaid})
	}
	w.saying = ""
}

// flush adds what is complete, because nothing more comes.
func (w *Writer) flush() {
	w.say()
	for _, tool := range w.named {
		w.add(entry{what: "tool " + visible.Clean(tool) + ", whose input the program does not report"})
	}
	w.named = nil
}

func (w *Writer) add(e entry) {
	e.text = strings.Trim(e.text, "\r\n")
	if end := e.keep + beyond; len(e.text) > end {
		e.text = strings.ToValidUTF8(e.text[:end], "")                    // no more is kept in memory
		if last := strings.LastIndexAny(e.text, " \t\n"); last > e.keep { // not within a word, which may be a credential
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
		fmt.Fprintf(&b, "\n… left out here, because a transcript has at most %d kB: %d of %d entries, about %d kB …\n\n",
			Bound>>10, w.left, w.left+len(w.head)+len(w.tail), (w.leftSize+1023)>>10)
	}
	for _, e := range w.tail {
		e.write(&b)
	}
	return []byte(b.String())
}

// write writes an entry. It searches for credentials before it cuts the text, so that no part of one stays.
func (e entry) write(b *strings.Builder) {
	if e.what != "" {
		b.WriteString(secretscan.Redact(e.what) + "\n")
	}
	text := secretscan.Redact(strings.ToValidUTF8(e.text, "\uFFFD"))
	more := len(text) > e.keep
	if more {
		text = strings.TrimRight(strings.ToValidUTF8(text[:e.keep], ""), "\n")
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

// escapes replaces the escapes of JSON that hide where a line or a word ends.
var escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "", `\t`, "\t", `\"`, `"`, `\/`, `/`)

// input returns the input of a tool, one or more lines for each argument.
func input(text string) string {
	var args map[string]any
	if json.Unmarshal([]byte(text), &args) != nil {
		return escapes.Replace(text) // not an object, or so long that it was cut
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		value, is := args[name].(string)
		if !is {
			b, err := json.Marshal(args[name])
			if err != nil {
				continue // a value from JSON can always be encoded
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
