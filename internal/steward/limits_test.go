package steward

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/task"
)

// tally has the counts of the source's rules, from the events alone and since a person last let the task continue.
type tally struct {
	actions, noProgress, failed int
	executing                   time.Duration
	last                        map[string]string // the last result of each action
	same                        map[string]int
	errors                      map[string]int
}

// tallied counts the events of a task.
func tallied(events []loop.Event, id string) tally {
	var c tally
	begin := func() { c = tally{last: map[string]string{}, same: map[string]int{}, errors: map[string]int{}} }
	begin()
	for _, e := range events {
		switch {
		case e.Task != id:
		case e.Type == loop.GateClosed, e.Type == loop.MessageReceived && e.Message == loop.MessageContinue:
			begin()
		case e.Type == loop.ChildReported && e.Child.Event == task.ChildEnded && e.Child.Result.Status == "failed":
			c.failed++
		case e.Type == loop.ActionTaken:
			a := e.Action
			c.actions++
			c.noProgress++
			c.executing += time.Duration(a.ActiveMs) * time.Millisecond
			result := fmt.Sprint(a.Outcome, a.Reason, a.Metric, a.Tree)
			if a.Metric != nil {
				result = fmt.Sprint(a.Outcome, a.Reason, a.Metric.String(), a.Tree)
			}
			if c.last[a.Name] != result {
				c.same[a.Name] = 0
			}
			c.last[a.Name] = result
			c.same[a.Name]++
			if a.Error != "" {
				c.errors[a.Error]++
			}
			if a.Progress {
				c.noProgress, c.errors = 0, map[string]int{}
			}
			if a.Milestone {
				c.executing = 0
			}
		}
	}
	return c
}

// TestS10_NoSequenceOfEventsRunsPastALimit lets loops do anything. Whenever nothing more is to be done at once, no
// task at work exceeds one of its limits, as counted from the events alone.
func TestS10_NoSequenceOfEventsRunsPastALimit(t *testing.T) {
	stops := map[string]int{}
	for seed := range courses(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := limits()
		l := &c.Limits
		l.Parallel, l.NoProgress, l.Actions, l.SameResult, l.SameError, l.Retries = 1+r.IntN(2), 3+r.IntN(4), 8+r.IntN(8), 2+r.IntN(2), 2, 1+r.IntN(2)
		l.Executing = spec.Duration(time.Duration(10+r.IntN(20)) * time.Minute)
		o := open(t, c)
		for n := range 1 + r.IntN(3) {
			o.submit(task.Task{ID: fmt.Sprint("t", n), Body: "b"}, task.T3, task.Step{ID: "x", Kind: "improve"}, task.Step{ID: "y", Kind: "deliver"})
		}
		active := map[string]int64{}
		for range 80 {
			o.settle()
			for _, at := range o.s.Tasks {
				if at.State != task.Executing || at.Outcome != "" {
					continue
				}
				c := tallied(o.events, at.ID)
				require.LessOrEqual(t, c.actions, l.Actions, "seed %d: %s", seed, at.ID)
				require.LessOrEqual(t, c.noProgress, l.NoProgress, "seed %d: %s", seed, at.ID)
				require.LessOrEqual(t, c.executing, l.Executing.D(), "seed %d: %s", seed, at.ID)
				require.LessOrEqual(t, c.failed, len(at.Plan.Steps)*(l.Retries+1), "seed %d: %s", seed, at.ID)
				for name, n := range c.same {
					require.LessOrEqual(t, n, l.SameResult, "seed %d: %s: %s", seed, at.ID, name)
				}
				for text, n := range c.errors {
					require.LessOrEqual(t, n, l.SameError, "seed %d: %s: %s", seed, at.ID, text)
				}
			}
			var running []string
			for id, status := range o.loops {
				if status == "running" {
					running = append(running, id)
				}
			}
			slices.Sort(running)
			switch {
			case len(running) > 0 && r.IntN(12) > 0:
				id := running[r.IntN(len(running))]
				active[id] += int64(r.IntN(8 * 60_000))
				metric := metric.MustDecimal(fmt.Sprint(r.IntN(3)))
				result := &task.ChildResult{Status: "running", Kept: r.IntN(4) == 0, Metric: &metric, Tree: fmt.Sprint(r.IntN(3)), Reason: []string{"no improvement", "error:agent"}[r.IntN(2)], Usage: task.Usage{ActiveMs: active[id]}}
				event := task.IterationEnded
				if r.IntN(6) == 0 {
					event, result.Status, o.loops[id] = task.ChildEnded, []string{"failed", "completed"}[r.IntN(2)], "ended"
					if result.Status == "failed" {
						result.ErrorCode = "ALO_TEST_FAILED"
					}
				}
				o.child(task.ChildEvent{Loop: id, Event: event, Result: result})
			case len(o.s.Gates) > 0:
				g := o.s.Gates[r.IntN(len(o.s.Gates))]
				stops[o.s.Find(g.Task).Tripped]++
				o.answer(g.Task, loop.MessageAnswer, Message{Gate: g.ID, Choice: []string{Continue, Replan, Cancel}[r.IntN(3)]})
			}
		}
	}
	if courses(400) < 400 {
		return // too few courses to reach every rule
	}
	for _, rule := range []string{"noProgress", "actions", "sameResult", "sameError", "executing", "retries"} {
		require.NotZero(t, stops[rule], "no course came to it: %v", stops)
	}
}
