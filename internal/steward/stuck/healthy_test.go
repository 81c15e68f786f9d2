package stuck_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
	"pawl/internal/steward/stuck"
	"pawl/internal/steward/task"
	"pawl/test/harness/tier"
)

// move is one thing that happens to a task: an action, or that it enters a state.
type move struct {
	action *task.Action
	state  task.State
}

func (m move) apply(w stuck.Window) stuck.Window {
	if m.action != nil {
		return w.Add(*m.action)
	}
	return w.Entered(m.state)
}

// healthy simulates a task that makes progress. In the terms of the source, a task is healthy if:
//
//   - at most 9 actions pass before an iteration is kept or a step is finished. Most of them fail, with different trees
//     and metrics, but with the same few reasons and errors;
//   - a step is finished within 55 minutes of executing time;
//   - a step that failed is tried again, up to the 3 retries of a task, and each start has the number of its try;
//   - a command may run again with the same result, at most 3 times before it has another result;
//   - an error occurs up to 5 times before there is progress;
//   - a new plan is only made after progress under the last one;
//   - it asks people at any time, and may wait for days;
//   - it has at most 100 actions.
func healthy(r *rand.Rand) (moves []move) {
	actions, sinceProgress, errors := 0, 0, map[string]int{}
	act := func(a task.Action) bool {
		if actions >= 100 || !a.Progress && sinceProgress >= 9 {
			return false
		}
		actions, sinceProgress = actions+1, sinceProgress+1
		if a.Progress {
			sinceProgress, errors = 0, map[string]int{}
		}
		moves = append(moves, move{action: &a})
		if r.IntN(6) == 0 { // a person is asked, and the task continues as before
			moves = append(moves, move{state: task.Waiting}, move{state: task.Executing})
		}
		return true
	}
	number := func() *metric.Decimal {
		d := metric.MustDecimal(fmt.Sprintf("%d.%02d", r.IntN(100), r.IntN(100)))
		return &d
	}
	enter := func(s ...task.State) {
		for _, s := range s {
			moves = append(moves, move{state: s})
		}
	}
	enter(task.Planning)
	if r.IntN(3) == 0 {
		enter(task.Waiting)
	}
	enter(task.Executing)
	retries, checked := 0, 0
	for step := range 1 + r.IntN(14) {
		name := fmt.Sprintf("s%d", step)
		for try := 1; ; try++ {
			act(task.Action{What: task.StepStarted, Name: "step " + name, Step: name, Outcome: "started", Reason: fmt.Sprintf("try %d", try)})
			for range r.IntN(12) {
				a := task.Action{What: task.Iterated, Name: "iteration of " + name, Step: name, Outcome: "discarded", Reason: "guard-failed", Metric: number(), Tree: fmt.Sprintf("%x", r.Uint64())}
				a.ActiveMs = int64(r.IntN(30_000))
				switch r.IntN(5) {
				case 0, 1:
					a.Outcome, a.Reason, a.Progress = "kept", "", true
				case 2:
					if errors["timeout"] < 5 {
						errors["timeout"]++
						a.Outcome, a.Error = "error", "timeout"
					}
				}
				act(a)
			}
			if retries == 3 || r.IntN(8) > 0 {
				break
			}
			retries++
		}
		outcome := "ok"
		if checked%4 == 3 {
			outcome = "ok, with warnings"
		}
		if act(task.Action{What: task.Commanded, Name: "git fetch", Outcome: outcome}) {
			checked++
		}
		if !act(task.Action{What: task.Iterated, Name: "end of " + name, Step: name, Outcome: "done", Tree: fmt.Sprintf("%x", r.Uint64()), Progress: true, Milestone: true, ActiveMs: int64(r.IntN(20 * 60_000))}) {
			return moves
		}
		if r.IntN(10) == 0 {
			enter(task.Planning, task.Executing)
		}
	}
	return moves
}

// TestS8_NoFalseAlarmIn10000HealthyTasks checks that no rule stops a healthy task after any of its moves. Without
// -tags nightly it runs the first tenth of the tasks.
func TestS8_NoFalseAlarmIn10000HealthyTasks(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2026))
	actions, longest, tasks := 0, 0, 1_000
	if tier.Nightly {
		tasks = 10_000
	}
	for n := range tasks {
		var w stuck.Window
		for i, m := range healthy(r) {
			w = m.apply(w)
			for _, f := range stuck.Check(w, limits, task.Executing) {
				require.False(t, f.Stop, "task %d, move %d: %s", n, i, f.Text)
			}
		}
		actions, longest = actions+w.Actions, max(longest, w.Actions)
	}
	require.Greater(t, actions, 20*tasks, "the tasks are worth the name")
	require.Equal(t, 100, longest)
}

// TestS8_EveryPlantedCircleIsFoundAtTheSourcesCount adds each kind of circle after some part of a healthy task. It
// must be found at the action that the source names, and not at the one before.
func TestS8_EveryPlantedCircleIsFoundAtTheSourcesCount(t *testing.T) {
	unlike := func(i int) task.Action { return other(-1 - i) }
	for _, c := range []struct {
		rule   string
		circle func(i int) move
		after  int // the number of its moves, counted from the last progress
	}{
		{stuck.NoProgress, func(i int) move { a := unlike(i); return move{action: &a} }, 11},
		{stuck.SameResult, func(i int) move {
			a := task.Action{Name: "the same", Outcome: "failed", Progress: i%2 == 0} // progress does not hide it
			return move{action: &a}
		}, 4},
		{stuck.SameError, func(i int) move { a := unlike(i); a.Error = "no key"; return move{action: &a} }, 6},
		{stuck.TooManyActions, func(i int) move { a := unlike(i); a.Progress = true; return move{action: &a} }, 0},
		{stuck.Executing, func(i int) move {
			a := unlike(i)
			a.Progress, a.ActiveMs = true, time.Minute.Milliseconds()
			return move{action: &a}
		}, 61},
		{stuck.Replan, func(i int) move { return move{state: []task.State{task.Planning, task.Executing}[i%2]} }, 1},
		{stuck.Cycle, func(i int) move { return move{state: []task.State{task.Idle, task.Planning}[i%2]} }, 4},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r := rand.New(rand.NewPCG(9, uint64(len(c.rule))))
			for range 300 {
				var w stuck.Window
				moves := healthy(r)
				for _, m := range moves[:r.IntN(min(len(moves), 30))] { // short enough for 61 more actions
					w = m.apply(w)
				}
				w = w.Entered(task.Executing).Add(task.Action{Name: "milestone", Outcome: "done", Progress: true, Milestone: true, Tree: fmt.Sprint(r.Uint64())})
				w = w.Entered(task.Planning).Entered(task.Executing) // under a plan without progress
				expected := c.after
				if c.rule == stuck.TooManyActions {
					expected = 101 - w.Actions
				}
				for i := 0; ; i++ {
					require.NotContains(t, rules(w), c.rule, "after %d", i)
					require.Less(t, i, expected)
					w = c.circle(i).apply(w)
					if i+1 == expected {
						require.Contains(t, rules(w), c.rule)
						break
					}
				}
			}
		})
	}
}
