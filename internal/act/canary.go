package act

import "pawl/internal/spec"

// Canary breaks the code in scope, in the judge, and runs the commands that are to guard it. One that is
// empty is not run.
type Canary struct {
	Step
	Spec  spec.Spec `json:"spec"`
	Guard string    `json:"guard,omitempty"`
	Test  string    `json:"test,omitempty"`
	// Signature is that of the tests that fail on the unchanged code, "" where none do.
	Signature string `json:"signature,omitempty"`
	// Hollow asks for more: functions that only fail.
	Hollow bool `json:"hollow,omitempty"`
}

// Canaried is what came of it. Its outcome is that of the last command.
type Canaried struct {
	Outcome
	Files   int      `json:"files,omitempty"`   // that were broken, 0 where there is no code in scope that can be
	Broken  []string `json:"broken,omitempty"`  // their names, git-quoted, capped
	Seen    bool     `json:"seen,omitempty"`    // a command noticed a syntax error in them
	Hollow  bool     `json:"hollow,omitempty"`  // none noticed that their functions only fail
	Instead []string `json:"instead,omitempty"` // what the commands use instead, as far as that shows
}

// Blind reports whether there was code to break, and no command noticed.
func (c Canaried) Blind() bool { return c.Files > 0 && !c.Seen && !c.Interrupted }
