package calls

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"pawl/activities/hosted"
	"pawl/activities/recording"
	"pawl/internal/act"
	"pawl/internal/agent"
	"pawl/internal/evidence"
	"pawl/internal/govern"
	"pawl/internal/issue"
	"pawl/internal/loop"
	"pawl/internal/outcome"
	"pawl/internal/secret"
	"pawl/internal/task"
)

// Collect reads what the agent left: its words, and what it spent; unreported, that is one tool call. If its stdout is a
// stream, that reports spending and end, and the result file only has words. A file that can't be read is a warning.
func (e *Exchange) Collect(out *act.Called, stdout string, in act.Call) (printed string) {
	r, err := agent.ReadResult(filepath.Dir(e.Dir), filepath.Base(e.Dir), resultName)
	var refusal *outcome.Refusal
	if e.call != nil {
		printed, refusal = e.call.collect(out)
	} else {
		first, _ := hosted.ReadFile(stdout, recording.MaxPlan)
		printed = secret.Redact(string(first))
		out.Description = hosted.Said(printed)
		out.Usage = reported(r)
		if exited(out) {
			ended(out, "", complaint(out))
		}
	}
	out.Regenerate = out.Regenerate || r.Regenerate
	if in.Proposal != nil {
		out.Opinion = opinion(in.Proposal, e.goal, r.Review, printed)
	}
	if r.RetryAt != nil && refusal == nil {
		refusal = &outcome.Refusal{Class: outcome.RateLimited, Until: r.RetryAt.UTC(), Said: "by its result file"}
	}
	if refusal == nil {
		refusal = outcome.Unreached(out.Failure, e.models)
	}
	if err != nil {
		out.Warn(err.Error())
	}
	out.Description = cmp.Or(hosted.Said(r.Description), out.Description)
	out.Session = cmp.Or(out.Session, loop.Clip(hosted.Said(r.SessionID), 100))
	out.Idea = hosted.Said(r.Idea)
	out.GiveUp = cmp.Or(loop.Clip(hosted.Said(string(r.GiveUp)), 300), out.GiveUp)
	if e.classify(out, refusal, time.Now()); out.Refused != nil && e.call == nil && r.ToolCalls == nil {
		out.Usage.ToolCalls = 0 // the provider did not let it work
	}
	return printed
}

// classify returns the class of the call; for a call that its provider refused, also why and until when. A call that
// was interrupted or used up a budget has no class.
func (e *Exchange) classify(out *act.Called, refusal *outcome.Refusal, now time.Time) {
	if out.Interrupted || out.Exhausted != "" {
		return
	}
	f := outcome.Facts{
		Failure: out.Failure, GaveUp: out.GiveUp != "", NotStarted: out.StartError != "", TimedOut: out.TimedOut, Signal: out.Signal != "", Exit: out.ExitCode,
		Stderr: out.Tail,
	}
	if refusal != nil {
		f.Refusal = refusal.Class
	}
	if c := e.call; c != nil {
		f.Stream, f.Begun, f.Ended, f.Silent = true, c.stream.Begun(), c.stream.Ended(), c.silent
	}
	if out.Class = outcome.Of(f); !out.Class.Refused() {
		return
	}
	if refusal == nil {
		refusal = &outcome.Refusal{Class: out.Class, Said: lastLines(out.Tail)}
	}
	e.refuse(out, refusal, now)
}

// refuse makes the call one that its provider refused.
func (e *Exchange) refuse(out *act.Called, refusal *outcome.Refusal, now time.Time) {
	out.Class = refusal.Class
	until := refusal.When(now)
	out.Refused = &act.Refused{Status: refusal.Status, Said: loop.Clip(hosted.Said(refusal.Said), 300)}
	if until.After(now.Add(maxSleep)) { // such a time is ignored, so that no loop sleeps for years
		out.Refused.Said += ", until " + until.Format(time.RFC3339)
	} else {
		out.Refused.Until = until
	}
	if out.Class == outcome.RateLimited {
		out.RateLimit = &task.RateLimit{Until: out.Refused.Until, Said: out.Refused.Said}
	}
}

// lastLines returns the last lines of a program's stderr, on one line, "" if there are none.
func lastLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return loop.Clip(hosted.Said(strings.Join(lines[max(0, len(lines)-3):], "; ")), 300)
}

// complaint returns the end of a program's stderr.
func complaint(out *act.Called) string {
	stderr, _ := hosted.ReadTail(filepath.Join(out.Log, "stderr"), hosted.TailLength)
	return secret.Redact(strings.TrimSpace(strings.ToValidUTF8(string(stderr), "?")))
}

// exited reports whether a program ended by itself with an error.
func exited(out *act.Called) bool {
	return (out.ExitCode != 0 || out.Signal != "") && !out.Interrupted && !out.TimedOut && out.StartError == "" && out.Failure == "" && out.Exhausted == ""
}

// ended returns how a program ended that did not report it in another way, with its last complaint.
func ended(out *act.Called, failure, complaint string) {
	last := lastLines(complaint)
	if out.ExitCode == 0 && out.Signal == "" {
		out.Failure = failure
	} else if last != "" {
		out.Failure = out.Ending()
	}
	if last != "" {
		out.Failure += ": " + last
	}
}

// maxSleep limits how far in the future a rate limit may end; some last a week. Later ends are ignored.
const maxSleep = 8 * 24 * time.Hour

// collect sets the result of the call, and returns the provider's refusal, nil if the provider accepted the work.
func (c *call) collect(out *act.Called) (printed string, refusal *outcome.Refusal) {
	end := c.stream.End()
	if c.meter != nil {
		end.Refusal = c.meter.merged(end.Refusal)
		if end.Failure == "" && c.meter.total.Cut { // the Gemini CLI treats that as a normal end
			end.Failure = "the last answer of its model was cut off"
			end.Refusal = &outcome.Refusal{Class: outcome.ProviderDown, Said: end.Failure}
		}
	}
	end.Text, end.Failure = secret.Redact(end.Text), secret.Redact(end.Failure)
	out.Usage = c.spent()
	session, _, _ := c.stream.Session()
	out.Session = loop.Clip(session, 100)
	complaint := complaint(out)
	switch {
	case out.Interrupted: // the call is made again
	case c.over != "":
		out.Exhausted = c.over
	case end.Exhausted != "":
		out.Exhausted = end.Exhausted
	case c.flooded:
		out.Failure = fmt.Sprintf("it printed more than %d MiB, which pawl does not keep; have it print less", c.most()>>20)
	case c.silent:
		out.Failure = fmt.Sprintf("it said nothing for %s (limits.silence), and none of its tools was at work", c.silence)
		if c.works.last.After(c.heard) {
			out.Failure = fmt.Sprintf("it said nothing for more than %s (limits.silence; work of its processes extends that at most threefold)", c.silence)
		}
	case c.hopeless && end.Refusal != nil:
		out.Failure = loop.Clip(hosted.Said(end.Refusal.Said), 300)
	case out.TimedOut || out.StartError != "":
	case c.stream.Ended():
		out.Failure = loop.Clip(hosted.Said(end.Failure), 300)
	default: // the stream does not contain the exit code and stderr
		ended(out, end.Failure, complaint)
	}
	if c.meter != nil && !out.Interrupted {
		for _, text := range c.meter.warnings(c.carried.Add(c.stream.Usage()), c.stream.Ended() && c.over == "") {
			out.Warn(text)
		}
	}
	if out.Withheld = end.Denied; len(end.Denied) > 0 {
		out.Warn("the agent was not allowed to use " + evidence.Description(strings.Join(end.Denied, ", ")))
	}
	if out.Tail = ""; !out.OK() { // the last lines of a stream are not for people
		out.Tail = cmp.Or(complaint, loop.Clip(end.Text, hosted.TailLength))
	}
	text := strings.TrimSpace(end.Text)
	if why, gave := strings.CutPrefix(text, agent.GiveUpWords); gave {
		out.GiveUp = cmp.Or(hosted.Said(why), agent.NoReason)
		return text, end.Refusal
	}
	if why, asked := strings.CutPrefix(text, agent.RegenerateWords); asked {
		out.Regenerate, text = true, strings.TrimSpace(why)
	}
	if out.OK() { // the last words of a failed call do not describe a change
		out.Description = hosted.Said(text)
	}
	return text, end.Refusal
}

// reported returns the usage that an agent reports for a call.
func reported(r agent.Result) loop.Usage {
	u := loop.Usage{AgentCalls: 1, ToolCalls: 1, InputTokens: int64(r.InputTokens), OutputTokens: int64(r.OutputTokens)}
	if r.ToolCalls != nil {
		u.ToolCalls = int64(*r.ToolCalls)
	}
	u.CostUSD = *cmp.Or(r.CostUSD, new(evidence.Decimal))
	return u
}

// opinion reads a reviewer's answer on a proposal: from its result file if it wrote one, else from its output.
func opinion(p *loop.Proposal, goal string, object json.RawMessage, printed string) *act.Opinion {
	o := govern.ReadReview(p.Hash, issue.Parse([]byte(goal)).Criteria, object, printed)
	for i := range o.Criteria {
		o.Criteria[i].Evidence = secret.Redact(o.Criteria[i].Evidence)
	}
	return &act.Opinion{Decision: string(o.Decision), Note: loop.Clip(secret.Redact(o.Note), 2000), Why: loop.Clip(secret.Redact(o.Why), 500), Criteria: o.Criteria}
}
