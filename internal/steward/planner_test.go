package steward

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
)

// TestS8_ThePlannersTimeIsNoExecutingTime: executing time is the time that loops worked. The planner's time only
// counts in the cost of the task.
func TestS8_ThePlannersTimeIsNoExecutingTime(t *testing.T) {
	for name, p := range map[string]stewardapi.TaskPlanned{
		"planned":   {Plan: &task.Plan{Hash: "1", Steps: []task.Step{{ID: "one", Kind: "deliver"}}}, Tier: task.T3},
		"asked":     {Unclear: []string{"which page?"}},
		"exhausted": {Outcome: api.Outcome{Exhausted: loop.CostUSD}},
		"limited":   {Outcome: api.Outcome{RateLimit: &task.RateLimit{Until: time.Now().Add(time.Hour)}}},
	} {
		o := open(t, limits())
		o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
		p.Usage.ActiveMs = 2 * time.Hour.Milliseconds()
		o.emit(AfterPlan(o.s, o.c, o.next(nil)[0], p)...)
		got := o.s.Find("a")
		require.Equal(t, 1, got.Actions, name)
		require.Equal(t, p.Usage.ActiveMs, got.Cost.ActiveMs, name)
		require.Zero(t, got.Window.ExecutingMs+o.s.Indicators.ExecutingMs, name)
		require.Empty(t, got.Tripped, name)
	}
}

func TestS5_APlannerGivesWayAndNothingOfItIsLost(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "low", Body: "x"}, task.T3)
	underWay := o.next(nil)
	require.Equal(t, Plan, underWay[0].Do)
	o.submit(task.Task{ID: "same", Body: "x"}, task.T3)
	require.Empty(t, o.next(underWay), "only strictly higher priority interrupts")
	o.submit(task.Task{ID: "high", Body: "x", Priority: 5}, task.T3)
	drop := o.next(underWay)
	require.Equal(t, []Job{{Do: Drop, Task: "low"}}, drop)
	require.Equal(t, "high", o.s.Find("low").Interrupted)
	spent := task.Usage{CostUSD: metric.MustDecimal("0.25"), ActiveMs: 3000}
	o.emit(AfterPlan(o.s, o.c, underWay[0], stewardapi.TaskPlanned{Outcome: api.Outcome{Interrupted: true}, Usage: spent})...)
	low := o.s.Find("low")
	require.Equal(t, task.Planning, low.State)
	require.Equal(t, spent, low.Cost, "what it has spent counts")
	require.Zero(t, low.Actions, "and is no action")
	high := o.next(nil)
	require.Len(t, high, 1)
	require.Equal(t, "high", high[0].Task)
	o.settle()
	require.Equal(t, "running", o.loops["s-high-one"])
	o.end("s-high-one", "completed", "")
	o.settle()
	require.Equal(t, "running", o.loops["s-low-one"], "it is planned again afterwards")
	require.Empty(t, o.s.Find("low").Interrupted)
}

func TestS5_APlanThatWasMadeBeforeThePlannerGaveWayCounts(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "low", Body: "x"}, task.T3)
	planning := o.next(nil)
	o.submit(task.Task{ID: "high", Body: "x", Priority: 5}, task.T3)
	require.Equal(t, Drop, o.next(planning)[0].Do)
	o.job(planning[0])
	plan := o.s.Find("low").Plan.Hash
	o.settle()
	o.end("s-high-one", "completed", "")
	o.settle()
	require.Equal(t, "running", o.loops["s-low-one"])
	require.Equal(t, plan, o.s.Find("low").Plan.Hash, "it is not planned again")
	require.Empty(t, o.s.Find("low").Interrupted)
}

func TestAStewardThatEndsTakesNoPlan(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	planning := o.next(nil)
	require.NoError(t, o.say(loop.MessageHalt, Message{By: "ann"}))
	o.job(planning[0])
	require.Nil(t, o.s.Find("a").Plan)
}

func TestAReplanWaitsForAPlace(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T1)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	o.settle()
	o.answer("a", loop.MessageAnswer, Message{Choice: Replan})
	require.Empty(t, o.next(nil), "b has the only place")
	o.end("s-b-one", "completed", "")
	require.Equal(t, Plan, o.next(nil)[0].Do)
}

func TestS6_APlannerCostsNoMoreThanItsTaskMay(t *testing.T) {
	o := open(t, limits())
	limit := metric.MustDecimal("2")
	o.c.Limits.CostUSD = &limit
	o.submit(task.Task{ID: "a", Body: "x"}, task.T0)
	plan := o.next(nil)[0]
	require.Equal(t, "2", plan.Cap.String())
	exhausted := stewardapi.TaskPlanned{Outcome: api.Outcome{Exhausted: loop.CostUSD}, Usage: task.Usage{CostUSD: metric.MustDecimal("1.5")}}
	o.emit(AfterPlan(o.s, o.c, plan, exhausted)...)
	plan = o.next(nil)[0]
	require.Equal(t, "0.5", plan.Cap.String(), "it plans with what is left")
	exhausted.Usage.CostUSD = metric.MustDecimal("0.6")
	o.emit(AfterPlan(o.s, o.c, plan, exhausted)...)
	require.Empty(t, o.next(nil))
	require.Equal(t, loop.GateBudget, o.s.Gates[0].Kind)
	require.Equal(t, "2.1", o.s.Find("a").Cost.CostUSD.String())
}
