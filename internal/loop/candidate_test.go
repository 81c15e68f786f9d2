package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
)

func candidates(s loop.State) (numbers []int) {
	for _, c := range s.Candidates {
		numbers = append(numbers, c.N)
	}
	return numbers
}

func TestA9_CandidatesAreInTheState(t *testing.T) {
	s := loop.State{Iteration: 3, Iterations: []loop.Iteration{{N: 3}}}
	seq := int64(0)
	apply := func(e loop.Event) {
		seq++
		e.Seq = seq
		s = s.Apply(e)
	}
	for n := 4; n <= 6; n++ {
		apply(loop.Event{Type: loop.CandidateBegun, Candidate: &loop.Candidate{N: n, Desk: n - 3, Base: "h"}})
	}
	begun := s
	apply(loop.Event{Type: loop.CandidateBegun, Candidate: &loop.Candidate{N: 5, Desk: 2, Base: "h", Idea: "less"}})
	require.Empty(t, begun.Candidates[1].Idea, "older states keep theirs")
	require.Equal(t, "less", s.Candidates[1].Idea)
	apply(loop.Event{Type: loop.CandidateMade, Candidate: &loop.Candidate{N: 4, Desk: 1, Base: "h", Made: true, Commit: "c4", Tree: "t4", Steps: 2}})
	apply(loop.Event{Type: loop.CandidateMade, Candidate: &loop.Candidate{N: 5, Desk: 2, Base: "h", Made: true, Lies: true, Description: "outside"}})
	require.Equal(t, "candidates, 2 of 3 made", s.Doing())
	require.Equal(t, "candidates", s.Stage())
	require.True(t, s.Candidates[0].Triable())
	require.False(t, s.Candidates[1].Triable())
	require.False(t, s.Candidates[2].Triable())

	moved := s.Apply(loop.Event{Type: loop.LoopMoved, Seq: seq + 1, Head: "h", Opened: &loop.Opened{}})
	require.True(t, moved.Candidates[0].Made, "the ledger has it")
	require.Equal(t, loop.Candidate{N: 5, Desk: 2, Base: "h"}, moved.Candidates[1], "what lay on a desk alone is made again")
	require.Zero(t, moved.Candidates[0].Again)

	apply(loop.Event{Type: loop.CandidateJudged, Candidate: &loop.Candidate{N: 4, Desk: 1, Base: "h", Made: true, Commit: "c4", Tree: "t4", Steps: 2, Trial: &loop.Trial{Base: "h", Passed: true}}})
	require.False(t, s.Candidates[0].Triable())
	apply(loop.Event{Type: loop.IterationStarted, Iteration: 4})
	apply(loop.Event{Type: loop.CandidateTaken, Iteration: 4, Candidate: &s.Candidates[0]})
	require.Equal(t, []int{5, 6}, candidates(s))
	require.Equal(t, 4, s.Taken.N)
	require.Equal(t, 2, s.IterationSteps, "its calls are those of the iteration")
	require.Nil(t, s.Apply(loop.Event{Type: loop.RepairAttempted, Seq: seq + 1, Attempt: 2}).Taken, "another attempt is another change")
	apply(loop.Event{Type: loop.CandidateConflicted, Iteration: 4, Idea: "more"})
	apply(loop.Event{Type: loop.IterationFailed, Iteration: 4, FailureReason: "conflict", Record: &loop.Iteration{N: 4}})
	require.Nil(t, s.Taken)
	require.Equal(t, []string{"more"}, s.Ideas)
}

func TestA9_ATrialThatWasCutOffBeginsAnew(t *testing.T) {
	values := []metric.Decimal{}
	for _, v := range []string{"10.1", "9.8", "10.3", "9.9", "10.0", "10.2", "9.7", "10.1", "10.0", "9.9", "10.2", "9.8"} {
		values = append(values, metric.MustDecimal(v))
	}
	sampler := stats.Start(stats.Rules{Direction: metric.Lower}, values)
	sampler.AddCandidate(values[0])
	s := loop.State{Sampler: &sampler, Candidates: []loop.Candidate{{N: 1, Made: true, Commit: "c"}, {N: 2, Made: true}}}
	resumed := s.Apply(loop.Event{Seq: 1, Type: loop.LoopResumed, Opened: &loop.Opened{}})
	require.Empty(t, resumed.Sampler.Trial.Values)
	require.Equal(t, 1, resumed.Candidates[0].Again)
	require.Zero(t, resumed.Candidates[1].Again)
	require.Len(t, s.Sampler.Trial.Values, 1, "older states keep theirs")
}

func TestTheLedgerKeepsTheCommitsOfCandidates(t *testing.T) {
	made := func(commit string) loop.Event {
		return loop.Event{Type: loop.CandidateMade, Candidate: &loop.Candidate{Commit: commit}}
	}
	require.Equal(t, []string{"a", "b"}, loop.Aside([]loop.Event{made("a"), {Type: loop.Warned}, made(""), made("b"), made("a"),
		{Type: loop.CandidateJudged, Candidate: &loop.Candidate{Commit: "c"}}}))
	require.Empty(t, loop.Aside(nil))
}

func TestP5_WhatAnotherCommandHasSaidOfACandidateCountsNoMore(t *testing.T) {
	s := loop.State{Candidates: []loop.Candidate{{N: 1, Made: true, Commit: "c", Trial: &loop.Trial{}}, {N: 2, Made: true}}}
	amend := func(fragment string) loop.State {
		return s.Apply(loop.Event{Seq: 1, Type: loop.ContractAmended, Contract: &loop.Contract{}, Amendment: []byte(fragment)})
	}
	require.NotNil(t, amend(`{"limits": {"toolCalls": 20}}`).Candidates[0].Trial)
	anew := amend(`{"verify": {"command": "weigh"}}`)
	require.True(t, anew.Candidates[0].Triable())
	require.Equal(t, 1, anew.Candidates[0].Again, "its steps are other ones")
	require.Zero(t, anew.Candidates[1].Again)
	require.NotNil(t, s.Candidates[0].Trial, "older states keep theirs")
}
