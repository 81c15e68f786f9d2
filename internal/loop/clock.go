package loop

import "time"

// Clocked returns the budget at a time: limits.wallClock counts what has passed since the loop began,
// but not the pauses that its steward has asked for to let another task go first. What is used never
// becomes less.
func (s State) Clocked(now time.Time) Budget {
	if s.Budget == nil || s.StartedAt.IsZero() {
		return s.Budget
	}
	if !s.ClockStopped.IsZero() {
		now = s.ClockStopped
	}
	more := Count(now.Sub(s.clockFrom()).Milliseconds()).Sub(s.Budget[WallClock].Used)
	if more.Sign() <= 0 {
		return s.Budget
	}
	return s.Budget.Spend(WallClock, more)
}

// clockFrom is when the clock would have been started for what it shows, had it never been stopped.
func (s State) clockFrom() time.Time {
	if s.ClockFrom.IsZero() {
		return s.StartedAt
	}
	return s.ClockFrom
}

// stopClock stops the clock for a pause of the steward's. A pause of anybody else counts.
func (s *State) stopClock(by string, now time.Time) {
	if s.Steward != "" && by == StewardName(s.Steward) && s.ClockStopped.IsZero() {
		s.ClockStopped = now
	}
}

// startClock lets the clock go on, if it was stopped.
func (s *State) startClock(now time.Time) {
	if stood := now.Sub(s.ClockStopped); !s.ClockStopped.IsZero() {
		s.ClockFrom, s.ClockStopped = s.clockFrom().Add(max(stood, 0)), time.Time{}
	}
}

// StewardName is how a steward names itself in its messages (`by`).
func StewardName(id string) string { return "steward " + id }
