package steward

import (
	"slices"
	"time"

	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/steward/task"
)

// Standing returns the state with Standstill set for each task: why nothing runs for it although it is planned or
// executed. That depends on the jobs under way, which the fold does not know, so only queries use it.
func (s State) Standing(underWay []Job) State {
	n := next{State: s, underWay: underWay}
	s.Tasks = slices.Clone(s.Tasks)
	for i := range s.Tasks {
		t := &s.Tasks[i]
		switch {
		case t.Outcome != "" || s.Status.Ended():
		case t.State == task.Planning && t.Plan == nil:
			if len(n.does(Plan, t.ID)) == 0 {
				t.Standstill = t.standstill()
			} else if len(n.does(Drop, t.ID)) == 0 {
				t.Interrupted = "" // it is planned again
			}
		case t.State == task.Planning && s.Mode == spec.ModePlan:
			t.Standstill = "planned; no step begins in mode plan"
		case t.State == task.Executing && t.Until.IsZero() && !t.complete() && !n.active(*t) && !n.told(*t) && len(n.does(Begin, t.ID)) == 0:
			if t.Standstill = t.standstill(); s.Mode != spec.ModeMission && !slices.ContainsFunc(t.Steps, func(st Step) bool { return st.Status == Paused }) {
				t.Standstill = "no step begins in mode " + s.Mode
			}
		}
	}
	return s
}

// told reports whether a loop of the task is being told to continue.
func (n *next) told(t Task) bool {
	return slices.ContainsFunc(n.does(Tell, t.ID), func(j Job) bool { return j.Message == loop.MessageContinue })
}

// standstill returns why a task has no slot.
func (t Task) standstill() string {
	if t.Interrupted != "" {
		return "gives way to " + t.Interrupted
	}
	return "waits for a free slot"
}

// StandstillOf returns why nothing happens for a task, as people see it, else "". format formats a time.
func (s State) StandstillOf(t Task, format func(time.Time) string) string {
	switch {
	case t.Outcome != "" || s.Status.Ended():
		return ""
	case !t.Until.IsZero():
		return "sleeps until " + format(t.Until)
	case t.Standstill != "":
		return t.Standstill
	case t.Interrupted != "" && t.State != task.Waiting: // in WAITING_FOR_HUMAN a person has to answer first
		return "gives way to " + t.Interrupted
	case t.Paused:
		return "paused"
	case t.Held:
		return "held"
	}
	return ""
}
