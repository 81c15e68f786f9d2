package stream

import (
	"encoding/json"
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

type piLine struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Call   string          `json:"toolCallId"`
	Tool   string          `json:"toolName"`
	Args   json.RawMessage `json:"args"`
	Failed bool            `json:"isError"`
	Result struct {
		Content json.RawMessage `json:"content"`
	} `json:"result"`
	Message struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Stop    string          `json:"stopReason"`
		Error   string          `json:"errorMessage"`
		Usage   struct {
			Input  int64 `json:"input"`
			Output int64 `json:"output"`
			Read   int64 `json:"cacheRead"`
			Write  int64 `json:"cacheWrite"`
			Cost   struct {
				Total json.Number `json:"total"`
			} `json:"cost"`
		} `json:"usage"`
	} `json:"message"`
}

func (p *pi) line(raw []byte) []Event {
	l := decode[piLine](raw)
	switch l.Type {
	case "session":
		p.session = l.ID
	case "agent_start":
		return []Event{{Kind: Started, Session: p.session}}
	case "message_end":
		return p.message(l)
	case "tool_execution_start":
		return p.asked(l.Call, l.Tool, string(l.Args))
	case "tool_execution_end":
		return []Event{p.answered(l.Call, textIn(l.Result.Content), l.Failed)}
	case "agent_end":
		return []Event{{Kind: Ended, End: &End{Failure: p.failure}}}
	}
	return nil
}

// message records an answer of the model.
func (p *pi) message(l piLine) []Event {
	m := l.Message
	if m.Role != "assistant" {
		return nil
	}
	in := count(m.Usage.Input) + count(m.Usage.Read) + count(m.Usage.Write)
	p.add(spending{in, count(m.Usage.Output), nanoOf(m.Usage.Cost.Total)})
	p.failure, p.last = "", nil
	if m.Stop == "error" || m.Stop == "aborted" {
		p.failure = why(m.Error, "it ended with "+m.Stop)
		p.last = outcome.In(p.failure)
		return nil
	}
	said := textIn(m.Content)
	if said == "" {
		return nil
	}
	return []Event{{Kind: Text, Text: said}}
}
