package loop_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

// The hash of the second proposal, on a base that has moved.
var otherHash = strings.Repeat("fedcba98", 8)

// proposing is a loop with one kept change whose diff a person approves and applies, by the hash of the proposal that
// waits.
func proposing(t *testing.T, apply func(api.Apply) (api.Applied, error)) played {
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "12"}}})
	w.apply = apply
	doc := specOf(map[string]any{"limits": map[string]any{"iterations": 1}, "approvals": map[string]any{"diff": "required"}})
	return play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
		for i := range 2 {
			at(t, env, time.Duration(i+1)*time.Hour, func(s loop.State) {
				if s.Gate != nil {
					env.SignalWorkflow("approve", map[string]any{"by": "ann", "hash": s.Gate.Hash, "apply": "squash"})
				}
			})
		}
	})
}

func TestE3_AnApprovalWithApplyAppliesAtOnce(t *testing.T) {
	p := proposing(t, func(in api.Apply) (api.Applied, error) {
		require.Equal(t, api.Apply{Loop: "default-test-workflow-id", Hash: theHash, How: "squash", By: "ann", Time: in.Time, Running: in.Running}, in)
		require.Equal(t, "approved", in.Running.Proposal.State)
		require.NotEmpty(t, in.Running.Ledger)
		q := in.Running.Proposal
		q.State, q.Branch, q.Commit = "applied", "main", "landed"
		return api.Applied{Branch: "main", Commit: "landed", Proposal: &q}, nil
	})
	require.Equal(t, "applied", p.result.Proposal.State)
	require.Equal(t, "landed", p.result.Proposal.Commit)
	require.Equal(t, loop.Completed, p.final.Status)
	types := p.types()
	require.Subset(t, types, []loop.Type{loop.ProposalApproved, loop.ProposalApplied})
}

func TestE3_ABaseThatHasMovedAsksAgain(t *testing.T) {
	var hashes []string
	p := proposing(t, func(in api.Apply) (api.Applied, error) {
		hashes = append(hashes, in.Hash)
		q := in.Running.Proposal
		if len(hashes) == 1 {
			return api.Applied{Branch: "main", Moved: &loop.Proposal{Hash: otherHash, Base: "moved", Head: "merged", Files: 1, State: "open"}}, nil
		}
		q.State, q.Branch, q.Commit = "applied", "main", "landed"
		return api.Applied{Branch: "main", Commit: "landed", Proposal: &q}, nil
	})
	require.Equal(t, []string{theHash, otherHash}, hashes, "nothing that nobody has looked at is applied")
	require.Equal(t, "applied", p.result.Proposal.State)
	require.Equal(t, otherHash, p.result.Proposal.Hash)
	require.Equal(t, "merged", p.result.Head)
	gates := 0
	for _, e := range p.ledger {
		if e.Type == loop.GateOpened {
			gates++
		}
	}
	require.Equal(t, 2, gates)
}

func TestE3_WhatStandsInTheWayOfApplyingIsAWarning(t *testing.T) {
	for name, err := range map[string]error{
		"a dirty branch": temporal.NewNonRetryableApplicationError("main is checked out and not clean\nCommit or stash it.", string(fault.PreconditionFailed), nil),
		"the machine":    temporal.NewNonRetryableApplicationError("the disk is full", "", errors.New("no space left")),
	} {
		t.Run(name, func(t *testing.T) {
			p := proposing(t, func(api.Apply) (api.Applied, error) { return api.Applied{}, err })
			require.Nil(t, p.err)
			require.Equal(t, loop.Completed, p.final.Status)
			require.Equal(t, "approved", p.result.Proposal.State)
			require.Contains(t, p.types(), loop.Warned)
			require.NotContains(t, p.types(), loop.ProposalApplied)
		})
	}
}
