package actest

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/activities"
	"pawl/internal/git/store"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// Steward is a steward that has begun on this host.
type Steward struct {
	*testing.T
	*activities.Activities
	home    home.Home
	User    string // the project's repository
	Charter charter.Charter
	Opened  stewardapi.StewardOpened[steward.State]
	Ledger  string
	Seq     int64
}

// BeginSteward opens a steward on a repository with these files. change may change its charter.
func BeginSteward(t *testing.T, files map[string]string, change func(map[string]any)) *Steward {
	t.Helper()
	s := &Steward{T: t}
	all := map[string]string{"work/a": "a\n"}
	maps.Copy(all, files)
	s.User, s.home = places(t, all)
	s.StartWorker()
	s.Charter = s.Chartered(change)
	s.Reopen("first")
	s.AppendOpened()
	return s
}

// Chartered returns the charter, changed by change.
func (s *Steward) Chartered(change func(map[string]any)) charter.Charter {
	s.Helper()
	doc := map[string]any{"name": "shop", "kind": "steward", "repo": map[string]any{"path": s.User}}
	if change != nil {
		change(doc)
	}
	c, err := charter.FromMap(doc)
	require.NoError(s, err)
	return c
}

// StartWorker starts the next worker of the host, which has nothing in memory.
func (s *Steward) StartWorker() {
	if s.Activities != nil { // the worker before has died
		s.Stop()
	}
	s.Activities = activities.New(s.home, "host", "pawl", "default", false)
	s.Cleanup(s.Stop)
}

// Reopen opens the steward for a run.
func (s *Steward) Reopen(run string) {
	s.Helper()
	var err error
	s.Opened, err = s.OpenSteward(s.Context(), stewardapi.OpenSteward{Steward: "shop", FirstRun: run, Charter: s.Charter, Ledger: s.Ledger})
	require.NoError(s, err)
}

// AppendOpened appends the event that the steward has begun.
func (s *Steward) AppendOpened() stewardapi.TasksRecorded {
	s.Helper()
	return s.Append(loop.Event{Type: loop.StewardOpened, Commit: s.Opened.Charter,
		Opened: &loop.Opened{Kind: "steward", Repo: s.Opened.Repo, Base: s.Opened.Base, Desk: s.Opened.Desk, Host: s.Opened.Host}})
}

// Entry returns the next entry of the ledger.
func (s *Steward) Entry(events ...loop.Event) api.Entry {
	return api.Entry{Ref: s.Opened.Ref, Ledger: s.Ledger, Events: number(events, "shop", &s.Seq)}
}

// Append appends events to the ledger.
func (s *Steward) Append(events ...loop.Event) stewardapi.TasksRecorded {
	s.Helper()
	return s.AppendIn(stewardapi.RecordTasks{Entry: s.Entry(events...)})
}

// AppendIn appends an entry to the ledger.
func (s *Steward) AppendIn(in stewardapi.RecordTasks) stewardapi.TasksRecorded {
	s.Helper()
	out, err := s.RecordTasks(s.Context(), in)
	require.NoError(s, err)
	s.Ledger = out.Ledger
	return out
}

// Submit appends that a task was submitted, with the spec of a loop as JSON.
func (s *Steward) Submit(id, spec string) {
	s.Helper()
	s.Append(loop.Event{Type: loop.TaskSubmitted, Task: id, Submitted: &task.Task{ID: id, Title: "the task <" + id + ">", Spec: json.RawMessage(spec)}})
}

// Book opens the steward's store and ledger, as another program would.
func (s *Steward) Book() (*store.Store, *ledger.Steward) {
	s.Helper()
	r, err := hostrecord.Read(s.home, s.Opened.Ref)
	require.NoError(s, err)
	st, err := store.Open(s.Context(), r.Store)
	require.NoError(s, err)
	return st, ledger.OpenSteward(st)
}

// Whole fails the test if Verify finds a fault in the ledger.
func (s *Steward) Whole() ledger.Report {
	s.Helper()
	st, _ := s.Book()
	r, err := ledger.Verify(s.Context(), st, s.Ledger)
	require.NoError(s, err)
	require.Empty(s, r.Faults)
	return r
}

// Plan plans a task as Temporal would.
func (s *Steward) Plan(id string, change func(*stewardapi.PlanTask)) stewardapi.TaskPlanned {
	s.Helper()
	in := stewardapi.PlanTask{
		Step: api.Step{Ref: s.Opened.Ref, Key: api.Key{Name: "plan-" + id}, LimitMs: 60_000}, Steward: "shop", Ledger: s.Ledger, Charter: s.Charter, Task: id,
	}
	if change != nil {
		change(&in)
	}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(s.PlanTask)
	value, err := env.ExecuteActivity(s.PlanTask, in)
	require.NoError(s, err)
	var out stewardapi.TaskPlanned
	require.NoError(s, value.Get(&out))
	return out
}

// ValidateWith validates the steward, with these child loops.
func (s *Steward) ValidateWith(children ...stewardapi.Child) stewardapi.Validated {
	s.Helper()
	v, err := s.Validate(s.Context(), stewardapi.Validate{Ref: s.Opened.Ref, Ledger: s.Ledger, Charter: s.Charter, Children: children})
	require.NoError(s, err)
	return v
}

// Child opens a loop of a steward on this host that Temporal does not know.
func (s *Steward) Child(id, steward string) api.Opened {
	s.Helper()
	sp, err := spec.Parse(fmt.Appendf(nil, `{"name": %q, "goal": "g", "repo": {"path": %q}, "scope": ["work/**"], "verify": {"command": "true"},
		"agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}, "session": {"steward": %q}}`, id, s.User, steward))
	require.NoError(s, err)
	o, err := s.Open(s.Context(), api.Open{Loop: id, FirstRun: id + " of " + steward, Spec: sp})
	require.NoError(s, err)
	var seq int64
	_, err = s.Record(s.Context(), api.Record{Entry: api.Entry{Ref: o.Ref, Events: number(begun(o), id, &seq)}})
	require.NoError(s, err)
	return o
}
