package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

func TestE3_TheFirstWordOnAProposalCounts(t *testing.T) {
	l := begun(t, spec.Deny)
	l.begin()
	write(t, l.o.Desk+"/work/a", "better\n")
	l.commit("")
	out, err := l.a.Close(ctx, act.Close{Base: l.o.Base, Head: l.head, Entry: l.entry(
		loop.Event{Type: loop.ProposalMade, Head: l.head}, loop.Event{Type: loop.AutonomyCompleted, Status: loop.Completed},
	)})
	require.NoError(t, err)
	require.NotNil(t, out.Proposal)
	require.NoDirExists(t, l.o.Desk)

	word := func(answer, hash string) (act.Reviewed, error) {
		return l.a.ReviewHere(ctx, act.Review{Loop: "x", Hash: hash, Answer: answer, By: "ann", Time: when})
	}
	_, err = word("perhaps", out.Proposal.Hash)
	require.Equal(t, fault.InvalidMessage, fault.CodeOf(err))
	_, err = word("approve", l.head)
	require.Equal(t, fault.HashMismatch, fault.CodeOf(err))
	for range 2 { // the second finds it said
		said, err := word("approve", out.Proposal.Hash)
		require.NoError(t, err)
		require.Equal(t, govern.Approved, said.Proposal.State)
	}
	landed, err := l.a.ApplyHere(ctx, act.Apply{Loop: "x", Hash: out.Proposal.Hash, How: act.FastForward, Time: when})
	require.NoError(t, err)
	require.Equal(t, l.head, landed.Commit)
	require.Equal(t, l.head, git(t, l.user, "rev-parse", "main"))
	again, err := l.a.ApplyHere(ctx, act.Apply{Loop: "x", Hash: out.Proposal.Hash, How: act.FastForward, Time: when})
	require.NoError(t, err)
	require.True(t, again.Already)
	_, err = l.a.ApplyHere(ctx, act.Apply{Loop: "y", Hash: out.Proposal.Hash, How: act.Patch})
	require.Equal(t, fault.LoopNotFound, fault.CodeOf(err))
}

func TestAnAmendedContractIsAnotherOne(t *testing.T) {
	l := begun(t, spec.Deny)
	same, err := l.a.Amend(ctx, act.Amend{Ref: l.o.Ref, Base: l.o.Base, Spec: l.spec})
	require.NoError(t, err)
	require.Equal(t, l.o.Terms, same)
	amended, err := l.spec.Amend([]byte(`{"limits": {"iterations": 9}}`), spec.Extendable)
	require.NoError(t, err)
	other, err := l.a.Amend(ctx, act.Amend{Ref: l.o.Ref, Base: l.o.Base, Spec: amended})
	require.NoError(t, err)
	require.NotEqual(t, l.o.Contract, other.Contract)
}
