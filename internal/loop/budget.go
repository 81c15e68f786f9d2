package loop

import (
	"encoding/json"
	"fmt"
	"time"

	"pawl/internal/evidence"
)

// Resource names something that a loop can run out of (A2). Times are in milliseconds.
type Resource string

// The resources, in the order in which an exhausted one is named.
const (
	Iterations Resource = "iterations"
	ActiveTime Resource = "activeTime"
	ToolCalls  Resource = "toolCalls"
	Tokens     Resource = "tokens"
	CostUSD    Resource = "costUSD"
	WallClock  Resource = "wallClock"
)

// Steps are the agent calls of one iteration (E4). They bound a cycle and are no budget of the loop: none
// can be left over or extended.
const Steps Resource = "steps"

// Resources lists the budgets.
var Resources = []Resource{Iterations, ActiveTime, ToolCalls, Tokens, CostUSD, WallClock}

// Amount is one line of the budget. Limit and Remaining are null where there is no limit.
type Amount struct {
	Limit     *evidence.Decimal `json:"limit"`
	Used      evidence.Decimal  `json:"used"`
	Remaining *evidence.Decimal `json:"remaining"`
}

// Budget is what a loop may spend and has spent, per resource (A8).
type Budget map[Resource]Amount

// NewBudget returns a budget with nothing used; resources without a limit are listed too.
func NewBudget(limits map[Resource]evidence.Decimal) Budget {
	b := Budget{}
	for _, r := range Resources {
		a := Amount{}
		if l, ok := limits[r]; ok {
			a.Limit = &l
		}
		b[r] = a.spend(evidence.Decimal{})
	}
	return b
}

// WithLimits returns the budget with other limits and the same use.
func (b Budget) WithLimits(limits map[Resource]evidence.Decimal) Budget {
	out := NewBudget(limits)
	for _, r := range Resources {
		out = out.Spend(r, b[r].Used)
	}
	return out
}

// Spend returns the budget with n more of r used.
func (b Budget) Spend(r Resource, n evidence.Decimal) Budget {
	out := Budget{}
	for _, k := range Resources {
		out[k] = b[k]
	}
	out[r] = out[r].spend(n)
	return out
}

// Keeping returns the budget with n less of r remaining, as that is kept for something else. What is used does not change.
func (b Budget) Keeping(r Resource, n int64) Budget {
	a := b[r]
	if a.Remaining == nil || n <= 0 {
		return b
	}
	out := Budget{}
	for _, k := range Resources {
		out[k] = b[k]
	}
	left := a.Remaining.Sub(Count(n))
	if left.Sign() < 0 {
		left = evidence.Decimal{}
	}
	a.Remaining = &left
	out[r] = a
	return out
}

func (a Amount) spend(n evidence.Decimal) Amount {
	a.Used = a.Used.Sub(n.Neg())
	if a.Limit != nil {
		left := a.Limit.Sub(a.Used)
		if left.Sign() < 0 {
			left = evidence.Decimal{}
		}
		a.Remaining = &left
	}
	return a
}

// Exhausted returns the resource that is used up, "" where there is none. Time comes first, since a
// loop that is out of time ends by timeout, whatever else it ran out of (E4).
func (b Budget) Exhausted() Resource {
	for _, r := range append([]Resource{ActiveTime, WallClock}, Resources...) {
		if b[r].Limit != nil && b[r].Remaining.Sign() <= 0 {
			return r
		}
	}
	return ""
}

// Left returns what remains per limited resource (the event's budgets_remaining).
func (b Budget) Left() map[Resource]evidence.Decimal {
	out := map[Resource]evidence.Decimal{}
	for _, r := range Resources {
		if b[r].Limit != nil {
			out[r] = *b[r].Remaining
		}
	}
	return out
}

// Of returns what was used of r.
func (u Usage) Of(r Resource) evidence.Decimal {
	switch r {
	case ActiveTime:
		return Count(u.ActiveMs)
	case ToolCalls:
		return Count(u.ToolCalls)
	case Tokens:
		return Count(u.InputTokens + u.OutputTokens)
	case CostUSD:
		return u.CostUSD
	}
	return evidence.Decimal{}
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		ActiveMs: u.ActiveMs + v.ActiveMs, AgentCalls: u.AgentCalls + v.AgentCalls, ToolCalls: u.ToolCalls + v.ToolCalls,
		InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens, CostUSD: u.CostUSD.Add(v.CostUSD),
	}
}

// Count turns a whole number into what budgets reckon in.
func Count(n int64) evidence.Decimal {
	var d evidence.Decimal
	if err := json.Unmarshal(fmt.Append(nil, n), &d); err != nil {
		panic(err) // a whole number always is a decimal
	}
	return d
}

// Ample is a limit of r that leaves as much again as was used of it, in the words of the spec: what
// people are shown who are asked for a new one.
func (b Budget) Ample(r Resource) string {
	enough := b[r].Used
	if limit := b[r].Limit; limit != nil && limit.Cmp(enough) > 0 {
		enough = *limit
	}
	enough = enough.Sub(enough.Neg())
	if r.Timed() {
		return max((time.Duration(enough.Float()) * time.Millisecond).Round(time.Second), time.Second).String()
	}
	return enough.String()
}

// Spent is how much of the limit of r was used, in words: "2 of 3", "1m3s of 10m0s".
func (b Budget) Spent(r Resource) string {
	a := b[r]
	if !r.Timed() || a.Limit == nil {
		return fmt.Sprintf("%s of %s", a.Used, a.Limit)
	}
	words := func(ms evidence.Decimal) time.Duration {
		return (time.Duration(ms.Float()) * time.Millisecond).Round(100 * time.Millisecond)
	}
	return fmt.Sprintf("%s of %s", words(a.Used), words(*a.Limit))
}

// Timed reports whether the resource is a time.
func (r Resource) Timed() bool { return r == ActiveTime || r == WallClock }
