package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
)

// steward measures a steward with n tasks in its queue and a number of loops that wait for a person: memory, history,
// and the time to submit a task and to answer a question, at the beginning and at the end.
func (b *bench) steward(n, waiting int) error {
	p, err := b.place(nil)
	if err != nil {
		return err
	}
	return b.serving(p, func(c client.Client, pid int) error {
		return crew{c: c, ctx: context.Background()}.measure(p, pid, n, waiting)
	})
}

// measure does so with the service of the process pid.
func (s crew) measure(p place, pid, n, waiting int) error {
	before := resident(pid)
	doc, err := json.Marshal(map[string]any{
		"kind": "steward", "name": "crew", "repo": map[string]any{"path": p.repo}, "limits": map[string]any{"queue": 100000, "parallel": 4},
		"defaults": map[string]any{
			"scope": []string{"n"}, "verify": map[string]any{"command": "cat n"}, "agent": map[string]any{"command": agent},
			"approvals": map[string]any{"diff": "auto", "tools": []string{"*"}}, "breakpoints": []string{"precheck"}, "limits": map[string]any{"iterations": 1},
		},
	})
	if err != nil {
		return err
	}
	if _, err := s.c.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{ID: "crew", TaskQueue: api.TaskQueue}, "Steward", json.RawMessage(doc)); err != nil {
		return err
	}

	const asked = 20
	plan := []task.Step{{ID: "x", Kind: "improve"}}
	ask := func(name string) (float64, error) { // submits tasks that wait for an approval, and cancels them
		var took []float64
		for i := range asked {
			id := fmt.Sprintf("%s-%d", name, i)
			if _, err := s.submit(task.Task{ID: id, Body: "x", Tier: task.T1, Plan: plan, Priority: 9}); err != nil {
				return 0, err
			}
			if err := s.until(func(s steward.State) bool {
				return slices.ContainsFunc(s.Gates, func(g loop.Gate) bool { return g.Task == id }) // the state shows only the first hundred tasks
			}); err != nil {
				return 0, err
			}
			ms, err := s.tell("answer", map[string]any{"task": id, "choice": "cancel"})
			if err != nil {
				return 0, err
			}
			took = append(took, ms)
		}
		return median(took), nil
	}
	firstAnswer, err := ask("first")
	if err != nil {
		return err
	}
	if _, err := s.tell("hold", map[string]any{}); err != nil {
		return err
	}
	var took []float64
	started := time.Now()
	for i := range n {
		t := task.Task{ID: fmt.Sprintf("t%d", i), Title: "Mend it", Body: "It is broken.", Plan: plan}
		if i >= waiting {
			t.After = []string{"t0"}
		}
		ms, err := s.submit(t)
		if err != nil {
			return err
		}
		took = append(took, ms)
	}
	filled := time.Since(started)
	few := min(asked, n)
	first, last := median(took[:few]), median(took[n-few:])
	queued := resident(pid)
	events, bytes, runs, err := s.history()
	if err != nil {
		return err
	}
	fmt.Printf("| a steward with %d tasks in its queue | %.0f MiB more than without (%.0f MiB), handed in one after the other in %.1f s |\n",
		n, float64(queued-before)/(1<<20), float64(before)/(1<<20), filled.Seconds())
	fmt.Printf("| history of a steward per task that is handed in | %.1f events, %.1f KiB, %d runs |\n", events/float64(n), bytes/float64(n)/1024, runs)
	fmt.Printf("| `submit` with %d tasks in the queue, against none | %.2f× (%.1f ms against %.1f ms) |\n", n, last/first, last, first)

	if _, err := s.tell("resume", map[string]any{}); err != nil {
		return err
	}
	started = time.Now()
	if err := s.until(func(s steward.State) bool { return s.QueueCount <= n-waiting && s.State == task.Waiting }); err != nil {
		return err
	}
	fmt.Printf("| %d loops of a steward that wait, beside %d tasks in its queue | %.0f MiB more than before, planned and started in %.1f s |\n",
		waiting, n-waiting, float64(resident(pid)-queued)/(1<<20), time.Since(started).Seconds())
	lastAnswer, err := ask("last")
	if err != nil {
		return err
	}
	fmt.Printf("| an answer then, against an answer to an empty steward | %.2f× (%.1f ms against %.1f ms) |\n", lastAnswer/firstAnswer, lastAnswer, firstAnswer)
	size, err := sh(p.dir, "du -sk "+filepath.Join(p.home, "stores")+" | cut -f1")
	if err != nil {
		return err
	}
	fmt.Printf("| its store on the disk | %s KiB |\n", string(size[:len(size)-1]))
	return nil
}

// crew is the steward that is measured.
type crew struct {
	c   client.Client
	ctx context.Context
}

// tell sends a message as an update, and returns how many milliseconds the answer took.
func (s crew) tell(name string, message any) (float64, error) {
	from := time.Now()
	u, err := s.c.UpdateWorkflow(s.ctx, client.UpdateWorkflowOptions{WorkflowID: "crew", UpdateName: name, Args: []any{message}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = u.Get(s.ctx, nil)
	}
	return float64(time.Since(from).Microseconds()) / 1000, err
}

func (s crew) submit(t task.Task) (float64, error) {
	return s.tell("submit", map[string]any{"task": t})
}

func (s crew) until(is func(steward.State) bool) error {
	for end := time.Now().Add(10 * time.Minute); ; {
		var now steward.State
		v, err := s.c.QueryWorkflow(s.ctx, "crew", "", "state")
		if err == nil {
			err = v.Get(&now)
		}
		// While the steward starts loops as fast as it can, the engine may answer no query for ten seconds.
		if late := new(serviceerror.DeadlineExceeded); err != nil && !errors.As(err, &late) {
			return err
		}
		if err == nil && is(now) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the steward does not get there: %d tasks, %d in the queue, %s", now.TasksCount, now.QueueCount, now.State)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// history returns how many events and bytes all runs of the steward have.
func (s crew) history() (events, bytes float64, runs int, err error) {
	for run := ""; ; runs++ {
		d, err := s.c.DescribeWorkflowExecution(s.ctx, "crew", run)
		if err != nil {
			return 0, 0, 0, err
		}
		info := d.GetWorkflowExecutionInfo()
		events, bytes = events+float64(info.GetHistoryLength()), bytes+float64(info.GetHistorySizeBytes())
		h := s.c.GetWorkflowHistory(s.ctx, "crew", info.GetExecution().GetRunId(), false, 0)
		if !h.HasNext() {
			return events, bytes, runs + 1, nil
		}
		e, err := h.Next()
		if err != nil {
			return 0, 0, 0, err
		}
		if run = e.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); run == "" {
			return events, bytes, runs + 1, nil
		}
	}
}
