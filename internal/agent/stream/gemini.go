package stream

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"pawl/internal/loop"
	"pawl/internal/program"
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
			rule("allow", 999, tools.Has[program.Shell], fmt.Sprintf("commandPrefix = %q\n", words))
		}
		rule("deny", 998, tools.Has[program.Shell], "")
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
	l := decode[object](raw)
	status, failure := l.text("status"), l.at("error").text("message")
	switch l.text("type") {
	case "init":
		return []Event{{Kind: Started, Session: l.text("session_id"), Model: l.text("model")}}
	case "message":
		if l.text("role") == "user" {
			return nil
		}
		if !g.speaks || !l.is("delta") {
			g.text = ""
		}
		g.speaks = true
		g.text = loop.Clip(g.text+l.text("content"), maxText)
		return []Event{{Kind: Text, Text: g.text}}
	case "tool_use":
		g.speaks = false
		return g.asked(l.text("tool_id"), l.text("tool_name"), l.raw("parameters"))
	case "tool_result":
		return []Event{g.answered(l.text("tool_id"), cmp.Or(l.text("output"), failure, status), status == "error")}
	case "error":
		g.trouble = why(l.text("message"), failure)
	case "result":
		stats := l.at("stats")
		in := stats.count("input_tokens")
		g.in = max(g.in, in)
		g.out = max(g.out, stats.count("output_tokens"), stats.count("total_tokens")-in) // only the total includes thoughts
		end := &End{}
		if status != "success" || failure != "" {
			end.Failure = why(failure, g.trouble)
		}
		return []Event{{Kind: Ended, End: end}}
	}
	return nil
}
