package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/kind"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/store"
	"pawl/internal/ui"
	"pawl/internal/workspace"
	"pawl/workflows"
)

// reading is a loop as a command found it.
type reading struct {
	state  loop.State
	ledger bool // taken from the ledger, since nobody answered
	why    string
}

// read returns a loop's state: from the loop itself, else from the ledger of this host. A worker
// that is down must not keep anybody from looking.
func (s *session) read(ctx context.Context, id string) (reading, error) {
	if s.client == nil {
		state, err := s.recorded(ctx, id)
		return reading{state, true, "no engine is running"}, err
	}
	d, err := s.client.DescribeWorkflowExecution(ctx, id, "")
	var gone *serviceerror.NotFound
	if err != nil && !errors.As(err, &gone) {
		return reading{}, s.unreachable(ctx, err)
	}
	info := d.GetWorkflowExecutionInfo()
	if err == nil {
		var state loop.State
		if err = s.query(ctx, workerTimeout, id, &state, "state"); err == nil {
			// What people say of the proposal after the end is in the ledger alone.
			if late, err := s.recorded(ctx, id); err == nil && state.Status.Ended() && late.Loop == state.Loop &&
				late.StartedAt.Equal(state.StartedAt) && late.Seq > state.Seq {
				return reading{state: late}, nil
			}
			return reading{state: endedOutside(state, info)}, nil
		}
		if ctx.Err() != nil {
			return reading{}, context.Cause(ctx)
		}
	}
	state, found := s.recorded(ctx, id)
	switch {
	case found == nil && gone != nil:
		return reading{state, true, "Temporal does not know this loop any more"}, nil
	case found == nil:
		return reading{endedOutside(state, info), true, "no worker answers"}, nil
	case gone != nil:
		return reading{}, notFound(id)
	}
	return reading{}, fault.New(fault.EngineUnreachable, "no worker answers for the loop %s, and this host has no ledger of it", id).
		Advise("Start a worker (" + s.aWorker() + ") on the loop's host.")
}

// endedOutside is the state of a loop that somebody ended without asking it. A workflow that was
// terminated has no last event, and goes on saying what it did.
func endedOutside(s loop.State, info *workflowpb.WorkflowExecutionInfo) loop.State {
	end, ended := outside[info.GetStatus()]
	if !ended || s.Status.Ended() {
		return s
	}
	e := end.Event(s.Usage)
	e.Seq, e.Time = s.Seq, info.GetCloseTime().AsTime()
	return s.Apply(e)
}

// outside are the ends that no loop comes to by itself.
var outside = map[enumspb.WorkflowExecutionStatus]govern.End{
	enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: govern.Interrupted.Because("it was terminated from outside, without a report"),
	enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:   govern.Interrupted.Because("it was cancelled before it had begun"),
	enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  govern.MachineFailed.Because("Temporal ended it"),
}

// recorded returns a loop's state as the ledger on this host has it: ALO_LOOP_NOT_FOUND where
// there is none.
func (s *session) recorded(ctx context.Context, id string) (loop.State, error) {
	l, head, err := s.openLedger(ctx, id)
	if err != nil {
		return loop.State{}, err
	}
	return l.State(ctx, head)
}

// openLedger returns a loop's ledger on this host with its head. The ID may also name an earlier
// loop of a name that was used again, by its branch: name, name.2, name.3.
func (s *session) openLedger(ctx context.Context, id string) (*ledger.Ledger, string, error) {
	r, ok := s.record(id)
	if !ok {
		return nil, "", notFound(id)
	}
	l, head, err := openRecord(ctx, r)
	if err == nil && head == "" {
		err = notFound(id).(*fault.Error).Advise("It was begun on this host but has recorded nothing yet.")
	}
	return l, head, err
}

func openRecord(ctx context.Context, r workspace.Record) (*ledger.Ledger, string, error) {
	if _, err := os.Stat(r.Store); err != nil {
		return nil, "", fmt.Errorf("opening the store of the loop %s: %w", r.Loop, err)
	}
	store, err := store.Open(ctx, r.Store)
	if err != nil {
		return nil, "", err
	}
	head, err := store.Ref(ctx, r.Ledger)
	return ledger.Open(store), head, err
}

// record is the workspace record of a loop on this host.
func (s *session) record(id string) (workspace.Record, bool) {
	if r, ok := workspace.Latest(s.home, id); ok {
		return r, true
	}
	records, err := workspace.List(s.home)
	if err != nil {
		return workspace.Record{}, false
	}
	for _, r := range records {
		if r.Ref == id {
			return r, true
		}
	}
	return workspace.Record{}, false
}

// contract asks a loop for its contract, with what a person wants to know before approving it.
func (s *session) contract(ctx context.Context, id string) (ui.Contract, error) {
	var v workflows.ContractView
	if err := s.query(ctx, workerTimeout, id, &v, "contract"); err != nil {
		return ui.Contract{}, err
	}
	if v.Contract == nil {
		return ui.Contract{}, errors.New("it is not drawn yet")
	}
	k, err := kind.Of(v.Spec.Kind)
	if err != nil {
		return ui.Contract{}, err
	}
	c := ui.Contract{
		Loop: id, Kind: k, Contract: *v.Contract, Spec: v.Spec, Baseline: v.Baseline, InScope: v.InScope, Protections: v.Protections,
	}
	var state loop.State
	if err := s.query(ctx, workerTimeout, id, &state, "state"); err == nil {
		c.Repo, c.Branch, c.Plan = state.Repo, state.Branch, state.Plan
	}
	return c, nil
}

// events asks a loop for its events after a sequence number. It answers with the last ones only: to
// somebody who follows it and was left behind, this host's ledger tells those in between.
func (s *session) events(ctx context.Context, id string, after int64) (workflows.EventsView, error) {
	var v workflows.EventsView
	if err := s.query(ctx, queryTimeout, id, &v, "events", after); err != nil {
		return v, err
	}
	if after == 0 || len(v.Events) == 0 || v.Events[0].Seq == after+1 {
		return v, nil
	}
	if recorded, err := s.history(ctx, id); err == nil {
		v.Events = append(between(recorded, after, v.Events[0].Seq), v.Events...)
	}
	return v, nil
}

// between returns the events after one and before another.
func between(events []loop.Event, after, before int64) []loop.Event {
	var out []loop.Event
	for _, e := range events {
		if e.Seq > after && e.Seq < before {
			out = append(out, e)
		}
	}
	return out
}

// queryTimeout is how long a loop that is being followed may take to answer a question.
const queryTimeout = 5 * time.Second

// printJSON writes a value to stdout as JSON for people and programs alike.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// readLine reads one line; the empty one at the end of the input.
func readLine(in io.Reader) string {
	line, _ := bufio.NewReader(in).ReadString('\n')
	return line
}
