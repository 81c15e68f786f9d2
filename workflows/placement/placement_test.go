package placement_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/testflow"
	"pawl/workflows/journal"
	"pawl/workflows/placement"
)

// estate is two hosts. The loop's host does not start an activity as often as refuses says, and then starts it.
type estate struct {
	refuses  int
	gone     bool
	ahead    bool
	since    []loop.Event
	head     string      // of the branch, as the other host finds it
	opened   *api.Opened // what the other host makes of a loop whose ledger has nothing yet
	named    string      // the host that the spec names
	begun    int
	memo     map[string]any
	patience []time.Duration // of each activity for the loop's host
	placed   int
	queues   []string
	recorded int
}

func (e *estate) record(ctx context.Context, _ api.Record) (api.Appended, error) {
	e.queues = append(e.queues, activity.GetInfo(ctx).TaskQueue)
	if e.refuses > 0 {
		e.refuses--
		return api.Appended{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	}
	e.recorded++
	return api.Appended{Ledger: "next"}, nil
}

func (e *estate) place(context.Context, api.Place) (api.Placed, error) {
	e.placed++
	if e.ahead {
		return api.Placed{}, wire.Encode(fault.New(fault.LedgerAhead, "another run"), nil)
	}
	return api.Placed{Gone: e.gone, Why: "it polls nothing", Since: e.since, Ledger: "far"}, nil
}

func (e *estate) open(context.Context, api.Open) (api.Opened, error) {
	o := api.Opened{State: &loop.State{Head: e.head}, Since: []loop.Event{{Type: loop.CheckpointCreated}}, Terms: api.Terms{Contract: "as the ledger has it"}}
	if e.opened != nil {
		o = *e.opened
	}
	o.Ref, o.Queue, o.Host, o.Desk, o.MoveAfterMs = "loop", "pawl@other", "other", "/other/desk", 3000
	return o, nil
}

// watch notes how long each Record may wait to be started, and the workflow's memo.
type watch struct {
	interceptor.WorkerInterceptorBase
	*estate
}

type watched struct {
	interceptor.WorkflowInboundInterceptorBase
	*estate
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	*estate
}

func (w *watch) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &watched{estate: w.estate}
	i.Next = next
	return i
}

func (w *watched) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &outbound{estate: w.estate}
	o.Next = next
	return w.Next.Init(o)
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if name == api.RecordName {
		o.patience = append(o.patience, workflow.GetActivityOptions(ctx).ScheduleToStartTimeout)
	}
	return o.Next.ExecuteActivity(ctx, name, args...)
}

func (o *outbound) UpsertMemo(ctx workflow.Context, memo map[string]any) error {
	o.memo = memo
	return o.Next.UpsertMemo(ctx, memo)
}

// ask runs one Record through a host and returns the result.
func (e *estate) ask(t *testing.T) (s loop.State, h *placement.Host, failed error) {
	t.Helper()
	env := testflow.Environment(nil)
	main := func(ctx workflow.Context) error {
		j := journal.New(ctx, journal.Saved[loop.State]{State: loop.State{Loop: "loop", Head: "here", Base: "base"}, Ledger: "near"})
		at := api.Opened{Terms: api.Terms{Contract: "amended"}, Onto: "main", InScope: 7}
		at.MoveAfterMs = time.Second.Milliseconds()
		at.Ref, at.Queue, at.Host = "loop", "pawl@this", "this"
		h = placement.New(j, at, func() spec.Spec { return spec.Spec{Repo: spec.Repo{Host: e.named}} }, func(ctx workflow.Context) {
			e.begun++
			j.Emit(ctx, loop.Event{Type: loop.LoopOpened, Opened: &loop.Opened{Base: h.Opened.Base}})
		}, func(workflow.Context) {})
		var out api.Appended
		failed = h.Execute(ctx, api.RecordName, "record", func() any { return api.Record{} }, &out)
		s = j.State()
		return nil
	}
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&watch{estate: e}}})
	env.RegisterWorkflow(main)
	for name, f := range map[string]any{api.RecordName: e.record, api.PlaceName: e.place, api.OpenName: e.open} {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	env.ExecuteWorkflow(main)
	require.NoError(t, env.GetWorkflowError())
	return s, h, failed
}

func TestAHostThatIsOnlyBusyIsWaitedFor(t *testing.T) {
	e := &estate{refuses: 3}
	s, h, err := e.ask(t)
	require.NoError(t, err)
	require.Equal(t, 3, e.placed)
	require.Equal(t, []string{"pawl@this", "pawl@this", "pawl@this", "pawl@this"}, e.queues)
	require.Equal(t, "this", h.Opened.Host)
	require.Zero(t, s.Seq, "nothing happened to the loop")
}

func TestABusyHostHasMoreTimeEachTime(t *testing.T) {
	e := &estate{refuses: 6}
	_, _, err := e.ask(t)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 16 * time.Second, 16 * time.Second}, e.patience)
	e = &estate{named: "this"}
	_, _, err = e.ask(t)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{0}, e.patience, "the loop never leaves a host that the spec names")
	e = &estate{refuses: 1, gone: true, head: "here"}
	_, _, err = e.ask(t)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{time.Second, 3 * time.Second}, e.patience, "the next one has its own")
}

// Nobody has recorded the loop yet. If the base has moved, it begins again there.
func TestALoopMovesBeforeItHasALedger(t *testing.T) {
	for base, begun := range map[string]int{"base": 0, "moved": 1} {
		e := &estate{refuses: 1, gone: true, opened: &api.Opened{Base: base, Terms: api.Terms{Contract: "amended"}}}
		s, h, err := e.ask(t)
		require.NoError(t, err)
		require.Equal(t, []string{"pawl@this", "pawl@other"}, e.queues)
		require.Equal(t, []any{"other", base, begun}, []any{h.Opened.Host, h.Opened.Base, e.begun})
		require.Equal(t, map[int]string{0: "here", 1: "moved"}[begun], s.Head)
	}
	e := &estate{refuses: 1, gone: true, opened: &api.Opened{Base: "base", Terms: api.Terms{Contract: "of other sealed files"}}}
	_, _, err := e.ask(t)
	require.NoError(t, err)
	require.Equal(t, 1, e.begun)
}

func TestALoopMovesFromAHostThatIsGone(t *testing.T) {
	e := &estate{refuses: 1, gone: true, head: "here"}
	s, h, err := e.ask(t)
	require.NoError(t, err)
	require.Equal(t, []string{"pawl@this", "pawl@other"}, e.queues)
	require.Equal(t, []string{"other", "/other/desk", "here"}, []string{s.Host, s.Desk, s.Head})
	require.True(t, h.Uprooted, "no step has made its desk yet")
	require.Equal(t, api.Opened{Terms: api.Terms{Contract: "amended"}, Onto: "main", InScope: 7, Site: h.Opened.Site}, h.Opened, "amendments may be missing from the ledger")
	require.Equal(t, "pawl@other", h.Queue())
	require.Equal(t, map[string]any{api.HostMemo: "other"}, e.memo, "the former host learns of it")
	require.Equal(t, 1, e.recorded)
}

func TestWhatWasOnlyOnTheHostThatIsGoneIsLost(t *testing.T) {
	e := &estate{refuses: 1, gone: true, head: "before"}
	s, _, err := e.ask(t)
	require.ErrorIs(t, err, placement.ErrLost)
	require.Equal(t, "before", s.Head)
	require.Zero(t, e.recorded)
}

func TestWhatTheGoneHostHadRecordedIsNotRecordedAgain(t *testing.T) {
	e := &estate{refuses: 1, gone: true, head: "here", since: []loop.Event{{Seq: 1, Type: loop.Warned}}}
	s, _, err := e.ask(t)
	require.ErrorIs(t, err, placement.ErrRecorded)
	require.Equal(t, int64(2), s.Seq, "the event of the ledger, and the move")
	require.Zero(t, e.recorded)
}

func TestOnlyALedgerThatAnotherRunHasEndsTheLoop(t *testing.T) {
	_, _, err := (&estate{refuses: 1, ahead: true}).ask(t)
	require.True(t, wire.Is(err, fault.LedgerAhead))
}

func TestWorkThatNeedsNoStoreGoesToAnyHostUnlessTheSpecNamesOne(t *testing.T) {
	for host, queue := range map[string]string{"": api.TaskQueue, "that": api.HostQueue("that")} {
		h := placement.New(nil, api.Opened{}, func() spec.Spec { return spec.Spec{Repo: spec.Repo{Host: host}} }, nil, nil)
		require.Equal(t, queue, h.Queue())
	}
}

func TestUntaken(t *testing.T) {
	_, late := placement.Untaken(temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil))
	require.True(t, late)
	for _, err := range []error{nil, errors.New("no disk"), temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)} {
		_, late := placement.Untaken(err)
		require.False(t, late)
	}
}

// The test starts one activity of each sort on a host with separate slots for agents.
func TestActivitiesStartWhereAndForAsLongAsTheirAttributesSay(t *testing.T) {
	const month, half = 30 * 24 * time.Hour, 30 * time.Minute
	for name, want := range map[string]struct {
		queue string
		limit time.Duration
	}{
		api.CallName: {"pawl@this/agents", month}, api.CheckName: {"pawl@this", month}, api.VerifyName: {"pawl@this", month},
		api.GuardName: {"pawl@this", month}, api.TestName: {"pawl@this", month}, api.CommitName: {"pawl@this", half},
		api.SettleName: {"pawl@this", half}, api.ProgressName: {"pawl@this", 10 * time.Second},
		api.OpenName: {"pawl", half}, api.PlaceName: {"pawl", half},
	} {
		t.Run(name, func(t *testing.T) {
			env := testflow.Environment(nil)
			main := func(ctx workflow.Context) error {
				at := api.Opened{}
				at.Queue, at.Agents = "pawl@this", "pawl@this/agents"
				h := placement.New(nil, at, func() spec.Spec { return spec.Spec{} }, nil, func(workflow.Context) {})
				return h.Start(ctx, name, name, nil, 0).Get(ctx, nil)
			}
			env.RegisterWorkflow(main)
			env.RegisterActivityWithOptions(func(ctx context.Context) error {
				info := activity.GetInfo(ctx)
				require.Equal(t, want.queue, info.TaskQueue)
				require.Equal(t, want.limit, info.StartToCloseTimeout)
				return nil
			}, activity.RegisterOptions{Name: name})
			env.ExecuteWorkflow(main)
			require.NoError(t, env.GetWorkflowError())
		})
	}
}
