package steward

import (
	"cmp"
	"slices"

	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/steward/task"
)

// begun records the loop that does a step.
func (t *Task) begun(e loop.Event) {
	for i := range t.Steps {
		if st := t.Steps[i]; st.ID == e.Step {
			t.Steps[i] = Step{ID: st.ID, Loop: e.LoopID, Status: Running, Failed: st.Failed, Kept: st.Kept, KeptHead: st.KeptHead}
			if limit, capped := e.Limits[loop.CostUSD]; capped {
				t.Steps[i].Cap = &limit
			}
		}
	}
	t.Step = e.Step
	if !slices.Contains(t.Loops, e.LoopID) {
		t.Loops = append(slices.Clip(t.Loops), e.LoopID)
	}
}

func (s *State) acted(t *Task, e loop.Event) {
	a := *e.Action
	t.Actions++
	t.Window = t.Window.Add(a)
	t.Log = list.Last(append(slices.Clip(t.Log), a), KeepActions)
	s.spend(t, e)
	s.Indicators.Actions++
	s.Indicators.ExecutingMs += a.ActiveMs
	t.ExecutingMs += a.ActiveMs
	if a.Error != "" {
		s.Indicators.Errors++
	}
	if a.Progress {
		t.ProgressAt = e.Time
	}
	for i := range t.Steps {
		st := &t.Steps[i]
		if st.Loop == a.Loop {
			st.Counted += a.ActiveMs
		}
		if st.ID != a.Step {
			continue
		}
		switch {
		case a.Milestone:
			st.Status, t.Retries = Over, 0
		case a.What == task.StepStarted:
			st.Status, st.Loop = Pending, ""
			if !slices.Contains([]string{task.RateLimited, task.Spent, task.Stopped}, a.Outcome) {
				t.Retries++
				st.Failed++
			}
		}
	}
}

func (s *State) reported(t *Task, e loop.Event) {
	c := e.Child
	at, st, left := s.child(c.Loop)
	if at != t { // nothing at the task waits for the loop any more
		return
	}
	if r := c.Result; r != nil {
		added := r.Usage.Sub(st.Usage)
		st.Usage, t.Cost, s.Usage = r.Usage, t.Cost.Add(added), s.Usage.Add(added)
	}
	if left {
		if c.Event == task.ChildEnded {
			t.Ending = list.Filter(t.Ending, func(st Step) bool { return st.Loop != c.Loop })
		}
		return
	}
	if c.Seq >= st.Seq {
		st.Seq, st.Said = c.Seq, c.Event
	}
	if r := c.Result; r != nil {
		st.Head, st.Branch = cmp.Or(r.Head, st.Head), cmp.Or(r.Branch, st.Branch)
		t.Base = cmp.Or(t.Base, r.Base)
		t.Head = cmp.Or(r.Head, t.Head)
		if r.Proposal != nil {
			t.Proposal = r.Proposal.Hash
		}
		if c.Event == task.ChildEnded && goesOn(r) && st.Branch != "" && t.made(*st) {
			st.Kept, st.KeptHead = st.Branch, st.Head
		}
	}
	switch c.Event {
	case task.ChildAsks:
		if s.pausedBySteward(*st, *c.Gate) {
			st.Status = Paused // as the steward told it
			return
		}
		st.Status, st.Asks = Asking, &WaitingFor{Loop: c.Loop, Gate: c.Gate.ID, Kind: c.Gate.Kind, What: c.Gate.Summary}
		if w := t.WaitingFor; w == nil || w.Loop != "" { // else it also waits for something else
			t.WaitingFor = st.Asks
		}
	case task.ChildAnswered, task.IterationEnded, task.ChildStands:
		if c.Event == task.ChildStands && st.Status == Paused { // it continued without noticing the pause
			st.Status, st.Told, st.PauseAt = Running, "", ""
		}
		if st.Status == Asking {
			st.Status, st.Asks = Running, nil
			if w := t.WaitingFor; w != nil && w.Loop == c.Loop {
				t.WaitingFor = nil
			}
		}
	}
}

// goesOn reports whether the next attempt at a step continues from the work that a loop kept. It does if the loop ended
// for lack of money or time, for a rate limit, or because a person halted it, and nobody found fault with the work.
func goesOn(r *task.ChildResult) bool {
	return r.ErrorCode == string(fault.BudgetExhausted) || r.ErrorCode == string(fault.Cancelled) || r.RateLimit != nil
}

// made reports whether the loop of a step has changed anything.
func (t *Task) made(st Step) bool {
	if st.Head == "" || st.Head == t.Base || st.Head == st.KeptHead {
		return false
	}
	return !slices.ContainsFunc(t.Steps, func(step Step) bool { return step.ID != st.ID && step.Head == st.Head })
}
