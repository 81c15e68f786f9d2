package ui

import "time"

// FirstWord is how long something may take before anybody is told, where no line can move.
const FirstWord = 10 * time.Second

// Pace says when to tell that something is still under way: after ten seconds, after a minute, and then the more seldom
// the longer it takes.
type Pace struct{ next time.Duration }

// Due reports whether it is time to tell.
func (p *Pace) Due(took time.Duration) bool {
	if took < max(p.next, FirstWord) {
		return false
	}
	for p.next <= took {
		p.next = max(time.Minute, 2*p.next)
	}
	return true
}
