package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec/kind"
)

// Snapshot is the state of a loop or a steward, with its source.
type Snapshot[S any] struct {
	State S
	Source
}

// Source says where a state comes from.
type Source struct {
	Ledger bool   // it is from the ledger, because nobody answered
	Why    string // why nobody answered
	Gone   bool   // Temporal does not know it any more
	Ill    bool   // the service runs, but does not return its record, or does not answer
	// Trouble is what fails and is tried again, "" if nothing does.
	Trouble string
	// Mended says which of its files on this host were damaged, how, and what pawl did about it.
	Mended []string
}

// Snapshot returns a loop's state: from the loop itself, or, while no worker runs, from the ledger of this host.
func (c *Client) Snapshot(ctx context.Context, id string) (Snapshot[loop.State], error) {
	return find(ctx, c, id, subject[loop.State]{
		Family: Loop, asked: c.State, recorded: c.Recorded, unreported: endedUnreported,
		// Only the ledger has what people say about the proposal after the end.
		late: func(reported, recorded loop.State) bool {
			return reported.Status.Ended() && recorded.Status.Ended() && reported.ErrorCode != string(fault.LedgerAhead) && recorded.Loop == reported.Loop && recorded.StartedAt.Equal(reported.StartedAt) && recorded.Seq > reported.Seq
		},
	})
}

// subject is how to find the state of a loop or a steward.
type subject[S any] struct {
	Family
	asked, recorded func(context.Context, string) (S, error)
	late            func(reported, recorded S) bool // the ledger knows more than the workflow
	// unreported returns the state with an end that it lacks; there may be none.
	unreported func(S, *unreportedEnd) S
}

func find[S any](ctx context.Context, c *Client, id string, subj subject[S]) (Snapshot[S], error) {
	s, err := seek(ctx, c, id, subj)
	if r, ok := c.Record(id); ok {
		s.Mended = repairlog.Lines(c.Home.Loop(r.Ref))
	}
	return s, err
}

func seek[S any](ctx context.Context, c *Client, id string, subj subject[S]) (s Snapshot[S], err error) {
	if c.SDK == nil {
		state, err := subj.recorded(ctx, id)
		if r, ok := c.Record(id); ok && err == nil {
			state = subj.unreported(state, c.closing(r))
		}
		return Snapshot[S]{State: state, Source: Source{Ledger: true, Why: c.silence(), Ill: c.Unanswered != nil}}, c.Torn(id, err)
	}
	d, err := c.asked(ctx, id)
	isGone := gone(err)
	if err != nil && !isGone {
		// After damage, the service may be unable to read just this one record.
		if state, found := subj.recorded(ctx, id); found == nil && c.answers(ctx) {
			return Snapshot[S]{state, Source{Ledger: true, Why: "Temporal does not return its record of this " + subj.Word, Trouble: c.unread(err), Ill: true}}, nil
		}
		return s, c.Unreachable(ctx, err)
	}
	info := d.GetWorkflowExecutionInfo()
	if err == nil {
		if err := subj.runs(id, info.GetType().GetName()); err != nil {
			return s, err
		}
		state, err := subj.asked(ctx, id)
		if err == nil {
			if recorded, err := subj.recorded(ctx, id); err == nil && subj.late(state, recorded) {
				return Snapshot[S]{State: recorded}, nil
			}
			return Snapshot[S]{subj.unreported(state, c.unreported(id, info)), Source{Trouble: c.troubleOf(ctx, d)}}, nil
		}
		if ctx.Err() != nil {
			return s, context.Cause(ctx)
		}
	}
	state, found := subj.recorded(ctx, id)
	switch {
	case found == nil && isGone:
		return Snapshot[S]{state, Source{Ledger: true, Why: "Temporal does not know this " + subj.Word + " any more", Gone: true}}, nil
	case found == nil:
		end := c.unreported(id, info)
		if r, ok := c.Record(id); ok && end == nil {
			end = c.closing(r)
		}
		return Snapshot[S]{subj.unreported(state, end), Source{Ledger: true, Why: "no worker answers", Trouble: c.troubleOf(ctx, d)}}, nil
	case isGone:
		if r, ok := c.Record(id); ok {
			if text := c.unreadable(ctx, r); text != "" {
				return s, fault.New(fault.LedgerDamaged, "Temporal does not know the %s %s any more, and %s", subj.Word, id, text)
			}
		}
		return s, c.Torn(id, subj.NotFound(id))
	}
	return s, c.Torn(id, fault.New(fault.NoWorker, "no worker answers for the %s %s, and this host has no ledger of it", subj.Word, id).
		Advise("Start a worker ("+c.AWorker()+") on its host."))
}

// Torn takes an error that says that a loop or a steward is not found on this host. It returns LEDGER_DAMAGED if its
// workspace record is damaged, else the error, and nil for nil.
func (c *Client) Torn(id string, err error) error {
	refs, failed := hostrecord.Torn(c.Home)
	if err == nil || failed != nil || !slices.Contains(refs, git.RefName(id)) {
		return err
	}
	return fault.New(fault.LedgerDamaged, "the workspace record of %s is damaged", id).Advise("`pawl up` makes it again from the ledger.")
}

// answers reports whether the service answers at all.
func (c *Client) answers(ctx context.Context) bool {
	_, err := c.SDK.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: c.Namespace})
	return err == nil
}

// unreportedEnd is an end of a loop or a steward that its own state does not have.
type unreportedEnd struct {
	rules.End
	at time.Time
}

// outside returns the end that somebody else caused, from what Temporal says, nil if nobody did.
func outside(info *workflowpb.WorkflowExecutionInfo) *unreportedEnd {
	end, ended := outsideEnds[info.GetStatus()]
	if !ended {
		return nil
	}
	return &unreportedEnd{end, info.GetCloseTime().AsTime()}
}

// endedUnreported returns the state of a loop that ended without recording it, for example because somebody terminated
// it. Its own state then still says that it runs.
func endedUnreported(s loop.State, end *unreportedEnd) loop.State {
	if end == nil || s.Status.Ended() {
		return s
	}
	e := end.Event(s.Usage)
	e.Seq, e.Time = s.Seq, end.at
	return s.Apply(e)
}

// closing returns how the run of a record ended, as far as the files of this host say that it did, nil if they don't. A
// loop with a URL may have moved to another host.
func (c *Client) closing(r hostrecord.Record) *unreportedEnd {
	if noted, ok := hostrecord.NotedEnd(c.Home, r); ok {
		end := rules.Interrupted.Because(noted.Reason)
		end.Status, end.Code = loop.Status(noted.Status), noted.Code
		return &unreportedEnd{end, noted.Time}
	}
	if !r.Closed || r.Remote {
		return nil
	}
	return &unreportedEnd{unsaid, r.ClosedAt}
}

// unreported returns the end of a run that it does not know itself: the one that was noted on this host, else the one that
// somebody else caused, nil if there is none.
func (c *Client) unreported(id string, info *workflowpb.WorkflowExecutionInfo) *unreportedEnd {
	end := outside(info)
	r, found := c.Record(id)
	if !found {
		return end
	}
	noted, ok := hostrecord.NotedEnd(c.Home, r)
	if isThisRun := noted.IsOf(info.GetExecution().GetRunId()); ok && (isThisRun || end != nil) {
		return c.closing(r)
	}
	return end
}

// unsaid is the end of a workflow that is over, if nobody can be asked for its real one.
var unsaid = rules.Interrupted.Because("its run ended and could not record how: terminated from outside, or behind its ledger (LEDGER_AHEAD). `pawl show` says which while an engine runs")

// outsideEnds are the ends that somebody else causes.
var outsideEnds = map[enumspb.WorkflowExecutionStatus]rules.End{
	enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: rules.Interrupted.Because("it was terminated from outside, without a report"),
	enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:   rules.Interrupted.Because("it was cancelled before it began"),
	enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  rules.MachineFailed.Because("Temporal ended it"),
}

// Recorded returns a loop's state from the ledger on this host, or ALO_LOOP_NOT_FOUND if there is none.
func (c *Client) Recorded(ctx context.Context, id string) (loop.State, error) {
	l, head, err := c.Ledger(ctx, id)
	if err != nil {
		return loop.State{}, err
	}
	return l.State(ctx, head)
}

// Ledger returns a loop's ledger on this host with its head. If a name was used again, the ID may also name an
// earlier loop by its branch: name, name.2, name.3.
func (c *Client) Ledger(ctx context.Context, id string) (*ledger.Ledger, string, error) {
	st, head, err := c.begun(ctx, Loop, id)
	return ledger.Open(st), head, err
}

// begun returns the store of a loop or a steward on this host, with the head of its ledger, which has an entry.
func (c *Client) begun(ctx context.Context, f Family, id string) (*store.Store, string, error) {
	r, ok := c.Record(id)
	switch {
	case !ok:
		return nil, "", c.unknown(f, id)
	case r.Steward() && f == Loop:
		return nil, "", Loop.runs(id, kind.Steward.Workflow)
	case !r.Steward() && f == Steward:
		return nil, "", Steward.NotFound(id).Advise("It is a loop: `pawl show " + id + "`.")
	}
	st, head, err := c.open(ctx, r)
	if head == "" && (err == nil || c.begins(ctx, r)) {
		err = f.NotFound(id).Advise(nothingYet(c.Home, r))
	}
	return st, head, err
}

// unknown returns the fault for an ID of which this host has no workspace record. A loop that was started shortly before
// its engine ended has none yet; only the engine knows it.
func (c *Client) unknown(f Family, id string) error {
	if r, ok := c.lastNote(id); ok && !r.Closed {
		return c.notBegun(f, id)
	}
	if c.SDK == nil {
		start := "Start the engine with `pawl up`, then repeat this."
		if stopped, ok := errors.AsType[*fault.Error](c.Unanswered); ok {
			start = stopped.Advice()
		}
		return fault.New(fault.LoopNotFound, "this host has no ledger of a %s %s, and %s", f.Word, id, c.silence()).
			Advise("A " + f.Word + " that was just started may be known to the engine alone. " + start)
	}
	return f.NotFound(id)
}

// silence says why no engine answers.
func (c *Client) silence() string {
	if stopped, ok := errors.AsType[*fault.Error](c.Unanswered); ok {
		return stopped.What
	}
	return "no engine is running"
}

// nothingYet says why a record's ledger is empty.
func nothingYet(h home.Home, r hostrecord.Record) string {
	if noted, ok := hostrecord.NotedEnd(h, r); ok {
		return "It ended before it recorded anything: " + noted.Reason + "."
	}
	if r.Closed {
		return "It ended before it recorded anything: its start was refused. While an engine runs (`pawl up`), this command says why."
	}
	return "It was started on this host but has recorded nothing yet."
}

// OpenStore returns the store of a workspace record. If the store is gone, it makes none; the error is fs.ErrNotExist.
func OpenStore(ctx context.Context, r hostrecord.Record) (*store.Store, error) {
	if _, err := os.Stat(dirfd.At(r.Store)); err != nil {
		return nil, fmt.Errorf("opening the store of %s: %w", r.Loop, dirfd.Named(err, r.Store))
	}
	return store.Open(ctx, r.Store)
}

// OpenRecord returns the store of a workspace record with the head of its ledger, "" if nothing is recorded yet.
func OpenRecord(ctx context.Context, r hostrecord.Record) (*store.Store, string, error) {
	st, err := OpenStore(ctx, r)
	if err != nil {
		return nil, "", err
	}
	head, err := st.Ref(ctx, r.Ledger)
	return st, head, err
}

// open is OpenRecord for a record of this host. If what the ledger had is gone, the error is LEDGER_DAMAGED.
func (c *Client) open(ctx context.Context, r hostrecord.Record) (*store.Store, string, error) {
	st, head, err := OpenRecord(ctx, r)
	if err == nil && head == "" || errors.Is(err, fs.ErrNotExist) {
		err = cmp.Or(hostrecord.Lost(c.Home, r), err)
	}
	return st, head, err
}

// Record returns the workspace record of a loop on this host.
func (c *Client) Record(id string) (hostrecord.Record, bool) {
	if r, ok := hostrecord.Latest(c.Home, id); ok {
		return r, true
	}
	records, err := hostrecord.List(c.Home)
	i := slices.IndexFunc(records, func(r hostrecord.Record) bool { return r.Ref == id })
	if err != nil || i < 0 {
		return hostrecord.Record{}, false
	}
	return records[i], true
}

// Later returns the names of the records with the same ID that are younger than the one that Record returns. There are
// some if the loop or steward was started from the ledger of an earlier run.
func (c *Client) Later(id string) (refs []string) {
	records, err := hostrecord.Of(c.Home, id)
	if err != nil || len(records) == 0 {
		return nil
	}
	for _, r := range records[1:] {
		if len(r.Ref) > len(records[0].Ref) || len(r.Ref) == len(records[0].Ref) && r.Ref > records[0].Ref {
			refs = append(refs, r.Ref)
		}
	}
	return refs
}

// Untold returns what was mended of a loop's damaged files on this host, as far as its ledger does not say it.
func (c *Client) Untold(id string) []string {
	r, ok := c.Record(id)
	if !ok {
		return nil
	}
	return repairlog.Untold(c.Home.Loop(r.Ref))
}

// Contract asks a loop for its contract, with what a person wants to know before approving it.
func (c *Client) Contract(ctx context.Context, id string) (launch.ContractView, error) {
	v, err := ask[launch.ContractView](ctx, c, id, "contract")
	if err == nil && v.Contract == nil {
		err = errors.New("it is not drawn yet")
	}
	return v, err
}

// Events asks a loop for its events after a sequence number. The loop answers with its last events only. If some
// before them are missing, they come from this host's ledger.
func (c *Client) Events(ctx context.Context, id string, seq int64) (launch.EventsView, error) {
	var v launch.EventsView
	if err := c.query(ctx, QueryTimeout, id, &v, "events", seq); err != nil {
		return v, err
	}
	if seq == 0 || len(v.Events) == 0 || v.Events[0].Seq == seq+1 {
		return v, nil
	}
	if recorded, err := c.History(ctx, id); err == nil {
		missing := slices.DeleteFunc(recorded, func(e loop.Event) bool { return e.Seq <= seq || e.Seq >= v.Events[0].Seq })
		v.Events = append(missing, v.Events...)
	}
	return v, nil
}

// History returns all events of a loop or a steward from this host's ledger.
func (c *Client) History(ctx context.Context, id string) ([]loop.Event, error) {
	st, head, err := c.begun(ctx, c.recordedFamily(id), id)
	if err != nil {
		return nil, err
	}
	return ledger.Since(ctx, st, head, "")
}
