// Package span makes a trace of a loop from its events: a span for the loop, and in it one for each iteration, phase,
// step and gate. It is a projection like the state: the same events always make the same spans with the same IDs. So a
// trace survives a worker, an engine and a retry. It contains names, numbers and hashes, never what an agent or a
// person wrote. Pure: it exports nothing (internal/telemetry does). Start at Trace.Add.
package span

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"pawl/internal/loop"
	"pawl/internal/metric/reason"
	"pawl/internal/spec/phase"
)

// Span is a part of a loop's time that is over.
type Span struct {
	Trace      [16]byte
	ID         [8]byte
	Parent     [8]byte // zero for the loop itself
	Name       string  // one of few values: "iteration", "phase verify"
	Start, End time.Time
	Failed     string // why it failed, "" if it did not
	Attributes []attribute.KeyValue
	Points     []Point // what happened during the span
}

// Point is an event within a span (L12).
type Point struct {
	Name       string
	Time       time.Time
	Attributes []attribute.KeyValue
}

// rank says how deep a span is nested.
type rank int

const (
	ofLoop rank = iota
	ofIteration
	ofPhase
	ofGate
)

// open is a span that has not ended.
type open struct {
	Span
	rank rank
}

// Trace is a loop's trace up to its latest event. The zero value is a loop that has not begun.
type Trace struct {
	seq   int64  // the number of the last event that was added
	seed  string // identifies the trace
	trace [16]byte
	open  []open // the spans that have not ended, the loop's first

	steward bool                 // it is a steward, whose tasks and gates overlap
	since   map[string]time.Time // when a steward's `task ID`, its present `state ID` and `gate ID` began
}

// Add adds an event and returns the spans that ended with it, inner ones first. It ignores an event that was added
// before. Events must come in their order, beginning with the first one.
func (c *Trace) Add(e loop.Event) []Span {
	if e.Seq <= c.seq {
		return nil
	}
	c.seq = e.Seq
	if c.seed == "" {
		// Not the run's ID: a loop whose engine was lost continues in another run.
		c.seed = fmt.Sprintf("%s\x00%d", e.Loop, e.Time.UnixNano())
		sum := sha256.Sum256([]byte("trace\x00" + c.seed))
		c.trace = [16]byte(sum[:16])
		c.since = map[string]time.Time{}
		c.begin(ofLoop, "loop", 0, e)
	}
	if len(c.open) == 0 {
		return nil // events after the end
	}
	return c.follow(e)
}

// follow carries out an event, which begins or ends a span, or is a point in one.
func (c *Trace) follow(e loop.Event) (done []Span) {
	switch e.Type {
	case loop.LoopOpened, loop.StewardOpened:
		if o := e.Opened; o != nil && !c.steward {
			c.note(ofLoop, text("pawl.kind", o.Kind), text("pawl.branch", o.Branch), text("pawl.base", o.Base), text("pawl.host", o.Host))
		}
		c.steward = c.steward || e.Type == loop.StewardOpened
	case loop.IterationStarted:
		return c.beginIteration(e)
	case loop.IterationSucceeded, loop.IterationFailed:
		return c.endIteration(e)
	case loop.PhaseEntered:
		done = c.end(ofPhase, e)
		c.begin(ofPhase, "phase "+string(e.Phase), e.Seq, e)
		if e.Attempt > 0 {
			c.note(ofPhase, attribute.Int("pawl.attempt", e.Attempt))
		}
	case loop.StepEnded:
		return []Span{c.step(e)}
	case loop.GateOpened, loop.GateClosed:
		if c.steward {
			return c.supervise(e)
		}
		return c.gate(e)
	case loop.AutonomyCompleted, loop.AutonomyHalted, loop.LoopFailed, loop.StewardEnded:
		return c.endLoop(e)
	case loop.TaskSubmitted, loop.TaskStateChanged, loop.ActionTaken, loop.TaskEnded:
		return c.supervise(e)
	default:
		c.point(e)
	}
	return done
}

// beginIteration begins an iteration. The current phase becomes its first phase. The time that the phase took before
// belongs to the loop.
func (c *Trace) beginIteration(e loop.Event) (done []Span) {
	var points []Point
	for _, s := range c.end(ofIteration, e) {
		if s.End.After(s.Start) {
			done = append(done, s)
		} else {
			points = append(points, s.Points...)
		}
	}
	c.begin(ofIteration, "iteration", e.Seq, e)
	if e.Phase != phase.None {
		c.begin(ofPhase, "phase "+string(e.Phase), -e.Seq, e)
	}
	c.inner().Points = points
	return done
}

// gate begins or ends the span of a loop's gate.
func (c *Trace) gate(e loop.Event) []Span {
	if e.Answer != nil {
		c.note(ofGate, text("pawl.answer", e.Answer.Message))
	}
	done := c.end(ofGate, e)
	if e.Type == loop.GateOpened && e.Gate != nil {
		c.begin(ofGate, "gate "+string(e.Gate.Kind), e.Seq, e)
		c.note(ofGate, text("pawl.gate", e.Gate.ID), text("pawl.hash", e.Gate.Hash))
	}
	return done
}

func (c *Trace) endIteration(e loop.Event) []Span {
	done := c.end(ofPhase, e)
	if r := e.Record; r != nil {
		if r.Metric != nil {
			c.note(ofIteration, attribute.Float64("pawl.metric", r.Metric.Float()), attribute.Float64("pawl.delta", r.Delta.Float()))
		}
		c.note(ofIteration, attribute.Bool("pawl.kept", r.Kept), text("pawl.commit", r.Commit), attribute.Int("pawl.attempts", r.Attempts))
	}
	if e.FailureReason != "" {
		c.note(ofIteration, text("pawl.reason", e.FailureReason))
	}
	if reason.Failed(e.FailureReason) {
		c.fail(ofIteration, e.FailureReason)
	}
	return append(done, c.end(ofIteration, e)...)
}

func (c *Trace) endLoop(e loop.Event) []Span {
	c.note(ofLoop, text("pawl.status", string(e.Status)), text("pawl.exit_status", e.ExitStatus), text("pawl.error_code", e.ErrorCode),
		attribute.Int("pawl.iterations", e.Iteration))
	if u := e.Usage; u != nil {
		c.note(ofLoop, usage(u)...)
	}
	if e.Type == loop.LoopFailed {
		c.fail(ofLoop, cmp.Or(e.ErrorCode, "failed"))
	}
	return c.end(ofLoop, e)
}

// step returns the span of a step, from its end and what it spent. After an outage it seems to begin too late.
func (c *Trace) step(e loop.Event) Span {
	s := Span{
		Trace: c.trace, ID: c.id(e.Seq), Parent: c.inner().ID, Name: "step " + e.Step, Start: e.Time, End: e.Time,
		Attributes: said(append(common(e), text("pawl.step", e.Step), text("pawl.role", e.Role))...),
	}
	if e.Attempt > 0 {
		s.Attributes = append(s.Attributes, attribute.Int("pawl.attempt", e.Attempt))
	}
	s.Attributes = append(s.Attributes, said(text("pawl.result", e.Reason))...)
	if Outcome(e) == "failed" {
		s.Failed = e.Reason
	}
	if u := e.Usage; u != nil {
		s.Start = e.Time.Add(-time.Duration(u.ActiveMs) * time.Millisecond)
		s.Attributes = append(s.Attributes, usage(u)...)
	}
	if from := c.inner().Start; s.Start.Before(from) {
		s.Start = from
	}
	return s
}

// Outcome says in one word how a step ended: ok, interrupted (the step runs again) or failed.
func Outcome(e loop.Event) string {
	switch e.Reason {
	case "", "ok":
		return "ok"
	case "interrupted":
		return e.Reason
	}
	return "failed"
}

func usage(u *loop.Usage) []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.Int64("pawl.active_ms", u.ActiveMs)}
	if u.AgentCalls > 0 {
		out = append(out, attribute.Int64("pawl.agent_calls", u.AgentCalls), attribute.Int64("pawl.tool_calls", u.ToolCalls),
			attribute.Int64("pawl.input_tokens", u.InputTokens), attribute.Int64("pawl.output_tokens", u.OutputTokens),
			attribute.Float64("pawl.cost_usd", u.CostUSD.Float()))
	}
	return out
}

// begin opens a span inside the innermost open one. Spans of its rank must have ended.
func (c *Trace) begin(r rank, name string, n int64, e loop.Event) {
	s := Span{Trace: c.trace, ID: c.id(n), Name: name, Start: e.Time, Attributes: common(e)}
	if len(c.open) > 0 {
		s.Parent = c.inner().ID
	}
	c.open = append(c.open, open{s, r})
}

// end ends the open spans of a rank, and those inside them.
func (c *Trace) end(r rank, e loop.Event) (done []Span) {
	for len(c.open) > 0 && c.inner().rank >= r {
		s := c.inner().Span
		s.End = e.Time
		done = append(done, s)
		c.open = c.open[:len(c.open)-1]
	}
	return done
}

func (c *Trace) inner() *open { return &c.open[len(c.open)-1] }

func (c *Trace) at(r rank) *open {
	if i := slices.IndexFunc(c.open, func(o open) bool { return o.rank == r }); i >= 0 {
		return &c.open[i]
	}
	return &open{}
}

func (c *Trace) note(r rank, attributes ...attribute.KeyValue) {
	s := c.at(r)
	s.Attributes = append(s.Attributes, said(attributes...)...)
}

// text is an attribute that said removes if its value is empty.
var text = attribute.String

func said(attributes ...attribute.KeyValue) []attribute.KeyValue {
	return slices.DeleteFunc(attributes, func(a attribute.KeyValue) bool { return a.Value == attribute.StringValue("") })
}

func (c *Trace) fail(r rank, why string) { c.at(r).Failed = why }

// maxPoints limits the points of an open span, so that a flood of messages does not fill the memory.
const maxPoints = 100

func (c *Trace) point(e loop.Event) {
	s := c.inner()
	if len(s.Points) == maxPoints {
		return
	}
	p := Point{Name: string(e.Type), Time: e.Time, Attributes: said(
		text("pawl.step", e.Step), text("pawl.failure_reason", e.FailureReason), text("pawl.commit", e.Commit),
		text("pawl.message", e.Message), text("pawl.exhausted_budget", string(e.ExhaustedBudget)), text("pawl.error_code", e.ErrorCode),
	)}
	if j := e.Judgement; j != nil {
		p.Attributes = append(p.Attributes, attribute.Bool("pawl.passed", j.Passed))
	}
	s.Points = append(s.Points, p)
}

// id returns the ID of the span that event n opens; 0 is the loop. The second span that an event opens has the number
// -n.
func (c *Trace) id(n int64) [8]byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "span\x00%s\x00%d", c.seed, n))
	return [8]byte(sum[:8])
}

// common returns the attributes of every span. They serve to find a loop's spans, and to sort those that take no time.
func common(e loop.Event) []attribute.KeyValue {
	out := []attribute.KeyValue{text("pawl.loop", e.Loop), attribute.Int64("pawl.seq", e.Seq)}
	if e.Iteration > 0 {
		out = append(out, attribute.Int("pawl.iteration", e.Iteration))
	}
	return out
}
