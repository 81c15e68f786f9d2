package govern

import (
	"fmt"

	"pawl/internal/fault"
	"pawl/internal/loop"
)

// BudgetEnd returns how a loop ends that used up r. For Improve the iteration limit is a way to
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

// BudgetEndOf is BudgetEnd for a loop that may have some of r left, which is kept for what is measured when it is over.
func BudgetEndOf(s loop.State, r loop.Resource) End {
	end := BudgetEnd(r)
	if left := s.Budget[r].Remaining; left != nil && left.Sign() > 0 {
		end = end.Because("the rest of the budget " + string(r) + " is kept to measure the loop's result")
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
