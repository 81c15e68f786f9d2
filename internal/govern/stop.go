package govern

import (
	"fmt"

	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/loop"
)

// Thresholds are the numbers by which an Improve loop stops (P8).
type Thresholds struct {
	Direction  string
	Target     *evidence.Decimal
	Discards   int // in a row: stop
	ShiftAfter int // in a row: shift the strategy
}

// agentFailures is how many error:agent in a row end an Improve loop.
const agentFailures = 3

// Stop says whether the loop may start another iteration, and if not how it ends. The checks
// are in the order of E4: interrupted, timeout, max_steps; what the loop achieved comes before
// what it ran out of.
func Stop(s loop.State, t Thresholds) (End, bool) {
	switch {
	case s.HaltRequested != "":
		return Interrupted.Because(s.HaltRequested), true
	case t.Target != nil && s.Best != nil && evidence.TargetMet(t.Direction, *s.Best, *t.Target):
		return TargetMet.Because(fmt.Sprintf("the target %s is met", t.Target)), true
	case s.AgentFailures >= agentFailures:
		return AgentFailed, true
	case s.DiscardsInARow >= t.Discards:
		return DiscardsInARow.Because(fmt.Sprintf("%d discards in a row: look at what was tried, a person should decide", s.DiscardsInARow)), true
	}
	if r := s.Budget.Exhausted(); r != "" {
		return BudgetEnd(r), true
	}
	return End{}, false
}

// BudgetEnd returns how an Improve loop ends that used up r: its iteration limit is a way to
// complete, everything else halts it.
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

// StepsEnd returns how a loop ends one iteration of which has used up its agent calls (E4).
func StepsEnd(limit int) End {
	end := OtherBudget.Because(fmt.Sprintf("the iteration has used up its agent calls (limits.steps is %d)", limit))
	end.Budget, end.Cause = loop.Steps, fault.CycleTermination
	return end
}

// StepExhausted returns the budget that forbids one more step, "" where none does (E2, A2). A
// command of the spec is held up by time alone: a change whose making used up the last tool
// call is still judged. The budget of iterations was spent when the iteration began.
func StepExhausted(s loop.State, agent bool) loop.Resource {
	for _, r := range loop.Resources {
		if r == loop.Iterations || (!agent && r != loop.ActiveTime && r != loop.WallClock) {
			continue
		}
		if a := s.Budget[r]; a.Limit != nil && a.Remaining.Sign() <= 0 {
			return r
		}
	}
	return ""
}

// ShiftDue reports whether the strategy shifts now: at every ShiftAfter discards in a row.
func ShiftDue(s loop.State, t Thresholds) bool {
	return t.ShiftAfter > 0 && s.DiscardsInARow > 0 && s.DiscardsInARow%t.ShiftAfter == 0
}
