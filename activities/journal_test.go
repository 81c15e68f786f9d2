package activities_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/wire"
)

func (l *opened) entry(events ...loop.Event) act.Entry {
	return act.Entry{Ref: l.o.Ref, Ledger: l.ledger, Events: l.numbered(events)}
}

// A step appends some of its events before its agent is started. If it was cut off, the loop sends them
// again with what came after.
func TestEventsThatTheLedgerHasAreNotAppendedTwice(t *testing.T) {
	l := begun(t, spec.Deny)
	in := l.entry(loop.Event{Type: loop.IterationStarted, Iteration: 1}, loop.Event{Type: loop.Warned, Reason: "x"})
	first, err := l.a.Record(ctx, act.Record{Entry: act.Entry{Ref: in.Ref, Ledger: in.Ledger, Events: in.Events[:1]}})
	require.NoError(t, err)
	both, err := l.a.Record(ctx, act.Record{Entry: in})
	require.NoError(t, err)
	require.Equal(t, first.Ledger, git(t, storeOf(t), "rev-parse", both.Ledger+"^"))
	again, err := l.a.Record(ctx, act.Record{Entry: in})
	require.NoError(t, err)
	require.Equal(t, both.Ledger, again.Ledger)

	in.Events[1].Reason = "another run's"
	_, err = l.a.Record(ctx, act.Record{Entry: in})
	require.True(t, wire.Is(err, fault.LedgerAhead), "%v", err)
}

func TestARevertedChangeIsGoneFromBranchAndDesk(t *testing.T) {
	l := begun(t, spec.Deny)
	l.begin()
	base := l.head
	write(t, l.o.Desk+"/work/a", "worse\n")
	commit := l.commit("").Commit
	out, err := l.a.Settle(ctx, act.Settle{Entry: l.entry(loop.Event{Type: loop.ChangeReverted, Iteration: 1}), Revert: &act.Revert{Commit: commit, Parent: base}})
	require.NoError(t, err)
	store := storeOf(t)
	require.Equal(t, out.Head, git(t, store, "rev-parse", l.o.Branch))
	require.Equal(t, git(t, store, "rev-parse", base+"^{tree}"), git(t, store, "rev-parse", out.Head+"^{tree}"))
	require.NoError(t, l.a.RestoreDesk(ctx, l.o.Ref, out.Head))
	require.Equal(t, "a\n", string(must(os.ReadFile(l.o.Desk+"/work/a"))))
}

func TestWhatTheRepositoryRefusesIsToldAndPushedLater(t *testing.T) {
	l := begun(t, spec.Deny)
	git(t, l.user, "config", "receive.hideRefs", "refs/pawl-ledger") // no hook runs
	out, err := l.a.Record(ctx, act.Record{Entry: l.entry(loop.Event{Type: loop.Warned, Reason: "x"})})
	require.NoError(t, err)
	require.Contains(t, out.PushRefused, "was refused by "+l.user)
	l.ledger = out.Ledger
	git(t, l.user, "config", "--unset", "receive.hideRefs")
	out, err = l.a.Record(ctx, act.Record{Entry: l.entry(loop.Event{Type: loop.Warned, Reason: "y"})})
	require.NoError(t, err)
	require.Empty(t, out.PushRefused)
	require.Equal(t, out.Ledger, git(t, l.user, "rev-parse", "refs/pawl-ledger/x"))
}
