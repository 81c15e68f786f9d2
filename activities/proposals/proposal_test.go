package proposals_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/test/actest"
	"pawl/test/gittest"
)

func TestE3_TheFirstWordOnAProposalCounts(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/a", "better\n")
	l.CommitDesk("")
	out, err := l.Close(t.Context(), act.Close{Base: l.Opened.Base, Head: l.Head, Entry: l.Entry(
		loop.Event{Type: loop.ProposalMade, Head: l.Head}, loop.Event{Type: loop.AutonomyCompleted, Status: loop.Completed},
	)})
	require.NoError(t, err)
	require.NotNil(t, out.Proposal)
	require.NoDirExists(t, l.Opened.Desk)

	word := func(answer, hash string) (act.Reviewed, error) {
		return l.ReviewHere(t.Context(), act.Review{Loop: "x", Hash: hash, Answer: answer, By: "ann", Time: actest.When})
	}
	_, err = word("perhaps", out.Proposal.Hash)
	require.Equal(t, fault.InvalidMessage, fault.CodeOf(err))
	_, err = word("approve", l.Head)
	require.Equal(t, fault.HashMismatch, fault.CodeOf(err))
	for i := range 2 { // the second approval finds the first one
		said, err := word("approve", out.Proposal.Hash)
		require.NoError(t, err)
		require.Equal(t, govern.Approved, said.Proposal.State)
		require.Equal(t, i == 1, said.Already)
	}
	landed, err := l.ApplyHere(t.Context(), act.Apply{Loop: "x", Hash: out.Proposal.Hash, How: act.FastForward, Time: actest.When})
	require.NoError(t, err)
	require.Equal(t, l.Head, landed.Commit)
	require.Equal(t, l.Head, gittest.Git(t, l.User, "rev-parse", "main"))
	again, err := l.ApplyHere(t.Context(), act.Apply{Loop: "x", Hash: out.Proposal.Hash, How: act.FastForward, Time: actest.When})
	require.NoError(t, err)
	require.True(t, again.Already)
	_, err = l.ApplyHere(t.Context(), act.Apply{Loop: "y", Hash: out.Proposal.Hash, How: act.Patch})
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))
}

func TestAnAmendedContractIsAnotherOne(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	same, err := l.Amend(t.Context(), act.Amend{Ref: l.Opened.Ref, Base: l.Opened.Base, Spec: l.Spec})
	require.NoError(t, err)
	require.Equal(t, l.Opened.Terms, same)
	amended, err := l.Spec.Amend([]byte(`{"limits": {"iterations": 9}}`), spec.Extendable)
	require.NoError(t, err)
	other, err := l.Amend(t.Context(), act.Amend{Ref: l.Opened.Ref, Base: l.Opened.Base, Spec: amended})
	require.NoError(t, err)
	require.NotEqual(t, l.Opened.Contract, other.Contract)
}
