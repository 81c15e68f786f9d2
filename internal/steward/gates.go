package steward

import (
	"cmp"
	"encoding/json"

	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
)

// The gates of stewards, besides loop.GateQuestion and loop.GateBudget. A child's gate is answered at the child.
const (
	GateTier  loop.GateKind = "tier"
	GateStuck loop.GateKind = "stuck"
	GateDrift loop.GateKind = "drift"
)

// The choices of answers.
const (
	Continue  = "continue"
	Replan    = "replan"
	Cancel    = "cancel"
	Intervene = "intervene"
	Keep      = "keep"
	Restore   = "restore"
)

// choices lists the choices of each kind of gate that always has the same ones.
var choices = map[loop.GateKind][]string{
	GateTier:  {Replan, Cancel, Intervene},
	GateStuck: {Continue, Replan, Cancel, Intervene},
	// A budget gate is also closed by extend, which raises the limit.
	loop.GateBudget: {Cancel},
}

// meaning says what each choice does, for people.
var meaning = map[string]string{
	Continue:  "continue; the counts start again from zero",
	Replan:    "plan the task again",
	Cancel:    "end the task",
	Intervene: "keep it waiting until you send continue",
	Keep:      "accept what was found",
	Restore:   "restore what pawl has recorded",
}

// gates is the contract's table: which messages close which gate.
var gates = rules.Gates{
	GateTier: {
		{Message: loop.MessageApprove, What: "approve exactly this plan", Say: approval},
		{Message: loop.MessageAnswer, Say: choice},
	},
	loop.GatePause:    {{Message: loop.MessageContinue, What: "continue"}},
	GateStuck:         {{Message: loop.MessageAnswer, Say: choice}},
	GateDrift:         {{Message: loop.MessageAnswer, Say: choice}},
	loop.GateQuestion: {{Message: loop.MessageAnswer, Say: choice}},
	loop.GateBudget: {
		{Message: loop.MessageExtend, What: "set a new limit: the total, not the increase", Say: extension},
		{Message: loop.MessageAnswer, Say: choice},
	},
}

// Answers returns the messages that close a steward's gate of that kind.
func Answers(kind loop.GateKind) []string { return gates.Answers(kind) }

// AnswersGates reports whether a message closes some gate of a steward. All others are for the steward or a task.
func AnswersGates(message string) bool { return gates.Answer(message) }

// Ways returns the ways to answer an open gate of the named steward.
func Ways(name string, g loop.Gate) []rules.Way {
	ways := gates.Ways(g, nil, func(message string, words ...string) string {
		command := message
		if message == loop.MessageApprove {
			command = "answer"
		}
		all := []string{"pawl", "steward", command, name}
		switch {
		case message == loop.MessageContinue && g.Task == "":
			return shell.Join(all...)
		case message == loop.MessageContinue:
			return shell.Join(append(all, g.Task)...)
		case g.Task != "":
			all = append(all, "--task", g.Task)
		}
		return shell.Join(append(append(all, "--gate", g.ID), words...)...)
	})
	for _, w := range ways {
		if g.Task != "" {
			w.Payload["task"] = g.Task
		}
		if g.Kind == loop.GatePause { // not a gate: a task that a person has to let continue
			delete(w.Payload, "gate")
		}
	}
	return ways
}

const hashDigits = 16

func approval(g loop.Gate, _ loop.Budget) []rules.Saying {
	hash := g.Hash[:min(hashDigits, len(g.Hash))]
	return []rules.Saying{{Fields: map[string]any{"hash": hash}, Words: []string{"--approve", "--hash", hash}}}
}

func choice(g loop.Gate, _ loop.Budget) (sayings []rules.Saying) {
	for _, c := range g.Choices {
		sayings = append(sayings, rules.Saying{Fields: map[string]any{"choice": c}, Words: []string{"--choice", c}, What: cmp.Or(meaning[c], "answer "+c)})
	}
	return sayings
}

func extension(g loop.Gate, _ loop.Budget) []rules.Saying {
	hash, limit := g.Hash[:min(hashDigits, len(g.Hash))], "1"
	if g.Limit != nil {
		limit = g.Limit.Add(*cmp.Or(g.Cost, g.Limit)).String() // more than it has cost
	}
	return []rules.Saying{{
		Fields: map[string]any{"hash": hash, "limits": map[string]any{string(loop.CostUSD): json.Number(limit)}},
		Words:  []string{"--hash", hash, "--limit", string(loop.CostUSD) + "=" + limit},
	}}
}
