package steward

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
)

// A loop may complete after the iteration that used up the money and before the pause that follows.
func TestS6_ABudgetGateIsClosedWhenItsTaskNeedsNoMoreMoney(t *testing.T) {
	for name, steps := range map[string]int{"the last step": 1, "a step before the last": 2} {
		t.Run(name, func(t *testing.T) {
			c := limits()
			c.Limits.CostUSD = new(metric.MustDecimal("1"))
			o := open(t, c)
			plan := []task.Step{{ID: "one", Kind: "deliver"}}
			if steps == 2 {
				plan = append(plan, task.Step{ID: "two", Kind: "deliver", After: []string{"one"}})
			}
			o.submit(task.Task{ID: "a", Body: "x"}, task.T3, plan...)
			o.settle()
			o.child(task.ChildEvent{Loop: "s-a-one", Event: task.IterationEnded, Result: &task.ChildResult{
				Status: "running", Kept: true, Usage: task.Usage{CostUSD: metric.MustDecimal("1.5")},
			}})
			o.next(nil)
			require.Equal(t, loop.GateBudget, o.s.Gates[0].Kind)
			require.Equal(t, task.Waiting, o.s.Find("a").State)
			gate := o.s.Gates[0].ID
			o.submit(task.Task{ID: "b", Body: "x"}, task.T1)
			o.settle()
			require.Len(t, o.s.Gates, 2)
			o.end("s-a-one", "completed", "")
			o.settle()
			if steps == 2 {
				require.Equal(t, gate, o.s.Gates[0].ID, "the next step costs money")
				require.Equal(t, task.Waiting, o.s.Find("a").State)
				require.Empty(t, o.started["s-a-two"])
				return
			}
			require.Equal(t, Done, o.s.Find("a").Outcome)
			require.Len(t, o.s.Gates, 1)
			require.Equal(t, "b", o.s.Gates[0].Task, "another task's question is for a person")
			require.NotNil(t, o.s.AnswerTo(gate))
			require.Equal(t, loop.Answer{
				Gate: gate, Message: MessageSettled, By: BySteward, Note: "the loops have done every step meanwhile, so the task needs no more money",
			}, *o.s.AnswerTo(gate))
			require.ErrorContains(t, o.say(loop.MessageExtend, Message{Gate: gate}), "the gate "+gate+" is closed: settled by the steward")
		})
	}
}

// A loop may do its last iteration at the moment when the check-in is due.
func TestS8_ACheckInIsClosedWhenEveryStepIsDone(t *testing.T) {
	for name, steps := range map[string]int{"the last step": 1, "a step before the last": 2} {
		t.Run(name, func(t *testing.T) {
			o := open(t, limits())
			plan := []task.Step{{ID: "one", Kind: "deliver"}}
			if steps == 2 {
				plan = append(plan, task.Step{ID: "two", Kind: "deliver", After: []string{"one"}})
			}
			o.submit(task.Task{ID: "a", Body: "x"}, task.T3, plan...)
			o.settle()
			o.child(task.ChildEvent{Loop: "s-a-one", Event: task.IterationEnded, Result: &task.ChildResult{
				Status: "running", Kept: true, Usage: task.Usage{ActiveMs: 3600001},
			}})
			o.next(nil)
			require.Equal(t, `"a": executing for 1h0m1s without a milestone; the limit is 1h; at: iteration of one`, o.s.Gates[0].Summary)
			gate := o.s.Gates[0].ID
			o.end("s-a-one", "completed", "")
			o.settle()
			if steps == 2 {
				require.Equal(t, gate, o.s.Gates[0].ID, "a person was asked whether the rest is to be done")
				return
			}
			require.Equal(t, Done, o.s.Find("a").Outcome)
			require.Empty(t, o.s.Gates)
			require.ErrorContains(t, o.say(loop.MessageAnswer, Message{Gate: gate, Choice: Continue}), "the gate "+gate+" is closed: settled by the steward")
		})
	}
}

func TestAGateIsClosedWhenItsTaskIsCancelledWithoutAnAnswerToIt(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T1)
	o.settle()
	gate := o.s.Gates[0].ID
	require.NoError(t, o.say(loop.MessageHalt, Message{Task: id("a"), By: "ann"}))
	require.Equal(t, Cancelled, o.s.Find("a").Outcome)
	require.Equal(t, "the task is over: halted by ann", o.s.AnswerTo(gate).Note)
}

func TestS10_APlanForWhichTheLimitOfActionsLeavesNoRoomIsSaidToBe(t *testing.T) {
	said := func(steps, iterations int, after []string) (text string) {
		o := open(t, limits())
		require.Equal(t, 100, o.c.Limits.Actions)
		var plan []task.Step
		for i := range steps {
			plan = append(plan, task.Step{ID: fmt.Sprint("s", i), Kind: "deliver", After: after, Spec: fmt.Appendf(nil, `{"limits":{"iterations":%d}}`, iterations)})
		}
		o.submit(task.Task{ID: "a", Body: "x"}, task.T1, plan...)
		for len(o.s.Tasks) > 0 && o.s.Find("a").Plan == nil {
			for _, j := range o.next(nil) {
				o.job(j)
			}
		}
		for _, e := range o.events {
			if e.Type == loop.Warned {
				text += e.Reason
			}
		}
		return text
	}
	const rest = "; the limit is 100 (limits.actions). A task that exceeds it stops and asks, even if it makes progress"
	require.Empty(t, said(49, 1, nil), "one action for the plan, two for each step: 99")
	require.Equal(t, "this plan has 50 steps and takes at least 101 actions"+rest, said(50, 1, nil))
	require.Empty(t, said(33, 2, nil), "100")
	require.Equal(t, "this plan has 34 steps and may take up to 103 actions"+rest, said(34, 2, nil))
	require.Equal(t, "this plan has 49 steps and takes at least 148 actions"+rest, said(49, 1, []string{"x", "y"}), "the work of two is joined")
}

func TestWhyNothingRunsForATaskIsSaid(t *testing.T) {
	o := open(t, limits())
	doing := func(underWay ...Job) map[string]string {
		all := map[string]string{}
		for _, x := range o.s.Standing(underWay).Tasks {
			all[x.ID] = x.Standstill
		}
		return all
	}
	o.submit(task.Task{ID: "low", Body: "x"}, task.T3)
	planning := o.next(nil)
	require.Equal(t, map[string]string{"low": ""}, doing(planning...), "it is planned")
	o.submit(task.Task{ID: "high", Body: "x", Priority: 5}, task.T3)
	drop := o.next(planning)
	require.Equal(t, "gives way to high", doing()["low"], "its planner has gone")
	require.Equal(t, "high", o.s.Standing(append(planning, drop...)).Find("low").Interrupted)
	o.settle()
	require.Equal(t, map[string]string{"low": "gives way to high", "high": ""}, doing())
	o.asks("s-high-one")
	planning = o.next(nil)
	o.job(planning[0])
	planning = o.next(nil)
	require.Equal(t, Plan, planning[0].Do)
	require.Empty(t, o.s.Standing(planning).Find("low").Interrupted, "it is planned again, though the other is not over")

	o = open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T1)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	o.settle()
	o.answer("a", loop.MessageAnswer, Message{Choice: Replan})
	o.settle()
	require.Equal(t, map[string]string{"a": "waits for a free slot", "b": ""}, doing())
	o.end("s-b-one", "failed", "X")
	require.Equal(t, "waits for a free slot", doing()["b"])
	require.Empty(t, doing(Job{Do: Begin, Task: "b", Step: task.Step{ID: "one"}, Loop: "s-b-one.2"})["b"], "it is being begun")

	o = open(t, limits())
	o.s.Mode = spec.ModePlan
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	require.Equal(t, map[string]string{"a": "planned; no step begins in mode plan"}, doing())
}

// A task that was interrupted between two steps is no longer interrupted when its next step begins.
func TestS5_ATaskWhoseNextStepBeginsGivesWayToNobody(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "low", Body: "x"}, task.T3, task.Step{ID: "one", Kind: "deliver"}, task.Step{ID: "two", Kind: "deliver", After: []string{"one"}})
	o.settle()
	o.submit(task.Task{ID: "high", Body: "x", Priority: 5}, task.T3)
	jobs := o.next(nil)
	require.Equal(t, "s-low-one", jobs[0].Loop)
	o.end("s-low-one", "completed", "") // before the pause arrives
	o.settle()
	require.Equal(t, "high", o.s.Find("low").Interrupted)
	o.end("s-high-one", "completed", "")
	o.settle()
	require.Equal(t, "running", o.loops["s-low-two"])
	require.Empty(t, o.s.Find("low").Interrupted)
	require.Equal(t, task.Executing, o.s.State)
}

func TestS3_SeveralProblemsAreAList(t *testing.T) {
	asked := func(p stewardapi.TaskPlanned) loop.Gate {
		o := open(t, limits())
		o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
		plan := o.next(nil)[0]
		o.emit(AfterPlan(o.s, o.c, plan, p)...)
		require.Equal(t, []string{Replan, Cancel}, o.s.Gates[0].Choices)
		return o.s.Gates[0]
	}
	g := asked(stewardapi.TaskPlanned{Problems: []string{"one", "two\nlines"}})
	first, points := g.Listed()
	require.Equal(t, `"a": the plan is not valid:`, first)
	require.Equal(t, []string{"one", "two lines"}, points)
	require.Equal(t, `"a": the plan is not valid: one; two lines`, g.Summary)

	g = asked(stewardapi.TaskPlanned{Unclear: []string{"which page?"}, Plan: &task.Plan{Hash: "h", Steps: []task.Step{{ID: "one", Kind: "deliver"}}}, Tier: task.T3})
	require.Equal(t, `"a": the planner asks: which page?`, g.Summary, "it asks, although there is a plan")

	g = asked(stewardapi.TaskPlanned{Blockers: []string{"only one"}})
	first, points = g.Listed()
	require.Equal(t, `"a": it is blocked: only one`, first)
	require.Empty(t, points)

	g = asked(stewardapi.TaskPlanned{Problems: slices.Repeat([]string{strings.Repeat("x", 600)}, 100)})
	_, points = g.Listed()
	require.Equal(t, "and 98 more", points[len(points)-1])
	require.Less(t, len(g.Summary), 2000)
}

// A person has to answer whatever else is asked about a task whose steps are done.
func TestATaskWithAnotherQuestionWaitsAlthoughItNeedsNoMoreMoney(t *testing.T) {
	n := next{State: New("s")}
	n.Tasks = []Task{{ID: "a", State: task.Waiting, Plan: &task.Plan{Steps: []task.Step{{ID: "one"}}}, Steps: []Step{{ID: "one", Status: Over}}}}
	n.Gates = []loop.Gate{{ID: "budget-1", Kind: loop.GateBudget, Task: "a"}, {ID: "question-2", Kind: loop.GateQuestion, Task: "a"}}
	n.settle()
	require.Len(t, n.events, 1)
	require.Equal(t, "budget-1", n.events[0].Answer.Gate)
}
