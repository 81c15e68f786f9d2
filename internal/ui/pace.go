package ui

import "time"

// FirstWord is how long something may take before the first line about it, if no line can move.
const FirstWord = 10 * time.Second

// Pace says when to report that something is still running: after ten seconds, after a minute, and then at longer and
// longer intervals.
type Pace struct{ next time.Duration }

// Due reports whether it is time for a report.
func (p *Pace) Due(took time.Duration) bool {
	if took < max(p.next, FirstWord) {
		return false
	}
	for p.next <= took {
		p.next = max(time.Minute, 2*p.next)
	}
	return true
}
