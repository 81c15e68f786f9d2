package stream

import "pawl/internal/evidence"

// codexArgv calls Codex headless, in its own sandbox: a role that may not edit gets the read-only
// one. Neither the user's configuration nor the repository's rules are read.
func codexArgv(c Call) []string {
	sandbox := "workspace-write"
	if !c.MayEdit {
		sandbox = "read-only"
	}
	argv := append(started(c), "exec")
	if c.Agent.Model != "" {
		argv = append(argv, "-m", c.Agent.Model)
	}
	argv = append(argv, c.Agent.Args...)
	return append(argv, "--json", "--sandbox", sandbox, "--ephemeral", "--ignore-user-config", "--ignore-rules", "-")
}

// codex reads the lines of `codex exec --json`. Tokens come at the end of a turn, so a call that
// was ended before has none; it names no cost.
type codex struct {
	totals
	begun   bool
	text    string
	trouble string // the last error it named, which need not be the end of it
}

// notTools are the items that are no call of a tool.
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
	} `json:"item"`
	Usage *struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (c *codex) line(raw []byte) []Event {
	var l codexLine
	if !decode(raw, &l) {
		return nil
	}
	switch l.Type {
	case "thread.started":
		c.begun = true
		return []Event{{Kind: Started, Session: l.Thread}}
	case "item.started", "item.updated", "item.completed":
		switch {
		case l.Item.Type == "agent_message" && l.Type == "item.completed":
			c.text = l.Item.Text
			return []Event{{Kind: Text, Text: l.Item.Text}}
		case l.Item.Type == "error":
			c.trouble = l.Item.Message
		case notTools[l.Item.Type]:
		default:
			if l.Type == "item.completed" {
				c.tools.end(l.Item.ID)
			} else {
				c.tools.begin(l.Item.ID)
			}
			if c.tools.add(l.Item.ID) {
				return []Event{{Kind: ToolCall, Tool: l.Item.Type}}
			}
		}
	case "turn.completed":
		if l.Usage != nil {
			c.in, c.out = max(c.in, count(l.Usage.Input)), max(c.out, count(l.Usage.Output))
		}
		return []Event{{Kind: Ended, End: &End{Text: c.text}}}
	case "turn.failed":
		return []Event{{Kind: Ended, End: &End{Failure: why(l.Error.Message, c.trouble), Text: c.text}}}
	case "error":
		c.trouble = l.Message
	}
	return nil
}

// why is the first reason that says something.
func why(reasons ...string) string {
	for _, r := range reasons {
		if r = evidence.Description(r); r != "" {
			return r
		}
	}
	return "an error of which it says nothing"
}
