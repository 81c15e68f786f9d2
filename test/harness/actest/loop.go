package actest

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/activities"
	"pawl/internal/home"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/gittest"
)

// Loop is a loop that has begun on this host.
type Loop struct {
	*testing.T
	*activities.Activities
	Home         home.Home
	User         string // the user's repository
	Spec         spec.Spec
	Opened       api.Opened
	Ledger, Head string
	seq          int64
}

// Begin opens a loop on a repository with work/a and work/b.
func Begin(t *testing.T, newFiles string) *Loop {
	t.Helper()
	return BeginWith(t, newFiles, func(string, map[string]any) {})
}

// BeginWith opens a loop. change may change its spec and the user's repository.
func BeginWith(t *testing.T, newFiles string, change func(user string, doc map[string]any)) *Loop {
	t.Helper()
	l := &Loop{T: t}
	l.User, l.Home = places(t, map[string]string{"work/a": "a\n", "work/b": "b\n"})
	doc := map[string]any{
		"name": "x", "goal": "g", "repo": map[string]any{"path": l.User}, "scope": []any{"work/**"}, "verify": map[string]any{"command": "true"},
		"agent": map[string]any{"command": []any{"true"}}, "approvals": map[string]any{"tools": []any{"*"}},
	}
	change(l.User, doc)
	l.Activities = activities.New(l.Home, "host", "pawl", "default", false)
	t.Cleanup(l.Stop)
	s, err := spec.FromMap(doc)
	require.NoError(t, err)
	l.Spec = s
	s.NewFiles = newFiles // set here, because the reader may refuse it
	l.Opened, err = l.Open(t.Context(), api.Open{Loop: "x", FirstRun: "first", Spec: s})
	require.NoError(t, err)
	l.Head = l.Opened.Base
	l.Append(begun(l.Opened)...)
	return l
}

// places makes the user's repository with these files, and pawl's folder.
func places(t *testing.T, files map[string]string) (user string, h home.Home) {
	t.Helper()
	dir := t.TempDir()
	user = filepath.Join(dir, "user")
	for name, content := range files {
		gittest.Write(t, filepath.Join(user, name), content)
	}
	gittest.Git(t, user, "init", "-q", "-b", "main")
	gittest.Git(t, user, "add", "-A")
	gittest.Git(t, user, "commit", "-qm", "base")
	h, err := home.At(filepath.Join(dir, "home"))
	require.NoError(t, err)
	return user, h
}

// begun returns the first events of a loop's ledger.
func begun(o api.Opened) []loop.Event {
	return []loop.Event{
		{Type: loop.LoopOpened, Opened: &loop.Opened{Kind: "improve", Goal: "g", Repo: o.Repo, Branch: o.Branch, Base: o.Base, Host: o.Host}},
		{Type: loop.ContractDrawn, Contract: &loop.Contract{Hash: o.Contract, Base: o.Base, Sealed: o.Sealed}},
	}
}

// number gives events their numbers and times.
func number(events []loop.Event, id string, seq *int64) []loop.Event {
	for i := range events {
		*seq++
		events[i].Seq, events[i].Loop, events[i].Time = *seq, id, When.Add(time.Duration(*seq)*time.Second)
	}
	return events
}

// Entry returns the next entry of the ledger.
func (l *Loop) Entry(events ...loop.Event) api.Entry {
	return api.Entry{Ref: l.Opened.Ref, Ledger: l.Ledger, Events: number(events, "x", &l.seq)}
}

// Append appends events to the ledger.
func (l *Loop) Append(events ...loop.Event) {
	l.Helper()
	out, err := l.Record(l.Context(), api.Record{Entry: l.Entry(events...)})
	require.NoError(l, err)
	l.Ledger = out.Ledger
}

// Iterate starts an iteration: the desk is at the head.
func (l *Loop) Iterate() {
	l.Helper()
	l.Append(loop.Event{Type: loop.IterationStarted, Iteration: 1})
	l.Restore(0, l.Head)
}

// Restore brings a desk to head, as its next step would, and returns the desk's folder.
func (l *Loop) Restore(desk int, head string) (dir string) {
	l.Helper()
	ws, err := l.Workspace(l.Context(), l.Opened.Ref)
	require.NoError(l, err)
	ws = ws.At(desk)
	defer ws.Leave(ws.Desk)
	require.NoError(l, ws.Restore(l.Context(), ws.Desk, head))
	return ws.Desk.Dir
}

// CommitDesk commits the changes on the desk.
func (l *Loop) CommitDesk(allow string) api.Committed {
	l.Helper()
	out, err := l.Commit(l.Context(), api.Commit{Ref: l.Opened.Ref, Ledger: l.Ledger, Head: l.Head, Iteration: 1, Attempt: 1, Description: "a change", Time: When, AllowNew: allow})
	require.NoError(l, err)
	if out.Commit != "" {
		l.Head = out.Commit
		l.Append(loop.Event{Type: loop.ChangeCommitted, Commit: out.Commit, Head: out.Commit, Files: out.Files, TotalFiles: out.TotalFiles})
	}
	return out
}

// Store returns the folder of the loop's store.
func (l *Loop) Store() string {
	l.Helper()
	stores, err := filepath.Glob(filepath.Join(l.Home.Dir, "stores", "*"))
	require.NoError(l, err)
	for _, s := range stores {
		if _, err := os.Stat(s + "/HEAD"); err == nil {
			return s
		}
	}
	l.Fatal("no store")
	return ""
}

// Step returns a step of the loop in one of its iterations.
func (l *Loop) Step(iteration int) api.Step {
	return api.Step{Ref: l.Opened.Ref, Key: api.Key{Iteration: iteration, Attempt: 1, Name: "test"}, Head: l.Head, LimitMs: 60_000}
}

// RunTest runs a command of the loop in its judge, as Temporal would, and returns what it printed.
func (l *Loop) RunTest(env *testsuite.TestActivityEnvironment, in api.Test) (out api.Tested, printed string) {
	l.Helper()
	value, err := env.ExecuteActivity(l.Test, in)
	require.NoError(l, err)
	require.NoError(l, value.Get(&out))
	return out, gittest.Read(l, filepath.Join(out.Log, "stdout"))
}

// BeginLogged opens a loop whose activities run as Temporal would run them, and returns what its worker logs.
func BeginLogged(t *testing.T) (*Loop, *testsuite.TestActivityEnvironment, *bytes.Buffer) {
	t.Helper()
	l := Begin(t, spec.Deny)
	var log bytes.Buffer
	l.Logger = slog.New(slog.NewTextHandler(&log, nil))
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(l.Test)
	return l, env, &log
}
