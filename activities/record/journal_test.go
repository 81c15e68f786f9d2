package record_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// A step appends some of its events before its agent starts. If it is cut off, the loop sends them again, with later
// events.
func TestEventsThatTheLedgerHasAreNotAppendedTwice(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	in := l.Entry(loop.Event{Type: loop.IterationStarted, Iteration: 1}, loop.Event{Type: loop.Warned, Reason: "x"})
	first, err := l.Record(t.Context(), api.Record{Entry: api.Entry{Ref: in.Ref, Ledger: in.Ledger, Events: in.Events[:1]}})
	require.NoError(t, err)
	both, err := l.Record(t.Context(), api.Record{Entry: in})
	require.NoError(t, err)
	require.Equal(t, first.Ledger, gittest.Git(t, l.Store(), "rev-parse", both.Ledger+"^"))
	again, err := l.Record(t.Context(), api.Record{Entry: in})
	require.NoError(t, err)
	require.Equal(t, both.Ledger, again.Ledger)

	in.Events[1].Reason = "another run's"
	_, err = l.Record(t.Context(), api.Record{Entry: in})
	require.True(t, wire.Is(err, fault.LedgerAhead), "%v", err)
	require.Contains(t, wire.Decode(err).Advice(), "--ledger "+both.Ledger+"`", "the command is complete")
	require.Contains(t, wire.Decode(err).Advice(), "the engine's database has lost its last writes")
}

func TestARevertedChangeIsGoneFromBranchAndDesk(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	l.Iterate()
	base := l.Head
	gittest.Write(t, l.Opened.Desk+"/work/a", "worse\n")
	commit := l.CommitDesk("").Commit
	out, err := l.Settle(t.Context(), api.Settle{Entry: l.Entry(loop.Event{Type: loop.ChangeReverted, Iteration: 1}), Revert: &api.Revert{Commit: commit, Parent: base}})
	require.NoError(t, err)
	store := l.Store()
	require.Equal(t, out.Head, gittest.Git(t, store, "rev-parse", l.Opened.Branch))
	require.Equal(t, gittest.Git(t, store, "rev-parse", base+"^{tree}"), gittest.Git(t, store, "rev-parse", out.Head+"^{tree}"))
	l.Restore(0, out.Head)
	require.Equal(t, "a\n", gittest.Read(t, l.Opened.Desk+"/work/a"))
}

func TestWhatTheRepositoryRefusesIsToldAndPushedLater(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	gittest.Git(t, l.User, "config", "receive.hideRefs", "refs/pawl-ledger") // refuses the push without a hook
	out, err := l.Record(t.Context(), api.Record{Entry: l.Entry(loop.Event{Type: loop.Warned, Reason: "x"})})
	require.NoError(t, err)
	require.Contains(t, out.PushRefused, "was refused by "+l.User)
	l.Ledger = out.Ledger
	gittest.Git(t, l.User, "config", "--unset", "receive.hideRefs")
	out, err = l.Record(t.Context(), api.Record{Entry: l.Entry(loop.Event{Type: loop.Warned, Reason: "y"})})
	require.NoError(t, err)
	require.Empty(t, out.PushRefused)
	require.Equal(t, out.Ledger, gittest.Git(t, l.User, "rev-parse", "refs/pawl-ledger/x"))
}

// The repository takes a push and never answers. A halt cancels the append that waits for it, and the loop sends that
// append again, and then its end.
func TestA6_ARepositoryThatNeverAnswersHoldsUpNoHaltedLoop(t *testing.T) {
	t.Parallel()
	bare := filepath.Join(t.TempDir(), "project.git")
	l := actest.BeginWith(t, spec.Deny, func(user string, doc map[string]any) {
		gittest.Git(t, user, "clone", "-q", "--bare", user, bare)
		doc["repo"] = map[string]any{"url": "file://" + bare}
	})
	l.Iterate()
	pushed := l.Ledger
	hanging := filepath.Join(bare, "hanging")
	require.NoError(t, syscall.Mkfifo(hanging, 0o600))
	gittest.Write(t, filepath.Join(bare, "hooks/pre-receive"), "#!/bin/sh\n: >hanging\nexec sleep 900\n")
	require.NoError(t, os.Chmod(filepath.Join(bare, "hooks/pre-receive"), 0o755))

	ctx, halt := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(hanging) // until the hook writes
		halt()
	}()
	in := api.Settle{Entry: l.Entry(loop.Event{Type: loop.Warned, Iteration: 1, Reason: "x"}), Push: true}
	_, err := l.Settle(ctx, in)
	require.ErrorIs(t, err, context.Canceled)
	written := strings.TrimSpace(gittest.Git(t, l.Store(), "rev-parse", "refs/pawl-ledger/x"))
	require.NotEqual(t, pushed, written, "it is recorded, and nobody knows")

	in.Hasty = true
	out, err := l.Settle(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, written, out.Ledger, "the same entry")
	require.Contains(t, out.PushRefused, "does not answer, and a halt does not wait for it")

	l.Ledger = out.Ledger
	end := l.Entry(loop.Event{Type: loop.AutonomyHalted, Iteration: 1})
	end.Hasty = true
	out, err = l.Close(t.Context(), api.Close{Entry: end, Base: l.Head, Head: l.Head})
	require.NoError(t, err)
	require.Empty(t, out.PushRefused, "that was said")
	require.Equal(t, pushed, strings.TrimSpace(gittest.Git(t, bare, "rev-parse", "refs/pawl-ledger/x")))
	r, err := hostrecord.Read(l.Home, l.Opened.Ref)
	require.NoError(t, err)
	require.True(t, r.Closed)
	require.True(t, r.Unpushed, "a worker pushes it later")
}
