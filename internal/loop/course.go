package loop

import "pawl/internal/spec/phase"

// Course is the progress of a Deliver loop within its iteration. Its decisions need nothing else except the bounds
// and the last result. It is a value; its methods return the next one.
type Course struct {
	Iteration int `json:"iteration"`
	Reworks   int `json:"reworks,omitempty"`  // of the write or fix under way
	Fixes     int `json:"fixes,omitempty"`    // begun in this iteration (L3)
	Opinions  int `json:"opinions,omitempty"` // reviewer's answers without a decision

	Signature string `json:"signature,omitempty"` // of the last failing test run
	Same      int    `json:"same,omitempty"`      // how many test runs in a row failed with that signature
	Worse     int    `json:"worse,omitempty"`     // how many fixes made more tests fail
	LastWorse bool   `json:"lastWorse,omitempty"` // the last fix made more tests fail
}

// Begin returns the course of a new iteration, with all counters at zero.
func (c Course) Begin(iteration int) Course { return Course{Iteration: iteration} }

// Enter returns the course after the loop entered a phase. Entering a fix counts that fix.
func (c Course) Enter(p phase.Phase) Course {
	c.Reworks, c.Opinions = 0, 0
	switch p {
	case phase.Fix:
		c.Fixes++
	case phase.Write: // a new approach: earlier failures do not count against it
		c.Signature, c.Same, c.Worse, c.LastWorse = "", 0, 0, false
	}
	return c
}

// Rework returns the course after another attempt in the same phase.
func (c Course) Rework() Course { c.Reworks++; return c }

// Undecided returns the course after a reviewer's answer without a decision.
func (c Course) Undecided() Course { c.Opinions++; return c }

// Failed returns the course after a failing test run with that signature (testreport.Signature). worse says that the
// fix before it made more tests fail (testreport.Change).
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
