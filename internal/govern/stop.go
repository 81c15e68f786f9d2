package govern

import (
	"fmt"

	"pawl/internal/fault"
	"pawl/internal/loop"
)

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
