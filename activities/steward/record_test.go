package steward_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

func TestS7_AStewardsRecordIsWholeAndRestoresIt(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, nil)
	s.Submit("one", `{"goal": "a <b> & c", "scope": ["work/**"]}`)
	s.Submit("two", `{}`)
	r := s.Whole()
	require.Equal(t, 3, r.Entries)
	require.Equal(t, s.Opened.Charter, r.Terms)
	require.Equal(t, s.Opened.Base, r.Code)
	st, book := s.Book()
	state, err := book.State(t.Context(), s.Ledger)
	require.NoError(t, err)
	require.Len(t, state.Tasks, 2)
	one, err := book.Task(t.Context(), s.Ledger, "one")
	require.NoError(t, err)
	require.Equal(t, "the task <one>", one.Title)
	c, err := book.Charter(t.Context(), s.Ledger)
	require.NoError(t, err)
	require.Equal(t, "main", c.Repo.Base, "whichever branch is checked out later")
	at, err := st.Ref(t.Context(), "refs/pawl-ledger/shop")
	require.NoError(t, err)
	require.Equal(t, s.Ledger, at)

	s.Stop() // a running worker may be pushing
	s.StartWorker()
	s.Reopen("second")
	require.NotNil(t, s.Opened.State)
	require.Equal(t, state.At(""), s.Opened.State.At(""))
	require.Equal(t, "shop", s.Opened.Ref, "it is the same steward")
	s.Submit("three", `{}`)
	s.Whole()
	s.Stop() // pushes the due push
	require.Equal(t, s.Ledger, gittest.Git(t, s.User, "rev-parse", "refs/pawl-ledger/shop"))
	require.Empty(t, gittest.Git(t, s.User, "for-each-ref", "refs/heads/pawl"), "a steward has no branch")

	for _, kept := range []string{"loops", "stores"} { // the project alone has the ledger
		require.NoError(t, os.RemoveAll(filepath.Join(filepath.Dir(s.User), "home", kept)))
	}
	s.StartWorker()
	s.Reopen("third")
	require.Len(t, s.Opened.State.Tasks, 3)
	s.Submit("four", `{}`)
	s.Whole()
}

func TestS7_ARetryFindsWhatWasAppended(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, nil)
	request := stewardapi.RecordTasks{Entry: s.Entry(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one"}})}
	first := s.AppendIn(request)
	s.StartWorker()
	second, err := s.RecordTasks(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, first.Ledger, second.Ledger)
	openTwice(s)
	s.Whole()
}

func TestS7_WhatPeopleReadIsInTheLedgerAndInTheProject(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, nil)
	s.Submit("one", `{}`)
	status, err := os.ReadFile(s.Opened.Export + "/STATUS_LEDGER.md")
	require.NoError(t, err)
	require.Contains(t, string(status), "one")
	require.NoFileExists(t, s.Opened.Export+"/LAST_KNOWN_STATE.md")
	out := s.AppendIn(stewardapi.RecordTasks{Entry: s.Entry(loop.Event{Type: loop.MilestoneReached, Task: "one"}), Milestone: true})
	require.Empty(t, out.Drift)
	st, _ := s.Book()
	for _, name := range []string{ledger.StatusFile, ledger.LastKnownFile} {
		exported, err := os.ReadFile(filepath.Join(s.Opened.Export, name))
		require.NoError(t, err)
		recorded, err := st.ReadLedger(t.Context(), s.Ledger, name)
		require.NoError(t, err)
		require.Equal(t, string(recorded[name]), string(exported))
	}
	s.Whole()
}

// openTwice opens the steward again, as a retry of OpenSteward does.
func openTwice(s *actest.Steward) {
	s.Helper()
	o, err := s.OpenSteward(s.Context(), stewardapi.OpenSteward{Steward: "shop", FirstRun: "first", Charter: s.Charter})
	require.NoError(s, err)
	require.Equal(s, s.Opened.Ref, o.Ref)
	require.Equal(s, s.Opened.Base, o.Base)
	require.Equal(s, s.Opened.Charter, o.Charter)
}

func TestS7_ATaskThatCanBeNoFolderIsRefused(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, nil)
	for _, id := range []string{"..", ".", "a/b", "../../x", "-x", ".git", "a\nb", ""} {
		e := s.Entry(loop.Event{Type: loop.TaskSubmitted, Task: id, Submitted: &task.Task{ID: id}})
		s.Seq--
		_, err := s.RecordTasks(t.Context(), stewardapi.RecordTasks{Entry: e})
		require.ErrorContains(t, err, "can't be the ID of a task", id)
	}
	s.Whole()
}

func TestS7_TheProjectsFolderIsNoPartOfTheProject(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, nil)
	require.Equal(t, filepath.Join(s.Opened.Repo, ".pawl"), s.Opened.Export)
	require.DirExists(t, s.Opened.Export)
	gittest.Write(t, s.Opened.Export+"/x", "x\n")
	require.Empty(t, gittest.Git(t, s.User, "status", "--porcelain"))
	exclude := s.User + "/.git/info/exclude"
	before, err := os.ReadFile(exclude)
	require.NoError(t, err)
	openTwice(s)
	after, err := os.ReadFile(exclude)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "once")
}

// TestS7_AFolderThatSomebodyDeletesIsOneQuestion about all its files, and the answer holds for all of them.
func TestS7_AFolderThatSomebodyDeletesIsOneQuestion(t *testing.T) {
	t.Parallel()
	for _, choice := range []string{steward.Restore, steward.Keep} {
		t.Run(choice, func(t *testing.T) {
			s := actest.BeginSteward(t, nil, planner("", nil))
			s.Submit("one", `{"goal": "g"}`)
			require.Empty(t, s.AppendIn(stewardapi.RecordTasks{Entry: s.Entry(loop.Event{Type: loop.MilestoneReached, Task: "one"}), Milestone: true}).Drift)
			files := []string{ledger.StatusFile, ledger.LastKnownFile}
			answer := func(d task.Drift, choice string) stewardapi.TasksRecorded {
				return s.Append(loop.Event{Type: loop.GateClosed, Drift: &d, Answer: &loop.Answer{Gate: "g", Choice: choice}})
			}

			require.NoError(t, os.RemoveAll(s.Opened.Export))
			found := s.ValidateWith().Drift
			require.Equal(t, []string{"artifact .pawl"}, names(found))
			require.Contains(t, found[0].Text, "was deleted: the 2 files that pawl wrote there are gone")
			require.Equal(t, found, s.Append(loop.Event{Type: loop.Warned, Reason: "meanwhile"}).Drift)
			require.NoFileExists(t, filepath.Join(s.Opened.Export, ledger.StatusFile))

			require.Empty(t, answer(found[0], choice).Drift)
			require.Empty(t, s.ValidateWith().Drift)
			for _, name := range files {
				if choice == steward.Keep {
					require.NoFileExists(t, filepath.Join(s.Opened.Export, name))
				} else {
					require.FileExists(t, filepath.Join(s.Opened.Export, name))
				}
			}
			if choice == steward.Keep { // one file comes back by its own question
				require.NoDirExists(t, s.Opened.Export)
				// A plan that comes later does not make it again, nor does a steward that is opened again.
				made := loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: s.Plan("one", nil).Plan}
				require.Empty(t, s.Append(made).Drift)
				openTwice(s)
				require.Empty(t, s.ValidateWith().Drift)
				require.NoDirExists(t, s.Opened.Export)
				gittest.Write(t, filepath.Join(s.Opened.Export, ledger.StatusFile), "")
				found = s.ValidateWith().Drift
				require.Equal(t, []string{"artifact " + ledger.StatusFile}, names(found))
				answer(found[0], steward.Restore)
				status, err := os.ReadFile(filepath.Join(s.Opened.Export, ledger.StatusFile))
				require.NoError(t, err)
				require.Contains(t, string(status), "# Status of shop")
				require.NoError(t, os.Remove(filepath.Join(s.Opened.Export, ledger.StatusFile)))
				require.NotEmpty(t, s.ValidateWith().Drift, "it is asked about again")
			} else {
				require.NoError(t, os.RemoveAll(s.Opened.Export))
				require.Equal(t, []string{"artifact .pawl"}, names(s.ValidateWith().Drift), "it is asked about again")
			}
			require.NoError(t, os.RemoveAll(s.Opened.Export))
			gittest.Write(t, s.Opened.Export, "a file in the way")
			found = s.ValidateWith().Drift
			require.Equal(t, []string{"artifact .pawl"}, names(found))
			require.Equal(t, names(found), names(answer(found[0], choice).Drift), "pawl can't help it; the answer is recorded all the same")
		})
	}
}

func TestOfTwoStewardsOneHasTheProjectsFolder(t *testing.T) {
	s := actest.BeginSteward(t, nil, nil)
	c := s.Chartered(func(doc map[string]any) { doc["name"] = "other" })
	o, err := s.OpenSteward(s.Context(), stewardapi.OpenSteward{Steward: "other", FirstRun: "other", Charter: c})
	require.NoError(t, err)
	require.Empty(t, o.Export)
	require.Contains(t, strings.Join(o.Warnings, "\n"), "another steward writes into")
	gittest.Write(t, filepath.Join(s.Opened.Export, ledger.StatusFile), "theirs\n")
	out, err := s.RecordTasks(s.Context(), stewardapi.RecordTasks{Entry: api.Entry{Ref: o.Ref, Events: []loop.Event{
		{Seq: 1, Loop: "other", Type: loop.StewardOpened, Commit: o.Charter, Opened: &loop.Opened{Kind: "steward", Repo: o.Repo, Base: o.Base}},
	}}})
	require.NoError(t, err)
	require.Empty(t, out.Drift)
	v, err := s.Validate(s.Context(), stewardapi.Validate{Ref: o.Ref, Ledger: out.Ledger, Charter: c})
	require.NoError(t, err)
	require.Empty(t, v.Drift, "it is not its file")
	require.Equal(t, []string{"artifact " + ledger.StatusFile}, names(s.ValidateWith().Drift))
}

// What a person said about the folder was said to one steward. The next one begins with a folder of its own.
func TestS7_AnAnswerAboutTheFolderIsOneStewardsAlone(t *testing.T) {
	s := actest.BeginSteward(t, nil, planner("", nil))
	s.Submit("one", `{"goal": "g"}`)
	plan := loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: s.Plan("one", nil).Plan}
	s.Append(plan)
	edited := filepath.Join(s.Opened.Export, "tasks/one/PLAN.md")
	status := filepath.Join(s.Opened.Export, ledger.StatusFile)
	keep := func() {
		found := s.ValidateWith().Drift
		require.Len(t, found, 1)
		s.Append(loop.Event{Type: loop.GateClosed, Drift: &found[0], Answer: &loop.Answer{Gate: "g", Choice: steward.Keep}})
		require.Empty(t, s.ValidateWith().Drift)
	}
	gittest.Write(t, edited, "theirs\n")
	keep()
	next := func(run string) {
		s.AppendIn(stewardapi.RecordTasks{Entry: s.Entry(loop.Event{Type: loop.StewardEnded}), Close: true})
		s.Ledger, s.Seq = "", 0
		s.Reopen(run)
		s.AppendOpened()
		s.Submit("one", `{"goal": "g"}`)
		plan = loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: s.Plan("one", nil).Plan}
	}
	next("second")
	found := s.Append(plan).Drift
	require.Equal(t, []string{"artifact tasks/one/PLAN.md"}, names(found), "nobody has answered this steward")
	s.Append(loop.Event{Type: loop.GateClosed, Drift: &found[0], Answer: &loop.Answer{Gate: "g", Choice: steward.Restore}})
	require.NoError(t, os.RemoveAll(s.Opened.Export))
	keep()
	require.NoDirExists(t, s.Opened.Export)
	next("third")
	require.FileExists(t, status)
	require.Empty(t, s.Append(plan).Drift)
	require.FileExists(t, edited)
	require.Empty(t, s.ValidateWith().Drift)
	require.NoError(t, os.Remove(status))
	require.Equal(t, []string{"artifact " + ledger.StatusFile}, names(s.ValidateWith().Drift), "this one has written it")
}

func TestS7_NothingIsWrittenThroughALinkOrIntoTheProject(t *testing.T) {
	t.Parallel()
	for name, inTheWay := range map[string]func(t *testing.T, user, outside string){
		"a link out of the project": func(t *testing.T, user, outside string) { require.NoError(t, os.Symlink(outside, user+"/.pawl")) },
		"a link within the project": func(t *testing.T, user, _ string) { require.NoError(t, os.Symlink("work", user+"/.pawl")) },
		"a file":                    func(t *testing.T, user, _ string) { gittest.Write(t, user+"/.pawl", "x") },
		"a folder that git has": func(t *testing.T, user, _ string) {
			gittest.Write(t, user+"/.pawl/x", "x")
			gittest.Git(t, user, "add", "-f", ".pawl")
		},
		"an exclude that is a link": func(t *testing.T, user, outside string) {
			require.NoError(t, os.RemoveAll(user+"/.git/info/exclude"))
			require.NoError(t, os.Symlink(outside+"/exclude", user+"/.git/info/exclude"))
		},
		"an info that is a link": func(t *testing.T, user, outside string) {
			require.NoError(t, os.RemoveAll(user+"/.git/info"))
			require.NoError(t, os.Symlink(outside, user+"/.git/info"))
		},
		"a .gitignore against it": func(t *testing.T, user, _ string) { gittest.Write(t, user+"/.gitignore", "!/.pawl/\n!/.pawl/**\n") },
	} {
		t.Run(name, func(t *testing.T) {
			s := actest.BeginSteward(t, nil, nil)
			require.NoError(t, os.RemoveAll(s.User+"/.pawl"))
			gittest.Git(t, s.User, "update-ref", "-d", "refs/pawl-ledger/shop")
			require.NoError(t, os.WriteFile(s.User+"/.git/info/exclude", nil, 0o644))
			outside := t.TempDir()
			inTheWay(t, s.User, outside)
			s.Ledger, s.Seq = "", 0
			s.Reopen("another")
			require.Empty(t, s.Opened.Export)
			require.Len(t, s.Opened.Warnings, 1, fmt.Sprint(s.Opened.Warnings))
			s.AppendOpened()
			entries, err := os.ReadDir(outside)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
}

func TestE6_ACharterWithACredentialIsRefused(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, nil)
	c := s.Chartered(func(m map[string]any) {
		m["name"], m["notify"] = "other", []any{"curl -H 'X: ghp_" + strings.Repeat("a1B2", 9) + "' https://x.example"}
	})
	_, err := s.OpenSteward(t.Context(), stewardapi.OpenSteward{Steward: "other", FirstRun: "second", Charter: c})
	require.ErrorContains(t, err, "notify[0] contains a GitHub token")
	require.True(t, wire.Is(err, fault.InvalidSpec))
}

// TestS6_WhatAHaltedStewardRecordsWaitsForNoPush has a project that takes a push and never answers.
func TestS6_WhatAHaltedStewardRecordsWaitsForNoPush(t *testing.T) {
	t.Parallel()
	bare := filepath.Join(t.TempDir(), "project.git")
	s := actest.BeginSteward(t, nil, func(doc map[string]any) {
		user := doc["repo"].(map[string]any)["path"].(string)
		gittest.Git(t, user, "clone", "-q", "--bare", user, bare)
		doc["repo"] = map[string]any{"url": "file://" + bare}
	})
	pushed := s.Ledger
	gittest.Write(t, filepath.Join(bare, "hooks/pre-receive"), "#!/bin/sh\nexec sleep 900\n")
	require.NoError(t, os.Chmod(filepath.Join(bare, "hooks/pre-receive"), 0o755))

	in := stewardapi.RecordTasks{Entry: s.Entry(loop.Event{Type: loop.AutonomyHalted, Reason: "halted by ann"})}
	in.Hasty = true
	s.AppendIn(in)
	require.NotEqual(t, pushed, s.Ledger, "this host has it")
	require.Equal(t, pushed, gittest.Git(t, bare, "rev-parse", "refs/pawl-ledger/shop"))
	s.Whole()
}
