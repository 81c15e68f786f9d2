package stream

import (
	"strings"

	"pawl/internal/outcome"
	"pawl/internal/program"
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
	switch looks := c.held().Has[program.Looks]; {
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
	l := decode[object](raw)
	switch l.text("type") {
	case "session":
		p.session = l.text("id")
	case "agent_start":
		return []Event{{Kind: Started, Session: p.session}}
	case "message_end":
		return p.message(l.at("message"))
	case "tool_execution_start":
		return p.asked(l.text("toolCallId"), l.text("toolName"), l.raw("args"))
	case "tool_execution_end":
		return []Event{p.answered(l.text("toolCallId"), textIn(l.at("result")["content"]), l.is("isError"))}
	case "agent_end":
		return []Event{{Kind: Ended, End: &End{Failure: p.failure}}}
	}
	return nil
}

// message records an answer of the model.
func (p *pi) message(m object) []Event {
	if m.text("role") != "assistant" {
		return nil
	}
	used := m.at("usage")
	in := used.count("input") + used.count("cacheRead") + used.count("cacheWrite")
	p.add(spending{in, used.count("output"), used.at("cost").nano("total")})
	p.failure, p.last = "", nil
	if stop := m.text("stopReason"); stop == "error" || stop == "aborted" {
		p.failure = why(m.text("errorMessage"), "it ended with "+stop)
		p.last = outcome.In(p.failure)
		return nil
	}
	said := textIn(m["content"])
	if said == "" {
		return nil
	}
	return []Event{{Kind: Text, Text: said}}
}
