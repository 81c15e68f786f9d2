package stream

import (
	"cmp"

	"pawl/internal/evidence"
	"pawl/internal/program"
)

// codexArgv calls Codex headless, in its own sandbox. The sandbox is read-only for a role that may not edit, and if
// no tool that edits is approved. Codex reads neither the user's configuration nor the repository's rules. If the
// network is approved, its sandbox has the network too.
func codexArgv(c Call) []string {
	approved := c.approved()
	sandbox := "workspace-write"
	if !approved.May(program.Edits) {
		sandbox = "read-only"
	}
	argv := append(c.begin("-m", "exec"), c.Agent.Args...)
	switch {
	case !approved.May(program.Network):
		argv = append(argv, "-c", `web_search="disabled"`, "-c", "sandbox_workspace_write.network_access=false")
	case !c.all():
		argv = append(argv, "-c", "sandbox_workspace_write.network_access=true")
	}
	if !approved.May(program.Subagents) {
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
	l := decode[object](raw)
	switch kind := l.text("type"); kind {
	case "thread.started":
		return []Event{{Kind: Started, Session: l.text("thread_id")}}
	case "item.started", "item.updated", "item.completed":
		item, ended := l.at("item"), kind == "item.completed"
		switch of := item.text("type"); {
		case of == "agent_message" && ended:
			return []Event{{Kind: Text, Text: item.text("text")}}
		case of == "error":
			c.trouble = item.text("message")
		case notTools[of]:
		default:
			return c.tool(item, ended)
		}
	case "turn.completed":
		used := l.at("usage")
		c.in, c.out = max(c.in, used.count("input_tokens")), max(c.out, used.count("output_tokens"))
		return []Event{{Kind: Ended, End: &End{}}}
	case "turn.failed":
		return []Event{{Kind: Ended, End: &End{Failure: why(l.at("error").text("message"), c.trouble)}}}
	case "error":
		c.trouble = l.text("message")
	}
	return nil
}

// tool returns the events of a line about a tool call. What the tool is called with depends on its type.
func (c *codex) tool(item object, ended bool) (events []Event) {
	id, status := item.text("id"), item.text("status")
	of := item.text("server") + " " + item.text("tool") + " " + item.raw("arguments")
	events = c.asked(id, item.text("type"), cmp.Or(item.text("command"), item.text("query"), item.raw("changes"), of))
	if ended {
		failed := status == "failed" || decode[int](item["exit_code"]) != 0
		events = append(events, c.answered(id, cmp.Or(item.text("aggregated_output"), status), failed))
	}
	return events
}

// why returns the first reason that is not empty.
func why(reasons ...string) string {
	for _, r := range reasons {
		if r = evidence.Description(r); r != "" {
			return r
		}
	}
	return "an error without a message"
}
