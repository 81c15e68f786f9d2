package steward

import (
	"encoding/json"
	"fmt"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/steward/task"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

// child is the workflow of a loop: it receives messages and lives as long as the loop.
func (w *week) child(ctx workflow.Context, input converter.RawValue) error {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	var doc struct{ Session map[string]string }
	require.NoError(w.t, json.Unmarshal(input.Payload().GetData(), &doc))
	w.mu.Lock()
	w.begun[id]++
	require.Equal(w.t, 1, w.begun[id], "%s was started twice", id)
	w.loops[id] = &weekLoop{status: "running", plan: doc.Session["plan"], here: true}
	w.lives(id)
	w.mu.Unlock()
	s := workflow.NewSelector(ctx)
	over := false
	for _, name := range []string{loop.MessagePause, loop.MessageContinue, loop.MessageHalt, loop.MessageSteer} {
		s.AddReceive(workflow.GetSignalChannel(ctx, name), func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			w.mu.Lock()
			w.told(id, name)
			w.mu.Unlock()
		})
	}
	s.AddReceive(workflow.GetSignalChannel(ctx, "over"), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		over = true
	})
	for !over {
		s.Select(ctx)
	}
	return nil
}

// lives makes a loop do the next thing after a while.
func (w *week) lives(id string) {
	l, run := w.loops[id], w.runs
	w.env.RegisterDelayedCallback(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if l.status == "running" && w.runs == run {
			w.does(id)
		}
	}, time.Duration(5+w.draw(id+" takes", 40))*time.Minute)
}

func (w *week) event(id, event string, gate *task.ChildGate) task.ChildEvent {
	l := w.loops[id]
	cost := metric.MustDecimal(fmt.Sprintf("%d.%02d", l.cost/100, l.cost%100))
	return task.ChildEvent{Loop: id, Event: event, Seq: l.seq, Gate: gate, Result: &task.ChildResult{
		Status: "running", Head: fmt.Sprintf("h-%s-%d", id, l.seq), Branch: "pawl/" + id, Base: "b0", Steward: "crew", Approved: "steward crew, plan " + l.plan,
		Usage: task.Usage{CostUSD: cost, ActiveMs: l.seq * 60_000},
	}}
}

// says makes a loop report something to its steward.
func (w *week) says(id, event string, gate *task.ChildGate, change func(*task.ChildResult)) {
	l := w.loops[id]
	l.seq++
	l.cost += w.draw(id+" cost", 30)
	l.last = w.event(id, event, gate)
	if change != nil {
		change(l.last.Result)
	}
	if event != task.ChildEnded || w.calm || w.draw(id+" dies", 8) > 0 { // otherwise it ends without a report
		w.env.SignalWorkflow(task.ChildSignal, l.last)
	}
	if event == task.ChildEnded {
		l.status = "ended"
		if l.here {
			require.NoError(w.t, w.env.SignalWorkflowByID(id, "over", nil))
		}
	}
}

// does makes a loop do its next thing.
func (w *week) does(id string) {
	defer func() {
		if w.loops[id].status == "running" {
			w.lives(id)
		}
	}()
	end := func(status, code, proposal string) {
		w.says(id, task.ChildEnded, nil, func(r *task.ChildResult) {
			r.Status, r.ErrorCode = status, code
			r.Proposal = &task.ChildProposal{Hash: strings.Repeat("c", 64), State: proposal}
		})
	}
	switch n := w.draw(id+" does", 20); {
	case w.calm || n < 4:
		end("completed", "", "approved")
	case n < 6:
		end("failed", "ALO_TEST_FAILED", "open")
	case n == 6:
		end("completed", "", "rejected")
	case n == 7:
		end("halted", "ALO_CANCELLED", "open")
	case n < 10:
		w.loops[id].status = "asking"
		w.says(id, task.ChildAsks, &task.ChildGate{ID: fmt.Sprintf("question-%d", w.loops[id].seq), Kind: "question", Summary: "how?"}, nil)
	default:
		w.says(id, task.IterationEnded, nil, func(r *task.ChildResult) {
			metric := metric.MustDecimal(fmt.Sprint(w.draw(id+" metric", 4)))
			r.Metric, r.Kept, r.Reason = &metric, n > 15, "no improvement"
		})
	}
}

// told applies a message to a loop.
func (w *week) told(id, message string) {
	switch l := w.loops[id]; {
	case l.status == "ended":
	case message == loop.MessageHalt:
		w.says(id, task.ChildEnded, nil, func(r *task.ChildResult) { r.Status, r.ErrorCode = "halted", "ALO_CANCELLED" })
	case message == loop.MessagePause && l.status == "running":
		l.status = "paused"
		w.says(id, task.ChildAsks, &task.ChildGate{ID: fmt.Sprintf("pause-%d", l.seq), Kind: "pause", By: loop.StewardName("crew")}, nil)
	case message == loop.MessageContinue && l.status == "paused":
		w.resumes(id)
	}
}

// resumes makes a loop continue that has paused or asked.
func (w *week) resumes(id string) {
	l := w.loops[id]
	l.status = "running"
	w.says(id, task.ChildAnswered, l.last.Gate, nil)
	w.lives(id)
}
