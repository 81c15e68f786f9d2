package spec

import (
	"slices"
	"time"
)

// Defaults is a spec that nobody has written anything into: the defaults of the contract, with
// the budgets of the profile a1 (A2). What is required is missing from it. Keys that are not
// built yet have no default.
func Defaults() Spec {
	return Spec{
		Kind:     KindImprove,
		Repo:     Repo{Path: "."},
		NewFiles: Deny,
		Verify:   Verify{Timeout: Duration(30 * time.Second), Direction: "higher"},
		Guard:    Guard{Timeout: Duration(5 * time.Minute), Policy: PolicyDefault},
		Test:     Test{Timeout: Duration(5 * time.Minute)},
		Agent:    Agent{Use: UseCommand},
		Sandbox:  Sandbox{Use: Auto},
		Limits: Limits{
			Iterations:   3,
			ActiveTime:   Duration(10 * time.Minute),
			ToolCalls:    10,
			FixAttempts:  3,
			Reworks:      2,
			Discards:     10,
			ShiftAfter:   5,
			Steps:        10,
			PhaseTimeout: Duration(10 * time.Minute),
			OnExhausted:  Halt,
		},
		Approvals: Approvals{Plan: Required, Diff: Required, EscalateAfter: Duration(24 * time.Hour)},
		Mode:      ModeMission,
	}
}

// unbuilt is a key of the contract that this version does not carry out. It is refused rather
// than ignored: a rule that is written down and not kept is worse than none.
type unbuilt struct {
	key  string
	only string            // the value that is built; "" is none
	used func(Spec) string // the value that is refused; "" when there is none
}

// notBuilt is the one list of them. To build one, carry it out and take its line away.
var notBuilt = []unbuilt{}

// NotBuilt lists the keys of the contract that this version refuses, each with the value that it
// does take, if any: "agent.use (only command)".
func NotBuilt() []string {
	var list []string
	for _, u := range notBuilt {
		if u.only != "" {
			list = append(list, u.key+" (only "+u.only+")")
		} else {
			list = append(list, u.key)
		}
	}
	return list
}

func (u unbuilt) problem(value string) Problem {
	if u.only == "" {
		return Problem{Key: u.key, What: "is not built yet in this version", Want: "leave it out"}
	}
	return Problem{Key: u.key, What: "is " + show(value) + ", which is not built yet in this version", Want: u.only}
}

// among is value when it is one of the words of the contract that are refused.
func among(value string, refused ...string) string {
	if slices.Contains(refused, value) {
		return value
	}
	return ""
}

func except(value, built string) string {
	switch value {
	case built:
		return ""
	case "":
		return " "
	}
	return value
}

func given(is bool) string {
	if is {
		return "given"
	}
	return ""
}
