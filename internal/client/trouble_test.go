package client_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec/phase"
	"pawl/internal/steward"
)

// What can't be opened has no record, or that of an earlier run. Only Temporal knows which host has tried it.
func TestWhatThisHostCannotOpenIsInTrouble(t *testing.T) {
	n := &namespace{
		listed: []*workflowpb.WorkflowExecutionInfo{
			listed(t, "crew", "Steward", 20, running, nil), listed(t, "new", "Improve", 10, running, nil), listed(t, "well", "Deliver", 5, running, nil),
		},
		failing: map[string]string{"crew": "the repository /work is gone", "new": "there is no branch main"},
	}
	c := at(t, n)
	require.NoError(t, hostrecord.Write(c.Home, hostrecord.Record{Loop: "crew", Kind: "steward", Ref: "crew", FirstRun: "an earlier run", Closed: true}))
	host, err := c.Home.HostID()
	require.NoError(t, err)
	n.host = api.HostQueue(host)
	troubles, err := c.Troubles(t.Context())
	require.NoError(t, err)
	require.Equal(t, []client.Trouble{
		{Loop: "crew", What: "Commit fails and is tried again: the repository /work is gone"}, {Loop: "new", What: "Commit fails and is tried again: there is no branch main"},
	}, troubles)
	n.host = "another host"
	troubles, err = c.Troubles(t.Context())
	require.NoError(t, err)
	require.Empty(t, troubles)
}

// A loop that is being opened has a record before it has a store. Once it has recorded something, a store that is gone is
// damage, which is told by its path.
func TestWhatIsBeingOpenedIsInNoTrouble(t *testing.T) {
	for _, k := range []string{"improve", "steward"} {
		t.Setenv("PAWL_HOME", t.TempDir())
		h, err := home.Open()
		require.NoError(t, err)
		r := hostrecord.Record{Loop: "hill", Kind: k, Ref: "hill", Ledger: "refs/pawl-ledger/hill", Store: filepath.Join(h.Dir, "stores", "x.git"), FirstRun: "first"}
		require.NoError(t, hostrecord.Write(h, r))
		c := &client.Client{Home: h}
		troubles, err := c.Troubles(t.Context())
		require.NoError(t, err)
		require.Empty(t, troubles)

		hostrecord.Note(h, "hill", map[string]string{r.Ledger: "1111111111111111111111111111111111111111"})
		troubles, err = c.Troubles(t.Context())
		require.NoError(t, err)
		require.Len(t, troubles, 1)
		require.Contains(t, troubles[0].What, "its ledger can't be read")
		if k == "steward" {
			c = at(t, &namespace{})
			c.Home = h
			_, err = c.Stewarding(t.Context(), "hill")
			require.ErrorContains(t, err, "Temporal does not know the steward hill any more, and its ledger can't be read")
			continue
		}
		require.Contains(t, troubles[0].What, r.Store)
	}
}

// What an ended loop had recorded can still be applied, so pawl says that it is gone, and what brings it back.
func TestALedgerThatIsGoneIsToldAfterTheEndToo(t *testing.T) {
	c := at(t, &namespace{listed: []*workflowpb.WorkflowExecutionInfo{listed(t, "other", "Improve", 1, running, nil)}})
	r := hostrecord.Record{Loop: "hill", Kind: "improve", Ref: "hill", Ledger: "refs/pawl-ledger/hill", Store: filepath.Join(t.TempDir(), "stores", "x.git"), FirstRun: "first", Closed: true}
	require.NoError(t, hostrecord.Write(c.Home, r))
	hostrecord.Note(c.Home, "hill", map[string]string{r.Ledger: "1111111111111111111111111111111111111111"})
	troubles, err := c.Troubles(t.Context())
	require.NoError(t, err)
	require.Len(t, troubles, 1)
	require.True(t, troubles[0].Ended)
	_, shown := c.Snapshot(t.Context(), "hill")
	_, _, _, proposed := c.Proposed(t.Context(), "hill")
	_, diffed := c.Store(t.Context(), "hill")
	_, verified := c.Verify(t.Context(), "hill", r)
	for _, err := range []error{shown, proposed, diffed, verified} {
		require.Equal(t, fault.LedgerDamaged, fault.CodeOf(err), err)
	}
	require.NoDirExists(t, r.Store)
}

// TestReadingAStewardMakesNoStore: an empty store in place of one that is gone would hide the damage.
func TestReadingAStewardMakesNoStore(t *testing.T) {
	c := at(t, &namespace{})
	r := hostrecord.Record{Loop: "crew", Kind: "steward", Ref: "crew", Ledger: "refs/pawl-ledger/crew", Store: filepath.Join(t.TempDir(), "stores", "x.git"), FirstRun: "first"}
	require.NoError(t, hostrecord.Write(c.Home, r))
	_, err := c.RecordedSteward(t.Context(), "crew")
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))
	require.ErrorContains(t, err, "has recorded nothing yet")
	require.NoDirExists(t, r.Store)

	hostrecord.Note(c.Home, "crew", map[string]string{r.Ledger: "1111111111111111111111111111111111111111"})
	_, err = c.RecordedSteward(t.Context(), "crew")
	require.ErrorContains(t, err, r.Store)
	require.NoDirExists(t, r.Store)
}

// TestAMessageToALoopIsNotForASteward: without an engine it was answered with Go's types, from reading the other's state.
func TestAMessageToALoopIsNotForASteward(t *testing.T) {
	c := at(t, &namespace{})
	c.SDK = nil
	for _, k := range []string{"steward", "improve"} {
		r := hostrecord.Record{Loop: k, Kind: k, Ref: k, Ledger: "refs/pawl-ledger/" + k, Store: filepath.Join(t.TempDir(), "x.git"), FirstRun: "first"}
		require.NoError(t, hostrecord.Write(c.Home, r))
	}
	_, err := c.Send(t.Context(), "steward", "pause", loop.Message{})
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))
	require.ErrorContains(t, err, "steward is a steward, not a loop")
	_, err = c.SendTask(t.Context(), "improve", "pause", steward.Message{})
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))
	require.ErrorContains(t, err, "It is a loop")
	_, err = c.Send(t.Context(), "improve", "pause", loop.Message{})
	require.ErrorContains(t, err, "has recorded nothing yet")
}

// untaken is a service with one loop, whose activity waits on the queue of a host. A worker polls the queues in polled.
type untaken struct {
	service
	since  time.Time
	now    time.Time
	polled []string
}

func (s *untaken) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{},
		PendingActivities: []*workflowpb.PendingActivityInfo{{
			ActivityType: &commonpb.ActivityType{Name: api.OpenName}, State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, ScheduledTime: timestamppb.New(s.since),
			ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: "pawl@gone"}},
		}},
	}, nil
}

func (s *untaken) DescribeTaskQueue(_ context.Context, name string, _ enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	out := &workflowservice.DescribeTaskQueueResponse{}
	if slices.Contains(s.polled, name) {
		out.Pollers = []*taskqueuepb.PollerInfo{{LastAccessTime: timestamppb.New(s.now)}}
	}
	return out, nil
}

// TestALoopThatWaitsForAHostThatDoesNotRunSaysSo, as one whose repo.host no machine has. It would seem to run for ever.
func TestALoopThatWaitsForAHostThatDoesNotRunSaysSo(t *testing.T) {
	t.Setenv("PAWL_HOME", t.TempDir())
	h, err := home.Open()
	require.NoError(t, err)
	now := time.Unix(10000, 0)
	for _, c := range []struct {
		name   string
		waits  time.Duration
		polled []string
		says   bool
	}{
		{"nobody polls the host's queue", time.Hour, []string{api.TaskQueue}, true},
		{"its worker is busy", time.Hour, []string{api.TaskQueue, "pawl@gone"}, false},
		{"it waits since a moment ago", time.Second, []string{api.TaskQueue}, false},
		{"no worker runs at all, which is said elsewhere", time.Hour, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &untaken{since: now.Add(-c.waits), now: now, polled: c.polled}
			seen, err := (&client.Client{Home: h, SDK: s, Now: func() time.Time { return now }}).Snapshot(t.Context(), "here")
			require.NoError(t, err)
			if !c.says {
				require.Empty(t, seen.Trouble)
				return
			}
			require.Contains(t, seen.Trouble, "Open waits on the queue pawl@gone, and no worker polls it")
		})
	}
}

// measuring is a service with one loop, whose step of that type reports what it waits for with its heartbeats.
type measuring struct {
	service
	step     string
	reported api.Live
}

func (s *measuring) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	details, err := converter.GetDefaultDataConverter().ToPayloads(s.reported)
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{},
		PendingActivities: []*workflowpb.PendingActivityInfo{{
			ActivityType: &commonpb.ActivityType{Name: s.step}, State: enumspb.PENDING_ACTIVITY_STATE_STARTED, HeartbeatDetails: details,
		}},
	}, err
}

// TestALoopThatWaitsForAnotherLoopsMeasurementSaysSo, for people who look at it. Only calls report what they have spent.
func TestALoopThatWaitsForAnotherLoopsMeasurementSaysSo(t *testing.T) {
	s := &measuring{step: api.VerifyName, reported: api.Live{WaitsFor: "another loop's measurement on this host", Usage: loop.Usage{ActiveMs: 7}}}
	c := &client.Client{SDK: s}
	state := loop.State{Loop: "here", Status: loop.Running, Phase: phase.Verify}
	require.Equal(t, "verify, waits for another loop's measurement on this host", c.Live(t.Context(), "here", state).Doing())
	require.Zero(t, c.Live(t.Context(), "here", state).Usage.ActiveMs)
	s.reported.WaitsFor = ""
	require.Equal(t, "verify", c.Live(t.Context(), "here", state).Doing())
	s.step = api.CallName
	require.EqualValues(t, 7, c.Live(t.Context(), "here", state).Usage.ActiveMs)
}
