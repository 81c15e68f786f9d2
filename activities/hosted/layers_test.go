package hosted_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/actest"
	"pawl/internal/act"
	"pawl/internal/gittest"
	"pawl/internal/loop"
	"pawl/internal/sandbox"
	"pawl/internal/spec"
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
		value, err := env.ExecuteActivity(l.Guard, act.Guard{Step: step, Command: command})
		require.NoError(t, err)
		var out act.Outcome
		require.NoError(t, value.Get(&out))
		return out.OK()
	}
	settle := func(name string, kept bool) {
		t.Helper()
		gittest.Write(t, l.Opened.Desk+"/work/a", name+"\n")
		commit := l.CommitDesk("").Commit
		require.True(t, guard("echo "+name+" >$GOCACHE/"+name), name)
		require.True(t, guard("test -e $GOCACHE/"+name), "within the judgement")
		in := act.Settle{Entry: l.Entry(loop.Event{Type: loop.Warned, Reason: name})}
		if !kept {
			in.Revert = &act.Revert{Commit: commit, Parent: base}
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
