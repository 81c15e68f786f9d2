package loop

import "time"

// Clocked returns the budget at a time. limits.wallClock counts the time since the loop began, without the pauses
// that its steward requested to let another task go first. The used time never becomes less.
func (s State) Clocked(now time.Time) Budget {
	if s.Budget == nil || s.StartedAt.IsZero() {
		return s.Budget
	}
	if !s.ClockStopped.IsZero() {
		now = s.ClockStopped
	}
	elapsed := Count(now.Sub(s.clockFrom()).Milliseconds()).Sub(s.Budget[WallClock].Used)
	if elapsed.Sign() <= 0 {
		return s.Budget
	}
	return s.Budget.Spend(WallClock, elapsed)
}

// Ticking returns the state with what its wall clock has used by now, since a loop that waits makes no event. It is for
// people, and for what they send. With a zero time the state is as its last event left it.
func (s State) Ticking(now time.Time) State {
	if !s.Status.Ended() {
		s.Budget = s.Clocked(now)
	}
	return s
}

// clockFrom returns the start time that gives the used time without any stop of the clock.
func (s State) clockFrom() time.Time {
	if s.ClockFrom.IsZero() {
		return s.StartedAt
	}
	return s.ClockFrom
}

// stopClock stops the clock for a pause by the steward. A pause by anybody else counts.
func (s *State) stopClock(person string, now time.Time) {
	if s.Steward != "" && person == StewardName(s.Steward) && s.ClockStopped.IsZero() {
		s.ClockStopped = now
	}
}

// startClock starts the clock again if it was stopped.
func (s *State) startClock(now time.Time) {
	if stood := now.Sub(s.ClockStopped); !s.ClockStopped.IsZero() {
		s.ClockFrom, s.ClockStopped = s.clockFrom().Add(max(stood, 0)), time.Time{}
	}
}

// StewardName returns the name of a steward in its messages (`by`).
func StewardName(id string) string { return "steward " + id }
