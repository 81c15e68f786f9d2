package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/metric/stats"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
)

func TestP4_AsManyCandidatesAreBegunAsThereAreIterationsLeft(t *testing.T) {
	left := func(n int64) loop.State {
		return loop.State{Budget: loop.NewBudget(map[loop.Resource]metric.Decimal{loop.Iterations: loop.Count(n)})}
	}
	waiting := left(9)
	waiting.Candidates = []loop.Candidate{{N: 1}}
	for name, c := range map[string]struct {
		parallel int
		state    loop.State
		want     int
	}{
		"as many as wanted":             {3, left(9), 3},
		"no more than iterations":       {8, left(3), 3},
		"one is no round":               {1, left(9), 0},
		"nor is the last iteration":     {8, left(1), 0},
		"without a limit":               {4, loop.State{}, 4},
		"those that wait come first":    {4, waiting, 0},
		"a loop that has run out of it": {4, left(0), 0},
	} {
		require.Equal(t, c.want, rules.Candidates(c.parallel, c.state), name)
	}
}

func TestP6_WhatFailedIsTakenInOrderAndThenTheBest(t *testing.T) {
	exact := func(n int, value string, passed bool) loop.Candidate {
		m := metric.MustDecimal(value)
		return loop.Candidate{N: n, Made: true, Trial: &loop.Trial{Passed: passed, Metric: &m}}
	}
	sampled := func(n int, llr float64) loop.Candidate {
		c := exact(n, "1", true)
		c.Trial.Samples = &stats.Judgement{LLR: llr}
		return c
	}
	for name, c := range map[string]struct {
		direction string
		of        []loop.Candidate
		want      []int
	}{
		"none":                  {metric.Higher, nil, nil},
		"failed ones by number": {metric.Higher, []loop.Candidate{exact(1, "9", true), exact(3, "1", false), {N: 2, Made: true}}, []int{2, 3, 1}},
		"the highest":           {metric.Higher, []loop.Candidate{exact(1, "11", true), exact(2, "13", true), exact(3, "12", true)}, []int{2, 3, 1}},
		"the lowest":            {metric.Lower, []loop.Candidate{exact(1, "11", true), exact(2, "13", true), exact(3, "12", true)}, []int{1, 3, 2}},
		"alike":                 {metric.Lower, []loop.Candidate{exact(2, "11", true), exact(1, "11", true)}, []int{1, 2}},
		"one of them by LLR":    {metric.Higher, []loop.Candidate{sampled(1, 7), exact(2, "3", true)}, []int{2, 1}},
		"by LLR":                {metric.Lower, []loop.Candidate{sampled(1, 2.4), sampled(2, 7), sampled(3, 3)}, []int{2, 3, 1}},
	} {
		var got []int
		for left := c.of; ; {
			next := rules.NextCandidate(c.direction, left)
			if next == nil {
				break
			}
			got = append(got, next.N)
			var rest []loop.Candidate
			for _, of := range left {
				if of.N != next.N {
					rest = append(rest, of)
				}
			}
			left = rest
		}
		require.Equal(t, c.want, got, name)
	}
}

func TestP5_ATrialLeadsWhereItsJudgementHasLed(t *testing.T) {
	course, m := sampled(t, ""), metric.MustDecimal("1")
	for name, c := range map[string]struct {
		trial loop.Trial
		want  rules.Move
	}{
		"verify crashed": {loop.Trial{Reason: reason.VerifyFailed}, rules.Move{Do: rules.Finish, Reason: reason.VerifyFailed}},
		"no number":      {loop.Trial{Reason: reason.NoNumber}, rules.Move{Do: rules.Finish, Reason: reason.NoNumber}},
		"the guard ran":  {loop.Trial{Metric: &m, Guard: &loop.Judgement{}}, rules.Move{Do: rules.Enter, To: phase.Guard}},
		"it did not":     {loop.Trial{Metric: &m}, rules.Move{Do: rules.Enter, To: phase.Decide}},
	} {
		require.Equal(t, c.want, course.AfterTrial(c.trial), name)
	}
	slow := course.AfterTrial(loop.Trial{Reason: reason.VerifySlow})
	require.Equal(t, reason.VerifySlow, slow.Reason)
	require.NotNil(t, slow.End, "a timeout ends the loop with the iteration")
	require.Equal(t, rules.Move{Do: rules.Finish, Reason: reason.Conflict}, course.AfterConflict())
}

func TestE2_WhatAgentsHaveMadeIsTakenWhereTheyMaySpendNoMore(t *testing.T) {
	spent := func(of loop.Resource) loop.State {
		return loop.State{Iteration: 3, Budget: loop.NewBudget(map[loop.Resource]metric.Decimal{of: loop.Count(2)}).Spend(of, loop.Count(2))}
	}
	course, made := sampled(t, ""), []loop.Candidate{{N: 1, Made: true}}
	for _, of := range []loop.Resource{loop.ToolCalls, loop.Tokens, loop.CostUSD, loop.Iterations, loop.ActiveTime, loop.WallClock} {
		s := spent(of)
		require.Equal(t, rules.Stop, course.Before(s).Do, of)
		require.False(t, rules.Drops(s, spec.Halt), "%s: nothing is made", of)
		s.Candidates = made
		agents := of == loop.ToolCalls || of == loop.Tokens || of == loop.CostUSD
		require.Equal(t, agents, course.Before(s).Do == rules.Enter, of)
		require.Equal(t, agents || of == loop.Iterations, rules.Drops(s, spec.Halt), of)
		require.False(t, rules.Drops(s, spec.Ask), "%s: a person is asked", of)
	}
}

func TestE4_WhatFailedEndsNoLoopThatHasSomethingToKeep(t *testing.T) {
	course := sampled(t, "")
	for _, s := range []loop.State{{Iteration: 12, DiscardsInARow: course.Discards}, {Iteration: 12, AgentFailures: 3}} {
		require.Equal(t, rules.Stop, course.Before(s).Do)
		s.Candidates = []loop.Candidate{{N: 1, Made: true, Trial: &loop.Trial{}}}
		require.Equal(t, rules.Stop, course.Before(s).Do)
		s.Candidates = append(s.Candidates, loop.Candidate{N: 2, Made: true, Trial: &loop.Trial{Passed: true}})
		require.Equal(t, rules.Enter, course.Before(s).Do)
	}
}
