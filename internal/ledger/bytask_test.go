package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
	"pawl/test/harness/gittest"
)

// crew is a steward with a ledger.
type crew struct {
	*testing.T
	store *store.Store
	book  *ledger.Steward
	code  string
	head  string
	seq   int64
	files map[string][]byte // the files of the last entry
	state steward.State
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	user, _ := gittest.UserRepo(t, nil)
	s, err := store.Open(ctx, filepath.Join(t.TempDir(), "store"))
	require.NoError(t, err)
	c := &crew{T: t, store: s, book: ledger.OpenSteward(s), state: steward.New("crew")}
	c.code, err = userrepo.Fetch(ctx, s, userrepo.At(user), "main")
	require.NoError(t, err)
	c.append(loop.Event{Type: loop.StewardOpened, Commit: fmt.Sprintf("%x", sha256.Sum256([]byte("{}"))), Opened: &loop.Opened{Kind: "steward", Base: c.code}})
	return c
}

func (c *crew) append(events ...loop.Event) {
	c.Helper()
	for i := range events {
		c.seq++
		events[i].Seq, events[i].Loop, events[i].Time = c.seq, "crew", when.Add(time.Duration(c.seq)*time.Second)
	}
	files, page, err := c.book.Entry(ctx, c.head, events, func(string) ([]byte, error) { return []byte("{}"), nil })
	require.NoError(c, err)
	c.put(files)
	c.book.Appended(c.head, page)
	c.state = loop.Fold(c.state, events)
}

func (c *crew) put(files map[string][]byte) {
	c.Helper()
	id, err := gittest.Append(c.store, store.Entry{Ref: ref, Prev: c.head, Code: c.code, Files: files, Message: "entry", Time: when, Author: who})
	require.NoError(c, err)
	c.head, c.files = id, files
}

// submitted returns the events of a submitted task. With an outcome, the task ends at once.
func submitted(id, outcome string) []loop.Event {
	events := []loop.Event{{Type: loop.TaskSubmitted, Task: id, Submitted: &task.Task{ID: id, Title: "Mend " + id}}}
	if outcome != "" {
		events = append(events, loop.Event{Type: loop.TaskEnded, Task: id, Outcome: outcome})
	}
	return events
}

// read checks that a reader who has only the ledger gets the state that the events make.
func (c *crew) read() {
	c.Helper()
	s, err := ledger.OpenSteward(c.store).State(ctx, c.head)
	require.NoError(c, err)
	require.JSONEq(c, encoded(c, c.state.At(c.head)), encoded(c, s))
}

func (c *crew) faults() (all []string) {
	c.Helper()
	r, err := ledger.Verify(ctx, c.store, c.head)
	require.NoError(c, err)
	for _, f := range r.Faults {
		all = append(all, f.What)
	}
	return all
}

func encoded(t testing.TB, v any) string {
	doc, err := json.Marshal(v)
	require.NoError(t, err)
	return string(doc)
}

// TestA9_AnEntryOfAStewardIsAsSmallAsWhatHasHappened fills a queue. An entry has only the files of the tasks that it
// is about, and the files of forgotten tasks are removed.
func TestA9_AnEntryOfAStewardIsAsSmallAsWhatHasHappened(t *testing.T) {
	c := newCrew(t)
	for i := range 30 {
		c.append(submitted(fmt.Sprintf("t%d", i), "")...)
		require.Len(t, c.files, 4, "state, events, and the task with its state")
	}
	c.read()
	five := 5
	c.append(loop.Event{Type: loop.TaskPrioritized, Task: "t7", Priority: &five})
	require.Len(t, c.files, 3)
	require.Contains(t, string(c.files[ledger.TaskStateFile("t7")]), `"priority": 5`)
	c.append(loop.Event{Type: loop.MessageReceived, Message: steward.MessageHold})
	require.Len(t, c.files, 2)
	for i := range steward.KeepEnded + 1 {
		c.append(submitted(fmt.Sprintf("over%d", i), steward.Done)...)
	}
	require.Nil(t, c.files[ledger.TaskStateFile("over0")])
	require.Contains(t, c.files, ledger.TaskStateFile("over0"), "it is forgotten")
	files, err := c.store.ReadLedger(ctx, c.head, ledger.TaskStateFile("over0"), ledger.TaskFile("over0"))
	require.NoError(t, err)
	require.Len(t, files, 1, "the task as it was submitted stays")
	c.read()
	require.Empty(t, c.faults())
}

func TestA9_WhatBecameOfATaskIsProven(t *testing.T) {
	for name, forge := range map[string]struct {
		change func(files map[string][]byte)
		found  string
	}{
		"another priority": {func(files map[string][]byte) {
			name := ledger.TaskStateFile("a")
			files[name] = bytes.Replace(files[name], []byte(`"priority": 5`), []byte(`"priority": 6`), 1)
		}, "its state does not follow from its events and the state before: tasks"},
		"a task that is gone": {func(files map[string][]byte) { files[ledger.TaskStateFile("b")] = nil }, "can't be read"},
		"a task that nobody submitted": {func(files map[string][]byte) {
			files[ledger.TaskStateFile("c")] = files[ledger.TaskStateFile("a")]
		}, "tasks/c/state.json does not belong in a steward's ledger"},
		"another task than the submitted one": {func(files map[string][]byte) { files[ledger.TaskFile("a")] = []byte("{}") }, "tasks/a/TASK.json does not follow from the events"},
		"a submitted task that is gone":       {func(files map[string][]byte) { files[ledger.TaskFile("b")] = nil }, "tasks/b/TASK.json does not follow from the events"},
		"another plan":                        {func(files map[string][]byte) { files[ledger.TaskPlanFile("b")] = []byte("# other") }, "tasks/b/PLAN.md has the hash"},
		"another charter":                     {func(files map[string][]byte) { files[ledger.CharterFile] = []byte("{ }") }, "charter.json has the hash"},
		"nothing":                             {func(map[string][]byte) {}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t)
			c.append(append(submitted("a", ""), submitted("b", "")...)...)
			five, plan := 5, []byte("# b")
			files, _, err := c.book.Entry(ctx, c.head, []loop.Event{
				{Seq: c.seq + 1, Loop: "crew", Time: when, Type: loop.TaskPrioritized, Task: "a", Priority: &five},
				{Seq: c.seq + 2, Loop: "crew", Time: when, Type: loop.PlanMade, Task: "b", TaskPlan: &task.Plan{Hash: ledger.HashOf(plan)}},
			}, func(string) ([]byte, error) { return plan, nil })
			require.NoError(t, err)
			forge.change(files)
			c.put(files)
			require.Contains(t, fmt.Sprint(c.faults()), forge.found)
		})
	}
}

// The ID of a task is the name of a folder, and it comes from whoever submits the task.
func TestAnIDThatLeadsElsewhereGetsIntoNoLedger(t *testing.T) {
	c := newCrew(t)
	for _, id := range []string{"..", "../../etc", "a/b", "", ".git", "a\n"} {
		_, _, err := c.book.Entry(ctx, c.head, submitted(id, ""), nil)
		require.ErrorContains(t, err, "can't be the ID of a task")
		_, err = c.book.Task(ctx, c.head, id)
		require.ErrorContains(t, err, "can't be the ID of a task")
		_, err = c.book.Plan(ctx, c.head, id)
		require.ErrorContains(t, err, "can't be the ID of a task")
	}
}
