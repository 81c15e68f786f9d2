package stream

import (
	"cmp"
	"encoding/json"

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

type codexLine struct {
	Type    string `json:"type"`
	Thread  string `json:"thread_id"`
	Message string `json:"message"`
	Item    struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Text    string `json:"text"`
		Message string `json:"message"`

		// Of a tool call: what it is called with, by its type, and what it came to.
		Command string          `json:"command"`
		Query   string          `json:"query"`
		Changes json.RawMessage `json:"changes"`
		Server  string          `json:"server"`
		Tool    string          `json:"tool"`
		Args    json.RawMessage `json:"arguments"`
		Output  string          `json:"aggregated_output"`
		Exit    *int            `json:"exit_code"`
		Status  string          `json:"status"`
	} `json:"item"`
	Usage struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (c *codex) line(raw []byte) []Event {
	l := decode[codexLine](raw)
	switch l.Type {
	case "thread.started":
		return []Event{{Kind: Started, Session: l.Thread}}
	case "item.started", "item.updated", "item.completed":
		switch {
		case l.Item.Type == "agent_message" && l.Type == "item.completed":
			return []Event{{Kind: Text, Text: l.Item.Text}}
		case l.Item.Type == "error":
			c.trouble = l.Item.Message
		case notTools[l.Item.Type]:
		default:
			return c.tool(l)
		}
	case "turn.completed":
		c.in, c.out = max(c.in, count(l.Usage.Input)), max(c.out, count(l.Usage.Output))
		return []Event{{Kind: Ended, End: &End{}}}
	case "turn.failed":
		return []Event{{Kind: Ended, End: &End{Failure: why(l.Error.Message, c.trouble)}}}
	case "error":
		c.trouble = l.Message
	}
	return nil
}

// tool returns the events of a line about a tool call.
func (c *codex) tool(l codexLine) (events []Event) {
	i := l.Item
	events = c.asked(i.ID, i.Type, cmp.Or(i.Command, i.Query, string(i.Changes), i.Server+" "+i.Tool+" "+string(i.Args)))
	if l.Type == "item.completed" {
		failed := i.Status == "failed" || i.Exit != nil && *i.Exit != 0
		events = append(events, c.answered(i.ID, cmp.Or(i.Output, i.Status), failed))
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
