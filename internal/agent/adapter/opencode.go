package adapter

import (
	"cmp"
	"encoding/json"

	"pawl/internal/lib/loosejson"
	"pawl/internal/lib/must"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/spec/agents"
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
		rules[c.held().Has[agents.Shell][0]] = shell
	}
	return []string{"OPENCODE_PERMISSION=" + string(must.Have(json.Marshal(rules)))} // texts
}

// opencode reads the lines of `opencode run --format json`. They do not include its call for a name of the session.
// It reports a tool only at the tool's end, so whether a tool is running is unknown.
type opencode struct{ totals }

func (o *opencode) line(raw []byte) []Event {
	l := loosejson.Decode[loosejson.Object](raw)
	part := l.At("part")
	switch l.Text("type") {
	case "step_start":
		o.last = nil
		return []Event{{Kind: Started, Session: l.Text("sessionID")}}
	case "tool_use":
		call, state := part.Text("callID"), part.At("state")
		if events := o.asked(call, part.Text("tool"), state.Raw("input")); events != nil {
			return append(events, o.answered(call, state.Text("output", "error", "status"), state.Text("status") == "error"))
		}
	case "text":
		return []Event{{Kind: Text, Text: part.Text("text")}}
	case "step_finish":
		t := part.At("tokens")
		cache := t.At("cache")
		in, out := t.Count("input")+cache.Count("read")+cache.Count("write"), t.Count("output")+t.Count("reasoning")
		o.add(spending{in, out, nanoOf(part["cost"])})
		if reason := part.Text("reason"); reason != "tool-calls" { // there is nothing more to do
			end := &End{}
			if reason != "stop" {
				end.Failure = "it ended with " + metric.Description(reason)
			}
			return []Event{{Kind: Ended, End: end}}
		}
	case "error":
		data := l.At("error").At("data")
		failure, status := why(data.Text("message"), l.At("error").Text("name")), data.Int("statusCode")
		if class := result.ByStatus(status); class != "" {
			o.last = &result.Refusal{Class: class, Status: status, Said: failure}
		}
		return []Event{{Kind: Ended, End: &End{Failure: failure, Refusal: cmp.Or(o.last, named(failure, l.At("error").Text("name")))}}}
	}
	return nil
}

func (o *opencode) busy() bool { return true }

// nanoOf returns dollars in billionths, 0 if the text is not a positive number.
func nanoOf(cost json.RawMessage) int64 {
	f, err := loosejson.Decode[json.Number](cost).Float64()
	if err != nil || f <= 0 {
		return 0
	}
	return int64(min(f*1e9+0.5, float64(maxNano)))
}
