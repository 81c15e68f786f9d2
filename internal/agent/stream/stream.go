// Package stream knows the agent programs: how each one is called, and what the lines on its stdout mean. For every
// program a call becomes one stream of events: started, tool call, usage, text, ended. It is pure: bytes go in, events
// come out. Others run the program and read its output. What a program says about itself decides nothing but what was
// spent and whether it ended well. Start at Adapters for the programs, at Stream.Feed for their output.
package stream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/outcome"
)

// Kind says what an event is about.
type Kind string

// The events that every stream consists of.
const (
	Started  Kind = "started"   // the program runs: session, model, version
	ToolCall Kind = "tool_call" // it calls a tool
	Usage    Kind = "usage"     // it has spent more
	Text     Kind = "text"      // it says something
	Ended    Kind = "ended"     // it says that it is done, and how
)

// The events that are for a transcript alone.
const (
	Asked    Kind = "asked"    // all that a tool is called with
	Answered Kind = "answered" // what a tool call came to
	Aside    Kind = "aside"    // an agent that it has started says something
)

// Event is one thing that an agent did. What belongs to its kind is set.
type Event struct {
	Kind    Kind
	Session string
	Model   string
	Version string
	Tool    string
	Call    string     // the program's own ID of a tool call, "" where it has none
	Failed  bool       // the tool call, as the program tells
	Text    string     // at most maxText bytes
	Usage   loop.Usage // all that was spent so far
	End     *End
}

// End is how an agent says that it ended.
type End struct {
	Failure   string        // what went wrong, "" where nothing did
	Exhausted loop.Resource // the budget that it ended itself for, "" for none
	Denied    []string      // tools that it was not allowed to use
	Text      string        // its last words
	// Refusal is what its provider answered instead of work, where it failed for that.
	Refusal *outcome.Refusal
}

const (
	// maxLine bounds a line. A tool's result can be large, but nothing is read from those.
	maxLine = 4 << 20
	// maxText bounds what is kept of what an agent says.
	maxText = 16 << 10
	// maxTools bounds how many tool calls are told apart by their IDs.
	maxTools = 1 << 16
	// maxCount is more than any call spends; what is beyond it is a mistake or a lie, and sums
	// over a loop must not overflow.
	maxCount = int64(1e12)
)

// reader understands the lines of one program.
type reader interface {
	// line returns the events of a line. A line that means nothing to it has none.
	line(line []byte) []Event
	// usage returns all that was spent so far.
	usage() loop.Usage
	// refusal returns what the provider has answered instead of work, nil where it has worked since.
	refusal() *outcome.Refusal
	// busy reports whether a tool is at work, as far as the program tells; it is then quiet for a reason.
	busy() bool
}

// Stream turns the stdout of one call of an agent into events. It takes bytes as they come: half
// lines, garbage, lines of any length and types that nobody knows do it no harm. The zero Stream
// is not usable; Adapter.Stream makes one.
type Stream struct {
	reader   reader
	line     []byte
	skipping bool // inside of a line that is too long
	spent    loop.Usage
	started  Event
	end      *End
	text     string
}

// Feed takes the next bytes of the output and returns what they say.
func (s *Stream) Feed(b []byte) []Event {
	var events []Event
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		part, whole := b, i >= 0
		if whole {
			part, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if s.skipping = s.skipping || len(s.line)+len(part) > maxLine; s.skipping {
			s.line = nil
		} else {
			s.line = append(s.line, part...)
		}
		if whole {
			events = append(events, s.drain()...)
		}
	}
	return events
}

// Close takes what came after the last line end.
func (s *Stream) Close() []Event { return s.drain() }

// drain reads the line that is complete.
func (s *Stream) drain() []Event {
	line := bytes.TrimSpace(s.line)
	s.line = s.line[:0]
	if s.skipping {
		s.skipping = false
		return nil
	}
	if len(line) == 0 || line[0] != '{' {
		return nil
	}
	events := s.reader.line(line)
	for i, e := range events {
		switch e.Kind {
		case Started: // once more, where it goes on after all
			s.started, s.end = e, nil
		case Text:
			events[i].Text = loop.Clip(e.Text, maxText)
			s.text = events[i].Text
		case Asked, Answered, Aside:
			events[i].Text = loop.Clip(e.Text, maxText)
		case Ended:
			e.End.Text = loop.Clip(e.End.Text, maxText)
			s.end = e.End
		}
	}
	if now := s.reader.usage(); now != s.spent {
		s.spent = now
		events = append(events, Event{Kind: Usage, Usage: now})
	}
	return events
}

// Usage returns all that was spent so far.
func (s *Stream) Usage() loop.Usage { return s.spent }

// Session returns the session's ID, the model and the version that the program named.
func (s *Stream) Session() (session, model, version string) {
	return s.started.Session, s.started.Model, s.started.Version
}

// Ended reports whether the agent said that it ended.
func (s *Stream) Ended() bool { return s.end != nil }

// End returns how the agent says that it ended. One that said nothing has failed, whatever its
// exit code.
func (s *Stream) End() End {
	if s.end == nil {
		return End{Failure: "it ended without saying how", Text: s.text, Refusal: s.reader.refusal()}
	}
	end := *s.end
	end.Text = cmp.Or(end.Text, s.text)
	if end.Refusal == nil && end.Failure != "" && end.Exhausted == "" {
		if end.Refusal = s.reader.refusal(); end.Refusal == nil {
			end.Refusal = outcome.In(end.Failure)
		}
	}
	return end
}

// Begun reports whether the program said that it began.
func (s *Stream) Begun() bool { return s.started.Kind == Started }

// Busy reports whether a tool is at work, as far as the program tells.
func (s *Stream) Busy() bool { return s.reader.busy() }

// wait is how long a program may wait for its provider by itself. A loop that sleeps waits longer at no cost.
const wait = time.Minute

// Hopeless reports whether the program asks a provider again that will not let it work: one that does not know who
// asks, or that has said to come back after a longer time.
func (s *Stream) Hopeless() bool {
	r := s.reader.refusal()
	return r != nil && s.end == nil && (r.Class == outcome.AuthMissing || r.After >= wait)
}

// Over returns the budget that u is over, "" for none. A budget that is just used up is not: what
// used it up is still judged.
func Over(left map[loop.Resource]evidence.Decimal, u loop.Usage) loop.Resource {
	for _, r := range loop.Resources {
		limit, limited := left[r]
		if limited && u.Of(r).Cmp(limit) > 0 {
			return r
		}
	}
	return ""
}

// calls counts tool calls by their IDs: a program may speak of one more than once.
type calls struct {
	seen  map[string]bool
	count int64
	open  map[string]bool // those at work
}

// begin notes that a call is at work, end that it is no more.
func (c *calls) begin(id string) {
	if c.open == nil || len(c.open) >= maxTools {
		c.open = map[string]bool{}
	}
	c.open[id] = true
}

func (c *calls) end(id string) { delete(c.open, id) }

func (c *calls) busy() bool { return len(c.open) > 0 }

// add reports whether the call is a new one. One without an ID always is.
func (c *calls) add(id string) bool {
	if id != "" && c.seen[id] {
		return false
	}
	if c.seen == nil || len(c.seen) >= maxTools {
		c.seen = map[string]bool{}
	}
	if id != "" {
		c.seen[id] = true
	}
	c.count++
	return true
}

// totals are the tool calls and tokens of a program that does not say what it cost.
type totals struct {
	tools   calls
	in, out int64
}

func (t *totals) busy() bool { return t.tools.busy() }

// refusal is nil: such a program says it when it ends.
func (t *totals) refusal() *outcome.Refusal { return nil }

func (t *totals) usage() loop.Usage {
	return loop.Usage{AgentCalls: 1, ToolCalls: t.tools.count, InputTokens: t.in, OutputTokens: t.out}
}

// decode reads JSON into l and reports whether it was well formed. Where a part of it has another type than
// expected, the rest is read all the same.
func decode(raw []byte, l any) bool {
	err := json.Unmarshal(raw, l)
	_, mistyped := err.(*json.UnmarshalTypeError)
	return err == nil || mistyped
}

// count makes a number of a program's own sane.
func count(n int64) int64 { return max(0, min(n, maxCount)) }
