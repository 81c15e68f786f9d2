package steward

import (
	"slices"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/steward/task"
)

// Transition is a row of the source's table (S2): two states, the condition, and the evidence that it needs.
type Transition struct {
	From, To task.State
	When     string   // the condition in the words of the source
	Needs    []string // the required fields of task.Evidence
}

// Transitions is the table of S2, complete. Every other transition is refused, above all IDLE to EXECUTING.
var Transitions = []Transition{
	{task.Idle, task.Planning, "Trigger received", []string{"trigger"}},
	{task.Idle, task.Waiting, "Unresolved blocker on startup", []string{"blocker"}},
	{task.Planning, task.Executing, "Plan complete and valid", []string{"plan", "tier", "estimate", "approval", "written"}},
	{task.Planning, task.Waiting, "Needs approval/clarification", []string{"reason"}},
	{task.Planning, task.Idle, "Plan cancelled", []string{"note"}},
	{task.Executing, task.Waiting, "Blocked, needs input, paused", []string{"reason"}},
	{task.Executing, task.Planning, "Replan or new task", []string{"reason", "written"}},
	{task.Executing, task.Idle, "Task completed", []string{"done"}},
	{task.Waiting, task.Executing, "Human approves/proceeds", []string{"answer", "plan", "tier", "estimate", "approval", "written"}},
	{task.Waiting, task.Planning, "Human changes direction", []string{"answer"}},
	{task.Waiting, task.Idle, "Human cancels all work", []string{"answer", "note"}},
}

// change returns the event that moves a task to another state. It fails with ALO_INVALID_TRANSITION if the table has no
// such transition or the evidence is incomplete. No other code makes this event.
func change(t Task, target task.State, e task.Evidence) (loop.Event, error) {
	i := slices.IndexFunc(Transitions, func(r Transition) bool { return r.From == t.State && r.To == target })
	if i < 0 {
		return loop.Event{}, fault.New(fault.InvalidTransition, "the task %s may not go from %s to %s", t.ID, t.State, target)
	}
	missing := list.Filter(Transitions[i].Needs, func(need string) bool { return given(e)[need] == "" })
	if len(missing) > 0 {
		return loop.Event{}, fault.New(fault.InvalidTransition, "the task %s may not go from %s to %s without %s", t.ID, t.State, target, strings.Join(missing, " and "))
	}
	return loop.Event{Type: loop.TaskStateChanged, Task: t.ID, From: t.State, To: target, Evidence: &e}, nil
}

// given returns the evidence by the names that the table uses.
func given(e task.Evidence) map[string]string {
	return map[string]string{
		"trigger": e.Trigger, "blocker": e.Blocker, "plan": e.Plan, "tier": string(e.Tier), "estimate": e.Estimate, "approval": e.Approval,
		"written": e.Written, "note": e.Note, "reason": e.Reason, "answer": e.Answer, "done": e.Done,
	}
}
