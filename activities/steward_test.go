package activities_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/activities"
	"pawl/internal/act"
	"pawl/internal/charter"
	"pawl/internal/home"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/store"
	"pawl/internal/task"
	"pawl/internal/workspace"
)

// looked is a steward that has begun on this host, without Temporal: the activities are called as its
// workflow calls them.
type looked struct {
	*testing.T
	a       *activities.Activities
	home    home.Home
	user    string
	charter charter.Charter
	o       act.StewardOpened[steward.State]
	ledger  string
	seq     int64
}

// looksAfter opens a steward on a repository with these files, its charter as change makes it.
func looksAfter(t *testing.T, files map[string]string, change func(map[string]any)) *looked {
	t.Helper()
	dir := t.TempDir()
	s := &looked{T: t, user: filepath.Join(dir, "user")}
	write(t, s.user+"/work/a", "a\n")
	for name, content := range files {
		write(t, filepath.Join(s.user, name), content)
	}
	git(t, s.user, "init", "-q", "-b", "main")
	git(t, s.user, "add", "-A")
	git(t, s.user, "commit", "-qm", "base")
	t.Setenv("PAWL_HOME", filepath.Join(dir, "home"))
	h, err := home.Open()
	require.NoError(t, err)
	s.home = h
	s.worker()
	s.charter = s.chartered(change)
	s.open("first")
	s.opened()
	return s
}

// chartered is the charter as change makes it.
func (s *looked) chartered(change func(map[string]any)) charter.Charter {
	s.Helper()
	doc := map[string]any{"name": "shop", "kind": "steward", "repo": map[string]any{"path": s.user}}
	if change != nil {
		change(doc)
	}
	c, err := charter.FromMap(doc)
	require.NoError(s, err)
	return c
}

// worker is the next worker of the host: it knows nothing.
func (s *looked) worker() {
	if s.a != nil { // the one before has died
		s.a.Stop()
	}
	s.a = activities.New(s.home, "host", "pawl", "default", false)
	s.Cleanup(s.a.Stop)
}

func (s *looked) open(run string) {
	s.Helper()
	var err error
	s.o, err = s.a.OpenSteward(ctx, act.OpenSteward{Steward: "shop", FirstRun: run, Charter: s.charter, Ledger: s.ledger})
	require.NoError(s, err)
}

func (s *looked) opened() act.TasksRecorded {
	s.Helper()
	return s.record(loop.Event{Type: loop.StewardOpened, Commit: s.o.Charter,
		Opened: &loop.Opened{Kind: "steward", Repo: s.o.Repo, Base: s.o.Base, Desk: s.o.Desk, Host: s.o.Host}})
}

func (s *looked) entry(events ...loop.Event) act.Entry {
	for i := range events {
		s.seq++
		events[i].Seq, events[i].Loop, events[i].Time = s.seq, "shop", when.Add(time.Duration(s.seq)*time.Second)
	}
	return act.Entry{Ref: s.o.Ref, Ledger: s.ledger, Events: events}
}

func (s *looked) record(events ...loop.Event) act.TasksRecorded {
	s.Helper()
	return s.append(act.RecordTasks{Entry: s.entry(events...)})
}

func (s *looked) append(in act.RecordTasks) act.TasksRecorded {
	s.Helper()
	out, err := s.a.RecordTasks(ctx, in)
	require.NoError(s, err)
	s.ledger = out.Ledger
	return out
}

func (s *looked) submit(id, spec string) {
	s.Helper()
	s.record(loop.Event{Type: loop.TaskSubmitted, Task: id, Submitted: &task.Task{ID: id, Title: "the task <" + id + ">", Spec: json.RawMessage(spec)}})
}

func (s *looked) book() (*store.Store, *ledger.Steward) {
	s.Helper()
	r, err := workspace.Read(s.home, s.o.Ref)
	require.NoError(s, err)
	st, err := store.Open(ctx, r.Store)
	require.NoError(s, err)
	return st, ledger.OpenSteward(st)
}

// whole wants the ledger to be proven.
func (s *looked) whole() ledger.Report {
	s.Helper()
	st, _ := s.book()
	r, err := ledger.Verify(ctx, st, s.ledger)
	require.NoError(s, err)
	require.Empty(s, r.Faults)
	return r
}

func TestS7_AStewardsRecordIsWholeAndRestoresIt(t *testing.T) {
	s := looksAfter(t, nil, nil)
	s.submit("one", `{"goal": "a <b> & c", "scope": ["work/**"]}`)
	s.submit("two", `{}`)
	r := s.whole()
	require.Equal(t, 3, r.Entries)
	require.Equal(t, s.o.Charter, r.Terms)
	require.Equal(t, s.o.Base, r.Code)
	st, book := s.book()
	state, err := book.State(ctx, s.ledger)
	require.NoError(t, err)
	require.Len(t, state.Tasks, 2)
	one, err := book.Task(ctx, s.ledger, "one")
	require.NoError(t, err)
	require.Equal(t, "the task <one>", one.Title)
	c, err := book.Charter(ctx, s.ledger)
	require.NoError(t, err)
	require.Equal(t, "main", c.Repo.Base, "whichever branch is checked out later")
	at, err := st.Ref(ctx, "refs/pawl-ledger/shop")
	require.NoError(t, err)
	require.Equal(t, s.ledger, at)

	s.a.Stop() // one that lives may be pushing
	s.worker()
	s.open("second")
	require.NotNil(t, s.o.State)
	require.Equal(t, state.At(""), s.o.State.At(""))
	require.Equal(t, "shop", s.o.Ref, "it is the same steward")
	s.submit("three", `{}`)
	s.whole()
	s.a.Stop() // pushes what is due
	require.Equal(t, s.ledger, git(t, s.user, "rev-parse", "refs/pawl-ledger/shop"))
	require.Empty(t, git(t, s.user, "for-each-ref", "refs/heads/pawl"), "a steward has no branch")
}

func TestS7_ARetryFindsWhatWasAppended(t *testing.T) {
	s := looksAfter(t, nil, nil)
	again := act.RecordTasks{Entry: s.entry(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one"}})}
	first := s.append(again)
	s.worker()
	second, err := s.a.RecordTasks(ctx, again)
	require.NoError(t, err)
	require.Equal(t, first.Ledger, second.Ledger)
	s.open2(t)
	s.whole()
}

func TestS7_WhatPeopleReadIsInTheLedgerAndInTheProject(t *testing.T) {
	s := looksAfter(t, nil, nil)
	s.submit("one", `{}`)
	status, err := os.ReadFile(s.o.Export + "/STATUS_LEDGER.md")
	require.NoError(t, err)
	require.Contains(t, string(status), "one")
	require.NoFileExists(t, s.o.Export+"/LAST_KNOWN_STATE.md")
	out := s.append(act.RecordTasks{Entry: s.entry(loop.Event{Type: loop.MilestoneReached, Task: "one"}), Milestone: true})
	require.Empty(t, out.Drift)
	st, _ := s.book()
	for _, name := range []string{ledger.StatusFile, ledger.LastKnownFile} {
		exported, err := os.ReadFile(filepath.Join(s.o.Export, name))
		require.NoError(t, err)
		recorded, err := st.ReadLedger(ctx, s.ledger, name)
		require.NoError(t, err)
		require.Equal(t, string(recorded[name]), string(exported))
		require.Contains(t, out.Artifacts, name)
	}
	s.whole()
}

// open2 opens it again as the retry of an Open does.
func (s *looked) open2(t *testing.T) {
	t.Helper()
	o, err := s.a.OpenSteward(ctx, act.OpenSteward{Steward: "shop", FirstRun: "first", Charter: s.charter})
	require.NoError(t, err)
	require.Equal(t, s.o.Ref, o.Ref)
	require.Equal(t, s.o.Base, o.Base)
	require.Equal(t, s.o.Charter, o.Charter)
}

func TestS7_ATaskThatCanBeNoFolderIsRefused(t *testing.T) {
	s := looksAfter(t, nil, nil)
	for _, id := range []string{"..", ".", "a/b", "../../x", "-x", ".git", "a\nb", ""} {
		e := s.entry(loop.Event{Type: loop.TaskSubmitted, Task: id, Submitted: &task.Task{ID: id}})
		s.seq--
		_, err := s.a.RecordTasks(ctx, act.RecordTasks{Entry: e})
		require.ErrorContains(t, err, "can't be the ID of a task", id)
	}
	s.whole()
}

func TestS7_TheProjectsFolderIsNoPartOfTheProject(t *testing.T) {
	s := looksAfter(t, nil, nil)
	require.Equal(t, filepath.Join(s.o.Repo, ".pawl"), s.o.Export)
	require.DirExists(t, s.o.Export)
	write(t, s.o.Export+"/x", "x\n")
	require.Empty(t, git(t, s.user, "status", "--porcelain"))
	exclude := s.user + "/.git/info/exclude"
	before, err := os.ReadFile(exclude)
	require.NoError(t, err)
	s.open2(t)
	after, err := os.ReadFile(exclude)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "once")
}

func TestS7_NothingIsWrittenThroughALinkOrIntoTheProject(t *testing.T) {
	for name, inTheWay := range map[string]func(t *testing.T, user, outside string){
		"a link out of the project": func(t *testing.T, user, outside string) { require.NoError(t, os.Symlink(outside, user+"/.pawl")) },
		"a link within the project": func(t *testing.T, user, _ string) { require.NoError(t, os.Symlink("work", user+"/.pawl")) },
		"a file":                    func(t *testing.T, user, _ string) { write(t, user+"/.pawl", "x") },
		"a folder that git has":     func(t *testing.T, user, _ string) { write(t, user+"/.pawl/x", "x"); git(t, user, "add", "-f", ".pawl") },
		"an exclude that is a link": func(t *testing.T, user, outside string) {
			require.NoError(t, os.RemoveAll(user+"/.git/info/exclude"))
			require.NoError(t, os.Symlink(outside+"/exclude", user+"/.git/info/exclude"))
		},
		"an info that is a link": func(t *testing.T, user, outside string) {
			require.NoError(t, os.RemoveAll(user+"/.git/info"))
			require.NoError(t, os.Symlink(outside, user+"/.git/info"))
		},
		"a .gitignore against it": func(t *testing.T, user, _ string) { write(t, user+"/.gitignore", "!/.pawl/\n!/.pawl/**\n") },
	} {
		t.Run(name, func(t *testing.T) {
			s := looksAfter(t, nil, nil)
			require.NoError(t, os.RemoveAll(s.user+"/.pawl"))
			git(t, s.user, "update-ref", "-d", "refs/pawl-ledger/shop")
			require.NoError(t, os.WriteFile(s.user+"/.git/info/exclude", nil, 0o644))
			outside := t.TempDir()
			inTheWay(t, s.user, outside)
			s.ledger, s.seq = "", 0
			s.open("another")
			require.Empty(t, s.o.Export)
			require.Len(t, s.o.Warnings, 1, fmt.Sprint(s.o.Warnings))
			s.opened()
			entries, err := os.ReadDir(outside)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
}
