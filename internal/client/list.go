package client

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"pawl/internal/evidence"
	"pawl/internal/git"
	"pawl/internal/kind"
	"pawl/internal/launch"
	"pawl/internal/loop"
	"pawl/internal/mending"
	"pawl/internal/workspace"
)

// loopsQuery finds loops and stewards of all kinds in Temporal's list. It excludes runs that continued as new,
// because their successor is the same loop.
var loopsQuery = func() string {
	var types []string
	for _, k := range kind.All {
		types = append(types, "'"+k.Workflow+"'")
	}
	return "WorkflowType IN (" + strings.Join(types, ", ") + ") AND ExecutionStatus != 'ContinuedAsNew'"
}()

// Listed returns the loops that Temporal knows.
func (c *Client) Listed(ctx context.Context) ([]launch.Row, error) {
	records, err := workspace.List(c.Home)
	if err != nil {
		return nil, err
	}
	var rows []launch.Row
	var held []*workspace.Record // those of the rows
	for page := []byte(nil); ; {
		answer, err := c.SDK.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: loopsQuery, NextPageToken: page})
		if err != nil {
			return nil, c.Unreachable(ctx, err)
		}
		for _, e := range answer.GetExecutions() {
			record := recordOf(records, e)
			rows, held = append(rows, c.row(ctx, e, record)), append(held, record)
		}
		if page = answer.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	var g errgroup.Group
	g.SetLimit(readers)
	for i := range rows {
		g.Go(func() error {
			if held[i] != nil {
				c.addRecorded(ctx, &rows[i], *held[i])
			}
			if !loop.Status(rows[i].Status).Ended() {
				c.addDescribed(ctx, &rows[i])
			}
			return nil
		})
	}
	_ = g.Wait()
	newestFirst(rows)
	return c.tornRows(rows), nil
}

// addRecorded adds to a row of Temporal's list what the ledger of its record says, if that can be read.
func (c *Client) addRecorded(ctx context.Context, r *launch.Row, record workspace.Record) {
	r.Mended = mending.Lines(c.Home.Loop(record.Ref))
	if record.Steward() {
		if loop.Status(r.Status).Ended() {
			s, _ := c.RecordedSteward(ctx, record.Ref)
			since(r, s.StartedAt)
		}
		return
	}
	if s, err := c.RecordedAt(ctx, record); err == nil && s.Loop != "" {
		r.Usage, r.Proposal = &s.Usage, proposalOf(s)
		if s.Iteration >= r.Iteration { // a loop updates its search attributes later than its ledger
			r.Iteration, r.Phase, r.Best = s.Iteration, s.Stage(), s.HeadBest()
		}
		since(r, s.StartedAt)
	}
}

// addDescribed adds what keeps a loop or a steward from continuing, and its start: one that has continued as new is
// listed with the start of its last run.
func (c *Client) addDescribed(ctx context.Context, r *launch.Row) {
	d, err := c.asked(ctx, r.Loop)
	switch {
	case err == nil:
		r.Trouble = c.troubleOf(ctx, d)
		if t := d.GetWorkflowExtendedInfo().GetOriginalStartTime(); t != nil {
			since(r, t.AsTime())
		}
	case ctx.Err() == nil:
		r.Trouble = c.unread(err)
	}
}

// tornRows adds the loops of this host whose record is damaged.
func (c *Client) tornRows(rows []launch.Row) []launch.Row {
	torn, err := workspace.Torn(c.Home)
	if err != nil {
		return rows
	}
	for _, ref := range torn {
		at := slices.IndexFunc(rows, func(r launch.Row) bool { return git.RefName(r.Loop) == ref && !loop.Status(r.Status).Ended() })
		if at < 0 {
			rows = append(rows, launch.Row{Loop: ref, Status: unknown, Source: "ledger", Trouble: tornRecord})
		} else if rows[at].Trouble == "" {
			rows[at].Trouble = tornRecord
		}
	}
	return rows
}

// proposalOf returns the state of a loop's proposal, "" if it has none.
func proposalOf(s loop.State) string {
	if s.Proposal == nil {
		return ""
	}
	return s.Proposal.State
}

// readers is how many ledgers are read at once for a list.
const readers = 8

// row returns an execution as its search attributes and memo describe it. If the namespace has no such attributes,
// this host's ledger does. The memo was written before the loop knew its branch, so the record of a host that has the
// loop is preferred.
func (c *Client) row(ctx context.Context, e *workflowpb.WorkflowExecutionInfo, record *workspace.Record) launch.Row {
	status := endStatus(e.GetStatus())
	k, _ := kind.OfWorkflow(e.GetType().GetName()) // loopsQuery asks for no others
	r := launch.Row{
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
	if record != nil {
		r.Branch = git.BranchName(record.Branch)
	}
	attributes := e.GetSearchAttributes().GetIndexedFields()
	if attributes[launch.Status] == nil {
		if record != nil {
			c.describe(ctx, &r, *record)
		}
		return r
	}
	decode(attributes[launch.Kind], &r.Kind)
	decode(attributes[launch.Phase], &r.Phase)
	decode(attributes[launch.Repo], &r.Repo)
	decode(attributes[launch.Iteration], &r.Iteration)
	decode(attributes[launch.Best], &r.Best)
	var published string
	decode(attributes[launch.Status], &published)
	switch known := loop.Status(published); {
	case status.Ended() && known.Ended(): // a halt completes the workflow too
		r.Status = published
	case !status.Ended() && known != "":
		r.Status = published
		decode(attributes[launch.Gate], &r.Gate)
	}
	if r.Steward() && status.Ended() { // it does nothing any more, whatever the state of its tasks
		r.Phase = ""
	}
	return r
}

// recordOf returns this host's workspace record of an execution, nil if it has none.
func recordOf(records []workspace.Record, e *workflowpb.WorkflowExecutionInfo) *workspace.Record {
	i := slices.IndexFunc(records, func(r workspace.Record) bool {
		return r.FirstRun == e.GetFirstRunId() || r.FirstRun == e.GetExecution().GetRunId()
	})
	if i < 0 {
		return nil
	}
	return &records[i]
}

// Kept returns the loops and stewards of this host, from their ledgers.
func (c *Client) Kept(ctx context.Context) ([]launch.Row, error) {
	records, err := workspace.List(c.Home)
	if err != nil {
		return nil, err
	}
	var rows []launch.Row
	for _, record := range records {
		r := launch.Row{Loop: record.Loop, Repo: record.Repo, Branch: git.BranchName(record.Branch), Status: unknown, Source: "ledger", Mended: mending.Lines(c.Home.Loop(record.Ref))}
		c.describe(ctx, &r, record)
		begins := r.Status == unknown && c.begins(ctx, record)
		switch {
		case begins && record.Closed: // its start was refused
			r.Status = string(loop.Failed)
		case record.Closed:
		case begins:
			r.Status = opening
		default:
			r.Trouble = c.unreadable(ctx, record)
		}
		rows = append(rows, r)
	}
	newestFirst(rows)
	return c.tornRows(rows), nil
}

// The status in a row for a loop or steward whose ledger has no status.
const (
	unknown = "unknown" // its record or its ledger can't be read
	opening = "opening" // it has recorded nothing yet: its opening was interrupted, and the worker opens it again
)

// begins reports whether a record's ledger has no entry yet.
func (c *Client) begins(ctx context.Context, r workspace.Record) bool {
	if workspace.Noted(c.Home, r.Ref)[r.Ledger] != "" { // it had one
		return false
	}
	_, head, err := OpenRecord(ctx, r)
	return head == "" && (err == nil || errors.Is(err, fs.ErrNotExist))
}

// describe fills in what the ledger of a record says.
func (c *Client) describe(ctx context.Context, r *launch.Row, record workspace.Record) {
	if record.Steward() {
		r.Kind = kind.Steward.Name
		if s, err := c.RecordedSteward(ctx, record.Ref); err == nil {
			r.Phase, r.Repo = string(s.State), s.Repo
			if r.Source == "ledger" || s.Status.Ended() {
				r.Status = string(s.Status)
			}
			r.Goal = launch.StewardGoal
			if s.Status.Ended() {
				r.Phase = ""
			} else if len(s.Gates) > 0 {
				r.Gate, r.Gates = string(s.Gates[0].Kind), len(s.Gates)
			}
			since(r, s.StartedAt)
		}
		return
	}
	if state, err := c.RecordedAt(ctx, record); err == nil {
		fill(r, state)
	}
}

// RecordedAt returns the state of a record's loop from its ledger.
func (c *Client) RecordedAt(ctx context.Context, r workspace.Record) (loop.State, error) {
	l, head, err := OpenRecord(ctx, r)
	if err != nil || head == "" {
		return loop.State{}, err
	}
	return l.State(ctx, head)
}

func fill(r *launch.Row, state loop.State) {
	if state.Loop == "" {
		return
	}
	r.Kind, r.Phase, r.Iteration, r.Best = state.Kind, state.Stage(), state.Iteration, state.HeadBest()
	r.Repo, r.Branch, r.Goal = state.Repo, git.BranchName(state.Branch), state.Goal
	r.Usage, r.Proposal = &state.Usage, proposalOf(state)
	if r.Source == "ledger" || state.Status.Ended() {
		r.Status = string(state.Status)
	}
	if state.Gate != nil {
		r.Gate = string(state.Gate.Kind)
	}
	since(r, state.StartedAt)
}

// since notes that a loop began at t, if that is earlier than its row says.
func since(r *launch.Row, t time.Time) {
	if !t.IsZero() && (r.StartedAt == nil || t.Before(*r.StartedAt)) {
		r.StartedAt = utc(t)
	}
}

func newestFirst(rows []launch.Row) {
	at := func(r launch.Row) time.Time {
		if r.StartedAt == nil {
			return time.Time{}
		}
		return *r.StartedAt
	}
	slices.SortStableFunc(rows, func(a, b launch.Row) int { return at(b).Compare(at(a)) })
}

func utc(t time.Time) *time.Time {
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// decode reads a memo field or search attribute. A missing field, or one of another type, leaves out unchanged.
func decode[T string | int | *evidence.Decimal](p *commonpb.Payload, out *T) {
	if p != nil {
		_ = json.Unmarshal(p.GetData(), out)
	}
}
