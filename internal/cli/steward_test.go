package cli_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pawl/config"
	"pawl/internal/cli"
	"pawl/internal/client"
	"pawl/internal/client/launch"
	"pawl/internal/engine/auth"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// fakeProject is a Temporal service with the steward shop and the loop shop-b-fix, which works for it and waits at
// its contract. The steward answers messages like a real one (steward.Answer).
type fakeProject struct {
	sdk.Client
	state   steward.State
	child   loop.State
	started *charter.Charter
	resumed []any
	options sdk.StartWorkflowOptions
	sent    []steward.Message
	silent  bool // no worker answers
	busy    bool // nor to the query `task`
	over    bool // the steward has ended
	all     []steward.Task
	nightly bool   // there is a schedule
	failing string // why an activity of the steward is tried again
}

func project() *fakeProject {
	plan := &task.Plan{Hash: testHash, By: "planner", Needs: []task.Need{{Kind: task.NeedTier, Text: "tier T1"}}, Steps: []task.Step{{ID: "fix", Kind: "deliver"}}}
	return &fakeProject{
		state: steward.State{
			Steward: "shop", Status: loop.Waiting, State: task.Waiting, Mode: "mission", Queue: []string{"c"}, TasksCount: 3,
			Tasks: []steward.Task{
				{ID: "a", Title: "Change the schema", State: task.Waiting, Tier: task.T1, TierBy: "rules", TierReasons: []task.TierReason{{Tier: task.T1, Text: "paths db/**"}}, Plan: plan, WaitingFor: &steward.WaitingFor{Gate: "tier-7"}},
				{
					ID: "b", Title: "Fix the total", State: task.Executing, Tier: task.T3, Loops: []string{"shop-b-fix"}, Actions: 2, WaitingFor: &steward.WaitingFor{Loop: "shop-b-fix", Gate: "contract-5", What: "approve the contract"},
					Steps: []steward.Step{{ID: "fix", Loop: "shop-b-fix", Status: steward.Asking}}, Log: []task.Action{{Name: "step fix", Outcome: "started"}},
				},
				{ID: "c", Title: "Later", State: task.Idle, Priority: 2},
			},
			Gates:      []loop.Gate{{ID: "tier-7", Kind: steward.GateTier, Task: "a", Summary: "the plan of a needs an approval", Hash: testHash, Choices: []string{"replan", "cancel", "intervene"}, OpenedAt: now.Add(-time.Hour)}},
			GatesCount: 1, Remote: "2 issues and 1 pull request are open, CI of main: success", Drift: []task.Drift{{Name: "artifact", What: "STATUS_LEDGER.md", Text: "changed by hand"}}, StartedAt: now.Add(-2 * time.Hour),
			Indicators: steward.Indicators{Actions: 12, Milestones: 3, Transitions: 9, Errors: 1, Repeats: 2, ExecutingMs: 90_000, Done: 4},
		},
		child: loop.State{Loop: "shop-b-fix", Kind: "deliver", Status: loop.Waiting, Gate: &loop.Gate{ID: "contract-5", Kind: loop.GateContract, Summary: "approve the contract", Hash: testHash, Answers: []string{"approve", "reject"}, OpenedAt: now.Add(-2 * time.Hour)}},
	}
}

func (f *fakeProject) Close() {}

func (f *fakeProject) typeOf(id string) (string, error) {
	switch id {
	case "shop":
		return "Steward", nil
	case "shop-b-fix":
		return "Deliver", nil
	}
	return "", serviceerror.NewNotFound("no such workflow")
}

func (f *fakeProject) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	name, err := f.typeOf(id)
	if err != nil {
		return nil, err
	}
	status := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	if f.over {
		status = enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	}
	d := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: status, Type: &commonpb.WorkflowType{Name: name},
	}}
	if f.failing != "" && id == "shop" {
		d.PendingActivities = []*workflowpb.PendingActivityInfo{{ActivityType: &commonpb.ActivityType{Name: "OpenSteward"}, LastFailure: &failurepb.Failure{Message: f.failing}}}
	}
	return d, nil
}

func (f *fakeProject) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, id := range []string{"shop", "shop-b-fix"} {
		name, _ := f.typeOf(id)
		out.Executions = append(out.Executions, &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run-1"}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
			Type: &commonpb.WorkflowType{Name: name}, StartTime: timestamppb.New(now),
		})
	}
	return out, nil
}

func (f *fakeProject) QueryWorkflow(_ context.Context, id, _, name string, _ ...any) (converter.EncodedValue, error) {
	if f.silent {
		return nil, context.DeadlineExceeded
	}
	switch id + " " + name {
	case "shop state":
		return encode(f.state), nil
	case "shop gates":
		return encode(launch.GatesView{Gates: f.state.Gates}), nil
	case "shop tasks":
		return encode(launch.TasksView{Tasks: f.all}), nil
	case "shop-b-fix state":
		return encode(f.child), nil
	case "shop task":
		if f.busy {
			return nil, context.DeadlineExceeded
		}
	}
	return nil, serviceerror.NewQueryFailed("unknown query " + name)
}

func (f *fakeProject) UpdateWorkflow(_ context.Context, o sdk.UpdateWorkflowOptions) (sdk.WorkflowUpdateHandle, error) {
	m := o.Args[0].(steward.Message)
	f.sent = append(f.sent, m)
	reply, err := steward.Answer(f.state, charter.Defaults(), o.UpdateName, m)
	if err != nil {
		err = temporal.NewNonRetryableApplicationError(err.Error(), string(fault.CodeOf(err)), nil)
	}
	return fakeUpdate{reply: reply.Text, err: err}, nil
}

func (f *fakeProject) SignalWorkflow(_ context.Context, _, _, name string, arg any) error {
	f.sent = append(f.sent, arg.(steward.Message))
	return nil
}

func (f *fakeProject) ExecuteWorkflow(_ context.Context, o sdk.StartWorkflowOptions, name any, args ...any) (sdk.WorkflowRun, error) {
	if f.started != nil {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("already", "", "")
	}
	c := args[0].(charter.Charter)
	f.started, f.options, f.resumed = &c, o, args[1:]
	return startedRun{}, nil
}

func (f *fakeProject) DescribeTaskQueue(context.Context, string, enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{}, nil
}

func (f *fakeProject) ScheduleClient() sdk.ScheduleClient { return &schedules{of: f} }

// schedules are those of the steward: nightly, or none.
type schedules struct {
	sdk.ScheduleClient
	sdk.ScheduleHandle
	of   *fakeProject
	read bool
}

func (s *schedules) List(context.Context, sdk.ScheduleListOptions) (sdk.ScheduleListIterator, error) {
	return s, nil
}
func (s *schedules) HasNext() bool { return s.of.nightly && !s.read }
func (s *schedules) Next() (*sdk.ScheduleListEntry, error) {
	s.read = true
	return &sdk.ScheduleListEntry{ID: "shop/nightly"}, nil
}
func (s *schedules) GetHandle(context.Context, string) sdk.ScheduleHandle { return s }
func (s *schedules) Describe(context.Context) (*sdk.ScheduleDescription, error) {
	return &sdk.ScheduleDescription{Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{"pawl": {}}}}, nil
}
func (s *schedules) Delete(context.Context) error { s.of.nightly = false; return nil }

type startedRun struct{ sdk.WorkflowRun }

func (startedRun) GetRunID() string { return "run-1" }

// overProject is a command line for that service.
func overProject(t *testing.T, f *fakeProject) *bench {
	b := newBench(t, newFake())
	b.deps.Dial = func(context.Context, config.Temporal, string, *slog.Logger) (sdk.Client, error) { return f, nil }
	return b
}

func (b *bench) file(name, text string) string {
	path := filepath.Join(b.dir, name)
	require.NoError(b.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestASubmittedTaskIsWhatTheFileSays(t *testing.T) {
	f := project()
	b := overProject(t, f)
	require.Equal(t, 0, b.run(nil, "steward", "submit", "shop", b.file("t.md", "---\nid: retry\npriority: 3\n---\n# Retry\n\nThree times.\n"), "--by", "ann"), b.stderr.String())
	require.Contains(t, b.stdout.String(), "shop: task retry")
	var submitted task.Task
	require.NoError(t, json.Unmarshal(f.sent[0].Task, &submitted))
	require.Equal(t, task.Task{ID: "retry", Title: "Retry", Body: "# Retry\n\nThree times.", Priority: 3}, submitted)
	require.Equal(t, "ann", f.sent[0].By)
	require.Equal(t, 2, b.run(nil, "steward", "submit", "shop", b.file("t.md", "---\nprio: 3\n---\nx\n")))
	require.Len(t, f.sent, 1, "what is no task is not sent")
}

func TestS4_AnApprovalNamesTheHashAndAChoiceIsBoundToItsGate(t *testing.T) {
	f := project()
	b := overProject(t, f)
	require.Equal(t, 2, b.run(nil, "steward", "answer", "shop", "--task", "a", "--approve"))
	require.Contains(t, b.stderr.String(), "--approve needs --hash")
	require.Equal(t, 2, b.run(nil, "steward", "answer", "shop", "--task", "a"))
	require.Empty(t, f.sent)
	require.Equal(t, 2, b.run(nil, "steward", "answer", "shop", "--task", "a", "--approve", "--hash", "ffffffffffffffff"))
	require.Contains(t, b.stderr.String(), "HASH_MISMATCH")
	require.Equal(t, 0, b.run(nil, "steward", "answer", "shop", "--task", "a", "--approve", "--hash", testHash[:16]), b.stderr.String())
	require.Empty(t, f.sent[1].Gate, "the hash says what it is for")
	require.Equal(t, 0, b.run(nil, "steward", "answer", "shop", "--task", "a", "--choice", "cancel", "--note", "no"), b.stderr.String())
	require.Equal(t, "tier-7", f.sent[2].Gate)
	require.Equal(t, 2, b.run(nil, "steward", "answer", "shop", "--task", "b", "--choice", "cancel"))
	require.Contains(t, b.stderr.String(), "pawl show shop-b-fix", "what a child asks is answered at the child")
}

func TestEveryMessageOfAStewardHasACommand(t *testing.T) {
	f := project()
	b := overProject(t, f)
	for _, c := range []struct {
		args []string
		want string // the message that arrives
	}{
		{[]string{"prioritize", "shop", "c", "7"}, `{"by":"ann","task":"c","priority":7}`},
		{[]string{"prioritize", "shop", "c", "-5"}, `{"by":"ann","task":"c","priority":-5}`},
		{[]string{"prioritize", "shop", "-5", "--task", "c"}, `{"by":"ann","task":"c","priority":-5}`},
		{[]string{"prioritize", "shop", "c", "--json", "-5"}, `{"by":"ann","task":"c","priority":-5}`},
		{[]string{"tier", "shop", "c", "T2"}, `{"by":"ann","task":"c","tier":"T2"}`},
		{[]string{"interrupt", "shop", "c"}, `{"by":"ann","task":"c"}`},
		{[]string{"pause", "shop"}, `{"by":"ann"}`},
		{[]string{"pause", "shop", "--task", "b"}, `{"by":"ann","task":"b"}`},
		{[]string{"hold", "shop", "c", "--note", "not yet"}, `{"by":"ann","note":"not yet","task":"c"}`},
		{[]string{"resume", "shop", "c"}, `{"by":"ann","task":"c"}`},
		{[]string{"steer", "shop", "b", "mind", "the", "tests"}, `{"by":"ann","note":"mind the tests","task":"b"}`},
		{[]string{"mode", "shop", "plan"}, `{"by":"ann","mode":"plan"}`},
		{[]string{"stop", "shop", "c"}, `{"by":"ann","task":"c"}`},
		{[]string{"stop", "shop"}, `{"by":"ann"}`},
	} {
		f.sent = nil
		require.Equal(t, 0, b.run(nil, append([]string{"steward"}, append(c.args, "--by", "ann")...)...), "%v: %s", c.args, b.stderr.String())
		text, err := json.Marshal(f.sent[0])
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(text))
	}
	for _, args := range [][]string{{"prioritize", "shop", "c", "high"}, {"prioritize", "shop", "c"}, {"prioritize", "shop", "c", "-x"}, {"prioritize", "shop", "c", "--note", "-5"}, {"interrupt", "shop"}, {"pause", "shop", "b", "c"}, {"mode", "shop", "plan", "--task", "b"}, {"stop", "shop", ""}, {"stop", "shop", "--task", ""}, {"pause", ""}, {"continue", "shop"}, {"extend", "shop", "--limit", "costUSD=5"}} {
		require.Equal(t, 2, b.run(nil, append([]string{"steward"}, args...)...), "%v", args)
	}
	require.Contains(t, b.stderr.String(), "ALO_LOOP_NOT_PAUSED")
}

func TestWhereNoWorkerAnswersAStewardsMessageIsASignal(t *testing.T) {
	f := project()
	f.silent = true
	b := overProject(t, f)
	require.Equal(t, 0, b.run(nil, "steward", "pause", "shop", "--json"), b.stderr.String())
	require.Contains(t, b.stdout.String(), `"via": "signal"`)
	require.Contains(t, b.stderr.String(), "it takes effect when a worker runs")
}

// Where the engine is stopped, a steward is ended by a note on this host. Its schedules go when it records that.
func TestAStewardWhoseEngineIsStoppedIsEnded(t *testing.T) {
	b := newBench(t, newFake())
	b.deps.Embedded.Find = func(context.Context, string) (cli.Found, bool) { return cli.Found{}, false }
	b.deps.Embedded.Share = func(context.Context, string, auth.Wish, *slog.Logger) (cli.Engine, error) {
		return nil, fault.New(fault.EngineUnreachable, "process 7 runs the engine of this host, and it is stopped")
	}
	h := home.Home{Dir: filepath.Join(b.dir, "home")}
	r := hostrecord.Record{Loop: "shop", Ref: "shop", Kind: "steward", FirstRun: "run-1", Store: filepath.Join(b.dir, "none.git")}
	require.NoError(t, hostrecord.Write(h, r))
	require.Equal(t, 0, b.run(nil, "steward", "stop", "shop"), b.stderr.String())
	require.Contains(t, b.stdout.String(), "shop: halted. Its end is recorded when the engine answers again")
	require.Empty(t, b.stderr.String())
	require.True(t, hostrecord.Awaits(h, r))
}

func TestLoopsAndStewardsAreToldApart(t *testing.T) {
	f := project()
	b := overProject(t, f)
	require.Equal(t, 2, b.run(nil, "pause", "shop"))
	require.Contains(t, b.stderr.String(), "shop is a steward, not a loop")
	require.Contains(t, b.stderr.String(), "pawl steward show shop")
	require.Equal(t, 2, b.run(nil, "steward", "pause", "shop-b-fix"))
	require.Contains(t, b.stderr.String(), "shop-b-fix is a loop, not a steward")
	require.Equal(t, 2, b.run(nil, "steward", "show", "other"))
	require.Contains(t, b.stderr.String(), "there is no steward other (ALO_LOOP_NOT_FOUND)")
	require.Contains(t, b.stderr.String(), "`pawl steward list` lists")
	require.Empty(t, f.sent)
	require.Equal(t, 2, b.run(nil, "run", b.file("steward.yaml", "kind: steward\nname: shop\n")))
	require.Contains(t, b.stderr.String(), "pawl steward up FILE")
	require.Equal(t, 2, b.run(nil, "steward", "up", b.spec()))
	require.Contains(t, b.stderr.String(), "pawl run FILE")
}

func TestShowOfAStewardSaysWhatWaitsAndHowToAnswer(t *testing.T) {
	b := overProject(t, project())
	require.Equal(t, 0, b.run(nil, "show", "shop"), b.stderr.String())
	for _, want := range []string{
		"pawl steward answer shop --task a --gate tier-7 --approve --hash 0123456789abcdef", "--choice replan", "pawl show shop-b-fix",
		"12 actions, 3 milestones", "artifact STATUS_LEDGER.md", "remote        2 issues and 1 pull request are open, CI of main: success", "Change the schema", "EXECUTING", "4 done",
	} {
		require.Contains(t, b.stdout.String(), want)
	}
	b = overProject(t, project())
	require.Equal(t, 0, b.run(nil, "steward", "show", "shop", "a"), b.stderr.String())
	require.Contains(t, b.stdout.String(), "needs an approval: tier T1")
	require.Contains(t, b.stdout.String(), "no estimate (n = 0)")
	require.NotContains(t, b.stdout.String(), "shop-b-fix")
	require.Equal(t, 2, b.run(nil, "steward", "show", "shop", "z"))
	require.Contains(t, b.stderr.String(), "has no task z")
	b = overProject(t, project())
	require.Equal(t, 0, b.run(nil, "steward", "show", "shop", "--json"))
	var state steward.State
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &state))
	require.Len(t, state.Tasks, 3)
}

// An activity that is tried again is not in the steward's state, so without this a steward that can't be opened would
// just seem to have nothing to do.
func TestAStewardWhoseActivityFailsSaysSo(t *testing.T) {
	f := project()
	f.failing = "the repository /work is gone"
	const said = "trouble  shop: OpenSteward fails and is tried again: the repository /work is gone"
	for _, command := range [][]string{{"show", "shop"}, {"steward", "show", "shop"}, {"steward", "show", "shop", "a"}, {"list"}, {"steward", "list"}} {
		b := overProject(t, f)
		require.Equal(t, 0, b.run(nil, command...), b.stderr.String())
		require.Contains(t, b.stdout.String(), said, command)
	}
	for _, command := range [][]string{{"show", "shop", "--json"}, {"steward", "show", "shop", "a", "--json"}} {
		b := overProject(t, f)
		require.Equal(t, 0, b.run(nil, command...), b.stderr.String())
		var got struct{ Trouble string }
		require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &got))
		require.Equal(t, "OpenSteward fails and is tried again: the repository /work is gone", got.Trouble)
	}
}

func TestTheInboxHasEverythingThatWaitsOnceTheOldestFirst(t *testing.T) {
	b := overProject(t, project())
	require.Equal(t, 0, b.run(nil, "inbox", "--json"), b.stderr.String())
	var all []client.Waiting
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &all))
	require.Len(t, all, 2)
	require.Equal(t, []string{"shop-b-fix", "shop", "b", "contract-5"}, []string{all[0].Loop, all[0].Steward, all[0].Task, all[0].Gate.ID})
	require.Equal(t, []string{"", "shop", "a", "tier-7"}, []string{all[1].Loop, all[1].Steward, all[1].Task, all[1].Gate.ID})
	require.Equal(t, "pawl approve shop-b-fix --hash 0123456789abcdef", all[0].Ways[0].Command)

	b = overProject(t, project())
	require.Equal(t, 0, b.run(nil, "inbox"))
	lines := strings.Split(strings.TrimSpace(b.stdout.String()), "\n")
	require.Len(t, lines, 5, "two lines for each of several: %q", lines)
	require.True(t, strings.HasPrefix(lines[0], "loop shop-b-fix"), lines[0])
	require.Equal(t, "  pawl approve shop-b-fix --hash 0123456789abcdef", lines[1])
	require.True(t, strings.HasPrefix(lines[2], "steward shop, task a"), lines[2])
	require.Contains(t, lines[3], "pawl steward answer shop --task a --gate tier-7")
	require.Contains(t, lines[4], "pawl steward show NAME TASK")

	none := project()
	none.state.Gates, none.child.Gate = nil, nil
	b = overProject(t, none)
	require.Equal(t, 0, b.run(nil, "inbox"))
	require.Contains(t, b.stderr.String(), "nothing waits for you")

	for by, waits := range map[string]string{loop.StewardName("shop"): "nothing waits for you", "ann": ""} {
		gaveWay := project()
		gaveWay.state.Gates, gaveWay.child.Steward, gaveWay.child.PausedBy = nil, "shop", by
		gaveWay.child.Gate = &loop.Gate{ID: "pause-9", Kind: loop.GatePause}
		b = overProject(t, gaveWay)
		require.Equal(t, 0, b.run(nil, "inbox"))
		require.Contains(t, b.stderr.String(), waits, "a loop that its steward has paused waits for no person")
		require.Equal(t, waits == "", strings.Contains(b.stdout.String(), "pawl continue shop-b-fix"))
	}

	quiet := project()
	quiet.silent = true
	b = overProject(t, quiet)
	require.Equal(t, 0, b.run(nil, "inbox"))
	require.Contains(t, b.stderr.String(), "no worker answers for shop, shop-b-fix, and this host has no ledger of them; they may wait too")

	require.NoError(t, os.MkdirAll(filepath.Join(b.dir, "home/loops/shop"), 0o700))
	b.file("home/loops/shop/workspace.json", "{")
	require.Equal(t, 0, b.run(nil, "inbox"))
	require.Contains(t, b.stderr.String(), "shop may wait too, but no worker answers for it: its workspace record is damaged; the worker makes it again from the ledger (start a worker with `pawl up`)")
	require.Contains(t, b.stderr.String(), "no worker answers for shop-b-fix, and this host has no ledger of it; it may wait too")
	require.NotEqual(t, 0, b.run(nil, "log", "shop", "--verify"))
	require.Contains(t, b.stderr.String(), "the workspace record of shop is damaged")
}

func TestAStewardIsStartedUnderItsNameAndListed(t *testing.T) {
	f := project()
	b := overProject(t, f)
	path := b.file("steward.yaml", "kind: steward\nname: shop\nlimits: {parallel: 2}\n")
	f.silent = true
	require.Equal(t, 0, b.run(nil, "steward", "up", path, "--detach"), b.stderr.String())
	require.Equal(t, "shop", f.options.ID)
	require.Equal(t, 2, f.started.Limits.Parallel)
	require.Equal(t, b.dir, f.started.Repo.Path)
	require.NotEmpty(t, f.options.Memo["startedBy"])
	require.Contains(t, b.stdout.String(), "pawl steward submit shop FILE")
	require.Empty(t, f.resumed)
	require.Equal(t, 2, b.run(nil, "steward", "up", path, "--detach"))
	require.Contains(t, b.stderr.String(), "ALO_LOOP_ALREADY_RUNNING")
	b = overProject(t, f)
	require.Equal(t, 0, b.run(nil, "steward", "list", "--json"), b.stderr.String())
	require.Contains(t, b.stdout.String(), `"kind": "steward"`)
	require.NotContains(t, b.stdout.String(), "shop-b-fix")
}

func TestS11_AStewardIsStartedAgainFromItsLedger(t *testing.T) {
	f := project()
	b := overProject(t, f)
	path := b.file("steward.yaml", "kind: steward\nname: shop\n")
	f.silent = true
	require.Equal(t, 0, b.run(nil, "steward", "up", path, "--detach", "--ledger", "abc"), b.stderr.String())
	require.Equal(t, []any{launch.From("abc")}, f.resumed)
}

func TestATaskThatNobodyIsAskedAboutIsNotCalledUnknown(t *testing.T) {
	f := project()
	f.busy = true
	b := overProject(t, f)
	require.NotEqual(t, 0, b.run(nil, "steward", "show", "shop", "z"))
	require.Contains(t, b.stderr.String(), "does not answer")
	require.NotContains(t, b.stderr.String(), "has no task")
}

func TestTheStateOfAStewardAsJSONIsComplete(t *testing.T) {
	f := project()
	f.state.TasksCount, f.all = 4, append(f.state.Tasks, steward.Task{ID: "d"})
	b := overProject(t, f)
	require.Equal(t, 0, b.run(nil, "steward", "show", "shop", "--json"), b.stderr.String())
	var state steward.State
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &state))
	require.Len(t, state.Tasks, 4)
}

func TestG19_StopListsWhatIsOpenAndAsks(t *testing.T) {
	f := project()
	stop := []string{"steward", "stop", "shop"}
	for typed, exit := range map[string]int{"y\n": 0, "n\n": 5, "\n": 5, "": 5} {
		f.sent = nil
		b := overProject(t, f)
		b.atTerminal()
		require.Equal(t, exit, b.run(strings.NewReader(typed), stop...), "%q", typed)
		for _, want := range []string{"open tasks of shop will not be done", "a steward that was stopped can't continue", "\n  a  WAITING_FOR_HUMAN  Change the schema\n", "End the steward, its loops and these tasks? [y/N] "} {
			require.Contains(t, b.stderr.String(), want)
		}
		require.Equal(t, exit == 0, len(f.sent) == 1, "%q", typed)
	}
	for _, args := range [][]string{append(stop, "--yes"), append(stop, "--json"), append(stop, "c")} {
		f.sent = nil
		b := overProject(t, f)
		b.atTerminal()
		require.Equal(t, 0, b.run(nil, args...), "%v: %s", args, b.stderr.String())
		require.NotContains(t, b.stderr.String(), "End the steward")
		require.Len(t, f.sent, 1)
	}
	b := overProject(t, f)
	f.sent = nil
	require.Equal(t, 0, b.run(nil, stop...), "without a terminal nobody can be asked")
	require.Contains(t, b.stderr.String(), "open tasks of shop will not be done")
	require.Len(t, f.sent, 1)
	require.Equal(t, 0, b.run(nil, append(stop, "--help")...))
	require.Contains(t, b.stdout.String(), "can't continue")

	for i := range f.state.Tasks {
		f.state.Tasks[i].Outcome = steward.Done
	}
	b = overProject(t, f)
	b.atTerminal()
	require.Equal(t, 0, b.run(nil, stop...), "nothing is open")
	require.NotContains(t, b.stderr.String(), "[y/N]")
}

// A steward that was cancelled in Temporal leaves its schedules there, which would start Submit forever.
func TestStopTakesTheSchedulesOfAStewardThatHasEnded(t *testing.T) {
	f := project()
	f.over, f.nightly = true, true
	b := overProject(t, f)
	require.Equal(t, 2, b.run(nil, "steward", "stop", "shop"))
	require.Contains(t, b.stderr.String(), "has ended")
	require.False(t, f.nightly)
}
