package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	commonpb "go.temporal.io/api/common/v1"
	"pawl/activities"
	"pawl/internal/client"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	hostworker "pawl/internal/worker"
	"pawl/test/harness/tier"
)

const (
	running    = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	terminated = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
)

func TestEveryKindHasAWorkflow(t *testing.T) {
	t.Parallel()
	for _, k := range kind.All {
		require.NotNil(t, hostworker.Workflows[k.Name], "no workflow carries out %s", k.Name)
	}
}

// machine is a host with one loop, x, that has begun. Its worker has died since.
type machine struct {
	*testing.T
	*service
	o      hostworker.Options
	a      *activities.Activities
	log    bytes.Buffer
	ref    string
	ledger string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	user := filepath.Join(dir, "user")
	require.NoError(t, os.MkdirAll(user, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(user, "a"), []byte("a\n"), 0o644))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"config", "user.name", "Ada"}, {"config", "user.email", "ada@example.org"}, {"add", "-A"}, {"commit", "-qm", "base"},
	} {
		out, err := exec.Command("git", append([]string{"-C", user}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	h, err := home.At(filepath.Join(dir, "home"))
	require.NoError(t, err)
	m := &machine{T: t, service: &service{}, a: activities.New(h, "here", "pawl", "default", false)}
	t.Cleanup(m.a.Stop)
	m.o = hostworker.Options{Home: h, Client: m.service, Namespace: "default", Logger: slog.New(slog.NewTextHandler(&m.log, nil)), Embedded: true}

	s, err := spec.Parse([]byte(`{"name": "x", "goal": "g", "repo": {"path": "` + user + `"}, "scope": ["**"], "verify": {"command": "true"},
		"setup": {"command": "make deps"}, "judge": {"keep": ["cache/**"]}, "agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}}`))
	require.NoError(t, err)
	opened, err := m.a.Open(context.Background(), api.Open{Loop: "x", FirstRun: "first", Spec: s})
	require.NoError(t, err)
	m.ref = opened.Ref
	m.record(
		loop.Event{Type: loop.LoopOpened, Opened: &loop.Opened{Kind: "improve", Repo: opened.Repo, Branch: opened.Branch, Base: opened.Base, Desk: opened.Desk, Host: opened.Host}},
		loop.Event{Type: loop.ContractDrawn, Contract: &loop.Contract{Hash: opened.Contract, Base: opened.Base, Sealed: opened.Sealed}},
	)
	return m
}

func (m *machine) record(events ...loop.Event) {
	m.Helper()
	for i := range events {
		events[i].Seq, events[i].Loop, events[i].Time = int64(i+1), "x", time.Date(2026, 11, 20, 12, 0, i, 0, time.UTC)
	}
	out, err := m.a.Record(context.Background(), api.Record{Entry: api.Entry{Ref: m.ref, Ledger: m.ledger, Events: events}})
	require.NoError(m, err)
	m.ledger = out.Ledger
}

func (m *machine) recover() {
	m.Helper()
	require.NoError(m, hostworker.Recover(context.Background(), m.o, m.a))
}

func (m *machine) workspace() hostrecord.Record {
	m.Helper()
	r, err := hostrecord.Read(m.o.Home, m.ref)
	require.NoError(m, err)
	return r
}

func (m *machine) damage(content string) {
	m.Helper()
	require.NoError(m, os.WriteFile(filepath.Join(m.o.Home.Loop(m.ref), "workspace.json"), []byte(content), 0o600))
}

func pending(id, identity string, state enumspb.PendingActivityState) *workflowpb.PendingActivityInfo {
	return &workflowpb.PendingActivityInfo{ActivityId: id, LastWorkerIdentity: identity, State: state, ActivityType: &commonpb.ActivityType{Name: api.CallName}}
}

func TestADeadWorkersActivitiesAreGivenBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running,
		pending("1", hostworker.Identity("here"), enumspb.PENDING_ACTIVITY_STATE_STARTED),
		pending("2", hostworker.Identity("here"), enumspb.PENDING_ACTIVITY_STATE_SCHEDULED),
		pending("3", hostworker.Identity("elsewhere"), enumspb.PENDING_ACTIVITY_STATE_STARTED),
		pending("4", hostworker.Identity("here"), enumspb.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED),
		pending("5", hostworker.Identity("here"), enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED),
	)
	m.recover()
	require.Equal(t, []string{"1", "4", "5"}, m.returned, "those that it had taken")
	require.Equal(t, []string{"x"}, m.reset)
	require.False(t, m.workspace().Closed)
}

func TestAnApplyThatWasCutOffIsGivenBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	m.runs("apply-y", "run", running, pending("1", hostworker.Identity("here"), enumspb.PENDING_ACTIVITY_STATE_STARTED), pending("2", hostworker.Identity("elsewhere"), enumspb.PENDING_ACTIVITY_STATE_STARTED))
	m.listed = []*workflowpb.WorkflowExecutionInfo{m.known["apply-y"].GetWorkflowExecutionInfo()}
	m.recover()
	require.Equal(t, []string{"1"}, m.returned)
	require.ElementsMatch(t, []string{"x", "apply-y"}, m.reset)
}

// noted adds a memo to the loop.
func (m *machine) noted(name, text string) {
	p, err := converter.GetDefaultDataConverter().ToPayload(text)
	require.NoError(m, err)
	m.known["x"].WorkflowExecutionInfo.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{name: p}}
}

// A loop that continues from its ledger takes over its trees. Nobody removes them before that.
func TestTheTreesOfALoopThatWasCarriedOverStay(t *testing.T) {
	t.Parallel()
	for when, look := range map[string]func(*machine){
		"when the next worker starts":     (*machine).recover,
		"when the worker that runs looks": func(m *machine) { hostworker.Sweep(context.Background(), m.o, m.a) },
	} {
		t.Run(when, func(t *testing.T) {
			m := newMachine(t)
			m.recover() // the engine does not know the loop
			require.Len(t, m.started, 1)
			m.runs("x", "second", running)
			m.noted(api.CarriedMemo, m.started[0].Memo[api.CarriedMemo].(string))
			look(m)
			require.False(t, m.workspace().Closed)
		})
	}
}

func TestALoopThatEndedWithoutItsWorkerGivesItsTreesUp(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]func(*machine){
		"terminated":               func(m *machine) { m.runs("x", "first", terminated) },
		"another has its ID now":   func(m *machine) { m.runs("x", "second", running) },
		"it has moved":             func(m *machine) { m.runs("x", "first", running); m.noted(api.HostMemo, "elsewhere") },
		"another was carried over": func(m *machine) { m.runs("x", "second", running); m.noted(api.CarriedMemo, "zeroth") },
		"carried over and over":    func(m *machine) { m.runs("x", "second", terminated); m.noted(api.CarriedMemo, "first") },
	} {
		for when, look := range map[string]func(*machine){
			"when the next worker starts":     (*machine).recover,
			"when the worker that runs looks": func(m *machine) { hostworker.Sweep(context.Background(), m.o, m.a) },
		} {
			t.Run(name+", "+when, func(t *testing.T) {
				if !tier.Nightly && name != "terminated" && when == "when the worker that runs looks" {
					t.Skip("runs with -tags nightly: one that was terminated is found then, too")
				}
				m := newMachine(t)
				status(m)
				look(m)
				require.True(t, m.workspace().Closed)
				require.NoDirExists(t, hostrecord.Record{Ref: m.ref, Short: hostrecord.ShortName(m.o.Home, m.ref)}.Desk(m.o.Home))
				require.Empty(t, m.returned)
			})
		}
	}
}

func TestALoopThatRunsKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	hostworker.Sweep(context.Background(), m.o, m.a)
	require.False(t, m.workspace().Closed)
	m.away = serviceerror.NewUnavailable("it is being started")
	hostworker.Sweep(context.Background(), m.o, m.a)
	require.False(t, m.workspace().Closed, "nothing is known of it now")
	require.ErrorIs(t, hostworker.Recover(context.Background(), m.o, m.a), m.away, "the worker asks again before it polls")
}

func TestALoopThatTheEngineLostGoesOnFromItsLedger(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.recover()
	require.Len(t, m.started, 1)
	require.Equal(t, "x", m.started[0].ID)
	require.Equal(t, "pawl/x", m.started[0].Memo["branch"])
	require.Equal(t, m.ledger, m.resumed[0].Ledger)
}

func TestALoopThatAServiceElsewhereDoesNotKnowIsLeftAlone(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.o.Embedded = false
	m.recover()
	require.Empty(t, m.started)
	require.False(t, m.workspace().Closed)
	require.Contains(t, m.log.String(), "the service doesn't know a loop")
}

func TestOnlyLoopsOfTheNamespaceThatMayHaveBeenAtWorkAreAskedAbout(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	for ref, change := range map[string]func(*hostrecord.Record){
		"lately":    func(r *hostrecord.Record) { r.Closed, r.ClosedAt = true, time.Now() },
		"long-ago":  func(r *hostrecord.Record) { r.Closed, r.ClosedAt = true, time.Now().Add(-time.Hour) },
		"elsewhere": func(r *hostrecord.Record) { r.Namespace = "another" },
	} {
		r := m.workspace()
		r.Loop, r.Ref, r.FirstRun = ref, ref, ref
		change(&r)
		require.NoError(t, hostrecord.Write(m.o.Home, r))
	}
	m.recover()
	require.ElementsMatch(t, []string{"x", "lately"}, slices.Compact(slices.Sorted(slices.Values(m.asked))))
}

func TestALoopWhoseOpeningWasCutOffIsForgottenWithIt(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	m.runs("early", "early-run", running, pending("1", hostworker.Identity("here"), enumspb.PENDING_ACTIVITY_STATE_STARTED))
	m.runs("late", "late-run", terminated)
	for _, id := range []string{"early", "late"} {
		require.NoError(t, hostrecord.Announce(m.o.Home, hostrecord.Record{Loop: id, FirstRun: id + "-run", Namespace: "default"}))
	}
	torn := hostrecord.Record{FirstRun: "torn"}
	require.NoError(t, hostrecord.Announce(m.o.Home, torn))
	require.NoError(t, os.WriteFile(filepath.Join(m.o.Home.Dir, "opening", "torn.json"), nil, 0o600))
	m.recover()
	require.Equal(t, []string{"1"}, m.returned)
	announced, err := hostrecord.Announced(m.o.Home)
	require.NoError(t, err)
	require.Len(t, announced, 1, "that which still runs tries again")
	require.Equal(t, "early", announced[0].Loop)
	require.Contains(t, m.log.String(), "is damaged")
}

// same requires the record as it was, opened at the ledger's last entry: nothing else says when.
func (m *machine) same(before hostrecord.Record) {
	m.Helper()
	now := m.workspace()
	require.False(m, now.OpenedAt.IsZero())
	now.OpenedAt = before.OpenedAt
	require.Equal(m, before, now)
}

func TestARecordThatAPowerCutToreIsMadeAgainFromTheLedger(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"empty": "", "zeroes": "\x00\x00\x00\x00", "cut off": `{"loop": "x", "ref"`} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.runs("x", "first", running, pending("1", hostworker.Identity("here"), enumspb.PENDING_ACTIVITY_STATE_STARTED))
			before := m.workspace()
			m.damage(content)
			m.recover()
			m.same(before)
			require.Equal(t, []string{"1"}, m.returned, "and recovery goes by it")
			require.Contains(t, m.log.String(), "it was made again from the ledger")
			require.Equal(t, []string{"the workspace record was damaged: it was made again from the ledger"}, repairlog.Untold(m.o.Home.Loop("x")))
		})
	}
}

func TestATornRecordOfALoopThatTheEngineLostIsMadeAgainAndTheLoopGoesOn(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	before := m.workspace()
	m.damage("")
	m.recover()
	require.Len(t, m.started, 1)
	require.Equal(t, m.ledger, m.resumed[0].Ledger)
	before.FirstRun = ""
	m.same(before) // its run is the service's to know
}

func TestATornRecordOfALoopThatEndedIsClosed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	out, err := m.a.Record(context.Background(), api.Record{Entry: api.Entry{Ref: m.ref, Ledger: m.ledger, Events: []loop.Event{
		{Seq: 3, Loop: "x", Time: time.Now().UTC(), Type: loop.AutonomyCompleted, Status: loop.Completed, ExitStatus: "completed"},
	}}})
	require.NoError(t, err)
	m.ledger = out.Ledger
	m.damage("")
	m.recover()
	require.True(t, m.workspace().Closed)
	require.Empty(t, m.started, "what has ended does not go on")
}

func TestATornRecordThatNoLedgerKnowsIsDropped(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	require.NoError(t, os.MkdirAll(m.o.Home.Loop("y"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(m.o.Home.Loop("y"), "workspace.json"), nil, 0o600))
	m.recover()
	torn, err := hostrecord.Torn(m.o.Home)
	require.NoError(t, err)
	require.Empty(t, torn)
	require.Contains(t, m.log.String(), "it starts from the beginning")
	require.Len(t, repairlog.Untold(m.o.Home.Loop("y")), 1, "its first entry will tell it")
}

func TestATornRecordStaysWhereItsLedgerCannotBeRead(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	store := m.workspace().Store
	m.damage("")
	require.NoError(t, os.Truncate(filepath.Join(store, "refs", "pawl-ledger", "x"), 0))
	require.NoError(t, os.Remove(hostrecord.Heads(m.o.Home, "x")))
	m.recover()
	torn, err := hostrecord.Torn(m.o.Home)
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, torn)
	require.Contains(t, m.log.String(), "can't be made again")
}

func TestMissingSearchAttributesAreAddedOrDoneWithout(t *testing.T) {
	t.Parallel()
	m := &service{}
	o := hostworker.Options{Client: m, Namespace: "default", Logger: slog.New(slog.DiscardHandler)}
	require.True(t, hostworker.Attributes(context.Background(), o))
	require.Equal(t, hostworker.SearchAttributes, m.attributes)

	m.closed = true
	require.True(t, hostworker.Attributes(context.Background(), o), "they are there")
	m.attributes["PawlGate"] = enumspb.INDEXED_VALUE_TYPE_TEXT
	require.False(t, hostworker.Attributes(context.Background(), o), "one is of another type")
}

func TestActiveLoopsAreThoseThatTheServiceRunsForThisHost(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	active := func() []string {
		out, err := hostworker.ActiveLoops(context.Background(), m.o.Home, m, "default")
		require.NoError(t, err)
		return out
	}
	require.Empty(t, active(), "the service has never heard of it")
	m.runs("x", "first", running)
	require.Equal(t, []string{"x"}, active())
	m.runs("x", "second", running)
	require.Empty(t, active(), "another host's, or a later one")
}

// TestL12_ALoopIsStartedWithWhatAServiceTakes: a service refuses to start a workflow with texts that are too long.
func TestL12_ALoopIsStartedWithWhatAServiceTakes(t *testing.T) {
	t.Parallel()
	o := client.StartOptions("x", spec.Spec{
		Kind: "improve", Goal: strings.Repeat("better \x00", 5000) + "\nmore", Scope: []string{strings.Repeat("<&>", 9000)}, Session: map[string]string{"user": "ada"},
	})
	for limit, text := range map[int]string{400: o.StaticSummary, 20000: o.StaticDetails} {
		encoded, err := json.Marshal(text)
		require.NoError(t, err)
		require.LessOrEqual(t, len(encoded), limit)
		require.NotEmpty(t, text)
	}
	require.Equal(t, "pawl/x", o.Memo["branch"])
	require.Equal(t, "ada", o.Memo["startedBy"])
}
