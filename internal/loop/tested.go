package loop

import (
	"fmt"
	"strings"
)

// Tested is what a guard has tested, as far as its output shows it.
type Tested struct {
	Format   string `json:"format,omitempty"` // of the output, "" if pawl does not read it
	Passed   int    `json:"passed,omitempty"`
	Failed   int    `json:"failed,omitempty"` // the command exits 0 all the same
	Skipped  int    `json:"skipped,omitempty"`
	Packages bool   `json:"packages,omitempty"` // packages are counted: the output names no tests
	Partial  bool   `json:"partial,omitempty"`  // a part of the output was left out
	// Log has the output of the run on the unchanged code, from rules version 6 on.
	Log string `json:"log,omitempty"`
	// Flaky is what had failed on the unchanged code in a guard that then passed twice.
	Flaky []string `json:"flaky,omitempty"`
	// Unbreakable says that no canary was tried, since pawl can break no code in scope.
	Unbreakable bool `json:"unbreakable,omitempty"`
	// Misses is what the canary did to the code of a delivery without the commands noticing.
	Misses string `json:"misses,omitempty"`
}

// String returns what was tested on one line, "" if nothing is known.
func (t *Tested) String() string {
	if t == nil {
		return ""
	}
	text := t.counts()
	if t.Partial {
		text += "; a part of the output was left out, so tests may be missing"
	}
	if len(t.Flaky) > 0 {
		text += "; flaky: it failed on the unchanged code (" + Clip(strings.Join(t.Flaky, ", "), 120) + "), then passed twice"
	}
	if t.Unbreakable {
		text += "; canary not tried: no code that pawl can break"
	}
	if t.Misses != "" {
		text += "; still passes with " + t.Misses
	}
	return text
}

// counts returns how many tests there were.
func (t *Tested) counts() string {
	if t.Format == "" {
		return "its tests are not counted: no output that pawl reads"
	}
	var parts []string
	add := func(n int, word string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	passed := "passed"
	if t.Packages {
		passed = "packages passed"
		if t.Passed == 1 {
			passed = "package passed"
		}
	}
	add(t.Failed, "failed")
	add(t.Passed, passed)
	add(t.Skipped, "skipped")
	if len(parts) == 0 {
		parts = []string{"0 tests"}
	}
	text := strings.Join(parts, ", ") + " (" + t.Format + ")"
	if t.Failed > 0 {
		return "exits 0 but names failures: " + text
	}
	return text
}
