package spec

import (
	"time"

	"pawl/internal/kind"
)

// DefaultProcesses is how many processes and threads a loop has at a time at most where its spec does not say, and the
// machine has cgroups: far more than builds need, and far fewer than a machine can have.
const DefaultProcesses = 4096

// Defaults is a spec that nobody has written anything into: the defaults of the contract, with
// the budgets of the profile a1 (A2). What is required is missing from it. Keys that are not
// built yet have no default.
func Defaults() Spec {
	return Spec{
		Kind:     kind.Improve.Name,
		Repo:     Repo{Path: "."},
		NewFiles: Deny,
		Verify:   Verify{Timeout: Duration(30 * time.Second), Direction: "higher"},
		Guard:    Guard{Timeout: Duration(5 * time.Minute), Policy: PolicyDefault},
		Test:     Test{Timeout: Duration(5 * time.Minute)},
		Agent:    Agent{Use: UseCommand},
		Sandbox:  Sandbox{Use: Auto, Network: Filtered},
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
