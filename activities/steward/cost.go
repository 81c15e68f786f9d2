package steward

import (
	"context"
	"fmt"
	"slices"

	"pawl/activities/workspace"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/lib/list"
	"pawl/internal/steward"
	"pawl/internal/steward/risk"
	"pawl/internal/steward/task"
)

// maxPast is how many past ledgers an estimate reads, of stewards and of loops.
const maxPast = 100

// estimate returns an estimate from the costs of similar tasks: tasks that this steward, now or under an earlier run
// on this host, did in steps of the same kinds. For a plan of one step it also uses loops of that kind in this
// repository that no steward started.
func (p *planning) estimate(ctx context.Context, plan task.Plan) (task.Cost, error) {
	kinds := kindsOf(plan.Steps)
	past, err := costs(ctx, p.Workspace, p.state, p.in.Ledger, kinds)
	if err != nil {
		return task.Cost{}, err
	}
	earlier, err := closed(ctx, p.Workspace, func(r hostrecord.Record) bool { return r.Steward() && r.Loop == p.in.Steward })
	if err != nil {
		return task.Cost{}, err
	}
	for _, head := range earlier {
		s, err := ledger.OpenSteward(p.Workspace.Objects).State(ctx, head)
		if err != nil {
			continue // the ledger was cleaned away
		}
		usages, err := costs(ctx, p.Workspace, s, head, kinds)
		if err != nil {
			return task.Cost{}, err
		}
		past = append(past, usages...)
	}
	if len(kinds) == 1 {
		loops, err := pastLoops(ctx, p.Workspace, kinds[0])
		if err != nil {
			return task.Cost{}, err
		}
		past = append(past, loops...)
	}
	cost := risk.Estimate(past)
	return risk.WithPlanned(cost, plan.Cost), nil
}

func kindsOf(steps []task.Step) (kinds []string) {
	kinds = list.Map(steps, func(s task.Step) string { return s.Kind })
	slices.Sort(kinds)
	return kinds
}

// costs returns the costs of a steward's tasks that were done in steps of those kinds, from its ledger at head. The
// PLAN.md of a finished task says which steps it had.
func costs(ctx context.Context, ws *workspace.Workspace, s steward.State, head string, kinds []string) (usages []task.Usage, err error) {
	done := slices.DeleteFunc(slices.Clone(s.Tasks), func(t steward.Task) bool { return t.Outcome != steward.Done || t.Plan == nil })
	names := list.Map(done, func(t steward.Task) string { return ledger.TaskPlanFile(t.ID) })
	if len(names) == 0 {
		return nil, nil
	}
	files, err := ws.Objects.ReadLedger(ctx, head, names...)
	if err != nil {
		return nil, fmt.Errorf("reading the plans of earlier tasks: %w", err)
	}
	for i, t := range done {
		if plan, err := task.ParsePlan(files[names[i]]); err == nil && slices.Equal(kindsOf(plan.Steps), kinds) {
			usages = append(usages, t.Cost)
		}
	}
	return usages, nil
}

// closed returns the heads of the ledgers in this store that have ended on this host, the last one first.
func closed(ctx context.Context, ws *workspace.Workspace, matches func(hostrecord.Record) bool) (heads []string, err error) {
	records, err := hostrecord.List(ws.Machine.Home)
	if err != nil {
		return nil, fmt.Errorf("listing this host's loops: %w", err)
	}
	records = slices.DeleteFunc(records, func(r hostrecord.Record) bool { return r.Store != ws.Store || !r.Closed || !matches(r) })
	slices.SortFunc(records, func(a, b hostrecord.Record) int { return b.ClosedAt.Compare(a.ClosedAt) })
	for _, r := range records[:min(len(records), maxPast)] {
		head, err := ws.Objects.Ref(ctx, r.Ledger)
		if err == nil && head != "" { // otherwise it had recorded nothing, or was cleaned away
			heads = append(heads, head)
		}
	}
	return heads, nil
}

// pastLoops returns the costs of this host's loops of a kind in this repository that no steward started.
func pastLoops(ctx context.Context, ws *workspace.Workspace, kind string) (usages []task.Usage, err error) {
	heads, err := closed(ctx, ws, func(r hostrecord.Record) bool { return !r.Steward() })
	if err != nil {
		return nil, err
	}
	for _, head := range heads {
		book := ledger.Open(ws.Objects)
		s, err := book.State(ctx, head)
		if err != nil || s.Kind != kind || s.Status != "completed" {
			continue
		}
		if c, err := book.Contract(ctx, head); err != nil || c.Spec.Session["steward"] != "" {
			continue
		}
		usages = append(usages, s.Usage.OfTask())
	}
	return usages, nil
}
