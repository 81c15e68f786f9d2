package adapter

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/lib/loosejson"
	"pawl/internal/loop"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/spec/agents"
)

// ACPCommand is the argument that makes pawl's own program the client of an agent that speaks the Agent Client
// Protocol (internal/agent/acp).
const ACPCommand = "acp-client"

// acpArgv calls pawl itself as the client of the agent that the spec's command starts. Before that command come the
// approvals with which the client answers the agent's questions, and the budgets for which the client itself ends a
// turn, so that the agent can still report its usage.
func acpArgv(c Call) []string {
	argv, entries := []string{c.Self, ACPCommand}, c.Tools
	if !c.MayEdit {
		entries = list.Map(c.approved().Classes, func(class agents.Class) string { return string(class) })
	}
	for _, entry := range entries {
		argv = append(argv, "--approve", entry)
	}
	if c.Agent.Model != "" {
		argv = append(argv, "--model", c.Agent.Model)
	}
	if left, limited := c.Budget[loop.ToolCalls]; limited {
		argv = append(argv, "--tools", strconv.FormatInt(int64(left.Float()), 10))
	}
	if left, limited := c.Budget[loop.CostUSD]; limited {
		argv = append(argv, "--cost", left.String())
	}
	return append(append(append(argv, "--"), started(c)...), c.Agent.Args...)
}

// acpEnv returns opencode's rules about tools, which opencode also follows when it is called by ACP.
func acpEnv(c Call) []string {
	p, _ := agents.OfACP(c.Agent.Command.Args())
	if p.Name != agents.OpenCode {
		return nil
	}
	c.Agent.Use = p.Name
	return opencodeEnv(c)
}

// ACPLine is one line of the output of pawl's client.
type ACPLine struct {
	Type string `json:"type"` // started, tool, tool_ended, text, usage, denied, ended

	Session string `json:"session,omitempty"` // started
	Agent   string `json:"agent,omitempty"`
	Version string `json:"version,omitempty"`

	ID     string `json:"id,omitempty"`   // tool, tool_ended
	Tool   string `json:"tool,omitempty"` // tool, denied
	Failed bool   `json:"failed,omitempty"`
	Text   string `json:"text,omitempty"` // text; the input or the result of a tool

	Input  int64       `json:"input,omitempty"` // usage: all so far, including tokens from a cache
	Output int64       `json:"output,omitempty"`
	Cost   json.Number `json:"cost,omitempty"` // USD

	Failure   string        `json:"failure,omitempty"` // ended
	Status    int           `json:"status,omitempty"`  // a status of HTTP or of the protocol
	Exhausted loop.Resource `json:"exhausted,omitempty"`
}

// The types of lines.
const (
	ACPStarted   = "started"
	ACPTool      = "tool"
	ACPToolEnded = "tool_ended"
	ACPText      = "text"
	ACPUsage     = "usage"
	ACPDenied    = "denied"
	ACPEnded     = "ended"
)

// ACPSignIn is the protocol's status for an agent that is not signed in.
const ACPSignIn = -32000

// acp reads the output of pawl's client. Most agents report tokens only at the end of a turn, some never.
type acp struct {
	totals
	denied []string
}

func (a *acp) line(raw []byte) []Event {
	l := loosejson.Decode[ACPLine](raw)
	switch l.Type {
	case ACPStarted:
		return []Event{{Kind: Started, Session: l.Session, Model: l.Agent, Version: l.Version}}
	case ACPTool:
		return a.asked(l.ID, l.Tool, l.Text)
	case ACPToolEnded:
		return []Event{a.answered(l.ID, l.Text, l.Failed)}
	case ACPText:
		return []Event{{Kind: Text, Text: l.Text}}
	case ACPUsage:
		a.in, a.out = max(a.in, loosejson.Count(l.Input)), max(a.out, loosejson.Count(l.Output))
		a.nano = max(a.nano, nanoOf(json.RawMessage(l.Cost)))
	case ACPDenied:
		if !slices.Contains(a.denied, l.Tool) && len(a.denied) < 20 {
			a.denied = append(a.denied, loop.Clip(l.Tool, 80))
		}
	case ACPEnded:
		end := &End{Failure: strings.TrimSpace(metric.Description(l.Failure)), Exhausted: l.Exhausted, Denied: a.denied}
		class := result.ByStatus(l.Status)
		if l.Status == ACPSignIn {
			class = result.AuthMissing
		}
		if class != "" && end.Failure != "" {
			end.Refusal = &result.Refusal{Class: class, Status: max(l.Status, 0), Said: end.Failure}
			if said := result.In(l.Failure); said != nil && said.Class == class {
				end.Refusal.Until = said.Until
			}
		}
		if class == "" && end.Failure != "" {
			end.Refusal = inData(end.Failure)
		}
		return []Event{{Kind: Ended, End: end}}
	}
	return nil
}

// inData returns the refusal that the data of the protocol's error report, which come behind its words; nil if there
// is none.
func inData(failure string) *result.Refusal {
	_, text, _ := strings.Cut(failure, " {")
	data := loosejson.Decode[loosejson.Object]([]byte("{" + text))
	if said := result.In(data.Text("message", "details", "error")); said != nil {
		said.Said = failure
		return said
	}
	return named(failure, data.Text("codexErrorInfo", "code", "type"))
}
