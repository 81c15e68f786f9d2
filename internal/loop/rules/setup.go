package rules

import (
	"fmt"
	"strings"
	"time"

	"pawl/internal/loop"
	"pawl/internal/metric"
)

// setupPauses is how long the loop sleeps after each failure in a row of a setup that has passed before. It fetches
// dependencies, so a network that is gone for a moment makes it fail.
var setupPauses = []time.Duration{30 * time.Second, 2 * time.Minute}

// SetupFailure is a setup.command that failed.
type SetupFailure struct {
	Said   string // its fault in words
	Passed bool   // it has passed before in this loop
	Times  int    // how often in a row it has failed
	Asks   bool   // a person may be asked; from scratch the base is the control instead
}

// AfterSetup is what follows a setup.command that failed: it runs again in a fresh tree at once, or after a sleep, or a
// person is asked. If none of that, the fault stands.
type AfterSetup struct {
	Again bool
	Until time.Time // the loop sleeps before, zero if it does not
	Ask   string    // why a person is asked
}

// After decides what follows. At the start it runs once more; the loop is refused then.
func (f SetupFailure) After(now time.Time) AfterSetup {
	often := f.Brief() + ", " + metric.Counted(f.Times, "time") + " in a row"
	switch {
	case !f.Passed:
		return AfterSetup{Again: f.Times == 1}
	case f.Times <= len(setupPauses):
		return AfterSetup{Again: true, Until: now.Add(setupPauses[f.Times-1])}
	case f.Asks:
		return AfterSetup{Ask: fmt.Sprintf("%s, and it passed before: answer %s to run it again", often, Retry)}
	}
	return AfterSetup{}
}

// Brief returns the failure on one line: the command, and the last line of its output.
func (f SetupFailure) Brief() string {
	lines := strings.Split(strings.TrimSpace(f.Said), "\n")
	text := lines[0]
	if last := strings.TrimSpace(lines[len(lines)-1]); len(lines) > 1 && last != "" {
		text += " (" + loop.Clip(last, 200) + ")"
	}
	return text
}
