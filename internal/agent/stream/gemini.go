package stream

import (
	"cmp"
	"encoding/json"
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

type geminiLine struct {
	Type     string          `json:"type"`
	Session  string          `json:"session_id"`
	Model    string          `json:"model"`
	Role     string          `json:"role"`
	Content  string          `json:"content"`
	Delta    bool            `json:"delta"`
	ToolName string          `json:"tool_name"`
	ToolID   string          `json:"tool_id"`
	Params   json.RawMessage `json:"parameters"`
	Output   string          `json:"output"`
	Status   string          `json:"status"`
	Message  string          `json:"message"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
	Stats struct {
		Total  int64 `json:"total_tokens"`
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"stats"`
}

func (g *gemini) line(raw []byte) []Event {
	l := decode[geminiLine](raw)
	switch l.Type {
	case "init":
		return []Event{{Kind: Started, Session: l.Session, Model: l.Model}}
	case "message":
		if l.Role == "user" {
			return nil
		}
		if !g.speaks || !l.Delta {
			g.text = ""
		}
		g.speaks = true
		g.text = loop.Clip(g.text+l.Content, maxText)
		return []Event{{Kind: Text, Text: g.text}}
	case "tool_use":
		g.speaks = false
		return g.asked(l.ToolID, l.ToolName, string(l.Params))
	case "tool_result":
		return []Event{g.answered(l.ToolID, cmp.Or(l.Output, l.Error.Message, l.Status), l.Status == "error")}
	case "error":
		g.trouble = why(l.Message, l.Error.Message)
	case "result":
		s := l.Stats
		g.in = max(g.in, count(s.Input))
		g.out = max(g.out, count(s.Output), count(s.Total)-count(s.Input)) // only the total includes thoughts
		end := &End{}
		if l.Status != "success" || l.Error.Message != "" {
			end.Failure = why(l.Error.Message, g.trouble)
		}
		return []Event{{Kind: Ended, End: end}}
	}
	return nil
}
