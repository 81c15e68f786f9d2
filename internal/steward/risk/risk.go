// Package risk says how risky a task is and what it may cost (S3, S4): its tier by rules, with the reasons; an
// estimate from the costs of similar tasks; whether a person has to approve its plan; and which commands the plan may
// use. It is pure: it reads no file and runs nothing, and gets the project as a list of file names. Start at Assess,
// then Rules.
package risk

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"pawl/internal/spec"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// Work is what the assessment of a task needs.
type Work struct {
	Task     task.Task   // its title and body; its tier is set by a person
	Specs    []spec.Spec // the specs of its plan's loops, with the charter's defaults
	Files    []string    // all files of the project at the base
	Planner  task.Tier   // the tier in PLAN.md, "" for none
	Estimate task.Cost
}

// Who set a tier.
const (
	ByRules   = "rules"
	ByPlanner = "planner"
	ByPerson  = "a person"
)

// Assessment is the result.
type Assessment struct {
	Tier       task.Tier
	By         string            // ByRules, ByPlanner or ByPerson
	Why        []task.TierReason // each rule that matched, the strictest first
	Governs    bool              // it may change governance files
	Production bool              // it touches production
}

// Assess returns the tier of a task (S3): the strictest that any rule gives. The planner may only raise it; a person
// may set it to any tier. Governs and Production always follow the rules, whoever sets the tier.
func Assess(c charter.Charter, w Work) Assessment {
	r := reachOf(c, w)
	var found []task.TierReason
	for _, rule := range Rules {
		if names := rule.matches(r); len(names) > 0 {
			found = append(found, task.TierReason{Tier: rule.Tier, Rule: rule.Name, Text: rule.sentence(names)})
		}
	}
	for i, rule := range c.Tiers {
		if names := r.ruled(rule); len(names) > 0 {
			found = append(found, task.TierReason{Tier: rule.Tier, Rule: fmt.Sprintf("tiers[%d]", i), Text: some(names) + ": the charter's own rule"})
		}
	}
	if len(found) == 0 {
		found = append(found, task.TierReason{Tier: task.T3, Rule: "otherwise", Text: "no rule matched"})
		if r.harmless() {
			found[0] = task.TierReason{Tier: task.T0, Rule: "documentation", Text: "nothing but documentation and tests may change"}
		}
	} else if !r.harmless() && !slices.ContainsFunc(found, func(r task.TierReason) bool { return r.Tier != task.T0 }) {
		found = append(found, task.TierReason{Tier: task.T3, Rule: "otherwise", Text: "more than documentation and tests may change"})
	}
	slices.SortStableFunc(found, func(a, b task.TierReason) int { return Rank(b.Tier) - Rank(a.Tier) })
	a := Assessment{Tier: found[0].Tier, By: ByRules, Why: found}
	for _, reason := range found {
		a.Governs = a.Governs || reason.Rule == Governance
		a.Production = a.Production || reason.Rule == Production
	}
	if Rank(w.Planner) > Rank(a.Tier) {
		a.Tier, a.By = w.Planner, ByPlanner
		a.Why = slices.Insert(a.Why, 0, task.TierReason{Tier: a.Tier, Text: "the planner has raised it"})
	}
	if w.Task.Tier != "" {
		a.Tier, a.By = w.Task.Tier, ByPerson
		a.Why = slices.Insert(a.Why, 0, task.TierReason{Tier: a.Tier, Text: "a person has set it"})
	}
	return a
}

// Rank returns the position of a tier in task.Tiers: T1, the strictest, is the highest. An unknown tier is below all.
func Rank(t task.Tier) int { return slices.Index(task.Tiers, t) }

// some returns the first few names that matched, quoted if they can't be shown on one line: others have chosen them.
func some(names []string) string {
	const most = 5
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) || len(name) > 200 {
			name = strconv.Quote(name[:min(len(name), 200)])
		}
		shown = append(shown, name)
	}
	text := strings.Join(shown, ", ")
	if further := len(names) - len(shown); further > 0 {
		text += fmt.Sprintf(" and %d more", further)
	}
	return text
}
