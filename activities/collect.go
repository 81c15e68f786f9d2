package activities

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"pawl/internal/act"
	"pawl/internal/agent"
	"pawl/internal/evidence"
	"pawl/internal/govern"
	"pawl/internal/issue"
	"pawl/internal/loop"
	"pawl/internal/secret"
	"pawl/internal/task"
)

// collect reads what the agent left: words, and what it says it spent. A result file that can't be
// read is a warning; spending that is not reported counts as one tool call. Of an agent whose
// stdout is a stream, that says what was spent and how it ended, and the file has words only.
func (e *exchange) collect(out *act.Called, stdout string, in act.Call) (printed string) {
	r, err := agent.ReadResult(filepath.Dir(e.dir), filepath.Base(e.dir), resultName)
	if e.call != nil {
		printed = e.call.collect(out)
	} else {
		first, _ := readFile(stdout, maxPlan)
		printed = secret.Redact(string(first))
		out.Description = said(printed)
		out.Usage = reported(r)
	}
	out.Regenerate = out.Regenerate || r.Regenerate
	if in.Proposal != nil {
		out.Opinion = opinion(in.Proposal, e.goal, r.Review, printed)
	}
	if r.RetryAt != nil && out.RateLimit == nil {
		out.RateLimit = &task.RateLimit{Until: r.RetryAt.UTC(), Said: "by its result file"}
	}
	if err != nil {
		out.Warn(err.Error())
	}
	if line := said(r.Description); line != "" {
		out.Description = line
	}
	out.Session = cmp.Or(out.Session, loop.Clip(said(r.SessionID), 100))
	out.Idea = said(r.Idea)
	if gave := said(string(r.GiveUp)); gave != "" {
		out.GiveUp = loop.Clip(gave, 300)
	}
	out.RateLimit = believed(out.RateLimit, *out, time.Now())
	return printed
}

// said is a line of an agent's words. What looks like a credential is taken out: they are committed,
// recorded, shown and pushed.
func said(text string) string {
	return secret.Redact(evidence.Description(secret.Redact(text))) // whole before it is cut, and as it is then shown
}

// maxSleep is how far ahead the end of a rate limit is believed: a week, as some are, and a day.
const maxSleep = 8 * 24 * time.Hour

// believed is the rate limit for which a call failed, nil for one that did not fail. An end that is too far ahead is
// not believed, so that nobody sleeps for years.
func believed(l *task.RateLimit, out act.Called, now time.Time) *task.RateLimit {
	if l == nil || out.Interrupted || out.Exhausted != "" || out.OK() && out.GiveUp == "" {
		return nil
	}
	if l.Until.After(now.Add(maxSleep)) {
		return &task.RateLimit{Said: said(l.Said) + ", until " + l.Until.Format(time.RFC3339)}
	}
	return &task.RateLimit{Until: l.Until, Said: said(l.Said)}
}

// collect writes down what came of the call.
func (c *call) collect(out *act.Called) (printed string) {
	end := c.stream.End()
	end.Text, end.Failure = secret.Redact(end.Text), secret.Redact(end.Failure)
	out.Usage = c.spent()
	session, _, _ := c.stream.Session()
	out.Session = loop.Clip(session, 100)
	out.RateLimit = end.RateLimit
	switch {
	case out.Interrupted: // it runs again
	case c.over != "":
		out.Exhausted = c.over
	case end.Exhausted != "":
		out.Exhausted = end.Exhausted
	case c.flooded:
		out.Failure = fmt.Sprintf("it said more than %d bytes", streamLimit)
	case !c.stream.Ended() && (out.ExitCode != 0 || out.Signal != ""): // which says more
	case !out.TimedOut && out.StartError == "":
		out.Failure = loop.Clip(said(end.Failure), 300)
	}
	if len(end.Denied) > 0 {
		out.Warn("the agent was not allowed to use " + evidence.Description(strings.Join(end.Denied, ", ")))
	}
	if out.Tail = ""; !out.OK() { // a stream's last lines are nothing for people
		last, _ := readTail(filepath.Join(out.Log, "stderr"), tailLength)
		out.Tail = cmp.Or(secret.Redact(strings.TrimSpace(strings.ToValidUTF8(string(last), "?"))), loop.Clip(end.Text, tailLength))
	}
	text := strings.TrimSpace(end.Text)
	if why, gave := strings.CutPrefix(text, agent.GiveUpWords); gave {
		out.GiveUp = cmp.Or(said(why), agent.NoReason)
		return text
	}
	if why, asked := strings.CutPrefix(text, agent.RegenerateWords); asked {
		out.Regenerate, text = true, strings.TrimSpace(why)
	}
	if out.OK() { // the last words of one that failed describe no change
		out.Description = said(text)
	}
	return text
}

// reported is what an agent says that it spent in a call.
func reported(r agent.Result) loop.Usage {
	u := loop.Usage{AgentCalls: 1, ToolCalls: 1, InputTokens: int64(r.InputTokens), OutputTokens: int64(r.OutputTokens)}
	if r.ToolCalls != nil {
		u.ToolCalls = int64(*r.ToolCalls)
	}
	if r.CostUSD != nil {
		u.CostUSD = *r.CostUSD
	}
	return u
}

// opinion reads a reviewer's answer on a proposal: of its result file where it wrote one there,
// else of what it printed.
func opinion(p *loop.Proposal, goal string, object json.RawMessage, printed string) *act.Opinion {
	o := govern.ReadReview(p.Hash, issue.Parse([]byte(goal)).Criteria, object, printed)
	for i := range o.Criteria {
		o.Criteria[i].Evidence = secret.Redact(o.Criteria[i].Evidence)
	}
	return &act.Opinion{Decision: string(o.Decision), Note: loop.Clip(secret.Redact(o.Note), 2000), Why: loop.Clip(secret.Redact(o.Why), 500), Criteria: o.Criteria}
}
