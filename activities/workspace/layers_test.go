package workspace_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// TestE6_OnlyWhatAKeptChangeLeftInCachesIsFound: a judged command writes something to a cache. It stays within the
// judgement, and afterwards only if the change was kept. Commands still work after a settlement.
func TestE6_OnlyWhatAKeptChangeLeftInCachesIsFound(t *testing.T) {
	if !sandbox.Probe().Overlay {
		t.Skip("this machine has no overlays")
	}
	cache := t.TempDir()
	t.Setenv("GOCACHE", cache)
	l := actest.Begin(t, spec.Deny)
	l.Iterate()
	base := l.Head
	env := actest.Environment(l.Activities)
	env.RegisterActivity(l.Guard)
	calls := 0
	guard := func(command string) bool {
		t.Helper()
		calls++
		step := l.Step(1)
		step.Key.Name = fmt.Sprintf("guard%d", calls)
		value, err := env.ExecuteActivity(l.Guard, api.Guard{Step: step, Command: command})
		require.NoError(t, err)
		var out api.Outcome
		require.NoError(t, value.Get(&out))
		return out.OK()
	}
	settle := func(name string, kept bool) {
		t.Helper()
		gittest.Write(t, l.Opened.Desk+"/work/a", name+"\n")
		commit := l.CommitDesk("").Commit
		require.True(t, guard("echo "+name+" >$GOCACHE/"+name), name)
		require.True(t, guard("test -e $GOCACHE/"+name), "within the judgement")
		in := api.Settle{Entry: l.Entry(loop.Event{Type: loop.Warned, Reason: name})}
		if !kept {
			in.Revert = &api.Revert{Commit: commit, Parent: base}
		}
		out, err := l.Settle(t.Context(), in)
		require.NoError(t, err)
		l.Ledger = out.Ledger
		if out.Head != "" { // otherwise the change stays
			l.Head = out.Head
		}
		require.Equal(t, kept, guard("test -e $GOCACHE/"+name), "after it")
		require.True(t, guard("echo 1 >$GOCACHE/more"), "and it can be written")
	}
	settle("discarded", false)
	settle("kept", true)
	require.False(t, guard("test -e $GOCACHE/discarded"))
	left, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Empty(t, left, "the user's own is as it was")
}

// TestE6_AJudgementFromScratchFindsWhatItsOwnCommitWrote: neither what kept changes wrote to caches nor what the unchanged
// code did, nor what is left in the judge. Each commit keeps its own.
func TestE6_AJudgementFromScratchFindsWhatItsOwnCommitWrote(t *testing.T) {
	if !sandbox.Probe().Overlay {
		t.Skip("this machine has no overlays")
	}
	cache := t.TempDir()
	t.Setenv("GOCACHE", cache)
	require.NoError(t, os.WriteFile(cache+"/users", nil, 0o600))
	l := actest.Begin(t, spec.Deny)
	base := l.Head
	env := actest.Environment(l.Activities)
	env.RegisterActivity(l.Guard)
	calls := 0
	guard := func(iteration int, scratch bool, at, command string) bool {
		t.Helper()
		calls++
		step := l.Step(iteration)
		step.Key.Name, step.Scratch = fmt.Sprintf("guard%d", calls), scratch
		if at != "" {
			step.Head = at
		}
		value, err := env.ExecuteActivity(l.Guard, api.Guard{Step: step, Command: command})
		require.NoError(t, err)
		var out api.Outcome
		require.NoError(t, value.Get(&out))
		return out.OK()
	}
	require.True(t, guard(0, false, "", "echo 1 >$GOCACHE/unchanged"))
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/a", "kept\n")
	l.Head = l.CommitDesk("").Commit
	require.True(t, guard(1, false, "", "echo 1 >$GOCACHE/kept; ls $GOCACHE; test -e $GOCACHE/unchanged"))
	out, err := l.Settle(t.Context(), api.Settle{Entry: l.Entry(loop.Event{Type: loop.Warned, Reason: "kept"})})
	require.NoError(t, err)
	l.Ledger = out.Ledger
	require.True(t, guard(1, false, "", "test -e $GOCACHE/kept -a -e $GOCACHE/unchanged && echo 1 >$GOCACHE/later"))

	made, err := os.Stat(l.Home.Loop(l.Opened.Ref) + "/judge")
	require.NoError(t, err)
	require.True(t, guard(1, true, "", `test "$(ls $GOCACHE)" = users && grep -q kept work/a && echo 1 >$GOCACHE/own`), "the user's own cache")
	again, err := os.Stat(l.Home.Loop(l.Opened.Ref) + "/judge")
	require.NoError(t, err)
	require.False(t, os.SameFile(made, again), "the judge is made anew")
	require.True(t, guard(1, true, base, "test ! -e $GOCACHE/own && echo 1 >$GOCACHE/theirs"), "another commit has its own")
	require.True(t, guard(1, true, "", "test -e $GOCACHE/own -a ! -e $GOCACHE/theirs"))
	last, err := os.Stat(l.Home.Loop(l.Opened.Ref) + "/judge")
	require.NoError(t, err)
	require.True(t, os.SameFile(again, last), "which is done once")
	require.True(t, guard(1, false, "", "test -e $GOCACHE/kept -a ! -e $GOCACHE/own"), "the other judgements have theirs again")
	require.True(t, guard(1, true, "", `test "$(ls $GOCACHE)" = users && echo 1 >$GOCACHE/own`), "and the next one begins from scratch")
}
