package govern

import (
	"pawl/internal/fault"
	"pawl/internal/loop"
)

// End is a way in which a loop ends: one row of the contract's table "How loops end".
type End struct {
	Status     loop.Status
	ExitStatus string // completed, timeout, interrupted or max_steps (E4)
	Code       fault.Code
	Reason     string        // in words, for people
	Budget     loop.Resource // the budget that ended it, "" where none did
}

// The rows. Each loop ends by exactly one of them.
var (
	TargetMet         = End{Status: loop.Completed, ExitStatus: "completed", Reason: "the target is met"}
	DiscardsInARow    = End{Status: loop.Completed, ExitStatus: "completed", Reason: "too many discards in a row"}
	IterationLimit    = End{Status: loop.Completed, ExitStatus: "max_steps", Reason: "the iteration limit is reached"}
	VerifyTimeout     = End{Status: loop.Failed, ExitStatus: "timeout", Code: fault.PhaseTimeout, Reason: "verify took longer than it may"}
	AgentFailed       = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.AgentFailed, Reason: "the agent failed three times in a row"}
	TimeBudget        = End{Status: loop.Halted, ExitStatus: "timeout", Code: fault.BudgetExhausted, Reason: "the time budget is used up"}
	OtherBudget       = End{Status: loop.Halted, ExitStatus: "max_steps", Code: fault.BudgetExhausted, Reason: "a budget is used up"}
	Interrupted       = End{Status: loop.Halted, ExitStatus: "interrupted", Code: fault.Cancelled, Reason: "halted"}
	BlockedGivenUp    = End{Status: loop.Halted, ExitStatus: "interrupted", Code: fault.GuardBlocked, Reason: "the blocked change was given up"}
	SpecInvalid       = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.InvalidSpec, Reason: "the spec is invalid"}
	NotReady          = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.PreconditionFailed, Reason: "a precondition is not met"}
	BehindItsLedger   = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.LedgerAhead, Reason: "the ledger is ahead of this run"}
	MachineFailed     = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.InfrastructureError, Reason: "the machine failed"}
	NotPermitted      = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.PermissionDenied, Reason: "a role is not permitted what was asked of it"}
	TransitionInvalid = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.InvalidTransition, Reason: "an invalid phase change"}
)

// Because returns the end with a more exact reason.
func (e End) Because(reason string) End {
	if reason != "" {
		e.Reason = reason
	}
	return e
}

// ExitCode returns the exit code of a command that sees a loop end so: 0 completed, 2 a spec
// or precondition, 3 failed, 5 interrupted, 6 a budget.
func ExitCode(status loop.Status, code fault.Code) int {
	if status == loop.Completed {
		return 0
	}
	if k, ok := fault.Lookup(code); ok {
		return k.Exit
	}
	return 3
}

// Event returns the event by which the loop ends so. Every end has its event (A4).
func (e End) Event(usage loop.Usage) loop.Event {
	ev := loop.Event{
		Status: e.Status, ExitStatus: e.ExitStatus, ErrorCode: string(e.Code), Recovery: fault.Recovery(e.Code),
		Reason: e.Reason, Usage: &usage,
	}
	switch e.Status {
	case loop.Completed:
		ev.Type = loop.AutonomyCompleted
	case loop.Halted:
		ev.Type = loop.AutonomyHalted
	default:
		ev.Type = loop.LoopFailed
	}
	return ev
}
