package adapter

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"pawl/internal/lib/loosejson"
	"pawl/internal/loop"
	"pawl/internal/spec/agents"
)

// geminiRules is the name of the file with rules about tools.
const geminiRules = "tools.toml"

// geminiArgv calls the Gemini CLI headless. Its request has only approved tools: with every tool approved it also has
// a shell, otherwise it edits and looks. Its rules approve the rest.
func geminiArgv(c Call) []string {
	argv := append(c.begin("-m"), c.Agent.Args...)
	mode := "yolo"
	if !c.MayEdit {
		mode = "default"
	}
	return append(argv, "--skip-trust", "--policy", path.Join(c.Dir, geminiRules), "--approval-mode", mode, "--output-format", "stream-json")
}

// geminiFiles returns its rules. They deny what is not approved, and come before everything that its mode approves.
func geminiFiles(c Call) map[string]string {
	approved, tools := c.approved(), c.held()
	var b strings.Builder
	rule := func(decision string, priority int, names []string, more string) {
		fmt.Fprintf(&b, "[[rule]]\ntoolName = [\"%s\"]\ndecision = \"%s\"\npriority = %d\n%s\n", strings.Join(names, `", "`), decision, priority, more)
	}
	if names := tools.Withheld(approved); len(names) > 0 {
		rule("deny", 999, names, "")
	}
	if len(approved.Commands) > 0 {
		for _, words := range approved.Commands {
			rule("allow", 999, tools.Has[agents.Shell], fmt.Sprintf("commandPrefix = %q\n", words))
		}
		rule("deny", 998, tools.Has[agents.Shell], "")
	}
	return map[string]string{geminiRules: b.String()}
}

// gemini reads the lines of `gemini --output-format stream-json`. Tokens come with the result, so a call that was
// ended before has none. It never reports a cost.
type gemini struct {
	totals
	text    string // the text of the open answer, which comes in pieces
	speaks  bool
	trouble string
}

func (g *gemini) line(raw []byte) []Event {
	l := loosejson.Decode[loosejson.Object](raw)
	status, failure := l.Text("status"), l.At("error").Text("message")
	switch l.Text("type") {
	case "init":
		return []Event{{Kind: Started, Session: l.Text("session_id"), Model: l.Text("model")}}
	case "message":
		if l.Text("role") == "user" {
			return nil
		}
		if !g.speaks || !l.Is("delta") {
			g.text = ""
		}
		g.speaks = true
		g.text = loop.Clip(g.text+l.Text("content"), maxText)
		return []Event{{Kind: Text, Text: g.text}}
	case "tool_use":
		g.speaks = false
		return g.asked(l.Text("tool_id"), l.Text("tool_name"), l.Raw("parameters"))
	case "tool_result":
		return []Event{g.answered(l.Text("tool_id"), cmp.Or(l.Text("output"), failure, status), status == "error")}
	case "error":
		g.trouble = why(l.Text("message"), failure)
	case "result":
		stats := l.At("stats")
		in := stats.Count("input_tokens")
		g.in = max(g.in, in)
		g.out = max(g.out, stats.Count("output_tokens"), stats.Count("total_tokens")-in) // only the total includes thoughts
		end := &End{}
		if status != "success" || failure != "" {
			end.Failure = why(failure, g.trouble)
			end.Refusal = named(end.Failure, l.At("error").Text("type"))
		}
		return []Event{{Kind: Ended, End: end}}
	}
	return nil
}
