package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
	"pawl/internal/ledger"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
)

// loopsQuery finds loops and stewards of all kinds in Temporal's list. It excludes runs that continued as new,
// because their successor is the same loop.
var loopsQuery = func() string {
	types := list.Map(kind.All, func(k kind.Kind) string { return "'" + k.Workflow + "'" })
	return "WorkflowType IN (" + strings.Join(types, ", ") + ") AND ExecutionStatus != 'ContinuedAsNew'"
}()

// Listed returns the loops and stewards that Temporal knows, or, if no engine runs, those that are Kept.
func (c *Client) Listed(ctx context.Context) ([]launch.Row, error) {
	if c.SDK == nil {
		return c.Kept(ctx)
	}
	records, err := hostrecord.List(c.Home)
	if err != nil {
		return nil, err
	}
	executions, err := c.executions(ctx, loopsQuery)
	if err != nil {
		return nil, err
	}
	rows := make([]launch.Row, len(executions))
	several(readers, len(rows), func(i int) {
		r, published := row(executions[i])
		if record := c.recordOf(ctx, records, executions[i]); record != nil {
			c.addRecorded(ctx, &r, *record, published)
			if end, ok := hostrecord.NotedEnd(c.Home, *record); ok && end.IsOf(r.Run) {
				addEnd(&r, c.closing(*record))
			}
		} else if !published && !r.Steward() && r.Status == string(loop.Completed) {
			c.addResult(ctx, &r)
		}
		if !loop.Status(r.Status).Ended() {
			c.addDescribed(ctx, &r)
		}
		if r.Status == string(loop.Failed) {
			c.addFailure(ctx, &r)
		}
		rows[i] = r
	})
	newestFirst(rows)
	return c.tornRows(rows), nil
}

// executions returns what a query finds in Temporal's list.
func (c *Client) executions(ctx context.Context, query string) (found []*workflowpb.WorkflowExecutionInfo, err error) {
	for page := []byte(nil); ; {
		answer, err := c.SDK.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: page})
		if err != nil {
			return nil, c.Unreachable(ctx, err)
		}
		found = append(found, answer.GetExecutions()...)
		if page = answer.GetNextPageToken(); len(page) == 0 {
			return found, nil
		}
	}
}

// several calls do for the numbers below n, at most so many at the same time.
func several(atOnce, n int, do func(i int)) {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range n {
		g.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = g.Wait()
}

// addResult adds to a row what the result of the loop says. A loop that is halted before it has opened completes too, and
// has no record and no search attributes.
func (c *Client) addResult(ctx context.Context, r *launch.Row) {
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	r.Status = cmp.Or(string(c.Await(ctx, c.SDK.GetWorkflow(ctx, r.Loop, r.Run)).Status), r.Status)
}

// addFailure adds to a row why the loop failed. A start that was refused has failed before its first iteration, by a code
// that says so.
func (c *Client) addFailure(ctx context.Context, r *launch.Row) {
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	end := c.Await(ctx, c.SDK.GetWorkflow(ctx, r.Loop, r.Run))
	r.Reason = cmp.Or(r.Reason, end.Result.Reason, end.Lost)
	r.Refused = refused(r.Iteration, end.Code)
}

// refused reports whether a loop that failed in an iteration by a code did not start.
func refused(iteration int, code fault.Code) bool {
	return iteration == 0 && (code == fault.PreconditionFailed || code == fault.InvalidSpec)
}

// addRecorded adds to a row what the ledger of its record says, if that can be read. If the loop has published its
// search attributes, that is what they lack, and what is newer. The memo was written before the loop knew its branch, so
// the branch of the record is preferred.
func (c *Client) addRecorded(ctx context.Context, r *launch.Row, record hostrecord.Record, published bool) {
	r.Branch, r.Mended = git.BranchName(record.Branch), repairlog.Lines(c.Home.Loop(record.Ref))
	if record.Steward() {
		r.Kind = kind.Steward.Name
		c.addSteward(ctx, r, record, published)
		return
	}
	s, err := c.RecordedAt(ctx, record)
	if err != nil || s.Loop == "" {
		return
	}
	since(r, s.StartedAt)
	r.Usage = &s.Usage
	if s.Status == loop.Failed {
		r.Reason, r.Refused = s.Reason, refused(s.Iteration, fault.Code(s.ErrorCode))
	}
	if s.Proposal != nil {
		r.Proposal = s.Proposal.State
	}
	if s.Iteration >= r.Iteration { // a loop updates its search attributes later than its ledger
		r.Iteration, r.Phase, r.Best = s.Iteration, s.Stage(), s.Shown()
	}
	if published {
		return
	}
	r.Kind, r.Repo, r.Branch, r.Goal = s.Kind, s.Repo, git.BranchName(s.Branch), s.Goal
	if r.Source == "ledger" || s.Status.Ended() {
		r.Status = string(s.Status)
	}
	if s.Gate != nil {
		r.Gate = string(s.Gate.Kind)
	}
}

// addSteward is addRecorded for a steward.
func (c *Client) addSteward(ctx context.Context, r *launch.Row, record hostrecord.Record, published bool) {
	s, err := c.RecordedSteward(ctx, record.Ref)
	since(r, s.StartedAt)
	if err != nil {
		return
	}
	r.Mode, r.Tasks = s.Mode, &launch.Tasks{All: s.TasksCount, Done: int(s.Indicators.Done), Cancelled: int(s.Indicators.Cancelled)}
	if published {
		return
	}
	r.Phase, r.Repo, r.Goal = string(s.State), s.Repo, launch.StewardGoal
	if r.Source == "ledger" || s.Status.Ended() {
		r.Status = string(s.Status)
	}
	if s.Status.Ended() {
		r.Phase = ""
	} else if len(s.Gates) > 0 {
		r.Gate, r.Gates = string(s.Gates[0].Kind), len(s.Gates)
	}
}

// addDescribed adds what keeps a loop or a steward from continuing, and its start: one that has continued as new is
// listed with the start of its last run.
func (c *Client) addDescribed(ctx context.Context, r *launch.Row) {
	d, err := c.asked(ctx, r.Loop)
	switch {
	case err == nil:
		r.Trouble = c.troubleOf(ctx, d)
		if first := d.GetWorkflowExecutionInfo().GetFirstRunId(); first != "" && first != r.Run {
			if d, err := c.askedRun(ctx, r.Loop, first); err == nil {
				since(r, d.GetWorkflowExecutionInfo().GetStartTime().AsTime())
			}
		}
	case ctx.Err() == nil:
		r.Trouble = c.unread(err)
	}
}

// tornRows adds the loops of this host whose record is damaged.
func (c *Client) tornRows(rows []launch.Row) []launch.Row {
	torn, err := hostrecord.Torn(c.Home)
	if err != nil {
		return rows
	}
	for _, ref := range torn {
		index := slices.IndexFunc(rows, func(r launch.Row) bool { return git.RefName(r.Loop) == ref && !loop.Status(r.Status).Ended() })
		if index < 0 {
			rows = append(rows, launch.Row{Loop: ref, Status: unknown, Source: "ledger", Trouble: tornRecord})
		} else if rows[index].Trouble == "" {
			rows[index].Trouble = tornRecord
		}
	}
	return rows
}

// readers is how many ledgers are read at once for a list.
const readers = 8

// row returns an execution as its search attributes and memo describe it. published is false if the namespace has no such
// attributes, and only the ledger of the loop's host tells more.
func row(e *workflowpb.WorkflowExecutionInfo) (r launch.Row, published bool) {
	status := endStatus(e.GetStatus())
	k, _ := kind.OfWorkflow(e.GetType().GetName()) // loopsQuery asks for no others
	r = launch.Row{
		Loop: e.GetExecution().GetWorkflowId(), Run: e.GetExecution().GetRunId(), Kind: k.Name, Status: string(status), Source: "temporal",
	}
	if t := e.GetStartTime(); t != nil {
		r.StartedAt = utc(t.AsTime())
	}
	if t := e.GetCloseTime(); t != nil {
		r.EndedAt = utc(t.AsTime())
	}
	memo := e.GetMemo().GetFields()
	decode(memo[launch.MemoGoal], &r.Goal)
	decode(memo[launch.MemoBranch], &r.Branch)
	decode(memo[launch.MemoStartedBy], &r.StartedBy)
	decode(memo[launch.MemoRepo], &r.Repo)
	attributes := e.GetSearchAttributes().GetIndexedFields()
	if attributes[launch.Status] == nil {
		var ended string
		if decode(memo[launch.MemoStatus], &ended); status.Ended() && loop.Status(ended).Ended() {
			r.Status = ended
		}
		return r, false
	}
	decode(attributes[launch.Kind], &r.Kind)
	decode(attributes[launch.Phase], &r.Phase)
	var repo string // empty while it opens
	decode(attributes[launch.Repo], &repo)
	r.Repo = cmp.Or(repo, r.Repo)
	decode(attributes[launch.Iteration], &r.Iteration)
	decode(attributes[launch.Best], &r.Best)
	var recorded string
	decode(attributes[launch.Status], &recorded)
	switch {
	case status.Ended() && loop.Status(recorded).Ended(): // a halt completes the workflow too
		r.Status = recorded
	case !status.Ended() && recorded != "":
		r.Status = recorded
		decode(attributes[launch.Gate], &r.Gate)
	}
	if r.Steward() && status.Ended() { // it does nothing any more, whatever the state of its tasks
		r.Phase = ""
	}
	return r, true
}

// recordOf is the function of that name for an execution of Temporal's list, which does not say which run began it.
func (c *Client) recordOf(ctx context.Context, records []hostrecord.Record, e *workflowpb.WorkflowExecutionInfo) *hostrecord.Record {
	id := e.GetExecution().GetWorkflowId()
	if r := recordOf(records, e); r != nil || !slices.ContainsFunc(records, func(r hostrecord.Record) bool { return r.Loop == id }) {
		return r
	}
	d, err := c.askedRun(ctx, id, e.GetExecution().GetRunId())
	if err != nil {
		return nil
	}
	return recordOf(records, d.GetWorkflowExecutionInfo())
}

// recordOf returns this host's workspace record of an execution, nil if it has none.
func recordOf(records []hostrecord.Record, e *workflowpb.WorkflowExecutionInfo) *hostrecord.Record {
	i := slices.IndexFunc(records, func(r hostrecord.Record) bool {
		return r.FirstRun == e.GetFirstRunId() || r.FirstRun == e.GetExecution().GetRunId()
	})
	if i < 0 {
		return nil
	}
	return &records[i]
}

// Kept returns the loops and stewards of this host, from their ledgers.
func (c *Client) Kept(ctx context.Context) ([]launch.Row, error) {
	records, err := hostrecord.List(c.Home)
	if err != nil {
		return nil, err
	}
	var rows []launch.Row
	for _, record := range records {
		r := launch.Row{Loop: record.Loop, Repo: record.Repo, Status: unknown, Source: "ledger"}
		c.addRecorded(ctx, &r, record, false)
		begins := r.Status == unknown && c.begins(ctx, record)
		_, noted := hostrecord.NotedEnd(c.Home, record)
		switch {
		case begins && noted:
			addEnd(&r, c.closing(record))
		case begins && record.Closed: // its start was refused
			r.Status, r.Refused = string(loop.Failed), true
		case begins:
			r.Status = opening
		case hostrecord.Over(c.Home, record) && r.Status != unknown:
			addEnd(&r, c.closing(record))
		default:
			r.Trouble = c.unreadable(ctx, record)
		}
		rows = append(rows, r)
	}
	started, err := c.unbegun(records)
	if err != nil {
		return nil, fmt.Errorf("reading which loops wait for a worker: %w", err)
	}
	for _, r := range started {
		rows = append(rows, unbegunRow(r))
	}
	newestFirst(rows)
	return c.tornRows(rows), nil
}

// addEnd adds an end that the ledger of a loop or a steward does not have; there may be none.
func addEnd(r *launch.Row, end *unreportedEnd) {
	if end == nil || loop.Status(r.Status).Ended() {
		return
	}
	r.Status, r.Reason = string(end.Status), end.Reason
	r.Refused = end.Status == loop.Failed && refused(r.Iteration, end.Code)
	r.Gate, r.Gates, r.EndedAt = "", 0, utc(end.at)
}

// The status in a row for a loop or steward whose ledger has no status.
const (
	unknown = "unknown" // its record or its ledger can't be read
	opening = "opening" // it has recorded nothing yet: its opening was interrupted, and the worker opens it again
)

// begins reports whether a record's ledger has no entry yet.
func (c *Client) begins(ctx context.Context, r hostrecord.Record) bool {
	if hostrecord.Noted(c.Home, r.Ref)[r.Ledger] != "" { // it had one
		return false
	}
	_, head, err := OpenRecord(ctx, r)
	return head == "" && (err == nil || errors.Is(err, fs.ErrNotExist))
}

// RecordedAt returns the state of a record's loop from its ledger.
func (c *Client) RecordedAt(ctx context.Context, r hostrecord.Record) (loop.State, error) {
	st, head, err := c.open(ctx, r)
	if err != nil || head == "" {
		return loop.State{}, err
	}
	return ledger.Open(st).State(ctx, head)
}

// since notes that a loop began at t, if that is earlier than its row says.
func since(r *launch.Row, t time.Time) {
	if !t.IsZero() && (r.StartedAt == nil || t.Before(*r.StartedAt)) {
		r.StartedAt = utc(t)
	}
}

func newestFirst(rows []launch.Row) {
	slices.SortStableFunc(rows, func(a, b launch.Row) int {
		return cmp.Or(b.StartedAt, new(time.Time)).Compare(*cmp.Or(a.StartedAt, new(time.Time)))
	})
}

func utc(t time.Time) *time.Time {
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// decode reads a memo field or search attribute. A missing field, or one of another type, leaves out unchanged.
func decode[T string | int | *metric.Decimal](p *commonpb.Payload, out *T) {
	_ = json.Unmarshal(p.GetData(), out)
}
