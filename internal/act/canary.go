package act

import "pawl/internal/spec"

// Canary breaks the code in scope, in the judge, and runs the commands that should guard it. It skips an empty
// command.
type Canary struct {
	Step
	Spec  spec.Spec `json:"spec"`
	Guard string    `json:"guard,omitempty"`
	Test  string    `json:"test,omitempty"`
	// Signature is that of the tests that fail on the unchanged code, "" if none fail.
	Signature string `json:"signature,omitempty"`
	// Hollow asks for a second kind of error: functions that only fail.
	Hollow bool `json:"hollow,omitempty"`
}

// Canaried is the result. Its outcome is that of the last command.
type Canaried struct {
	Outcome
	Files   int      `json:"files,omitempty"`   // how many were broken, 0 if no code in scope can be broken
	Broken  []string `json:"broken,omitempty"`  // the names of the broken files, git-quoted, capped
	Seen    bool     `json:"seen,omitempty"`    // a command noticed a syntax error in these files
	Hollow  bool     `json:"hollow,omitempty"`  // no command noticed that their functions only fail
	Instead []string `json:"instead,omitempty"` // what the commands use instead, as far as that shows
}

// Blind reports whether there was code to break, and no command noticed.
func (c Canaried) Blind() bool { return c.Files > 0 && !c.Seen && !c.Interrupted }
