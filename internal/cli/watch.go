package cli

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"pawl/internal/fault"
	"pawl/internal/loop"
)

// followEvery is how often a loop that is being followed is asked for news: often where somebody
// watches it move, less often where lines are written to a file, since asking is work too.
const (
	followEvery   = 200 * time.Millisecond
	followLogging = 500 * time.Millisecond
)

// update is news of a loop, or that nobody answers for it.
type update struct {
	state  loop.State
	events []loop.Event
	err    error

	trouble string      // what fails and is tried again, where that is all there is to say
	live    *loop.Usage // what the step under way has spent, likewise
}

// watch asks a loop for news until ctx ends. It asks for the events first and for the state only
// where there are new ones, so that waiting costs next to nothing.
func (s *session) watch(ctx context.Context, id string) <-chan update {
	out := make(chan update)
	every := followLogging
	if s.app.screen.Moves() {
		every = followEvery
	}
	go func() {
		known, quiet := int64(-1), 0
		for {
			u, seq := s.news(ctx, id, known)
			if quiet++; u != nil {
				quiet = 0
			} else if quiet%troubleEvery == 0 {
				u = s.underWay(ctx, id)
			}
			if u != nil {
				select {
				case out <- *u:
				case <-ctx.Done():
					return
				}
			}
			known = seq
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
			}
		}
	}()
	return out
}

// troubleEvery is after how many times without news a loop's silence is looked into.
const troubleEvery = 10

// underWay says what fails and is tried again, or what the running step has spent; nil for nothing.
// The loop itself knows of neither: its activities are retried by the service, and a disk that is
// full has to be somebody's business.
func (s *session) underWay(ctx context.Context, id string) *update {
	d, err := s.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil
	}
	for _, a := range d.GetPendingActivities() {
		f := a.GetLastFailure()
		if f == nil || f.GetApplicationFailureInfo().GetCategory() == enumspb.APPLICATION_ERROR_CATEGORY_BENIGN {
			continue
		}
		return &update{trouble: a.GetActivityType().GetName() + " fails and is tried again: " + f.GetMessage()}
	}
	if u, runs := spending(d); runs {
		return &update{live: &u}
	}
	return nil
}

// news returns what happened after the event known, nil for nothing, and the last event's number.
func (s *session) news(ctx context.Context, id string, known int64) (*update, int64) {
	v, err := s.events(ctx, id, max(known, 0))
	if err != nil {
		return &update{err: err}, known
	}
	if v.Seq == known {
		return nil, known
	}
	u := &update{events: v.Events}
	if u.err = s.query(ctx, queryTimeout, id, &u.state, "state"); u.err != nil {
		return u, known
	}
	if u.state.Seq > v.Seq { // what has led to this state is told before it
		more, err := s.events(ctx, id, v.Seq)
		if err != nil {
			return u, v.Seq
		}
		for _, e := range more.Events {
			if e.Seq <= u.state.Seq {
				u.events = append(u.events, e)
			}
		}
		return u, u.state.Seq
	}
	return u, v.Seq
}

// ending is how a loop ended.
type ending struct {
	result loop.Result
	status loop.Status
	code   fault.Code
	lost   string // why there is no result
}

// await waits for a loop's end, through continue-as-new and outages of the engine.
func (s *session) await(ctx context.Context, run client.WorkflowRun) ending {
	for {
		var r loop.Result
		err := run.Get(ctx, &r)
		if err == nil {
			e := ending{result: r, status: loop.Completed, code: fault.Code(r.ErrorCode)}
			if r.ErrorCode != "" {
				e.status = loop.Halted
			}
			return e
		}
		var ended *temporal.WorkflowExecutionError
		if errors.As(err, &ended) {
			return endOf(err)
		}
		select {
		case <-ctx.Done():
			return ending{}
		case <-time.After(followEvery):
		}
	}
}

// endOf is the end of a workflow that did not complete: it failed with a code and the result in
// its details, or somebody ended it without asking it.
func endOf(err error) ending {
	var app *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var terminated *temporal.TerminatedError
	switch {
	case errors.As(err, &app):
		e := ending{status: loop.Failed, code: fault.Code(app.Type())}
		if !app.HasDetails() || app.Details(&e.result) != nil {
			e.result = loop.Result{ErrorCode: app.Type(), Reason: app.Message(), Recovery: fault.Recovery(e.code)}
		}
		return e
	case errors.As(err, &cancelled):
		return lost(enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED)
	case errors.As(err, &terminated):
		return lost(enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED)
	}
	return lost(enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT)
}

// lost is the end of a loop that has no result.
func lost(status enumspb.WorkflowExecutionStatus) ending {
	end := outside[status]
	return ending{status: end.Status, code: end.Code, lost: end.Reason}
}
