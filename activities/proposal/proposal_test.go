package proposal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

func TestE3_TheFirstWordOnAProposalCounts(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/a", "better\n")
	l.CommitDesk("")
	out, err := l.Close(t.Context(), api.Close{Base: l.Opened.Base, Head: l.Head, Entry: l.Entry(
		loop.Event{Type: loop.ProposalMade, Head: l.Head}, loop.Event{Type: loop.AutonomyCompleted, Status: loop.Completed},
	)})
	require.NoError(t, err)
	require.NotNil(t, out.Proposal)
	require.NoDirExists(t, l.Opened.Desk)

	word := func(answer, hash string) (api.Reviewed, error) {
		return l.ReviewHere(t.Context(), api.Review{Loop: "x", Hash: hash, Answer: answer, By: "ann", Time: actest.When})
	}
	_, err = word("perhaps", out.Proposal.Hash)
	require.Equal(t, fault.InvalidMessage, fault.CodeOf(err))
	_, err = word("approve", l.Head)
	require.Equal(t, fault.HashMismatch, fault.CodeOf(err))
	for i := range 2 { // the second approval finds the first one
		said, err := word("approve", out.Proposal.Hash)
		require.NoError(t, err)
		require.Equal(t, rules.Approved, said.Proposal.State)
		require.Equal(t, i == 1, said.Already)
	}
	landed, err := l.ApplyHere(t.Context(), api.Apply{Loop: "x", Hash: out.Proposal.Hash, How: api.FastForward, Time: actest.When})
	require.NoError(t, err)
	require.Equal(t, landed.Commit, gittest.Git(t, l.User, "rev-parse", "main"))
	require.Equal(t, l.Opened.Base, gittest.Git(t, l.User, "rev-parse", "main^"), "the kept change alone")
	require.Equal(t, "a change", gittest.Git(t, l.User, "log", "-1", "--format=%s", "main"))
	require.Empty(t, gittest.Git(t, l.User, "diff", "main", l.Head))
	again, err := l.ApplyHere(t.Context(), api.Apply{Loop: "x", Hash: out.Proposal.Hash, How: api.FastForward, Time: actest.When})
	require.NoError(t, err)
	require.True(t, again.Already)
	_, err = l.ApplyHere(t.Context(), api.Apply{Loop: "y", Hash: out.Proposal.Hash, How: api.Patch})
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))

	require.NoError(t, os.WriteFile(filepath.Join(l.Home.Loop("x"), "workspace.json"), nil, 0o600))
	_, err = l.ApplyHere(t.Context(), api.Apply{Loop: "x", Hash: out.Proposal.Hash, How: api.FastForward, Time: actest.When})
	require.Equal(t, fault.LedgerDamaged, fault.CodeOf(err), "not that this host has no such loop: %v", err)
	_, err = l.ApplyHere(t.Context(), api.Apply{Loop: "x", Hash: out.Proposal.Hash, How: api.FastForward, Running: &api.Running{}, Time: actest.When})
	require.Equal(t, fault.LedgerDamaged, fault.CodeOf(err), "nor while it runs: %v", err)
}

func TestAnAmendedContractIsAnotherOne(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	same, err := l.Amend(t.Context(), api.Amend{Ref: l.Opened.Ref, Base: l.Opened.Base, Spec: l.Spec})
	require.NoError(t, err)
	require.Equal(t, l.Opened.Terms, same)
	amended, err := l.Spec.Amend([]byte(`{"limits": {"iterations": 9}}`), spec.Extendable)
	require.NoError(t, err)
	other, err := l.Amend(t.Context(), api.Amend{Ref: l.Opened.Ref, Base: l.Opened.Base, Spec: amended})
	require.NoError(t, err)
	require.NotEqual(t, l.Opened.Contract, other.Contract)
}

// An owner takes a secret out of history while a proposal waits.
func TestA7_WhatWasRewrittenAwayNeverComesBack(t *testing.T) {
	t.Parallel()
	for name, rewrite := range map[string][][]string{
		"amended": {{"rm", "-q", "config.txt"}, {"commit", "-q", "--amend", "--allow-empty", "-m", "without config"}},
		"reset":   {{"reset", "-q", "--hard", "HEAD~1"}},
	} {
		for _, how := range []string{api.FastForward, api.Merge, api.Squash} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				l := actest.BeginWith(t, spec.Deny, func(user string, _ map[string]any) {
					gittest.Write(t, user+"/config.txt", "pw\n")
					gittest.Git(t, user, "add", "-A")
					gittest.Git(t, user, "commit", "-qm", "config")
				})
				l.Iterate()
				gittest.Write(t, l.Opened.Desk+"/work/a", "better\n")
				l.CommitDesk("")
				closed, err := l.Close(t.Context(), api.Close{Base: l.Opened.Base, Head: l.Head, Entry: l.Entry(
					loop.Event{Type: loop.ProposalMade, Head: l.Head}, loop.Event{Type: loop.AutonomyCompleted, Status: loop.Completed},
				)})
				require.NoError(t, err)
				for _, args := range rewrite {
					gittest.Git(t, l.User, args...)
				}
				tip := gittest.Git(t, l.User, "rev-parse", "main")
				apply := func(hash string) api.Applied {
					_, err := l.ReviewHere(t.Context(), api.Review{Loop: "x", Hash: hash, Answer: "approve", By: "ann", Time: actest.When})
					require.NoError(t, err)
					out, err := l.ApplyHere(t.Context(), api.Apply{Loop: "x", Hash: hash, How: how, Time: actest.When})
					require.NoError(t, err)
					return out
				}

				out := apply(closed.Proposal.Hash)
				require.Equal(t, []any{tip, 1}, []any{out.Moved.Base, out.Moved.Files})
				require.Equal(t, &api.Rewritten{
					Base: l.Opened.Base, Refs: []string{"refs/heads/pawl/x", "refs/pawl-ledger/x"}, Loops: []string{l.Opened.Ref},
				}, out.Rewritten)
				require.Contains(t, out.MovedReason("h"), "`pawl clean --refs "+l.Opened.Ref+"`")
				require.Equal(t, tip, gittest.Git(t, l.User, "rev-parse", "main"))

				out = apply(out.Moved.Hash)
				require.Equal(t, "work/a", gittest.Git(t, l.User, "diff", "--name-only", tip, "main"))
				require.Equal(t, tip, gittest.Git(t, l.User, "rev-parse", "main^"))
				require.Equal(t, "0", gittest.Git(t, l.User, "rev-list", "--count", "main.."+tip))
				_, err = gittest.TryGit(l.User, "merge-base", "--is-ancestor", l.Opened.Base, "main")
				require.Error(t, err, "the old commit is in no history of main")
				require.NoFileExists(t, l.User+"/config.txt")
				repeated, err := l.ApplyHere(t.Context(), api.Apply{Loop: "x", Hash: out.Hash, How: how, Time: actest.When})
				require.NoError(t, err)
				require.True(t, repeated.Already)
			})
		}
	}
}

// A file that was renamed on the new base takes the loop's change along, but not out of the scope.
func TestA7_AMovedBaseLeadsNoChangeOutOfTheScope(t *testing.T) {
	t.Parallel()
	l := actest.BeginWith(t, spec.Deny, func(user string, _ map[string]any) {
		gittest.Write(t, user+"/work/long", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
		gittest.Git(t, user, "add", "-A")
		gittest.Git(t, user, "commit", "-qm", "long")
	})
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/long", "1\n2\n3\n4\n5\n6\n7\n8\nbetter\n")
	l.CommitDesk("")
	out, err := l.Close(t.Context(), api.Close{Base: l.Opened.Base, Head: l.Head, Entry: l.Entry(
		loop.Event{Type: loop.ProposalMade, Head: l.Head}, loop.Event{Type: loop.AutonomyCompleted, Status: loop.Completed},
	)})
	require.NoError(t, err)
	gittest.Git(t, l.User, "mv", "work/long", "deploy")
	gittest.Git(t, l.User, "commit", "-qm", "rename")
	_, err = l.ReviewHere(t.Context(), api.Review{Loop: "x", Hash: out.Proposal.Hash, Answer: "approve", By: "ann", Time: actest.When})
	require.NoError(t, err)
	_, err = l.ApplyHere(t.Context(), api.Apply{Loop: "x", Hash: out.Proposal.Hash, How: api.FastForward, Time: actest.When})
	require.Equal(t, fault.BaseMoved, fault.CodeOf(err))
	require.ErrorContains(t, err, "outside the scope: deploy")
}
