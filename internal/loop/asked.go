package loop

import "pawl/internal/spec/phase"

// The questions that a workflow asks about its state.

// At returns the state as people see it: with the ledger commit that it follows. No event can know that commit.
func (s State) At(ledger string) State {
	s.Ledger = ledger
	return s
}

// Stamp fills in the loop, the iteration and the phase of an event.
func (s State) Stamp(e Event) Event {
	e.Loop = s.Loop
	if e.Iteration == 0 {
		e.Iteration = s.Iteration
	}
	if e.Phase == phase.None {
		e.Phase = s.Phase
	}
	return e
}

// Last returns the number of the last event that was applied.
func (s State) Last() int64 { return s.Seq }

// Code returns the commit that an entry of the ledger stands for: the branch's head.
func (s State) Code() string { return s.Head }

// Waits returns the open gate if it has that ID, else nil.
func (s State) Waits(id string) *Gate {
	if s.Gate == nil || s.Gate.ID != id {
		return nil
	}
	return s.Gate
}

// AnswerTo returns how the gate with that ID was closed, nil if nobody has closed it.
func (s State) AnswerTo(id string) *Answer {
	if s.Answered == nil || s.Answered.Gate != id {
		return nil
	}
	return s.Answered
}

// Halting returns why the loop is being ended, "" if it is not.
func (s State) Halting() string { return s.HaltRequested }

// Underway reports whether an iteration has begun and is not recorded.
func (s State) Underway() bool {
	n := len(s.Iterations)
	return s.Iteration > 0 && (n == 0 || s.Iterations[n-1].N != s.Iteration)
}

// Unjudged returns the commit at the branch's head if it is of the iteration under way and not accepted yet, else nil.
func (s State) Unjudged() *Change {
	if c := s.LastChange; s.Underway() && c != nil && c.Commit == s.Head && !c.Accepted {
		return c
	}
	return nil
}
