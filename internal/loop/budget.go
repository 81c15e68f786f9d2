package loop

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/task"
)

// Resource names something that a loop can use up (A2). Times are in milliseconds.
type Resource string

// The resources, in the order in which Exhausted checks them after the times.
const (
	Iterations Resource = "iterations"
	ActiveTime Resource = "activeTime"
	ToolCalls  Resource = "toolCalls"
	Tokens     Resource = "tokens"
	CostUSD    Resource = "costUSD"
	WallClock  Resource = "wallClock"
)

// Steps are the agent calls of one iteration (E4). They limit an iteration and are not a budget of the loop: none
// remain for the next iteration, and nobody can extend them.
const Steps Resource = "steps"

// Resources lists the budgets.
var Resources = []Resource{Iterations, ActiveTime, ToolCalls, Tokens, CostUSD, WallClock}

// Amount is one line of the budget. Limit and Remaining are null if there is no limit.
type Amount struct {
	Limit     *metric.Decimal `json:"limit"`
	Used      metric.Decimal  `json:"used"`
	Remaining *metric.Decimal `json:"remaining"`
}

// Budget is what a loop may spend and has spent, per resource (A8).
type Budget map[Resource]Amount

// UsedUp reports whether the whole limit is spent. It returns false if there is no limit.
func (a Amount) UsedUp() bool { return a.Limit != nil && a.Remaining.Sign() <= 0 }

// NewBudget returns a budget with nothing used. It lists resources without a limit too.
func NewBudget(limits map[Resource]metric.Decimal) Budget { return Budget{}.WithLimits(limits) }

// WithLimits returns the budget with other limits and the same use.
func (b Budget) WithLimits(limits map[Resource]metric.Decimal) Budget {
	out := Budget{}
	for _, r := range Resources {
		a := Amount{Used: b[r].Used}
		if l, ok := limits[r]; ok {
			a.Limit = &l
		}
		out[r] = a.spend(metric.Decimal{})
	}
	return out
}

// Spend returns the budget with n more of r used.
func (b Budget) Spend(r Resource, n metric.Decimal) Budget {
	out := Budget{}
	maps.Copy(out, b)
	out[r] = out[r].spend(n)
	return out
}

// Keeping returns the budget with n less of r remaining, because n is reserved for something else.
func (b Budget) Keeping(r Resource, n int64) Budget {
	a := b[r]
	if a.Remaining == nil || n <= 0 {
		return b
	}
	out := maps.Clone(b)
	a.Remaining = leaves(*a.Remaining, Count(n))
	out[r] = a
	return out
}

func (a Amount) spend(n metric.Decimal) Amount {
	a.Used = a.Used.Add(n)
	if a.Limit != nil {
		a.Remaining = leaves(*a.Limit, a.Used)
	}
	return a
}

// leaves returns what is left of an amount, which is never less than nothing.
func leaves(limit, used metric.Decimal) *metric.Decimal {
	left := limit.Sub(used)
	if left.Sign() < 0 {
		left = metric.Decimal{}
	}
	return &left
}

// Exhausted returns the resource that is used up, "" for none. Times come first, because a loop without time ends
// with a timeout, whatever else it has used up (E4).
func (b Budget) Exhausted() Resource {
	first, _ := list.First(append([]Resource{ActiveTime, WallClock}, Resources...), func(r Resource) bool { return b[r].UsedUp() })
	return first
}

// Left returns what remains of each limited resource (the event's budgets_remaining).
func (b Budget) Left() map[Resource]metric.Decimal {
	out := map[Resource]metric.Decimal{}
	for _, r := range Resources {
		if b[r].Limit != nil {
			out[r] = *b[r].Remaining
		}
	}
	return out
}

// Of returns how much of r was used.
func (u Usage) Of(r Resource) metric.Decimal {
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
	return metric.Decimal{}
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		ActiveMs: u.ActiveMs + v.ActiveMs, AgentCalls: u.AgentCalls + v.AgentCalls, ToolCalls: u.ToolCalls + v.ToolCalls,
		InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens, CostUSD: u.CostUSD.Add(v.CostUSD),
	}
}

// OfTask returns the usage as tasks count it.
func (u Usage) OfTask() task.Usage {
	return task.Usage{CostUSD: u.CostUSD, Tokens: u.InputTokens + u.OutputTokens, ActiveMs: u.ActiveMs, ToolCalls: int(u.ToolCalls), OutputTokens: u.OutputTokens}
}

// Count converts a whole number to the decimals of budgets.
func Count(n int64) metric.Decimal { return metric.MustDecimal(strconv.FormatInt(n, 10)) }

// Ample returns a limit of r that is twice what was used, or twice the old limit if that is more. It is written as in
// the spec and shown to people who are asked for a new limit.
func (b Budget) Ample(r Resource) string {
	enough := b[r].Used
	if limit := b[r].Limit; limit != nil && limit.Cmp(enough) > 0 {
		enough = *limit
	}
	enough = enough.Add(enough)
	if r.Timed() {
		return spec.Duration(max((time.Duration(enough.Float()) * time.Millisecond).Round(time.Second), time.Second)).String()
	}
	return enough.String()
}

// Spent says how much of the limit of r was used: "2 of 3", "1m3s of 10m".
func (b Budget) Spent(r Resource) string {
	a := b[r]
	if !r.Timed() || a.Limit == nil {
		return fmt.Sprintf("%s of %s", a.Used, a.Limit)
	}
	words := func(ms metric.Decimal) spec.Duration {
		return spec.Duration((time.Duration(ms.Float()) * time.Millisecond).Round(100 * time.Millisecond))
	}
	return fmt.Sprintf("%s of %s", words(a.Used), words(*a.Limit))
}

// In returns an amount of the resource as people write it, without rounding: "12", "1m3.004s".
func (r Resource) In(n metric.Decimal) string {
	if r.Timed() {
		return spec.Duration(time.Duration(n.Float()) * time.Millisecond).String()
	}
	return n.String()
}

// Timed reports whether the resource is a time.
func (r Resource) Timed() bool { return r == ActiveTime || r == WallClock }
