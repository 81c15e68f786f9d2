package rules

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
)

// Way is one way to answer an open gate, ready to be copied.
type Way struct {
	Message string         `json:"message"` // the name of the signal or update
	Payload map[string]any `json:"payload"` // its input, which names the gate
	Command string         `json:"command"` // the same from a shell
	What    string         `json:"what"`    // what it does, in words
}

// Gates is the table of how gates are answered. It has the rows for each kind of gate, in the order in which people
// see them. Each type of workflow that asks people has its own table.
type Gates map[loop.GateKind][]Row

// Row is one row of the table: a message, what it does, and what it says besides the gate's ID. Say may be nil if the
// message says nothing more. If it returns several sayings, the row gives several ways.
type Row struct {
	Message, What string
	Say           func(loop.Gate, loop.Budget) []Saying
}

// Saying is what an answer says besides the gate's ID: as fields of the message, and as words of the command. If What
// is not empty, it replaces that of the row.
type Saying struct {
	Fields map[string]any
	Words  []string
	What   string
	Open   string // the end of the command, which a person fills in
}

// loopGates are the gates of loops: the contract's table of which messages close which gate.
var loopGates = Gates{
	loop.GatePause:      {{loop.MessageContinue, "continue the loop", nil}},
	loop.GateBreakpoint: {{loop.MessageContinue, "continue the loop", nil}},
	loop.GateContract: {
		{loop.MessageApprove, "approve the contract", itsHash},
		{loop.MessageReject, "reject the contract", nil},
	},
	loop.GateNewFiles: {
		{loop.MessageApprove, "allow these new files", itsHash},
		{loop.MessageReject, "reject the change", reasoned},
	},
	loop.GateDiff: {
		{loop.MessageApprove, "approve the change", itsHash},
		{loop.MessageApprove, "approve the change and apply it (" + strings.Join(AppliedAtOnce, ", ") + ")", applied},
		{loop.MessageReject, "reject the change", reasoned},
	},
	loop.GateGuard: {
		{loop.MessageContinue, "judge the change again, as it is on the desk", nil},
		{loop.MessageReject, "drop the change; the loop continues", reasoned},
	},
	loop.GateBudget: {
		{loop.MessageExtend, "set a new limit: the total, not the increase", ampleLimit},
		{loop.MessageReject, "end the loop", nil},
	},
	loop.GateQuestion: {
		{loop.MessageAnswer, "", choices},
		{loop.MessageAmend, "correct a command (" + strings.Join(spec.Amendable, ", ") + "), or approve tools (" + strings.Join(spec.Approvable, ", ") + ")", amended},
	},
}

// AppliedAtOnce are the ways of applying that an approval can ask for.
var AppliedAtOnce = []string{api.FastForward, api.Merge, api.Squash}

// Answers returns the messages that close a loop's gate of that kind.
func Answers(kind loop.GateKind) []string { return loopGates.Answers(kind) }

// AnswersGates reports whether a message closes some gate of a loop. All other messages are for the loop itself.
func AnswersGates(message string) bool { return loopGates.Answer(message) }

// Ways returns the ways to answer an open gate of a loop with that budget.
func Ways(id string, g loop.Gate, b loop.Budget) []Way {
	return loopGates.Ways(g, b, func(message string, words ...string) string {
		return shell.Join(append([]string{"pawl", message, id}, words...)...)
	})
}

// Answers returns the messages that close a gate of that kind, each once.
func (t Gates) Answers(kind loop.GateKind) []string {
	var parts []string
	for _, r := range t[kind] {
		if !slices.Contains(parts, r.Message) {
			parts = append(parts, r.Message)
		}
	}
	return parts
}

// Answer reports whether a message closes some gate.
func (t Gates) Answer(message string) bool {
	return slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(t))...), func(r Row) bool { return r.Message == message })
}

// Ways returns the ways to answer an open gate. command returns a message and its words as one shell command.
func (t Gates) Ways(g loop.Gate, b loop.Budget, command func(message string, words ...string) string) []Way {
	var ways []Way
	for _, r := range t[g.Kind] {
		if g.Answers != nil && !slices.Contains(g.Answers, r.Message) {
			continue
		}
		sayings := []Saying{{}}
		if r.Say != nil {
			sayings = r.Say(g, b)
		}
		for _, s := range sayings {
			payload := map[string]any{"gate": g.ID}
			maps.Copy(payload, s.Fields)
			ways = append(ways, Way{r.Message, payload, command(r.Message, s.Words...) + s.Open, cmp.Or(s.What, r.What)})
		}
	}
	return ways
}

// itsHash gives the hash of what is approved, so that the answer can't approve anything else.
func itsHash(g loop.Gate, _ loop.Budget) []Saying {
	hash := g.Hash[:min(minHash, len(g.Hash))]
	words := []string{"--hash", hash}
	if g.Again {
		words = append(words, "--gate", g.ID)
	}
	return []Saying{{Fields: map[string]any{"hash": hash}, Words: words}}
}

func applied(g loop.Gate, b loop.Budget) []Saying {
	say := itsHash(g, b)
	say[0].Fields["apply"] = AppliedAtOnce[0]
	say[0].Words = append(say[0].Words, "--apply", AppliedAtOnce[0])
	return say
}

// reasoned asks for the reason of a rejection, which the next agent call is told.
func reasoned(loop.Gate, loop.Budget) []Saying {
	return []Saying{{Open: ` --note "why"`}}
}

// ampleLimit gives a higher limit for the used-up budget, as an example.
func ampleLimit(g loop.Gate, b loop.Budget) []Saying {
	say := itsHash(g, b)
	limit := b.Ample(g.Budget)
	say[0].Words = append([]string{"--limit", string(g.Budget) + "=" + limit}, say[0].Words...)
	say[0].Fields["limits"] = map[string]any{string(g.Budget): json.Number(limit)}
	if g.Budget.Timed() {
		say[0].Fields["limits"] = map[string]any{string(g.Budget): limit}
	}
	return say
}

func choices(g loop.Gate, _ loop.Budget) []Saying {
	return list.Map(g.Choices, func(c string) Saying {
		return Saying{Fields: map[string]any{"choice": c}, Words: []string{c}, What: cmp.Or(chosen[c], "answer "+c)}
	})
}

// chosen says what the choices of loops' questions do.
var chosen = map[string]string{
	Retry:    "try it again",
	GoOn:     "judge the work as it is",
	HaltLoop: "end the loop",

	KeepChange:    "keep the change and mark it",
	DiscardChange: "undo the change; the loop continues",
}

func amended(g loop.Gate, _ loop.Budget) []Saying {
	if slices.Contains(g.Choices, GoOn) {
		return []Saying{{
			Fields: map[string]any{"spec": map[string]any{"approvals": map[string]any{"tools": []string{"…"}}}},
			Words:  []string{"--set", "approvals.tools=[…]"},
		}}
	}
	return []Saying{{
		Fields: map[string]any{"spec": map[string]any{"verify": map[string]any{"command": "…"}}},
		Words:  []string{"--set", "verify.command=…"},
	}}
}
