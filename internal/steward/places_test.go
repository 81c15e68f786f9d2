package steward

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
)

// floor is a steward whose jobs take time: other things happen between their beginning and their end.
type floor struct {
	*office
	r        *rand.Rand
	underWay []Job
	caps     map[string]metric.Decimal // the caps of the loops that were started
	spent    map[string]metric.Decimal
}

// issue asks for jobs, and checks that everything that runs has a slot and money.
func (f *floor) issue() {
	for {
		events, jobs := Next(f.s, f.c, f.underWay)
		if len(events) == 0 {
			for _, j := range jobs {
				require.NotContains(f.t, keys(f.underWay), j.Key(), "it is under way")
				f.underWay = append(f.underWay, j)
			}
			return
		}
		f.emit(events...)
	}
}

func keys(jobs []Job) (all []string) {
	for _, j := range jobs {
		all = append(all, j.Key())
	}
	return all
}

// finish ends one of the jobs under way.
func (f *floor) finish() {
	j := f.underWay[f.r.IntN(len(f.underWay))]
	without := func(key string) {
		f.underWay = slices.DeleteFunc(f.underWay, func(k Job) bool { return k.Key() == key })
	}
	without(j.Key())
	switch j.Do {
	case Begin:
		if Stopped(f.s, f.c, j) != nil {
			return
		}
		if j.Cap != nil {
			f.caps[j.Loop] = *j.Cap
		}
		f.job(j)
	case Drop:
		plan := j
		plan.Do = Plan
		without(plan.Key())
		f.emit(AfterPlan(f.s, f.c, plan, stewardapi.TaskPlanned{Outcome: api.Outcome{Interrupted: true}})...)
	default:
		f.job(j)
	}
}

// check checks that the floor keeps its limits.
func (f *floor) check(seed uint64) {
	runs := 0
	for _, status := range f.loops {
		if status == "running" {
			runs++
		}
	}
	for _, j := range f.underWay {
		if j.Do == Plan {
			runs++
		}
	}
	require.LessOrEqual(f.t, runs, f.c.Limits.Parallel, "seed %d", seed)
	for _, t := range f.s.Tasks {
		limit := f.c.Limits.CostUSD
		if t.CostLimit != nil {
			limit = t.CostLimit
		}
		promised := t.Cost.CostUSD
		for _, id := range t.Loops {
			if f.loops[id] != "ended" {
				promised = promised.Add(f.caps[id].Sub(f.spent[id]))
			}
		}
		if promised.Cmp(*limit) > 0 {
			require.Fail(f.t, "more is promised than there is", "seed %d: %s of %s, %s", seed, promised, limit, t.ID)
		}
	}
}

// TestWhatRunsNeverExceedsItsPlacesNorItsMoney runs a steward with parallel tasks of several priorities. Their loops
// ask, spend, fail and end at any time, and people replan, pause and extend.
func TestWhatRunsNeverExceedsItsPlacesNorItsMoney(t *testing.T) {
	for seed := range courses(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := limits()
		c.Limits.Parallel = 1 + r.IntN(3)
		money := metric.MustDecimal(fmt.Sprint(1 + r.IntN(9)))
		c.Limits.CostUSD = &money
		f := &floor{office: open(t, c), r: r, caps: map[string]metric.Decimal{}, spent: map[string]metric.Decimal{}}
		for n := range 1 + r.IntN(4) {
			steps := []task.Step{{ID: "x", Kind: "improve"}, {ID: "y", Kind: "improve"}, {ID: "w", Kind: "improve", After: []string{"x"}}, {ID: "z", Kind: "deliver", After: []string{"w", "y"}}}
			f.submit(task.Task{ID: fmt.Sprint("t", n), Body: "b", Priority: r.IntN(3)}, []task.Tier{task.T0, task.T3, task.T2}[r.IntN(3)], steps...)
		}
		for range 300 {
			f.issue()
			f.check(seed)
			if len(f.underWay) > 0 && r.IntN(2) == 0 {
				f.finish()
				f.check(seed)
				continue
			}
			f.happens()
			f.check(seed)
		}
	}
}

// happens lets a loop or a person do something.
func (f *floor) happens() {
	var at []string
	for id, status := range f.loops {
		if status == "running" || status == "asking" {
			at = append(at, id)
		}
	}
	slices.Sort(at)
	if len(at) > 0 && f.r.IntN(4) > 0 {
		id := at[f.r.IntN(len(at))]
		if f.loops[id] == "asking" {
			f.answerAt(id)
			return
		}
		spends := f.caps[id].Sub(f.spent[id]).Share(1 + f.r.IntN(3))
		used := func() task.Usage {
			f.spent[id] = f.spent[id].Add(spends)
			return task.Usage{CostUSD: f.spent[id]}
		}
		switch f.r.IntN(5) {
		case 0:
			f.asks(id)
		case 1:
			f.loops[id] = "ended"
			f.child(task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{Status: "completed", Head: "h-" + id, Usage: used()}})
		case 2:
			f.loops[id] = "ended"
			code := []string{"BUDGET_EXHAUSTED", "ALO_TEST_FAILED"}[f.r.IntN(2)]
			f.child(task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{Status: "failed", ErrorCode: code, Head: "k-" + id, Branch: id, Usage: used()}})
		default:
			f.child(task.ChildEvent{Loop: id, Event: task.IterationEnded, Result: &task.ChildResult{Kept: f.r.IntN(2) == 0, Reason: fmt.Sprint(f.r.IntN(9)), Usage: used()}})
		}
		return
	}
	if len(f.s.Gates) > 0 && f.r.IntN(2) == 0 {
		g := f.s.Gates[f.r.IntN(len(f.s.Gates))]
		switch {
		case g.Kind == GateTier:
			f.answer(g.Task, loop.MessageApprove, Message{Gate: g.ID, Hash: g.Hash, By: "me"})
		case g.Kind == loop.GateBudget:
			more := f.s.Find(g.Task).Cost.CostUSD.Add(metric.MustDecimal("2"))
			f.answer(g.Task, loop.MessageExtend, Message{Gate: g.ID, Hash: g.Hash, Limits: []byte(`{"costUSD":` + more.String() + `}`)})
		default:
			f.answer(g.Task, loop.MessageAnswer, Message{Gate: g.ID, Choice: []string{Continue, Replan}[f.r.IntN(2)]})
		}
		return
	}
	if t := f.s.Tasks[f.r.IntN(len(f.s.Tasks))]; t.Outcome == "" {
		_ = f.say([]string{loop.MessagePause, loop.MessageContinue, MessageInterrupt, loop.MessageHalt}[f.r.IntN(4)], Message{Task: id(t.ID)})
	}
}
