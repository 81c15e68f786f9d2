package loop

import "pawl/internal/phase"

// Course is where a Deliver loop stands within its iteration: all that its decisions need beside
// the bounds and what just happened. It is a value; its methods return what it is afterwards.
type Course struct {
	Iteration int `json:"iteration"`
	Reworks   int `json:"reworks,omitempty"`  // of the write or fix that is under way
	Fixes     int `json:"fixes,omitempty"`    // begun in this iteration (L3)
	Opinions  int `json:"opinions,omitempty"` // answers of the reviewer that were no decision

	Signature string `json:"signature,omitempty"` // of the last failing test run
	Same      int    `json:"same,omitempty"`      // how many test runs in a row failed with it
	Worse     int    `json:"worse,omitempty"`     // how many fixes made more tests fail
	LastWorse bool   `json:"lastWorse,omitempty"` // the last one did
}

// Begin is the course of a new iteration: every counter starts again.
func (c Course) Begin(iteration int) Course { return Course{Iteration: iteration} }

// Enter is the course in a phase that was just entered. A fix counts as begun.
func (c Course) Enter(p phase.Phase) Course {
	c.Reworks, c.Opinions = 0, 0
	switch p {
	case phase.Fix:
		c.Fixes++
	case phase.Write: // another approach: what the one before came to does not count against it
		c.Signature, c.Same, c.Worse, c.LastWorse = "", 0, 0, false
	}
	return c
}

// Rework is the course when the work of a phase is done once more.
func (c Course) Rework() Course { c.Reworks++; return c }

// Undecided is the course after an answer of the reviewer that was no decision.
func (c Course) Undecided() Course { c.Opinions++; return c }

// Failed is the course after a failing test run with that signature (testreport.Signature). worse
// says that the fix before it made more tests fail (testreport.Change).
func (c Course) Failed(signature string, worse bool) Course {
	if signature != c.Signature || signature == "" {
		c.Same = 0
	}
	c.Signature = signature
	c.Same++
	c.LastWorse = worse && c.Fixes > 0
	if c.LastWorse {
		c.Worse++
	}
	return c
}
