package activities

import (
	"context"
	"fmt"
	"slices"

	"pawl/internal/assess"
	"pawl/internal/ledger"
	"pawl/internal/steward"
	"pawl/internal/task"
	"pawl/internal/workspace"
)

// maxPast bounds how many loops of the past an estimate reads.
const maxPast = 100

// estimate is what like tasks have cost: those of this steward that were done in steps of the same
// kinds and, for a plan of one step, the loops of that kind in this repository that nobody looked
// after.
func (p *planning) estimate(ctx context.Context, plan task.Plan) (task.Cost, error) {
	kinds := kindsOf(plan.Steps)
	var past []task.Usage
	for _, t := range p.state.Tasks {
		if t.Outcome == steward.Done && t.Plan != nil && slices.Equal(kindsOf(t.Plan.Steps), kinds) {
			past = append(past, t.Cost)
		}
	}
	if len(kinds) == 1 {
		loops, err := p.ws.past(ctx, kinds[0])
		if err != nil {
			return task.Cost{}, err
		}
		past = append(past, loops...)
	}
	cost := assess.Estimate(past)
	if cost.N == 0 && plan.Cost != nil {
		cost.Median = plan.Cost.Median
	}
	return cost, nil
}

func kindsOf(steps []task.Step) (kinds []string) {
	for _, s := range steps {
		kinds = append(kinds, s.Kind)
	}
	slices.Sort(kinds)
	return kinds
}

// past is what the loops of a kind have cost that this host has had in this repository, and that no
// steward has started.
func (ws *loopWorkspace) past(ctx context.Context, kind string) (all []task.Usage, err error) {
	records, err := workspace.List(ws.machine.Home)
	if err != nil {
		return nil, fmt.Errorf("listing this host's loops: %w", err)
	}
	records = slices.DeleteFunc(records, func(r workspace.Record) bool { return r.Store != ws.Store || !r.Closed || r.Steward() })
	slices.SortFunc(records, func(a, b workspace.Record) int { return b.ClosedAt.Compare(a.ClosedAt) })
	for _, r := range records[:min(len(records), maxPast)] {
		head, err := ws.store.Ref(ctx, r.Ledger)
		if err != nil || head == "" {
			continue // it had recorded nothing, or somebody has cleaned it away
		}
		book := ledger.Open(ws.store)
		s, err := book.State(ctx, head)
		if err != nil || s.Kind != kind || s.Status != "completed" {
			continue
		}
		if c, err := book.Contract(ctx, head); err != nil || c.Spec.Session["steward"] != "" {
			continue
		}
		u := s.Usage
		all = append(all, task.Usage{CostUSD: u.CostUSD, Tokens: u.InputTokens + u.OutputTokens, ActiveMs: u.ActiveMs, ToolCalls: int(u.ToolCalls)})
	}
	return all, nil
}
