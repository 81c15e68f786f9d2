package adapter

import (
	"strings"

	"pawl/internal/lib/loosejson"
	"pawl/internal/loop/result"
	"pawl/internal/spec/agents"
)

// piArgv calls pi headless, without extensions, skills and prompt templates, because a repository may contain some.
func piArgv(c Call) []string {
	argv := append(started(c), "-p", "--mode", "json")
	provider, model, both := strings.Cut(c.Agent.Model, "/")
	switch {
	case both:
		argv = append(argv, "--provider", provider, "--model", model)
	case c.Agent.Model != "":
		argv = append(argv, "--model", c.Agent.Model)
	}
	argv = append(argv, c.Agent.Args...)
	tools := c.held().Names(c.Tools)
	switch looks := c.held().Has[agents.Looks]; {
	case !c.MayEdit && c.all():
		argv = append(argv, "--tools", strings.Join(looks, ","))
	case !c.MayEdit:
		argv = append(argv, "--tools", strings.Join(only(looks, tools), ","))
	case !c.all():
		argv = append(argv, "--tools", strings.Join(tools, ","))
	}
	return append(argv, "--no-session", "-ne", "-ns", "-np")
}

// pi reads the lines of `pi --mode json`.
type pi struct {
	totals
	session string
	failure string // why its last answer does not count
}

func (p *pi) line(raw []byte) []Event {
	l := loosejson.Decode[loosejson.Object](raw)
	switch l.Text("type") {
	case "session":
		p.session = l.Text("id")
	case "agent_start":
		return []Event{{Kind: Started, Session: p.session}}
	case "message_end":
		return p.message(l.At("message"))
	case "tool_execution_start":
		return p.asked(l.Text("toolCallId"), l.Text("toolName"), l.Raw("args"))
	case "tool_execution_end":
		return []Event{p.answered(l.Text("toolCallId"), textIn(l.At("result")["content"]), l.Is("isError"))}
	case "agent_end":
		return []Event{{Kind: Ended, End: &End{Failure: p.failure}}}
	}
	return nil
}

// message records an answer of the model.
func (p *pi) message(m loosejson.Object) []Event {
	if m.Text("role") != "assistant" {
		return nil
	}
	used := m.At("usage")
	in := used.Count("input") + used.Count("cacheRead") + used.Count("cacheWrite")
	p.add(spending{in, used.Count("output"), nanoOf(used.At("cost")["total"])})
	p.failure, p.last = "", nil
	if stop := m.Text("stopReason"); stop == "error" || stop == "aborted" {
		p.failure = why(m.Text("errorMessage"), "it ended with "+stop)
		p.last = result.In(p.failure)
		return nil
	}
	said := textIn(m["content"])
	if said == "" {
		return nil
	}
	return []Event{{Kind: Text, Text: said}}
}
