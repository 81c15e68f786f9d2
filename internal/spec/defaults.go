package spec

import (
	"time"

	"pawl/internal/kind"
)

// DefaultProcesses is the maximum number of processes and threads that a loop has at the same time, if its spec does
// not set it and the machine has cgroups. It is far more than builds need, and far less than a machine can have.
const DefaultProcesses = 4096

// Defaults returns a spec with only the defaults of the contract, with the budgets of the profile a1 (A2). Required
// keys are empty.
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
