package rules

import (
	"cmp"
	"fmt"

	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

// End is a way in which a loop ends: one row of the contract's table "How loops end".
type End struct {
	Status     loop.Status
	ExitStatus string // completed, timeout, interrupted or max_steps (E4)
	Code       fault.Code
	Reason     string        // in words, for people
	Budget     loop.Resource // the budget that ended it, "" if none did
	Threshold  bool          // a limit other than a budget ended it, and a budget may be used up as well
	Cause      fault.Code    // the code of the enforced rule behind it, if the rule has one (E5)
	Advice     string        // advice that is more exact than that for the code
}

// The rows. Each loop ends by exactly one of them.
var (
	TargetMet         = End{Status: loop.Completed, ExitStatus: "completed", Reason: "the target is met"}
	DiscardsInARow    = End{Status: loop.Completed, ExitStatus: "completed", Reason: "too many discards in a row", Threshold: true}
	IterationLimit    = End{Status: loop.Completed, ExitStatus: "max_steps", Reason: "the iteration limit is reached"}
	VerifyTimeout     = End{Status: loop.Failed, ExitStatus: "timeout", Code: fault.PhaseTimeout, Reason: "verify took longer than its limit"}
	AgentFailed       = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.AgentFailed, Reason: "the agent failed three times in a row", Threshold: true}
	TimeBudget        = End{Status: loop.Halted, ExitStatus: "timeout", Code: fault.BudgetExhausted, Reason: "the time budget is used up"}
	OtherBudget       = End{Status: loop.Halted, ExitStatus: "max_steps", Code: fault.BudgetExhausted, Reason: "a budget is used up"}
	Interrupted       = End{Status: loop.Halted, ExitStatus: "interrupted", Code: fault.Cancelled, Reason: "halted"}
	BlockedGivenUp    = End{Status: loop.Halted, ExitStatus: "interrupted", Code: fault.GuardBlocked, Reason: "the blocked change was given up"}
	SpecInvalid       = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.InvalidSpec, Reason: "the spec is invalid"}
	NotReady          = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.PreconditionFailed, Reason: "a precondition is not met"}
	BehindItsLedger   = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.LedgerAhead, Reason: "the ledger is ahead of this run"}
	LedgerLost        = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.LedgerDamaged, Reason: "what the loop recorded is damaged"}
	MachineFailed     = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.InfrastructureError, Reason: "the machine failed"}
	NotPermitted      = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.PermissionDenied, Reason: "a role is not permitted what was asked of it"}
	Verified          = End{Status: loop.Completed, ExitStatus: "completed", Reason: "the change is tested and verified"}
	MaxIterations     = End{Status: loop.Failed, ExitStatus: "max_steps", Code: fault.MaxIterations, Reason: "the iteration limit is reached without success"}
	MaxFixAttempts    = End{Status: loop.Failed, ExitStatus: "max_steps", Code: fault.MaxFixAttempts, Reason: "tests still fail after the last allowed fix"}
	TestFailed        = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.TestFailed, Reason: "tests fail for good"}
	PhaseTimedOut     = End{Status: loop.Failed, ExitStatus: "timeout", Code: fault.PhaseTimeout, Reason: "a phase took longer than its limit"}
	NotReproduced     = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.NotReproduced, Reason: "what was kept does not pass from scratch"}
	TransitionInvalid = End{Status: loop.Failed, ExitStatus: "interrupted", Code: fault.InvalidTransition, Reason: "an invalid phase change"}
)

// Because returns the end with a more exact reason.
func (e End) Because(reason string) End {
	if reason != "" {
		e.Reason = reason
	}
	return e
}

// Of returns the end with the text and advice of the fault that caused it.
func (e End) Of(f *fault.Error) End {
	e.Reason, e.Advice = f.What, f.Do
	return e
}

// Exhausted returns the budgets that are recorded as used up when a loop ends this way: first the one that ended it,
// then all others that ran out, even if another limit was reached at the same time (A2). For a success there are none,
// whatever was left.
func (e End) Exhausted(b loop.Budget) []loop.Resource {
	if e.Budget == "" && !e.Threshold {
		return nil
	}
	var spent []loop.Resource
	if e.Budget != "" {
		spent = append(spent, e.Budget)
	}
	return append(spent, list.Filter(loop.Resources, func(r loop.Resource) bool { return r != e.Budget && b[r].UsedUp() })...)
}

// Fault returns the end as an error with its code, its cause and their families (E5); nil if the loop has completed.
func (e End) Fault() *fault.Error {
	if e.Code == "" {
		return nil
	}
	f := fault.New(e.Code, "%s", e.Reason).Advise(e.recovery())
	f.Cause = e.Cause
	return f
}

// recovery returns the advice: that of the end itself, else that of the cause, else that of the code.
func (e End) recovery() string { return cmp.Or(e.Advice, fault.Recovery(cmp.Or(e.Cause, e.Code))) }

// ExitCode returns the exit code of a command whose loop has ended with that status and code: 0 completed, 2 a spec
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

// Event returns the event that records this end. Every end has its event (A4).
func (e End) Event(usage loop.Usage) loop.Event {
	types := map[loop.Status]loop.Type{loop.Completed: loop.AutonomyCompleted, loop.Halted: loop.AutonomyHalted}
	return loop.Event{
		Type: cmp.Or(types[e.Status], loop.LoopFailed), Status: e.Status, ExitStatus: e.ExitStatus, ErrorCode: string(e.Code),
		Cause: string(e.Cause), Recovery: e.recovery(), Reason: e.Reason, Usage: &usage,
	}
}

// BudgetEnd returns how a loop ends that has used up the budget r. An Improve loop that reaches its iteration limit
// has completed; every other budget halts it.
func BudgetEnd(r loop.Resource) End {
	end := OtherBudget.Because("the budget " + string(r) + " is used up")
	switch r {
	case loop.Iterations:
		end = IterationLimit
	case loop.ActiveTime, loop.WallClock:
		end = TimeBudget.Because(end.Reason)
	}
	if end.Budget = r; r == loop.WallClock {
		end.Cause = fault.WallClockExceeded
	}
	return end
}

// BudgetEndOf is BudgetEnd for a loop that may have a rest of r, which is kept for the measurements after its end.
func BudgetEndOf(s loop.State, r loop.Resource) End {
	end := BudgetEnd(r)
	if left := s.Budget[r].Remaining; left != nil && left.Sign() > 0 {
		end = end.Because("the rest of the budget " + string(r) + " is kept to measure the loop's result")
	}
	return end
}

// StepsEnd returns how a loop ends if one iteration has used up its agent calls (E4).
func StepsEnd(limit int) End {
	end := OtherBudget.Because(fmt.Sprintf("the iteration has used up its agent calls (limits.steps is %d)", limit))
	end.Budget, end.Cause = loop.Steps, fault.CycleTermination
	return end
}

// StepExhausted returns the budget that forbids one more step, "" if none does (E2, A2). Only time stops a command of
// the spec, so a change is still judged if making it used up the last tool call. The budget of iterations does not
// count: it was spent when the iteration began.
func StepExhausted(s loop.State, agent bool) loop.Resource {
	first, _ := list.First(loop.Resources, func(r loop.Resource) bool {
		return r != loop.Iterations && (agent || r.Timed()) && s.Budget[r].UsedUp()
	})
	return first
}

// Result returns the result of a loop that has ended in that state (P9).
func Result(s loop.State, sp spec.Spec) *loop.Result {
	res := &loop.Result{
		ExitStatus: s.ExitStatus, ErrorCode: s.ErrorCode, Cause: s.Cause, Reason: s.Reason, Recovery: s.Recovery,
		Iterations: s.Iteration, Kept: s.Kept, KeptCount: s.KeptCount, Discarded: s.Discarded,
		Baseline: s.Baseline, Best: s.Shown(), Branch: s.Branch, Head: s.Head, Proposal: s.Proposal, Usage: s.Usage, Claim: s.Claim, Scratch: s.Scratch, Tested: s.Tested, Candidates: s.Candidates, SetAside: s.SetAside,
	}
	if s.Baseline != nil && res.Best != nil {
		res.Delta = new(res.Best.Sub(*s.Baseline))
	}
	if res.Best != nil && recommends(s, sp) {
		met := sp.Verify.Target != nil && metric.TargetMet(sp.Verify.Direction, *res.Best, *sp.Verify.Target)
		res.Recommendation = s.Analysis.Recommend(sp.Verify.Direction, met)
	}
	return res
}

// recommends reports whether the report says if a loop could go on: not after a failure, nor after a person has ended
// it, rejected its proposal or refused it a larger budget.
func recommends(s loop.State, sp spec.Spec) bool {
	rejected := s.Proposal != nil && s.Proposal.State == Rejected
	ended := s.ExitStatus == Interrupted.ExitStatus
	exhausted := s.ExitStatus == IterationLimit.ExitStatus || s.ExitStatus == TimeBudget.ExitStatus
	refused := exhausted && sp.Limits.OnExhausted == spec.Ask // nobody else ends such a loop
	return s.Status != loop.Failed && !rejected && !ended && !refused
}
