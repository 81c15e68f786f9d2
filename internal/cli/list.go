package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"pawl/internal/evidence"
	"pawl/internal/kind"
	"pawl/internal/launch"
	"pawl/internal/loop"
	"pawl/internal/ui"
	"pawl/internal/workspace"
)

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all loops, the newest first", Args: cobra.NoArgs,
		Long: `List all loops, the newest first. Without a running engine it lists those of this
host as their ledgers last recorded them.`,
		RunE: a.brief(func(ctx context.Context, _ []string) error { return a.list(ctx) }),
	}
}

func (a *app) list(ctx context.Context) error {
	s, err := a.visit(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	var rows []ui.Row
	if s.client != nil {
		rows, err = s.listed(ctx)
	} else {
		a.say("no engine is running; this is what the ledgers of this host last recorded (`pawl up` starts it)")
		rows, err = s.kept(ctx)
	}
	if err != nil {
		return err
	}
	if a.json {
		if rows == nil {
			rows = []ui.Row{}
		}
		return a.printJSON(rows)
	}
	if len(rows) == 0 {
		a.say("there are no loops yet; `pawl demo` shows one, `pawl run` starts yours")
		return nil
	}
	return a.print(a.style().List(rows))
}

// loopsQuery finds the loops of all kinds in Temporal's list. A run that continued as new is the
// same loop.
var loopsQuery = func() string {
	var types []string
	for _, k := range kind.All {
		if k.Loop {
			types = append(types, "'"+k.Workflow+"'")
		}
	}
	return "WorkflowType IN (" + strings.Join(types, ", ") + ") AND ExecutionStatus != 'ContinuedAsNew'"
}()

// listed returns the loops that Temporal knows.
func (s *session) listed(ctx context.Context) ([]ui.Row, error) {
	records, err := workspace.List(s.home)
	if err != nil {
		return nil, err
	}
	var rows []ui.Row
	var page []byte
	for {
		answer, err := s.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: loopsQuery, NextPageToken: page})
		if err != nil {
			return nil, s.unreachable(ctx, err)
		}
		for _, e := range answer.GetExecutions() {
			rows = append(rows, s.row(ctx, e, recordOf(records, e)))
		}
		if page = answer.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	newestFirst(rows)
	return rows, nil
}

// row is an execution as its search attributes and memo describe it; where a namespace has no
// such attributes, as this host's ledger does. The memo was written before the loop knew its branch:
// a host that has the loop knows better.
func (s *session) row(ctx context.Context, e *workflowpb.WorkflowExecutionInfo, record *workspace.Record) ui.Row {
	status := endStatus(e.GetStatus())
	k, _ := kind.OfWorkflow(e.GetType().GetName()) // loopsQuery asks for no others
	r := ui.Row{
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
		r.Branch = ui.Branch(record.Branch)
	}
	attributes := e.GetSearchAttributes().GetIndexedFields()
	if attributes[launch.Status] == nil {
		if record != nil {
			if state, err := s.recordedAt(ctx, *record); err == nil {
				fill(&r, state)
			}
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
	case status.Ended() && known.Ended(): // a halt completes the workflow all the same
		r.Status = published
	case !status.Ended() && known != "":
		r.Status = published
		decode(attributes[launch.Gate], &r.Gate)
	}
	return r
}

// recordOf is the workspace record of an execution among those of this host, nil where it has none.
func recordOf(records []workspace.Record, e *workflowpb.WorkflowExecutionInfo) *workspace.Record {
	i := slices.IndexFunc(records, func(r workspace.Record) bool {
		return r.FirstRun == e.GetFirstRunId() || r.FirstRun == e.GetExecution().GetRunId()
	})
	if i < 0 {
		return nil
	}
	return &records[i]
}

// kept returns the loops of this host, from their ledgers.
func (s *session) kept(ctx context.Context) ([]ui.Row, error) {
	records, err := workspace.List(s.home)
	if err != nil {
		return nil, err
	}
	var rows []ui.Row
	for _, record := range records {
		r := ui.Row{Loop: record.Loop, Repo: record.Repo, Branch: ui.Branch(record.Branch), Status: "unknown", Source: "ledger"}
		if state, err := s.recordedAt(ctx, record); err == nil {
			fill(&r, state)
		}
		rows = append(rows, r)
	}
	newestFirst(rows)
	return rows, nil
}

func (s *session) recordedAt(ctx context.Context, r workspace.Record) (loop.State, error) {
	l, head, err := openRecord(ctx, r)
	if err != nil || head == "" {
		return loop.State{}, err
	}
	return l.State(ctx, head)
}

func fill(r *ui.Row, state loop.State) {
	if state.Loop == "" {
		return
	}
	r.Kind, r.Phase, r.Iteration, r.Best = state.Kind, string(state.Phase), state.Iteration, state.Best
	r.Repo, r.Branch, r.Goal = state.Repo, ui.Branch(state.Branch), state.Goal
	if r.Source == "ledger" || state.Status.Ended() {
		r.Status = string(state.Status)
	}
	if state.Gate != nil {
		r.Gate = string(state.Gate.Kind)
	}
	if r.StartedAt == nil && !state.StartedAt.IsZero() {
		r.StartedAt = utc(state.StartedAt)
	}
}

func newestFirst(rows []ui.Row) {
	at := func(r ui.Row) time.Time {
		if r.StartedAt == nil {
			return time.Time{}
		}
		return *r.StartedAt
	}
	slices.SortStableFunc(rows, func(a, b ui.Row) int { return at(b).Compare(at(a)) })
}

func utc(t time.Time) *time.Time {
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// decode reads a memo field or search attribute; what is missing or of another form is left out.
func decode[T string | int | *evidence.Decimal](p *commonpb.Payload, out *T) {
	if p != nil {
		_ = json.Unmarshal(p.GetData(), out)
	}
}
