package stream

import (
	"cmp"
	"encoding/json"

	"pawl/internal/evidence"
	"pawl/internal/outcome"
	"pawl/internal/program"
)

// opencodeArgv calls opencode headless, without plugins. A role that may not edit gets opencode's agent for plans,
// which changes nothing.
func opencodeArgv(c Call) []string {
	argv := append(c.begin("-m", "run"), c.Agent.Args...)
	if !c.MayEdit {
		argv = append(argv, "--agent", "plan")
	}
	return append(argv, "--pure", "--format", "json")
}

// opencodeEnv returns its rules about tools: what is not approved is denied, and not in its request.
func opencodeEnv(c Call) []string {
	approved, rules := c.approved(), map[string]any{}
	for _, name := range c.held().Withheld(approved) {
		rules[name] = "deny"
	}
	if len(approved.Commands) > 0 {
		shell := map[string]string{"*": "deny"}
		for _, words := range approved.Commands {
			shell[words], shell[words+" *"] = "allow", "allow"
		}
		rules[c.held().Has[program.Shell][0]] = shell
	}
	text, err := json.Marshal(rules)
	if err != nil {
		panic(err) // texts
	}
	return []string{"OPENCODE_PERMISSION=" + string(text)}
}

// opencode reads the lines of `opencode run --format json`. They do not include its call for a name of the session.
// It reports a tool only at the tool's end, so whether a tool is running is unknown.
type opencode struct{ totals }

type opencodeLine struct {
	Type    string `json:"type"`
	Session string `json:"sessionID"`
	Part    struct {
		CallID string `json:"callID"`
		Tool   string `json:"tool"`
		State  struct {
			Status string          `json:"status"`
			Input  json.RawMessage `json:"input"`
			Output string          `json:"output"`
			Error  string          `json:"error"`
		} `json:"state"`
		Text   string      `json:"text"`
		Reason string      `json:"reason"`
		Cost   json.Number `json:"cost"`
		Tokens struct {
			Input     int64 `json:"input"`
			Output    int64 `json:"output"`
			Reasoning int64 `json:"reasoning"`
			Cache     struct {
				Read  int64 `json:"read"`
				Write int64 `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
	} `json:"part"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
			Status  int    `json:"statusCode"`
		} `json:"data"`
	} `json:"error"`
}

func (o *opencode) line(raw []byte) []Event {
	l := decode[opencodeLine](raw)
	switch p := l.Part; l.Type {
	case "step_start":
		o.last = nil
		return []Event{{Kind: Started, Session: l.Session}}
	case "tool_use":
		if events := o.asked(p.CallID, p.Tool, string(p.State.Input)); events != nil {
			return append(events, o.answered(p.CallID, cmp.Or(p.State.Output, p.State.Error, p.State.Status), p.State.Status == "error"))
		}
	case "text":
		return []Event{{Kind: Text, Text: p.Text}}
	case "step_finish":
		t := p.Tokens
		in, out := count(t.Input)+count(t.Cache.Read)+count(t.Cache.Write), count(t.Output)+count(t.Reasoning)
		o.add(spending{in, out, nanoOf(p.Cost)})
		if p.Reason != "tool-calls" { // there is nothing more to do
			end := &End{}
			if p.Reason != "stop" {
				end.Failure = "it ended with " + evidence.Description(p.Reason)
			}
			return []Event{{Kind: Ended, End: end}}
		}
	case "error":
		failure := why(l.Error.Data.Message, l.Error.Name)
		if class := outcome.ByStatus(l.Error.Data.Status); class != "" {
			o.last = &outcome.Refusal{Class: class, Status: l.Error.Data.Status, Said: failure}
		}
		return []Event{{Kind: Ended, End: &End{Failure: failure}}}
	}
	return nil
}

func (o *opencode) busy() bool { return true }

// nanoOf returns dollars in billionths, 0 if the text is not a positive number.
func nanoOf(cost json.Number) int64 {
	f, err := cost.Float64()
	if err != nil || f <= 0 {
		return 0
	}
	return int64(min(f*1e9+0.5, float64(maxNano)))
}
