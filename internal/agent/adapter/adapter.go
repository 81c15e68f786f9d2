// Package adapter knows the agent programs: how each one is called, and what the lines on its stdout mean. For every
// program a call becomes one stream of events: started, tool call, usage, text, ended. It is pure: bytes go in,
// events come out. Other packages run the programs and read their output. pawl takes from a program's report only its
// usage and whether it ended well. Start at Adapters for the programs, at Stream.Feed for their output.
package adapter

import (
	"bytes"
	"cmp"
	"time"

	"pawl/internal/lib/loosejson"
	"pawl/internal/loop"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
)

// Kind says what an event is about.
type Kind string

// The events of every stream.
const (
	Started  Kind = "started"   // the program runs: session, model, version
	ToolCall Kind = "tool_call" // it calls a tool
	Usage    Kind = "usage"     // it has used more
	Text     Kind = "text"      // it says something
	Ended    Kind = "ended"     // it says that it is done, and how
)

// The events that are only for a transcript.
const (
	Asked    Kind = "asked"    // the whole input of a tool
	Answered Kind = "answered" // the result of a tool call
	Aside    Kind = "aside"    // an agent that it started says something
)

// Event is one thing that an agent did. The fields that belong to its kind are set.
type Event struct {
	Kind    Kind
	Session string
	Model   string
	Version string
	Tool    string
	Call    string     // the program's own ID of a tool call, "" if it has none
	Failed  bool       // the tool call failed, by the program's report
	Text    string     // at most maxText bytes
	Usage   loop.Usage // the whole usage so far
	End     *End
}

// End is how an agent reports its end.
type End struct {
	Failure   string        // what went wrong, "" if nothing
	Exhausted loop.Resource // the budget for which it ended itself, "" for none
	Denied    []string      // tools that it was not allowed to use
	Text      string        // its last words, if they are not those of the last Text event
	// Refusal is the provider's answer, if the agent failed because the provider refused work.
	Refusal *result.Refusal
}

const (
	// maxLine is the maximum length of a line. The result of a tool can be longer, but nothing is read from such
	// lines.
	maxLine = 4 << 20
	// maxText is how many bytes of an agent's text are kept.
	maxText = 16 << 10
	// maxTools is how many tool calls are distinguished by their IDs.
	maxTools = 1 << 16
)

// reader reads the lines of one program.
type reader interface {
	// line returns the events of a line, none for an unknown line.
	line(line []byte) []Event
	// usage returns the whole usage so far.
	usage() loop.Usage
	// refusal returns the provider's refusal, nil if the provider has accepted work since.
	refusal() *result.Refusal
	// busy reports whether a tool runs, as far as the program reports that. A program may print nothing while a tool
	// runs.
	busy() bool
}

// Stream turns the stdout of one call of an agent into events. It accepts any bytes: half lines, garbage, lines of
// any length and unknown types. Adapter.Stream makes a Stream; the zero Stream can't be used.
type Stream struct {
	reader   reader
	line     []byte
	skipping bool // within a line that is too long
	spent    loop.Usage
	started  Event
	end      *End
	text     string
}

// Feed reads the next bytes of the output and returns their events.
func (s *Stream) Feed(b []byte) []Event {
	var events []Event
	for line := range bytes.Lines(b) {
		part, whole := bytes.CutSuffix(line, []byte("\n"))
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

// Close reads what came after the last line end.
func (s *Stream) Close() []Event { return s.drain() }

// drain reads the complete line.
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
		case Started: // it may come again, if the program continues after an end
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

// Usage returns the whole usage so far.
func (s *Stream) Usage() loop.Usage { return s.spent }

// Session returns the session's ID, the model and the version that the program named.
func (s *Stream) Session() (session, model, version string) {
	return s.started.Session, s.started.Model, s.started.Version
}

// Ended reports whether the agent said that it ended.
func (s *Stream) Ended() bool { return s.end != nil }

// End returns how the agent reported its end. An agent without such a report has failed, whatever its exit code.
func (s *Stream) End() End {
	if s.end == nil {
		return End{Failure: "it ended without saying how", Text: s.text, Refusal: s.reader.refusal()}
	}
	end := *s.end
	end.Text = cmp.Or(end.Text, s.text)
	if end.Refusal == nil && end.Failure != "" && end.Exhausted == "" {
		end.Refusal = cmp.Or(s.reader.refusal(), result.In(end.Failure))
	}
	return end
}

// Begun reports whether the program said that it began.
func (s *Stream) Begun() bool { return s.started.Kind == Started }

// Busy reports whether a tool runs, as far as the program reports that.
func (s *Stream) Busy() bool { return s.reader.busy() }

// wait is how long a program may wait for its provider by itself. For a longer wait the loop sleeps, which costs
// nothing.
const wait = time.Minute

// Hopeless reports whether the program keeps asking a provider that will not accept its work: one that does not
// accept its credentials, or that has said to come back after a longer time.
func (s *Stream) Hopeless() bool {
	r := s.reader.refusal()
	return r != nil && s.end == nil && (r.Class == result.AuthMissing || r.After >= wait)
}

// Waiting reports whether the program waits for a provider that it does not reach.
func (s *Stream) Waiting() bool {
	r := s.reader.refusal()
	return r != nil && s.end == nil && r.Class == result.ProviderDown
}

// Over returns a budget that u exceeds, "" for none. A budget that is exactly used up is not exceeded: the work that
// used it up is still judged.
func Over(left map[loop.Resource]metric.Decimal, u loop.Usage) loop.Resource {
	for _, r := range loop.Resources {
		limit, limited := left[r]
		if limited && u.Of(r).Cmp(limit) > 0 {
			return r
		}
	}
	return ""
}

// calls counts tool calls by their IDs, because a program may report one more than once.
type calls struct {
	seen  map[string]bool
	count int64
	open  map[string]bool // the calls that run
}

// begin records that a call runs; end records that it no longer does.
func (c *calls) begin(id string) {
	if c.open == nil || len(c.open) >= maxTools {
		c.open = map[string]bool{}
	}
	c.open[id] = true
}

func (c *calls) end(id string) { delete(c.open, id) }

func (c *calls) busy() bool { return len(c.open) > 0 }

// add reports whether the call is new. A call without an ID always is.
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

// spending is the usage of messages.
type spending struct {
	in, out, nano int64 // nano are billionths of a dollar
}

// maxNano is a million dollars, more than any call costs.
const maxNano = int64(1e15)

func (s *spending) add(t spending) {
	s.in, s.out, s.nano = loosejson.Count(s.in+t.in), loosejson.Count(s.out+t.out), min(s.nano+t.nano, maxNano)
}

// totals are what a program has reported so far.
type totals struct {
	tools calls
	spending
	last *result.Refusal // of the last answer; nil for a program that reports a refusal when it ends
}

func (t *totals) busy() bool { return t.tools.busy() }

func (t *totals) refusal() *result.Refusal { return t.last }

func (t *totals) usage() loop.Usage {
	return loop.Usage{AgentCalls: 1, ToolCalls: t.tools.count, InputTokens: t.in, OutputTokens: t.out, CostUSD: Dollars(t.nano)}
}

// asked records that a tool call begins, and returns its events; none if the call was reported before.
func (t *totals) asked(id, tool, input string) []Event {
	t.tools.begin(id)
	if !t.tools.add(id) {
		return nil
	}
	return []Event{{Kind: ToolCall, Tool: tool}, {Kind: Asked, Call: id, Tool: tool, Text: input}}
}

// answered records that a tool call has ended, and returns its event.
func (t *totals) answered(id, result string, failed bool) Event {
	t.tools.end(id)
	return Event{Kind: Answered, Call: id, Text: result, Failed: failed}
}
