package risk

import (
	"fmt"
	"slices"

	"pawl/internal/lib/list"
	"pawl/internal/metric"
	"pawl/internal/steward/task"
)

// Estimate returns what a task may cost, from the costs of similar tasks: median and 90th percentile by nearest rank,
// so that both are costs that occurred. Without past tasks there is no estimate (n = 0).
func Estimate(past []task.Usage) task.Cost {
	if len(past) == 0 {
		return task.Cost{}
	}
	costs := list.Map(past, func(usage task.Usage) metric.Decimal { return usage.CostUSD })
	slices.SortFunc(costs, metric.Decimal.Cmp)
	rank := func(percent int) *metric.Decimal {
		return &costs[(percent*len(costs)+99)/100-1]
	}
	return task.Cost{N: len(costs), Median: rank(50), Percentile90: rank(90)}
}

// WithPlanned returns an estimate with what the plan's author expects. planned is the cost of a plan as read, nil for none.
func WithPlanned(estimate task.Cost, planned *task.Cost) task.Cost {
	switch {
	case planned == nil:
	case estimate.N == 0:
		estimate.Median = planned.Median
	default:
		estimate.Planned = planned.Median
	}
	return estimate
}

// High returns the amount to compare with limits: the 90th percentile, or what the plan's author expects if that is
// more. It returns nil if there is neither.
func High(c task.Cost) *metric.Decimal {
	switch {
	case planIsHigher(c):
		return c.Planned
	case c.Percentile90 != nil:
		return c.Percentile90
	}
	return c.Median
}

// planIsHigher reports whether the plan's author expects more than similar tasks have cost.
func planIsHigher(c task.Cost) bool { return above(c.Planned, c.Percentile90) }

// highInWords returns the amount to compare with limits, and whose it is if it is not that of similar tasks.
func highInWords(c task.Cost) string {
	if planIsHigher(c) {
		return dollars(*c.Planned) + " by its plan"
	}
	high := dollars(*High(c))
	if c.N == 0 { // without similar tasks, only the plan has an amount
		high += " by its plan"
	}
	return high
}

// InWords returns an estimate as people see it.
func InWords(c task.Cost) string {
	switch {
	case c.N > 0 && c.Median != nil && c.Percentile90 != nil:
		text := fmt.Sprintf("%s in the median, %s at the 90th percentile (n = %d)", dollars(*c.Median), dollars(*c.Percentile90), c.N)
		if c.Planned != nil {
			text += fmt.Sprintf("; %s by its plan", dollars(*c.Planned))
		}
		return text
	case c.Median != nil:
		return fmt.Sprintf("%s by the plan; no estimate (n = 0)", dollars(*c.Median))
	}
	return "no estimate (n = 0)"
}

// Compared returns, in words, how the actual cost compares with the estimate.
func Compared(estimate task.Cost, actual metric.Decimal) string {
	comparison := "not above the median"
	switch high := High(estimate); {
	case high == nil:
		return dollars(actual) + " spent, no estimate (n = 0)"
	case actual.Cmp(*high) > 0:
		comparison = "above the estimate"
	case actual.Cmp(*estimate.Median) > 0:
		comparison = "within the estimate"
	}
	return fmt.Sprintf("%s spent, %s: %s", dollars(actual), comparison, InWords(estimate))
}

// NeedsApproval returns why a person has to approve a task before it starts or continues (S4), nil if nobody has to.
// limit is limits.costUSD; an amount equal to it is within it.
func NeedsApproval(tier task.Tier, governs, production bool, estimate task.Cost, actual metric.Decimal, limit *metric.Decimal) (needs []task.Need) {
	if tier != task.T0 && tier != task.T3 {
		needs = append(needs, TierNeed(tier))
	}
	if governs {
		needs = append(needs, task.Need{Kind: task.NeedGovernance, Text: "governance files may change"})
	}
	if production {
		needs = append(needs, task.Need{Kind: task.NeedProduction, Text: "production is touched"})
	}
	if above(High(estimate), limit) {
		text := fmt.Sprintf("the estimate of %s is above limits.costUSD, %s", highInWords(estimate), dollars(*limit))
		needs = append(needs, task.Need{Kind: task.NeedEstimate, Text: text})
	}
	if above(&actual, limit) {
		text := fmt.Sprintf("the %s that were spent are above limits.costUSD, %s", dollars(actual), dollars(*limit))
		needs = append(needs, task.Need{Kind: task.NeedSpent, Text: text})
	}
	return needs
}

// TierNeed is the need for an approval because of the tier.
func TierNeed(tier task.Tier) task.Need {
	return task.Need{Kind: task.NeedTier, Text: "the tier is " + string(tier)}
}

// dollars formats an amount with at least two decimals, and with more if the amount is short.
func dollars(d metric.Decimal) string {
	if text := fmt.Sprintf("%.2f", d.Float()); metric.MustDecimal(text).Cmp(d) == 0 || len(d.String()) > 12 {
		return "$" + text
	}
	return "$" + d.String()
}
