package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
)

// retryEvery is how often a service that does not answer is asked again.
const retryEvery = 200 * time.Millisecond

// News is what is new in a loop, or the error that nobody answers for it.
type News struct {
	State  loop.State
	Events []loop.Event
	Err    error

	Trouble string    // what fails and is tried again, if there is no other news
	Live    *api.Live // what the running step has spent and waits for, if there is no other news
}

// Watch asks a loop for news until ctx ends, at that interval. It asks for the events first, and for the state
// only if there are new events, so waiting costs almost nothing.
func (c *Client) Watch(ctx context.Context, id string, interval time.Duration) <-chan News {
	out := make(chan News)
	go func() {
		knownSeq, quiet := int64(-1), 0
		for {
			u, seq := c.News(ctx, id, knownSeq)
			if quiet++; u != nil {
				quiet = 0
			} else if quiet%troubleEvery == 0 {
				u = c.underWay(ctx, id)
			}
			if u != nil {
				select {
				case out <- *u:
				case <-ctx.Done():
					return
				}
			}
			knownSeq = seq
			select {
			case <-ctx.Done():
				return
			case <-time.After(interval):
			}
		}
	}()
	return out
}

// troubleEvery is the number of times without news after which Watch checks for trouble.
const troubleEvery = 10

// underWay returns what keeps the loop from continuing, or what the running step has spent; nil for nothing. The loop
// itself knows neither, because the service retries its activities. For example, somebody has to learn that the disk
// is full.
func (c *Client) underWay(ctx context.Context, id string) *News {
	d, err := c.asked(ctx, id)
	if err != nil {
		return nil
	}
	if trouble := c.troubleOf(ctx, d); trouble != "" {
		return &News{Trouble: trouble}
	}
	if live, runs := liveOf(d); runs {
		return &News{Live: &live}
	}
	return nil
}

// liveOf returns what the running agent call has spent and what a step waits for, from their heartbeats; false if no step
// reports any. The loop books what was spent when the step has ended (A8).
func liveOf(d *workflowservice.DescribeWorkflowExecutionResponse) (live api.Live, runs bool) {
	for _, a := range d.GetPendingActivities() {
		var reported api.Live
		if a.GetHeartbeatDetails() == nil || converter.GetDefaultDataConverter().FromPayloads(a.GetHeartbeatDetails(), &reported) != nil {
			continue
		}
		if runs = true; a.GetActivityType().GetName() == api.CallName {
			live.Usage = reported.Usage
		}
		live.WaitsFor = cmp.Or(live.WaitsFor, reported.WaitsFor)
	}
	return live, runs
}

// Live returns the state for people, including what the running step has spent and waits for.
func (c *Client) Live(ctx context.Context, id string, state loop.State) loop.State {
	if state.Status.Ended() {
		return state
	}
	d, _ := c.asked(ctx, id) // nil says nothing
	live, _ := liveOf(d)
	state.WaitsFor = live.WaitsFor
	return state.Spending(live.Usage)
}

// News returns what happened after the event knownSeq, nil for nothing, and the number of the last event.
func (c *Client) News(ctx context.Context, id string, knownSeq int64) (*News, int64) {
	v, err := c.Events(ctx, id, max(knownSeq, 0))
	if err != nil {
		return &News{Err: err}, knownSeq
	}
	if v.Seq == knownSeq {
		return nil, knownSeq
	}
	u := &News{Events: v.Events}
	if u.Err = c.query(ctx, QueryTimeout, id, &u.State, "state"); u.Err != nil {
		return u, knownSeq
	}
	if u.State.Seq > v.Seq { // the events that led to this state come before it
		further, err := c.Events(ctx, id, v.Seq)
		if err != nil {
			return u, v.Seq
		}
		u.Events = append(u.Events, slices.DeleteFunc(further.Events, func(e loop.Event) bool { return e.Seq > u.State.Seq })...)
		return u, u.State.Seq
	}
	return u, v.Seq
}

// Ending is how a loop ended.
type Ending struct {
	Result loop.Result
	Status loop.Status
	Code   fault.Code
	Lost   string // why there is no result
}

// Await waits for a loop's end, through continue-as-new and outages of the engine.
func (c *Client) Await(ctx context.Context, run sdk.WorkflowRun) Ending {
	for {
		var r loop.Result
		err := run.Get(ctx, &r)
		if err == nil {
			e := Ending{Result: r, Status: loop.Completed, Code: fault.Code(r.ErrorCode)}
			if r.ErrorCode != "" {
				e.Status = loop.Halted
			}
			return e
		}
		if _, ok := errors.AsType[*temporal.WorkflowExecutionError](err); ok {
			return endOf(err)
		}
		if gone(err) {
			return without(rules.Interrupted.Because("Temporal does not know it any more"))
		}
		select {
		case <-ctx.Done():
			return Ending{}
		case <-time.After(retryEvery):
		}
	}
}

// NoteEnd notes on this host how the run of a record ended, which could not record it itself. It asks only once, so
// nothing is noted if the service does not answer.
func NoteEnd(ctx context.Context, run sdk.WorkflowRun, h home.Home, r hostrecord.Record, closed time.Time) error {
	if _, noted := hostrecord.NotedEnd(h, r); noted { // by whoever ended it
		return nil
	}
	var result loop.Result
	err := run.Get(ctx, &result)
	if _, failed := errors.AsType[*temporal.WorkflowExecutionError](err); !failed {
		return nil // it has completed, so it recorded its end, or nobody answers
	}
	e := endOf(err)
	return hostrecord.NoteEnd(h, r, hostrecord.End{
		Status: string(e.Status), Code: e.Code, Reason: cmp.Or(e.Lost, e.Result.Reason), Time: closed,
	})
}

// endOf returns the end of a workflow that did not complete. It failed with a code, and the result is in the error's
// details, or somebody ended it without asking it.
func endOf(err error) Ending {
	if app, failed := errors.AsType[*temporal.ApplicationError](err); failed {
		e := Ending{Status: loop.Failed, Code: fault.Code(app.Type())}
		if !app.HasDetails() || app.Details(&e.Result) != nil || e.Result.ExitStatus == "" {
			e.Result = loop.Result{ErrorCode: app.Type(), Reason: app.Message()}
			if f := wire.Decode(err); f != nil {
				e.Result.Reason, e.Result.Recovery = f.What, f.Advice()
			}
		}
		return e
	}
	status := enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
	if _, cancelled := errors.AsType[*temporal.CanceledError](err); cancelled {
		status = enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	} else if _, terminated := errors.AsType[*temporal.TerminatedError](err); terminated {
		status = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	}
	return without(outsideEnds[status])
}

// without returns an end that has no result.
func without(end rules.End) Ending {
	return Ending{Status: end.Status, Code: end.Code, Lost: end.Reason}
}
