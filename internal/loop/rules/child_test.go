package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
)

func TestAStewardHearsWhatOnlyAPersonMayApprove(t *testing.T) {
	s := loop.State{Loop: "l", Head: "c", Proposal: &loop.Proposal{Hash: "h", State: rules.Open}}
	require.False(t, rules.Child(s, "ended").Result.Proposal.Unseen())
	s.Scratch = &loop.Scratch{Head: "c", Judged: true, Passed: false, Unproven: true, Reason: "the guard fails there and on the base"}
	p := rules.Child(s, "ended").Result.Proposal
	require.True(t, p.Unseen())
	require.Equal(t, "unproven: the guard fails there and on the base", p.Why)
	s.Proposal.State = rules.Approved
	require.False(t, rules.Child(s, "ended").Result.Proposal.Unseen())
	s = loop.State{
		Loop: "l", Head: "c", Suspicious: 1, Kept: []loop.Kept{{Iteration: 3, Description: "less", Suspicious: true}},
		Proposal: &loop.Proposal{Hash: "h", State: rules.Open},
	}
	require.Equal(t, "iteration 3 is kept and suspicious: less", rules.Child(s, "ended").Result.Proposal.Why)
}
