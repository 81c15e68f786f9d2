package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pawl/config"
	"pawl/internal/cli"
	"pawl/internal/client/launch"
	"pawl/internal/engine/auth"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
	hostworker "pawl/internal/worker"
)

// fakeTemporal is a Temporal service with one loop. The loop answers messages like a real one (rules.Answer); a test
// scripts everything else that it does. A method that a test does not expect panics, because the embedded interface
// is nil.
type fakeTemporal struct {
	client.Client

	mu       sync.Mutex
	id       string // "" until it is started
	spec     spec.Spec
	options  client.StartWorkflowOptions
	state    loop.State
	events   []loop.Event
	messages []sentMessage
	over     chan struct{}
	told     int64    // the last event that somebody was told
	err      error    // the workflow's error, once it is over
	address  string   // the repository, as the spec names it
	listed   string   // the query of the last list
	stopped  bool     // somebody terminated it
	noWorker bool     // queries and updates get no answer
	notes    []string // of the contract
	ownSpec  bool     // messages are judged by the spec with which it was started
	unsure   bool     // updates are accepted, but not replied to
	repo     string   // of the loop, in a list
	others   []string // more loops of that repository, the newest first, older than the loop

	// What the loop does once it is started, and after each message that it accepted.
	onStart func(*fakeTemporal)
	onTaken func(f *fakeTemporal, name string)
}

type sentMessage struct {
	via, name string
	m         loop.Message
}

func newFake() *fakeTemporal { return &fakeTemporal{over: make(chan struct{})} }

// now is the time in all tests.
var now = time.Date(2026, 3, 27, 14, 2, 21, 0, time.UTC)

const testHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func decimal(s string) *metric.Decimal { d := metric.MustDecimal(s); return &d }

// emit records events of the loop.
func (f *fakeTemporal) emit(events ...loop.Event) {
	for _, e := range events {
		e.Seq, e.Loop, e.Time = f.state.Seq+1, f.id, time.Date(2026, 3, 27, 14, 2, 11, 0, time.UTC)
		f.state = f.state.Apply(e)
		f.events = append(f.events, e)
	}
}

// begin brings the loop to its contract gate.
func (f *fakeTemporal) begin() {
	f.emit(
		loop.Event{Type: loop.LoopOpened, Opened: &loop.Opened{Kind: "improve", Goal: f.spec.Goal, Repo: "/src/routes", Branch: "pawl/" + f.id, Base: "2c9deac54712", Limits: map[loop.Resource]metric.Decimal{loop.Iterations: metric.MustDecimal("3")}}},
		loop.Event{Type: loop.PhaseEntered, Phase: phase.Baseline},
		loop.Event{Type: loop.ContractDrawn, Contract: &loop.Contract{Hash: testHash, Base: "2c9deac54712", Tools: []string{"*"}}},
		loop.Event{Type: loop.BaselineMeasured, Metric: decimal("84.7")},
	)
	for _, note := range f.notes {
		f.emit(loop.Event{Type: loop.Warned, Reason: note})
	}
	f.emit(
		loop.Event{Type: loop.GateOpened, Gate: &loop.Gate{ID: "contract-5", Kind: loop.GateContract, Summary: "approve the contract", Hash: testHash, Answers: []string{"approve", "reject"}}},
	)
}

// keep makes an iteration succeed.
func (f *fakeTemporal) keep(value, delta string) {
	n := f.state.Iteration + 1
	f.emit(
		loop.Event{Type: loop.IterationStarted, Iteration: n},
		loop.Event{Type: loop.IterationSucceeded, Iteration: n, Metric: decimal(value), Record: &loop.Iteration{
			N: n, Description: "make it better", Metric: decimal(value), Delta: metric.MustDecimal(delta), Kept: true, Commit: "3eff7429e6aa",
		}},
	)
}

// end ends the loop according to the contract's table.
func (f *fakeTemporal) end(e rules.End) {
	f.emit(e.Event(f.state.Usage))
	s := f.state
	r := *rules.Result(s, spec.Spec{})
	if e.Status == loop.Failed {
		f.err = temporal.NewNonRetryableApplicationError(e.Reason, string(e.Code), nil, r)
	}
	close(f.over)
}

// allTold reports whether somebody was told all events.
func (f *fakeTemporal) allTold() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told == f.state.Seq
}

func (f *fakeTemporal) ended() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

func (f *fakeTemporal) taken() []sentMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]sentMessage(nil), f.messages...)
}

func (f *fakeTemporal) take(name string, m loop.Message) (string, error) {
	sp := spec.Defaults()
	if f.ownSpec {
		sp = f.spec
	}
	reply, err := rules.Answer(f.state, sp, name, m)
	if err != nil {
		return "", temporal.NewNonRetryableApplicationError(err.Error(), string(fault.CodeOf(err)), nil)
	}
	gate := f.state.Gate
	f.emit(reply.Events...)
	if gate != nil && gate.Kind == loop.GateContract && name == loop.MessageApprove {
		f.emit(loop.Event{Type: loop.AutonomyStarted, By: m.By})
	}
	if f.onTaken != nil {
		f.onTaken(f, name)
	}
	return reply.Text, nil
}

func (f *fakeTemporal) Close() {}

// GetWorkflowHistory says that a worker has taken the loop.
func (f *fakeTemporal) GetWorkflowHistory(context.Context, string, string, bool, enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	return &takenHistory{}
}

type takenHistory struct{ read bool }

func (h *takenHistory) HasNext() bool { return !h.read }

func (h *takenHistory) Next() (*historypb.HistoryEvent, error) {
	h.read = true
	return &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED}, nil
}

func (f *fakeTemporal) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, name any, args ...any) (client.WorkflowRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.id == o.ID {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("already", "", "")
	}
	if name != "Improve" || len(args) != 1 {
		return nil, errors.New("not a loop")
	}
	f.id, f.options, f.spec = o.ID, o, args[0].(spec.Spec)
	if f.onStart != nil {
		f.onStart(f)
	}
	return fakeRun{f: f}, nil
}

func (f *fakeTemporal) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return fakeRun{f: f}
}

func (f *fakeTemporal) DescribeTaskQueue(_ context.Context, queue string, _ enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if queue != "pawl" || f.noWorker {
		return &workflowservice.DescribeTaskQueueResponse{}, nil
	}
	return &workflowservice.DescribeTaskQueueResponse{Pollers: []*taskqueuepb.PollerInfo{{LastAccessTime: timestamppb.New(now)}}}, nil
}

func (f *fakeTemporal) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id != f.id {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	status, err := converter.GetDefaultDataConverter().ToPayload(string(f.state.Status))
	if err != nil {
		return nil, err
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: f.status(), SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{"PawlStatus": status}},
	}}, nil
}

func (f *fakeTemporal) status() enumspb.WorkflowExecutionStatus {
	switch {
	case f.stopped:
		return enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	case !f.ended():
		return enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	case f.err != nil:
		return enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
	}
	return enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
}

func (f *fakeTemporal) ListWorkflow(_ context.Context, asked *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	field := func(v any) *commonpb.Payload {
		p, err := converter.GetDefaultDataConverter().ToPayload(v)
		if err != nil {
			panic(err)
		}
		return p
	}
	f.listed = asked.GetQuery()
	attributes := map[string]*commonpb.Payload{
		"PawlStatus": field(string(f.state.Status)), "PawlBest": field(84.7), "PawlIteration": field(f.state.Iteration), "PawlGate": field("contract"),
	}
	attributes["PawlRepo"] = field(f.repo)
	listed := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, id := range append([]string{f.id}, f.others...) {
		listed.Executions = append(listed.Executions, &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run-1"}, Status: f.status(), Type: &commonpb.WorkflowType{Name: "Deliver"},
			Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{"goal": field("Make it better"), "repo": field(f.address)}},
			SearchAttributes: &commonpb.SearchAttributes{IndexedFields: attributes},
		})
	}
	return listed, nil
}

func (f *fakeTemporal) QueryWorkflow(ctx context.Context, id, _, name string, args ...any) (converter.EncodedValue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.noWorker {
		return nil, context.DeadlineExceeded
	}
	switch name {
	case "state":
		return encode(f.state), nil
	case "gate":
		return encode(f.state.Gate), nil
	case "events":
		v := launch.EventsView{Events: []loop.Event{}, Seq: f.state.Seq}
		for _, e := range f.events {
			if e.Seq > args[0].(int64) {
				v.Events = append(v.Events, e)
				f.told = e.Seq
			}
		}
		return encode(v), nil
	case "contract":
		sp := f.spec
		sp.Kind = f.state.Kind
		return encode(launch.ContractView{Contract: f.state.Contract, Spec: sp, Baseline: f.state.Baseline, InScope: 5, Protections: rules.Protections, Notes: f.notes}), nil
	}
	return nil, serviceerror.NewQueryFailed("unknown query " + name)
}

func (f *fakeTemporal) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := o.Args[0].(loop.Message)
	f.messages = append(f.messages, sentMessage{"update", o.UpdateName, m})
	reply, err := f.take(o.UpdateName, m)
	if f.unsure {
		return nil, context.DeadlineExceeded
	}
	return fakeUpdate{reply: reply, err: err}, nil
}

func (f *fakeTemporal) SignalWorkflow(_ context.Context, _, _, name string, arg any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages = append(f.messages, sentMessage{"signal", name, arg.(loop.Message)})
	return nil
}

type fakeRun struct {
	client.WorkflowRun
	f *fakeTemporal
}

func (r fakeRun) GetID() string    { return r.f.id }
func (r fakeRun) GetRunID() string { return "run-1" }

func (r fakeRun) Get(ctx context.Context, out any) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.f.over:
	}
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	if r.f.err != nil {
		// The SDK's own error can't be made outside of it, but errors.As finds it in what this wraps.
		return errors.Join(&temporal.WorkflowExecutionError{}, r.f.err)
	}
	s := r.f.state
	res := *rules.Result(s, spec.Spec{})
	*out.(*loop.Result) = res
	return nil
}

type fakeUpdate struct {
	client.WorkflowUpdateHandle
	reply string
	err   error
}

func (u fakeUpdate) Get(_ context.Context, out any) error {
	if u.err == nil {
		*out.(*string) = u.reply
	}
	return u.err
}

type encoded struct{ data []byte }

func encode(v any) encoded {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return encoded{b}
}

func (e encoded) HasValue() bool    { return true }
func (e encoded) Get(out any) error { return json.Unmarshal(e.data, out) }

// found is the address of the embedded engine.
var found = cli.Found{Address: "127.0.0.1:7233", Link: func(page string) string { return "http://127.0.0.1:8233" + page }}

// fakeEngine is an embedded engine that this process owns, unless it has joined one.
type fakeEngine struct{ moved, joined bool }

func (fakeEngine) Found() cli.Found { return found }
func (e fakeEngine) Owner() bool    { return !e.joined }
func (e fakeEngine) Moved() bool    { return e.moved }
func (fakeEngine) Replaced() string { return "" }
func (fakeEngine) Close() error     { return nil }

// bench is a command line with its own home and service.
type bench struct {
	t        *testing.T
	temporal *fakeTemporal
	deps     cli.Deps
	signals  chan os.Signal
	dir      string
	stdout   lockedBuffer
	stderr   lockedBuffer
}

// newBench returns a command line with a running engine and the loop of f in it.
func newBench(t *testing.T, f *fakeTemporal) *bench {
	t.Helper()
	b := &bench{t: t, temporal: f, signals: make(chan os.Signal, 4), dir: t.TempDir()}
	t.Setenv("PAWL_HOME", filepath.Join(b.dir, "home"))
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(b.dir, "none.toml"))
	for _, name := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE"} {
		t.Setenv(name, "") // restores it afterwards
		os.Unsetenv(name)
	}
	b.deps = cli.Deps{
		Embedded: &cli.Embedded{
			Share:      func(context.Context, string, auth.Wish, *slog.Logger) (cli.Engine, error) { return fakeEngine{}, nil },
			Find:       func(context.Context, string) (cli.Found, bool) { return found, true },
			Unanswered: func(string) error { return nil },
		},
		Signals: b.signals,
		Dial: func(context.Context, config.Temporal, string, *slog.Logger) (client.Client, error) {
			return f, nil
		},
		Worker: func(ctx context.Context, o hostworker.Options) error {
			o.Ready(true)
			<-ctx.Done()
			return nil
		},
		Terminal: func(any) bool { return false },
		Now:      func() time.Time { return now },
	}
	return b
}

// spec writes a spec file and returns its path.
func (b *bench) spec() string {
	path := filepath.Join(b.dir, "pawl.yaml")
	text := "name: loop-1\ngoal: Make it better\nscope: [\"src/**\"]\nverify: {command: make bench}\nagent: {command: [\"./agent.sh\"]}\napprovals: {tools: [\"*\"]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// atTerminal makes the command line believe that it has a terminal.
func (b *bench) atTerminal() { b.deps.Terminal = func(any) bool { return true } }

// run runs a command line to its end.
func (b *bench) run(stdin io.Reader, args ...string) int {
	if stdin == nil {
		stdin = bytes.NewReader(nil)
	}
	return cli.Execute(b.t.Context(), args, stdin, &b.stdout, &b.stderr, b.deps)
}

// lockedBuffer may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
