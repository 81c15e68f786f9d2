package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pawl/internal/client"
	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/steward"
)

// namespace is a Temporal service with several workflows. Each page of its list has one.
type namespace struct {
	sdk.Client
	listed  []*workflowpb.WorkflowExecutionInfo
	answers map[string]any // by ID and query, "shop/state"
	failing map[string]string
	first   *workflowpb.WorkflowExecutionInfo // the first run of each, which the list does not have: it has continued as new
	mute    bool                              // it answers no question about a workflow
	host    string                            // the worker that tried last what fails
}

func (n *namespace) ListWorkflow(_ context.Context, asked *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	at := len(asked.NextPageToken)
	answer := &workflowservice.ListWorkflowExecutionsResponse{Executions: n.listed[at : at+1]}
	if at+1 < len(n.listed) {
		answer.NextPageToken = make([]byte, at+1)
	}
	return answer, nil
}

func (n *namespace) DescribeWorkflowExecution(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if _, limited := ctx.Deadline(); n.mute && limited {
		return nil, context.DeadlineExceeded // as if the time had passed
	}
	for _, e := range n.listed {
		if e.GetExecution().GetWorkflowId() != id {
			continue
		}
		d := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: e}
		if first := n.first.GetExecution().GetRunId(); first != "" && run == first {
			d.WorkflowExecutionInfo = n.first
		} else if first != "" { // Temporal's list does not say it, and an original start time is that of the run
			d.WorkflowExecutionInfo = proto.CloneOf(e)
			d.WorkflowExecutionInfo.FirstRunId = first
			d.WorkflowExtendedInfo = &workflowpb.WorkflowExecutionExtendedInfo{OriginalStartTime: e.StartTime}
		}
		if why := n.failing[id]; why != "" {
			d.PendingActivities = []*workflowpb.PendingActivityInfo{{ActivityType: &commonpb.ActivityType{Name: "Commit"}, LastFailure: &failurepb.Failure{Message: why}, LastWorkerIdentity: n.host}}
		}
		return d, nil
	}
	return nil, serviceerror.NewNotFound("no " + id)
}

func (n *namespace) QueryWorkflow(_ context.Context, id, _, name string, args ...any) (converter.EncodedValue, error) {
	key := id + "/" + name
	if len(args) > 0 {
		key += fmt.Sprint("/", args[0])
	}
	answer, known := n.answers[key]
	if !known {
		return nil, context.DeadlineExceeded
	}
	return value{answer}, nil
}

// A halt completes a workflow, and its result says so.
func (n *namespace) GetWorkflow(context.Context, string, string) sdk.WorkflowRun { return halted{} }

type halted struct{ sdk.WorkflowRun }

func (halted) Get(_ context.Context, result any) error {
	result.(*loop.Result).ErrorCode = string(fault.Cancelled)
	return nil
}

func listed(t *testing.T, id, workflow string, begun int, status enumspb.WorkflowExecutionStatus, attributes map[string]any) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	fields := map[string]*commonpb.Payload{}
	for name, v := range attributes {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		fields[name] = &commonpb.Payload{Data: data}
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run-" + id}, Type: &commonpb.WorkflowType{Name: workflow}, Status: status,
		StartTime: timestamppb.New(time.Unix(int64(begun), 0)), SearchAttributes: &commonpb.SearchAttributes{IndexedFields: fields},
	}
}

func at(t *testing.T, n *namespace) *client.Client {
	return &client.Client{SDK: n, Home: home.Home{Dir: t.TempDir()}, Address: "127.0.0.1:7233", Namespace: "default", Now: time.Now}
}

const (
	running    = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	completed  = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	terminated = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
)

func TestTheListIsWhatTemporalKnowsOfEachLoop(t *testing.T) {
	n := &namespace{failing: map[string]string{"waits": "no space left on device", "over": "too late"}, listed: []*workflowpb.WorkflowExecutionInfo{
		listed(t, "over", "Improve", 10, completed, map[string]any{launch.Status: "halted", launch.Kind: "improve"}),
		listed(t, "waits", "Deliver", 30, running, map[string]any{launch.Status: "waiting", launch.Kind: "deliver", launch.Gate: "contract", launch.Iteration: 4}),
		listed(t, "killed", "Improve", 20, terminated, map[string]any{launch.Status: "running", launch.Kind: "improve"}),
		listed(t, "plain", "Improve", 5, running, nil),
		listed(t, "early", "Improve", 4, completed, nil),
	}}
	ended := listed(t, "unopened", "Steward", 3, completed, nil)
	ended.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{launch.MemoStatus: {Data: []byte(`"halted"`)}}}
	n.listed = append(n.listed, ended)
	rows, err := at(t, n).Listed(t.Context())
	require.NoError(t, err)
	type row struct{ id, kind, status, gate, trouble string }
	var got []row
	for _, r := range rows {
		got = append(got, row{r.Loop, r.Kind, r.Status, r.Gate, r.Trouble})
	}
	require.Equal(t, []row{
		{"waits", "deliver", "waiting", "contract", "Commit fails and is tried again: no space left on device"},
		{"killed", "improve", "halted", "", ""},
		{"over", "improve", "halted", "", ""},
		{"plain", "improve", "running", "", ""},
		{"early", "improve", "halted", "", ""}, // before it had opened
		{"unopened", "steward", "halted", "", ""},
	}, got, "all pages, the newest first; an end from outside counts more than what the loop has published")
}

// An engine whose disk is full answers nothing about a workflow. A list waits for each answer for a limited time, and says
// what it lacks.
func TestARecordThatDoesNotComeInTimeIsSaidToBeLate(t *testing.T) {
	n := &namespace{mute: true, listed: []*workflowpb.WorkflowExecutionInfo{listed(t, "x", "Improve", 90, running, map[string]any{launch.Status: "running", launch.Kind: "improve"})}}
	rows, err := at(t, n).Listed(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Temporal did not return its record in time", rows[0].Trouble)
}

// A long loop goes on in a new run now and then. The list says how long the loop has run, and not its last run. It finds
// the loop's record here, also after the loop's end.
func TestALoopBeganWithItsFirstRun(t *testing.T) {
	first := listed(t, "first", "Steward", 7, completed, nil)
	published := map[string]any{launch.Status: "running", launch.Kind: "steward"}
	for _, status := range []enumspb.WorkflowExecutionStatus{running, terminated} {
		n := &namespace{first: first, listed: []*workflowpb.WorkflowExecutionInfo{listed(t, "long", "Steward", 90, status, published)}}
		c := at(t, n)
		record := hostrecord.Record{Loop: "long", Ref: "long", Kind: "steward", Branch: "refs/heads/here", FirstRun: "run-first"}
		require.NoError(t, hostrecord.Write(c.Home, record))
		rows, err := c.Listed(t.Context())
		require.NoError(t, err)
		require.Equal(t, "here", rows[0].Branch, "of the record")
		if status == running {
			require.Equal(t, int64(7), rows[0].StartedAt.Unix())
		}
	}
}

func TestTheInboxHasEveryGateOldestFirstAndSaysForWhomALoopWorks(t *testing.T) {
	gate := func(id string, opened int) *loop.Gate {
		return &loop.Gate{ID: id, Kind: loop.GateDiff, OpenedAt: time.Unix(int64(opened), 0).UTC()}
	}
	paused := loop.State{Loop: "paused", Status: loop.Waiting, Steward: "shop", PausedBy: loop.StewardName("shop"), Gate: &loop.Gate{ID: "p", Kind: loop.GatePause}}
	n := &namespace{
		listed: []*workflowpb.WorkflowExecutionInfo{
			listed(t, "shop", "Steward", 1, running, nil), listed(t, "child", "Deliver", 2, running, nil), listed(t, "paused", "Deliver", 2, running, nil),
			listed(t, "mine", "Improve", 3, running, nil), listed(t, "mute", "Improve", 4, running, nil), listed(t, "over", "Improve", 5, completed, nil),
		},
		answers: map[string]any{
			"shop/state":   steward.State{Steward: "shop", Status: loop.Running, Tasks: []steward.Task{{ID: "t1", Loops: []string{"child"}}}},
			"child/state":  loop.State{Loop: "child", Status: loop.Waiting, Gate: gate("g2", 200)},
			"paused/state": paused,
			"mine/state":   loop.State{Loop: "mine", Status: loop.Waiting, Gate: gate("g1", 100)},
		},
	}
	n.listed = append(n.listed, listed(t, "torn", "Steward", 6, running, nil))
	c := at(t, n)
	require.NoError(t, os.MkdirAll(c.Home.Loop("torn"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(c.Home.Loop("torn"), "workspace.json"), []byte("{"), 0o600))
	waiting, unknown, err := c.Inbox(t.Context())
	require.NoError(t, err)
	require.Equal(t, []client.Trouble{{Loop: "mute"}, {Loop: "torn", What: "its workspace record is damaged; the worker makes it again from the ledger"}}, unknown)
	_, err = c.Stewarding(t.Context(), "torn")
	require.Equal(t, fault.LedgerDamaged, fault.CodeOf(err), "not that this host has no ledger: %v", err)
	require.Len(t, waiting, 2, "a loop that its steward alone has paused waits for nobody")
	require.Equal(t, []string{"mine", "", ""}, []string{waiting[0].Loop, waiting[0].Steward, waiting[0].Task})
	require.Equal(t, []string{"child", "shop", "t1"}, []string{waiting[1].Loop, waiting[1].Steward, waiting[1].Task})
}

func TestAStewardsListsAreReadToTheirEnd(t *testing.T) {
	tasks := func(ids ...string) (all []steward.Task) {
		for _, id := range ids {
			all = append(all, steward.Task{ID: id})
		}
		return all
	}
	n := &namespace{answers: map[string]any{
		"shop/tasks/0": launch.TasksView{Tasks: tasks("a", "b"), Count: 3, Next: 2},
		"shop/tasks/2": launch.TasksView{Tasks: tasks("c"), Count: 3},
	}}
	c := at(t, n)
	s, err := c.Complete(t.Context(), "shop", steward.State{Tasks: tasks("a"), TasksCount: 3})
	require.NoError(t, err)
	require.Equal(t, tasks("a", "b", "c"), s.Tasks)
	delete(n.answers, "shop/tasks/2")
	_, err = c.Complete(t.Context(), "shop", steward.State{Tasks: tasks("a"), TasksCount: 3})
	require.Error(t, err)
}

func TestACommandForALoopSaysThatAnIDIsAStewards(t *testing.T) {
	n := &namespace{listed: []*workflowpb.WorkflowExecutionInfo{listed(t, "shop", "Steward", 1, running, nil)}}
	c := at(t, n)
	require.Equal(t, client.Steward, c.FamilyOf(t.Context(), "shop"))
	require.Equal(t, client.Loop, c.FamilyOf(t.Context(), "other"))
	_, err := c.Send(t.Context(), "shop", "pause", loop.Message{})
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))
	require.ErrorContains(t, err, "shop is a steward, not a loop")
}

func TestALoopThatWasCutOffWhileItOpenedIsSaidToOpen(t *testing.T) {
	c := at(t, &namespace{})
	store := filepath.Join(t.TempDir(), "store.git")
	require.NoError(t, exec.Command("git", "init", "--quiet", "--bare", store).Run())
	enrolled := func(id string) hostrecord.Record {
		return hostrecord.Record{Loop: id, Ref: id, Kind: "improve", FirstRun: "run-" + id, Store: store, Ledger: "refs/pawl-ledger/" + id, Branch: "refs/heads/pawl/" + id}
	}
	require.NoError(t, hostrecord.Write(c.Home, enrolled("cut")))
	lost := enrolled("lost")
	require.NoError(t, hostrecord.Write(c.Home, lost))
	hostrecord.Note(c.Home, "lost", map[string]string{lost.Ledger: "f00"})
	closed := enrolled("closed")
	closed.Closed = true
	require.NoError(t, hostrecord.Write(c.Home, closed))
	gone := enrolled("gone")
	gone.Closed = true
	require.NoError(t, hostrecord.Write(c.Home, gone))
	hostrecord.Note(c.Home, "gone", map[string]string{gone.Ledger: "f00"})
	crew := enrolled("crew")
	crew.Kind, crew.Branch = "steward", ""
	require.NoError(t, hostrecord.Write(c.Home, crew))
	noted := map[string]hostrecord.End{
		"unready": {Run: "run-unready", Status: "failed", Code: fault.PreconditionFailed, Reason: "no agent", Time: time.Now()},
		"stopped": {Run: "run-stopped", Status: "halted", Code: fault.Cancelled, Reason: "halted", Time: time.Now()},
	}
	for id, end := range noted {
		r := enrolled(id)
		r.Closed = true
		require.NoError(t, hostrecord.Write(c.Home, r))
		require.NoError(t, hostrecord.NoteEnd(c.Home, r, end))
	}
	rows, err := c.Kept(t.Context())
	require.NoError(t, err)
	status, trouble, refused := map[string]string{}, map[string]string{}, []string{}
	for _, r := range rows {
		if _, ok := noted[r.Loop]; !ok {
			status[r.Loop], trouble[r.Loop] = r.Status, r.Trouble
		}
		if r.Refused {
			refused = append(refused, r.Loop)
		}
	}
	require.ElementsMatch(t, []string{"closed", "unready"}, refused, "without an engine too, only --all lists them")
	require.Contains(t, trouble["gone"], "refs/pawl-ledger/gone is missing from the store "+store)
	require.Empty(t, trouble["closed"])
	require.Equal(t, map[string]string{"cut": "opening", "crew": "opening", "lost": "unknown", "closed": "failed", "gone": "unknown"}, status, "what is closed without an entry was refused")
}
