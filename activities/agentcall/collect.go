package agentcall

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"pawl/activities/record"
	"pawl/activities/workspace"
	"pawl/internal/agent/prompt"
	"pawl/internal/lib/secretscan"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec/issue"
	"pawl/internal/steward/task"
)

// Collect reads what the agent left: its words, and what it spent; unreported, that is one tool call. If its stdout is a
// stream, that reports spending and end, and the result file only has words. A file that can't be read is a warning.
func (e *Exchange) Collect(out *api.Called, stdout string, input api.Call) (printed string) {
	r, err := prompt.ReadResult(filepath.Dir(e.Dir), filepath.Base(e.Dir), resultName)
	var refusal *result.Refusal
	if e.call != nil {
		printed, refusal = e.call.collect(out)
	} else {
		first, _ := workspace.ReadFile(stdout, record.MaxPlan)
		printed = secretscan.Redact(string(first))
		out.Description = workspace.Said(printed)
		out.Usage = reported(r)
		switch {
		case e.plain.tooLong && !out.Interrupted:
			out.Failure = e.plain.failure()
		case exited(out):
			ended(out, "", complaint(out))
		}
	}
	out.Regenerate = out.Regenerate || r.Regenerate
	if input.Proposal != nil {
		out.Opinion = opinion(input.Proposal, e.goal, r.Review, printed)
	}
	if r.RetryAt != nil && refusal == nil {
		refusal = &result.Refusal{Class: result.RateLimited, Until: r.RetryAt.UTC(), Said: "by its result file"}
	}
	if refusal == nil {
		refusal = result.Unreached(out.Failure, e.models)
	}
	if err != nil {
		out.Warn(err.Error())
	}
	out.Description = cmp.Or(workspace.Said(r.Description), out.Description)
	out.Session = cmp.Or(out.Session, loop.Clip(workspace.Said(r.SessionID), 100))
	out.Idea = workspace.Said(r.Idea)
	out.GiveUp = cmp.Or(loop.Clip(workspace.Said(string(r.GiveUp)), 300), out.GiveUp)
	if e.classify(out, refusal, time.Now()); out.Refused != nil && e.call == nil && r.ToolCalls == nil {
		out.Usage.ToolCalls = 0 // the provider did not let it work
	}
	return printed
}

// classify returns the class of the call; for a call that its provider refused, also why and until when. A call that
// was interrupted or used up a budget has no class.
func (e *Exchange) classify(out *api.Called, refusal *result.Refusal, now time.Time) {
	if out.Interrupted || out.Exhausted != "" {
		return
	}
	f := result.Facts{
		Failure: out.Failure, GaveUp: out.GiveUp != "", NotStarted: out.StartError != "", TimedOut: out.TimedOut, Signal: out.Signal != "", Exit: out.ExitCode,
		Stderr: out.Tail,
	}
	if refusal != nil {
		f.Refusal = refusal.Class
	}
	f.Silent = e.silence().tooLong
	if c := e.call; c != nil {
		f.Stream, f.Begun, f.Ended = true, c.stream.Begun(), c.stream.Ended()
	}
	if out.Class = result.Of(f); !out.Class.Refused() {
		return
	}
	if refusal == nil {
		refusal = &result.Refusal{Class: out.Class, Said: lastLines(out.Tail)}
	}
	e.refuse(out, refusal, now)
}

// refuse makes the call one that its provider refused.
func (e *Exchange) refuse(out *api.Called, refusal *result.Refusal, now time.Time) {
	out.Class = refusal.Class
	resumeAt := refusal.When(now)
	out.Refused = &api.Refused{Status: refusal.Status, Said: loop.Clip(workspace.Said(refusal.Said), 300)}
	if resumeAt.After(now.Add(maxSleep)) { // such a time is ignored, so that no loop sleeps for years
		out.Refused.Said += ", until " + resumeAt.Format(time.RFC3339)
	} else {
		out.Refused.Until = resumeAt
	}
	if out.Class == result.RateLimited {
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
	return loop.Clip(workspace.Said(strings.Join(lines[max(0, len(lines)-3):], "; ")), 300)
}

// complaint returns the end of a program's stderr.
func complaint(out *api.Called) string {
	stderr, _ := workspace.ReadTail(filepath.Join(out.Log, "stderr"), workspace.TailLength)
	return secretscan.Redact(strings.TrimSpace(strings.ToValidUTF8(string(stderr), "?")))
}

// exited reports whether a program ended by itself with an error.
func exited(out *api.Called) bool {
	return (out.ExitCode != 0 || out.Signal != "") && !out.Interrupted && !out.TimedOut && out.StartError == "" && out.Failure == "" && out.Exhausted == ""
}

// ended returns how a program ended that did not report it in another way, with its last complaint.
func ended(out *api.Called, failure, complaint string) {
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
func (c *call) collect(out *api.Called) (printed string, refusal *result.Refusal) {
	end := c.stream.End()
	if c.meter != nil {
		end.Refusal = c.meter.merged(end.Refusal)
		if end.Failure == "" && c.meter.total.Cut { // the Gemini CLI treats that as a normal end
			end.Failure = "the last answer of its model was cut off"
			end.Refusal = &result.Refusal{Class: result.ProviderDown, Said: end.Failure}
		}
	}
	end.Text, end.Failure = secretscan.Redact(end.Text), secretscan.Redact(end.Failure)
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
	case c.quiet.tooLong:
		out.Failure = c.quiet.failure()
		if !c.quiet.worked() {
			out.Failure += ", and none of its tools was at work"
		}
	case c.hopeless && end.Refusal != nil:
		out.Failure = loop.Clip(workspace.Said(end.Refusal.Said), 300)
	case out.TimedOut || out.StartError != "":
	case c.stream.Ended():
		out.Failure = loop.Clip(workspace.Said(end.Failure), 300)
	default: // the stream does not contain the exit code and stderr
		ended(out, end.Failure, complaint)
	}
	if c.meter != nil && !out.Interrupted {
		for _, text := range c.meter.warnings(c.carried.Add(c.stream.Usage()), c.stream.Ended() && c.over == "") {
			out.Warn(text)
		}
	}
	if out.Withheld = end.Denied; len(end.Denied) > 0 {
		out.Warn("the agent was not allowed to use " + metric.Description(strings.Join(end.Denied, ", ")))
	}
	if out.Tail = ""; !out.OK() { // the last lines of a stream are not for people
		out.Tail = cmp.Or(complaint, loop.Clip(end.Text, workspace.TailLength))
	}
	text := strings.TrimSpace(end.Text)
	if reason, found := strings.CutPrefix(text, prompt.GiveUpWords); found {
		out.GiveUp = cmp.Or(workspace.Said(reason), prompt.NoReason)
		return text, end.Refusal
	}
	if reason, found := strings.CutPrefix(text, prompt.RegenerateWords); found {
		out.Regenerate, text = true, strings.TrimSpace(reason)
	}
	if out.OK() { // the last words of a failed call do not describe a change
		out.Description = workspace.Said(text)
	}
	return text, end.Refusal
}

// reported returns the usage that an agent reports for a call.
func reported(r prompt.Result) loop.Usage {
	u := loop.Usage{AgentCalls: 1, ToolCalls: 1, InputTokens: int64(r.InputTokens), OutputTokens: int64(r.OutputTokens)}
	if r.ToolCalls != nil {
		u.ToolCalls = int64(*r.ToolCalls)
	}
	if r.CostUSD != nil {
		u.CostUSD = *r.CostUSD
	}
	return u
}

// opinion reads a reviewer's answer on a proposal: from its result file if it wrote one, else from its output.
func opinion(p *loop.Proposal, goal string, object json.RawMessage, printed string) *api.Opinion {
	o := rules.ReadReview(p.Hash, issue.Parse([]byte(goal)).Criteria, object, printed)
	for i := range o.Criteria {
		o.Criteria[i].Evidence = secretscan.Redact(o.Criteria[i].Evidence)
	}
	return &api.Opinion{Decision: string(o.Decision), Note: loop.Clip(secretscan.Redact(o.Note), 2000), Why: loop.Clip(secretscan.Redact(o.Why), 500), Criteria: o.Criteria}
}
