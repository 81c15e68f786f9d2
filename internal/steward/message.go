package steward

import (
	"encoding/json"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/steward/task"
)

// The messages that only stewards take.
const (
	MessageSubmit     = "submit"
	MessageSetTier    = "setTier"
	MessagePrioritize = "prioritize"
	MessageInterrupt  = "interrupt"
	MessageHold       = "hold"
	MessageResume     = "resume"
)

// Messages are the names of a steward's messages, in the order in which people see them.
var Messages = []loop.MessageName{
	{Name: MessageSubmit, Description: `Submit a task: {"task": {"id": "…", "title": "…", "body": "…"}, "by": "you"}`},
	{Name: loop.MessageApprove, Description: `Approve a plan: {"task": "<id>", "hash": "<at least 16 hex digits>", "by": "you"}`},
	{Name: loop.MessageAnswer, Description: `Answer a gate: {"task": "<id>", "choice": "<one of those listed>", "note": ""}`},
	{Name: MessageSetTier, Description: `Set the risk of a task: {"task": "<id>", "tier": "T2"}`},
	{Name: MessagePrioritize, Description: `Set the priority of a task, higher first: {"task": "<id>", "priority": 5}`},
	{Name: MessageInterrupt, Description: `Do a task now: it gets a priority above all that are at work, and one of them gives way at its next step: {"task": "<id>"}`},
	{Name: loop.MessagePause, Description: `Pause a task, or, without a task, everything: {"task": "<id>"}`},
	{Name: loop.MessageContinue, Description: `Continue after a pause or an intervention: {"task": "<id>"}`},
	{Name: loop.MessageSteer, Description: `Guidance for the next agent call of a task: {"task": "<id>", "note": "…"}`},
	{Name: loop.MessageExtend, Description: `Raise what a task may cost: {"task": "<id>", "limits": {"costUSD": 5}, "hash": "<the gate's>"}`},
	{Name: loop.MessageSetMode, Description: `mission: plan tasks and run them; plan: plan tasks, but start no step; answer: accept tasks, but start none: {"mode": "plan"}`},
	{Name: MessageHold, Description: `Start no more tasks; tasks at work continue. With a task: leave that one in the queue: {"task": "<id>"}`},
	{Name: MessageResume, Description: `Start tasks again. With a task: allow that one to start: {"task": "<id>"}`},
	{Name: loop.MessageHalt, Description: `End the steward and its loops. With a task: stop that one and ask; one that has not started, or that waits, is cancelled: {"task": "<id>", "note": "why"}`},
}

// Message is what a person sends to a steward: one JSON object. Each message needs some of the fields.
type Message struct {
	By     string `json:"by,omitempty"`
	Note   string `json:"note,omitempty"`
	Gate   string `json:"gate,omitempty"`
	Hash   string `json:"hash,omitempty"`
	Choice string `json:"choice,omitempty"`
	Mode   string `json:"mode,omitempty"`
	// Task is a task's ID; for submit it is the task itself.
	Task     json.RawMessage `json:"task,omitempty"`
	Tier     task.Tier       `json:"tier,omitempty"`
	Priority *int            `json:"priority,omitempty"`
	Limits   json.RawMessage `json:"limits,omitempty"`
	// Trigger is the schedule or trigger that submits the task; nil for a person.
	Trigger *task.Trigger `json:"trigger,omitempty"`
}

// Decode reads a message's payload, as strictly as loop.DecodeMessage does. A task has its own size limits.
func Decode(payload []byte) (Message, error) {
	return loop.Decode(payload, func(m Message) []loop.Text {
		return []loop.Text{{Name: "by", Value: m.By}, {Name: "note", Value: m.Note}, {Name: "gate", Value: m.Gate}, {Name: "hash", Value: m.Hash}, {Name: "choice", Value: m.Choice},
			{Name: "mode", Value: m.Mode}, {Name: "tier", Value: string(m.Tier)}, {Name: "limits", Value: string(m.Limits)}}
	})
}

// id returns the task that the message names, or "".
func (m Message) id() (id string, err error) {
	if len(m.Task) == 0 || string(m.Task) == "null" {
		return "", nil
	}
	if json.Unmarshal(m.Task, &id) != nil {
		return "", fault.New(fault.InvalidMessage, "task must be the ID of a task")
	}
	if id == "" { // as where a script's variable is not set: without a task, most messages mean all of them
		return "", fault.New(fault.InvalidMessage, "task is empty").Advise("Name a task, or leave `task` out if you mean the whole steward.")
	}
	return id, nil
}
