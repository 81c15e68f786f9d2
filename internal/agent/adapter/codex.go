package adapter

import (
	"cmp"

	"pawl/internal/lib/loosejson"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/spec/agents"
)

// codexArgv calls Codex headless, in its own sandbox. The sandbox is read-only for a role that may not edit, and if
// no tool that edits is approved. Codex reads neither the user's configuration nor the repository's rules. If the
// network is approved, its sandbox has the network too.
func codexArgv(c Call) []string {
	approved := c.approved()
	sandbox := "workspace-write"
	if !approved.May(agents.Edits) {
		sandbox = "read-only"
	}
	argv := append(c.begin("-m", "exec"), c.Agent.Args...)
	switch {
	case !approved.May(agents.Network):
		argv = append(argv, "-c", `web_search="disabled"`, "-c", "sandbox_workspace_write.network_access=false")
	case !c.all():
		argv = append(argv, "-c", "sandbox_workspace_write.network_access=true")
	}
	if !approved.May(agents.Subagents) {
		argv = append(argv, "-c", "features.multi_agent=false")
	}
	return append(argv, "--json", "--sandbox", sandbox, "--ephemeral", "--ignore-user-config", "--ignore-rules", "-")
}

// codex reads the lines of `codex exec --json`. Tokens come at the end of a turn, so a call that was ended before has
// none. It never reports a cost.
type codex struct {
	totals
	trouble string // the last error that it reported, after which it may have continued
}

// notTools are the items that are not tool calls.
var notTools = map[string]bool{"agent_message": true, "reasoning": true, "error": true, "todo_list": true, "": true}

func (c *codex) line(raw []byte) []Event {
	l := loosejson.Decode[loosejson.Object](raw)
	c.last = nil
	switch kind := l.Text("type"); kind {
	case "thread.started":
		return []Event{{Kind: Started, Session: l.Text("thread_id")}}
	case "item.started", "item.updated", "item.completed":
		item, ended := l.At("item"), kind == "item.completed"
		switch of := item.Text("type"); {
		case of == "agent_message" && ended:
			return []Event{{Kind: Text, Text: item.Text("text")}}
		case of == "error":
			c.troubled(item.Text("message"))
		case notTools[of]:
		default:
			return c.tool(item, ended)
		}
	case "turn.completed":
		used := l.At("usage")
		c.in, c.out = max(c.in, used.Count("input_tokens")), max(c.out, used.Count("output_tokens"))
		return []Event{{Kind: Ended, End: &End{}}}
	case "turn.failed":
		failed := l.At("error")
		end := &End{Failure: why(failed.Text("message"), c.trouble)}
		end.Refusal = named(end.Failure, failed.Text("code", "codex_error_info", "codexErrorInfo"))
		return []Event{{Kind: Ended, End: end}}
	case "error":
		c.troubled(l.Text("message"))
	}
	return nil
}

// troubled records an error after which it goes on: it may wait for its provider, until another line says otherwise.
func (c *codex) troubled(message string) {
	c.trouble = message
	if refusal := result.In(message); refusal != nil && refusal.Class == result.ProviderDown {
		c.last = refusal
	}
}

// tool returns the events of a line about a tool call. What the tool is called with depends on its type.
func (c *codex) tool(item loosejson.Object, ended bool) (events []Event) {
	id := item.Text("id")
	of := item.Text("server") + " " + item.Text("tool") + " " + item.Raw("arguments")
	events = c.asked(id, item.Text("type"), cmp.Or(item.Text("command", "query"), item.Raw("changes"), of))
	if ended {
		failed := item.Text("status") == "failed" || item.Int("exit_code") != 0
		events = append(events, c.answered(id, item.Text("aggregated_output", "status"), failed))
	}
	return events
}

// named returns the refusal that a program names by a kind of error, nil if the kind is no refusal.
func named(failure, code string) *result.Refusal {
	class := result.ByCode(code)
	if class == "" {
		return nil
	}
	if said := result.In(failure); said != nil && said.Class == class {
		return said
	}
	return &result.Refusal{Class: class, Said: failure}
}

// why returns the first reason that is not empty.
func why(reasons ...string) string {
	for _, r := range reasons {
		if r = metric.Description(r); r != "" {
			return r
		}
	}
	return "an error without a message"
}
