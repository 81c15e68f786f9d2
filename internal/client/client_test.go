package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// service is a Temporal service with one loop "here", which waits at a gate. A method that a test does not expect
// panics, because the embedded interface is nil.
type service struct {
	sdk.Client
	silent  bool  // no worker answers
	refuses error // the error of an update
	status  enumspb.WorkflowExecutionStatus
	via     string // how the last message came
	sent    loop.Message

	down       int  // so many questions come before it answers
	taken      bool // a worker has taken its first task
	polls      bool // a worker asked for tasks a moment ago
	ends       bool // a signal ends the loop
	terminated bool
}

func (s *service) DescribeTaskQueue(context.Context, string, enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	if s.polls {
		return &workflowservice.DescribeTaskQueueResponse{Pollers: []*taskqueuepb.PollerInfo{{LastAccessTime: timestamppb.Now()}}}, nil
	}
	return &workflowservice.DescribeTaskQueueResponse{}, nil
}

func (s *service) GetWorkflowHistory(context.Context, string, string, bool, enumspb.HistoryEventFilterType) sdk.HistoryEventIterator {
	types := []enumspb.EventType{enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED}
	if s.taken {
		types = append(types, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED)
	}
	return &history{types}
}

type history struct{ types []enumspb.EventType }

func (h *history) HasNext() bool { return len(h.types) > 0 }

func (h *history) Next() (*historypb.HistoryEvent, error) {
	e := &historypb.HistoryEvent{EventType: h.types[0]}
	h.types = h.types[1:]
	return e, nil
}

// The loop runs already.
func (s *service) ExecuteWorkflow(context.Context, sdk.StartWorkflowOptions, any, ...any) (sdk.WorkflowRun, error) {
	return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "run")
}

func (s *service) TerminateWorkflow(context.Context, string, string, string, ...any) error {
	s.terminated = true
	return nil
}

func (s *service) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if s.down > 0 {
		s.down--
		return nil, serviceerror.NewUnavailable("the database is being mended")
	}
	info := s.info()
	switch id {
	case "here":
	case "town":
		info.Execution.WorkflowId, info.Type.Name = id, "Steward"
	default:
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
}

func (s *service) info() *workflowpb.WorkflowExecutionInfo {
	return &workflowpb.WorkflowExecutionInfo{
		Status: s.status, FirstRunId: "first", Execution: &commonpb.WorkflowExecution{WorkflowId: "here", RunId: "run"},
		Type: &commonpb.WorkflowType{Name: "Improve"},
	}
}

func (s *service) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{s.info()}}, nil
}

func (s *service) QueryWorkflow(_ context.Context, _, _, name string, _ ...any) (converter.EncodedValue, error) {
	if s.silent {
		return nil, context.DeadlineExceeded
	}
	gate := &loop.Gate{ID: "contract-5", Kind: loop.GateContract}
	return value{map[string]any{"gate": gate, "state": loop.State{Loop: "here", Status: loop.Waiting, Gate: gate}}[name]}, nil
}

func (s *service) SignalWorkflow(_ context.Context, _, _, _ string, arg any) error {
	s.via = "signal"
	s.sent, _ = arg.(loop.Message)
	if s.ends {
		s.status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}
	return nil
}

func (s *service) UpdateWorkflow(_ context.Context, o sdk.UpdateWorkflowOptions) (sdk.WorkflowUpdateHandle, error) {
	s.via, s.sent = "update", o.Args[0].(loop.Message)
	return handle{err: s.refuses}, nil
}

type handle struct {
	sdk.WorkflowUpdateHandle
	err error
}

func (h handle) Get(_ context.Context, out any) error {
	*out.(*string) = "contract-5: approve"
	return h.err
}

type value struct{ v any }

func (value) HasValue() bool { return true }
func (v value) Get(out any) error {
	data, err := json.Marshal(v.v)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}

func reach(t *testing.T, s *service) *client.Client {
	if s.status == 0 {
		s.status = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	}
	return &client.Client{SDK: s, Home: home.Home{Dir: t.TempDir()}, Address: "127.0.0.1:7233", Namespace: "default", Now: time.Now}
}

func TestAMessageIsAnUpdateBoundToTheGateThatIsOpen(t *testing.T) {
	s := &service{}
	sent, err := reach(t, s).Send(t.Context(), "here", "reject", loop.Message{Note: "no"})
	require.NoError(t, err)
	require.Equal(t, "update", sent.Via)
	require.Equal(t, loop.Message{Note: "no", Gate: "contract-5"}, s.sent)
	_, err = reach(t, s).Send(t.Context(), "here", "approve", loop.Message{Hash: "abc"})
	require.NoError(t, err)
	require.Equal(t, loop.Message{Hash: "abc"}, s.sent, "the hash says what it is for, and the loop whether it was given before")
	_, err = reach(t, s).Send(t.Context(), "here", "pause", loop.Message{})
	require.NoError(t, err)
	require.Empty(t, s.sent.Gate, "a pause answers no gate")
}

func TestWhereNoWorkerAnswersAMessageIsASignal(t *testing.T) {
	s := &service{silent: true}
	sent, err := reach(t, s).Send(t.Context(), "here", "pause", loop.Message{By: "ann"})
	require.NoError(t, err)
	require.Equal(t, "signal", sent.Via)
	require.Equal(t, "ann", s.sent.By)
}

// TestNobodySaysThatAMessageArrivedThatHasNoReply: an update that no worker has accepted dies with the engine.
func TestNobodySaysThatAMessageArrivedThatHasNoReply(t *testing.T) {
	_, err := reach(t, &service{refuses: context.DeadlineExceeded}).Send(t.Context(), "here", "pause", loop.Message{})
	require.ErrorContains(t, err, "the loop here has not replied to the message")
	require.ErrorContains(t, err, "send the message again")
}

// waits makes this host hold the loop here, which waits at a breakpoint, with that record.
func waits(t *testing.T, c *client.Client, r hostrecord.Record) {
	t.Helper()
	holds(t, c, r, `{"loop": "here", "kind": "improve", "status": "paused", "gate": {"id": "breakpoint-7", "kind": "breakpoint"}}`)
}

// holds makes this host hold the loop here in that state, with that record.
func holds(t *testing.T, c *client.Client, r hostrecord.Record, state string) {
	t.Helper()
	store := filepath.Join(t.TempDir(), "store.git")
	script := exec.Command("sh", "-ec", `git init --quiet --object-format=sha1 --bare "$0"; cd "$0"
		tree=$(printf '100644 blob %s\tstate.json\n100644 blob %s\tloop-results.tsv\n100644 blob %s\tcontract.json\n' "$(git hash-object -w --stdin)" "$(git hash-object -w /dev/null)" "$(echo {} | git hash-object -w --stdin)" | git mktree)
		git update-ref refs/pawl-ledger/here "$(git -c user.name=x -c user.email=x commit-tree -m x "$tree")"`, store)
	script.Stdin = strings.NewReader(state)
	out, err := script.CombinedOutput()
	require.NoError(t, err, string(out))
	r.Loop, r.Ref, r.Kind, r.FirstRun, r.Store, r.Ledger = "here", "here", "improve", "first", store, "refs/pawl-ledger/here"
	require.NoError(t, hostrecord.Write(c.Home, r))
}

// The worker has noticed the end of a loop that was terminated. Its ledger does not say so.
func TestALoopThatWasTerminatedWaitsForNobodyWithoutAnEngineToo(t *testing.T) {
	for _, r := range []hostrecord.Record{{}, {Closed: true}, {Closed: true, Remote: true}} {
		c := reach(t, &service{})
		c.SDK = nil
		waits(t, c, r)
		s, err := c.Snapshot(t.Context(), "here")
		require.NoError(t, err)
		rows, err := c.Kept(t.Context())
		require.NoError(t, err)
		waiting, _, err := c.Inbox(t.Context())
		require.NoError(t, err)
		if !r.Closed || r.Remote { // with a URL it may go on on another host
			require.Equal(t, []string{"paused", "paused"}, []string{string(s.State.Status), rows[0].Status})
			require.Len(t, waiting, 1)
			continue
		}
		require.Equal(t, []string{"halted", "halted"}, []string{string(s.State.Status), rows[0].Status})
		require.Contains(t, s.State.Reason, "terminated from outside, or behind its ledger", "nobody can be asked which")
		require.Nil(t, s.State.Gate)
		require.Empty(t, rows[0].Gate)
		require.Empty(t, waiting)
	}
}

// A loop with a URL that failed behind its ledger did so on this host, wherever its ledger goes on.
func TestALoopIsShownAsItsRunEndedWithoutAnEngineToo(t *testing.T) {
	for _, r := range []hostrecord.Record{{}, {Closed: true}, {Closed: true, Remote: true}} {
		c := reach(t, &service{})
		c.SDK = nil
		waits(t, c, r)
		r, _ = c.Record("here")
		end := hostrecord.End{Status: "failed", Code: fault.LedgerAhead, Reason: "the ledger is ahead", Time: time.Now()}
		require.NoError(t, hostrecord.NoteEnd(c.Home, r, end))
		s, err := c.Snapshot(t.Context(), "here")
		require.NoError(t, err)
		require.Equal(t, []string{"failed", "LEDGER_AHEAD", "the ledger is ahead"}, []string{string(s.State.Status), s.State.ErrorCode, s.State.Reason})
		rows, err := c.Kept(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"failed", "the ledger is ahead", ""}, []string{rows[0].Status, rows[0].Reason, rows[0].Gate})

		r.OpenedAt = time.Now().Add(time.Hour)
		require.NoError(t, hostrecord.Write(c.Home, r))
		_, ended := hostrecord.NotedEnd(c.Home, r)
		require.False(t, ended, "it was opened again since")
	}
}

// A loop that was started while no worker ran is known to the engine alone, and to the note of `pawl start`.
func TestALoopThatNoWorkerHasTakenIsListedAndHalted(t *testing.T) {
	s := &service{silent: true}
	c := reach(t, s)
	require.NoError(t, c.NoteStarted("here", "run-1", "improve", "/src"))
	c.SDK, c.Bring = nil, func(context.Context) error { c.SDK = s; return nil }
	rows, err := c.Kept(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"here", "opening", "/src"}, []string{rows[0].Loop, rows[0].Status, rows[0].Repo})
	_, err = c.Snapshot(t.Context(), "here")
	require.Equal(t, fault.NoWorker, fault.CodeOf(err))
	_, err = c.Send(t.Context(), "here", "pause", loop.Message{})
	require.Equal(t, fault.NoWorker, fault.CodeOf(err), "nobody would ever read it")

	sent, err := c.Send(t.Context(), "here", "halt", loop.Message{})
	require.NoError(t, err)
	require.Equal(t, "halted before it began", sent.Reply)
	require.True(t, s.terminated)
	c.SDK = nil
	rows, err = c.Kept(t.Context())
	require.NoError(t, err)
	require.Equal(t, "halted", rows[0].Status)
	_, err = c.Send(t.Context(), "here", "halt", loop.Message{})
	require.Equal(t, fault.GateClosed, fault.CodeOf(err))
	c.ForgetUnbegun("here")
	rows, err = c.Kept(t.Context())
	require.NoError(t, err)
	require.Empty(t, rows)
}

// Somebody copied the note: pawl removes only the one that it wrote, and does not look for ever for the other one.
func TestANoteThatStaysIsLeft(t *testing.T) {
	c := reach(t, &service{})
	r := hostrecord.Record{Loop: "here", FirstRun: "run-1", Closed: true}
	require.NoError(t, hostrecord.Announce(c.Home, r))
	notes := filepath.Join(c.Home.Dir, "opening")
	note, err := os.ReadFile(filepath.Join(notes, "run-1.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(notes, "copy.json"), note, 0o600))

	c.ForgetUnbegun("here")
	left, err := os.ReadDir(notes)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, "copy.json", left[0].Name())
}

// A worker that is away now has taken the loop before: what it has done has to be recorded, so the halt waits for it.
func TestAHaltOfALoopThatHasBegunWaitsForAWorker(t *testing.T) {
	s := &service{silent: true, taken: true}
	sent, err := reach(t, s).Send(t.Context(), "here", "halt", loop.Message{})
	require.NoError(t, err)
	require.Equal(t, "signal", sent.Via)
	require.False(t, s.terminated)
}

// On the host of a loop a halt ends it without a worker too. Only the record of its end waits for one.
func TestAHaltEndsALoopOfThisHostWithoutAWorker(t *testing.T) {
	for name, engine := range map[string]bool{"the service runs": true, "no engine runs": false} {
		t.Run(name, func(t *testing.T) {
			s := &service{silent: true, taken: true}
			c := reach(t, s)
			waits(t, c, hostrecord.Record{})
			c.Bring = func(context.Context) error { c.SDK = s; return nil }
			if !engine {
				c.SDK = nil
			}
			sent, err := c.Send(t.Context(), "here", "halt", loop.Message{By: "ann"})
			require.NoError(t, err)
			require.Equal(t, []string{"record", "signal"}, []string{sent.Via, s.via}, "its worker gets the signal")
			require.False(t, s.terminated, "its worker records the end and makes the proposal")
			for _, sdk := range []*service{s, nil} {
				if c.SDK = nil; sdk != nil {
					c.SDK = sdk
				}
				rows, err := c.Listed(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{"halted", ""}, []string{rows[0].Status, rows[0].Gate})
				found, err := c.Snapshot(t.Context(), "here")
				require.NoError(t, err)
				require.Equal(t, []string{"halted", "halted by ann", "ALO_CANCELLED"}, []string{string(found.State.Status), found.State.Reason, found.State.ErrorCode})
				waiting, _, err := c.Inbox(t.Context())
				require.NoError(t, err)
				require.Empty(t, waiting)
				_, err = c.Send(t.Context(), "here", "pause", loop.Message{})
				require.Equal(t, fault.GateClosed, fault.CodeOf(err))
			}
			r, _ := c.Record("here")
			require.True(t, hostrecord.Over(c.Home, r), "clean may")
			c.SDK = nil // it is brought
			require.NoError(t, c.Abandon(t.Context(), r))
			require.True(t, s.terminated, "no worker could record it any more")
		})
	}
}

// Until a worker has recorded a halt, the loop's ID is taken.
func TestALoopThatWasHaltedIsNotCalledRunning(t *testing.T) {
	s := &service{silent: true, taken: true}
	c := reach(t, s)
	waits(t, c, hostrecord.Record{})
	_, err := c.Start(t.Context(), "here", spec.Spec{Kind: "improve"}, "")
	require.ErrorContains(t, err, "is running already")

	_, err = c.Send(t.Context(), "here", "halt", loop.Message{})
	require.NoError(t, err)
	_, err = c.Start(t.Context(), "here", spec.Spec{Kind: "improve"}, "")
	require.Equal(t, fault.LoopAlreadyRunning, fault.CodeOf(err))
	require.ErrorContains(t, err, "was halted, and no worker has recorded that yet")
}

// What has recorded nothing yet is over with a halt.
func TestAHaltEndsALoopWhoseOpeningWasCutOff(t *testing.T) {
	s := &service{silent: true, taken: true}
	c := reach(t, s)
	holds(t, c, hostrecord.Record{}, "{}")
	r, _ := c.Record("here")
	r.Ledger = "refs/pawl-ledger/none"
	require.NoError(t, hostrecord.Write(c.Home, r))
	_, err := c.Send(t.Context(), "here", "halt", loop.Message{})
	require.NoError(t, err)
	require.True(t, s.terminated)
	c.SDK = nil
	rows, err := c.Listed(t.Context())
	require.NoError(t, err)
	require.Equal(t, "halted", rows[0].Status)
}

// For some seconds after its disk was full, an engine that runs does not answer: a halt waits, and nobody is told to start
// one.
func TestAHaltWaitsForAnEngineThatRecovers(t *testing.T) {
	s := &service{down: 2}
	_, err := reach(t, s).Send(t.Context(), "here", "halt", loop.Message{})
	require.NoError(t, err)
	require.Equal(t, "update", s.via)

	s = &service{down: 2}
	_, err = reach(t, s).Send(t.Context(), "here", "pause", loop.Message{})
	require.Equal(t, fault.EngineUnreachable, fault.CodeOf(err))
	f, _ := errors.AsType[*fault.Error](err)
	require.Contains(t, f.Advice(), "repeat this in a moment")
	require.NotContains(t, f.Advice(), "Start the engine")
}

// Guidance at a loop's last question reaches no agent, with or without a worker.
func TestSteerIsRefusedWhereNothingReadsIt(t *testing.T) {
	s := &service{silent: true}
	for state, refused := range map[string]bool{
		`{"loop": "here", "kind": "improve", "status": "waiting", "gate": {"id": "diff-7", "kind": "diff"}}`:         true,
		`{"loop": "here", "kind": "improve", "status": "waiting", "gate": {"id": "question-7", "kind": "question"}}`: false,
	} {
		c := reach(t, s)
		holds(t, c, hostrecord.Record{}, state)
		_, err := c.Send(t.Context(), "here", "steer", loop.Message{By: "ann", Note: "try a table"})
		if refused {
			require.ErrorContains(t, err, "no agent call is left")
			require.Empty(t, s.via, "nothing is sent")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "signal", s.via)
		s.via = ""
	}
}

// An engine that can't write records no message, and does not say why.
func TestAHaltOnAFullDiskSaysThatTheDiskIsFull(t *testing.T) {
	s := &service{refuses: context.DeadlineExceeded}
	c := reach(t, s)
	c.Home.Dir = filepath.Join(c.Home.Dir, "missing")
	_, err := c.Send(t.Context(), "here", "halt", loop.Message{})
	require.Equal(t, fault.EngineUnreachable, fault.CodeOf(err))
	require.ErrorContains(t, err, "nothing can be written to "+c.Home.Dir)
	require.ErrorContains(t, err, "halt has not arrived")
	_, err = c.Send(t.Context(), "gone", "halt", loop.Message{})
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err), "that is the answer, whatever the disk")
	s.refuses = nil
	_, err = c.Send(t.Context(), "here", "halt", loop.Message{})
	require.NoError(t, err, "it could be recorded all the same")
}

// TestE3_AMessageThatWaitsForAWorkerNamesItsGate: when a worker comes, another gate may be open.
func TestE3_AMessageThatWaitsForAWorkerNamesItsGate(t *testing.T) {
	s := &service{silent: true}
	c := reach(t, s)
	waits(t, c, hostrecord.Record{})
	_, err := c.Recorded(t.Context(), "here")
	require.NoError(t, err)
	_, err = c.Send(t.Context(), "here", "continue", loop.Message{})
	require.NoError(t, err)
	require.Equal(t, "signal", s.via)
	require.Equal(t, loop.Message{Gate: "breakpoint-7"}, s.sent)
}

func TestE6_AMessageWithACredentialIsNotSent(t *testing.T) {
	s := &service{}
	_, err := reach(t, s).Send(t.Context(), "here", "steer", loop.Message{By: "ann", Note: "use ghp_" + strings.Repeat("a1B2", 9)})
	require.ErrorContains(t, err, "note contains a GitHub token")
	require.Empty(t, s.sent)
}

func TestARefusalIsTheFaultThatTheLoopRefusedItWith(t *testing.T) {
	s := &service{refuses: wire.Encode(fault.New(fault.HashMismatch, "what waits has another hash").Advise("Look again."), nil)}
	_, err := reach(t, s).Send(t.Context(), "here", "approve", loop.Message{})
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.HashMismatch, f.Code)
	require.Equal(t, "what waits has another hash", f.What)
	require.Equal(t, "Look again.", f.Advice())
}

func TestTheTablesAdviceNamesTheLoop(t *testing.T) {
	s := &service{refuses: wire.Encode(fault.New(fault.GateClosed, "no gate is open"), nil)}
	_, err := reach(t, s).Send(t.Context(), "here", "approve", loop.Message{})
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, "See `pawl show here` for what the loop waits for, if anything.", f.Advice())
}

func TestALoopThatIsGoneOrOverIsATypedFault(t *testing.T) {
	c := reach(t, &service{})
	_, err := c.Send(t.Context(), "gone", "pause", loop.Message{})
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))
	_, err = c.Snapshot(t.Context(), "gone")
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))

	c = reach(t, &service{status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED})
	_, err = c.Send(t.Context(), "here", "approve", loop.Message{})
	require.Equal(t, fault.GateClosed, fault.CodeOf(err))
	_, err = c.Send(t.Context(), "here", "continue", loop.Message{})
	require.Equal(t, fault.LoopNotPaused, fault.CodeOf(err), "what the loop itself would have said")
}

func TestASnapshotIsTheLoopsOwnAndAnEndFromOutsideShowsInIt(t *testing.T) {
	s, err := reach(t, &service{}).Snapshot(t.Context(), "here")
	require.NoError(t, err)
	require.False(t, s.Ledger)
	require.Equal(t, loop.Waiting, s.State.Status)

	s, err = reach(t, &service{status: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED}).Snapshot(t.Context(), "here")
	require.NoError(t, err)
	require.Equal(t, loop.Halted, s.State.Status)
	require.Contains(t, s.State.Reason, "terminated")

	_, err = reach(t, &service{silent: true}).Snapshot(t.Context(), "here")
	require.Equal(t, fault.NoWorker, fault.CodeOf(err), "no worker and no ledger on this host")

	none := reach(t, &service{})
	none.SDK = nil
	_, err = none.Snapshot(t.Context(), "here")
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err), "no engine and no ledger")
}
