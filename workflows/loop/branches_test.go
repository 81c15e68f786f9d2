package loop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/loop"
	"pawl/internal/metric/stats"
)

// back returns the spec of a loop that goes back after two discards in a row.
func back(k, iterations int, limits map[string]any) []byte {
	all := map[string]any{"backtrack": true, "shiftAfter": 2, "discards": 8}
	for key, value := range limits {
		all[key] = value
	}
	return atOnce(k, iterations, map[string]any{"limits": all})
}

// branched returns the events about branches, with the head's metric after each.
func (p played) branched() (lines []string) {
	s := loop.New("x", "improve")
	for _, e := range p.ledger {
		s = s.Apply(e)
		if strings.HasPrefix(string(e.Type), "branch_") {
			lines = append(lines, fmt.Sprintf("%d %s %s", e.Iteration, e.Type, s.Best))
		}
	}
	return lines
}

func (p played) kept() (numbers []int) {
	for _, k := range p.final.Kept {
		numbers = append(numbers, k.Iteration)
	}
	return numbers
}

func TestP8_ABranchThatIsBetterReplacesTheHead(t *testing.T) {
	for _, k := range []int{1, 2} {
		m := newTeam(t, map[int]float64{1: 5, 2: 1, 5: 10})
		p := play(t, m.world, back(k, 6, nil), nil)
		require.Nil(t, p.err)
		at := 4 + k // the better one of several candidates is taken last
		require.Equal(t, []string{"4 branch_begun 15.000000", fmt.Sprint(at, " branch_kept 25.000000")}, p.branched(), "%v", p.course())
		require.Equal(t, []int{1, at}, p.kept(), "what the head has")
		require.Equal(t, 2, p.final.KeptCount)
		require.Equal(t, 4, p.final.Discarded)
		require.Equal(t, []int{1, 5}, m.of(p.final.Head))
		require.Equal(t, "25.000000", p.final.Best.String())
		require.InDelta(t, 150, p.final.Claim.Estimate, .01)
		if k == 1 {
			require.Equal(t, []string{
				"0.0 base", "0.0 base", "0.0 base", "1.1 commit-1", "2.1 commit-2", "3.1 commit-3", "4.1 commit-4", "5.1 commit-5", "6.1 commit-6",
			}, m.evaluated, "what is known is not measured again")
		}
	}
}

func TestP8_ABranchThatIsNotBetterIsGivenUp(t *testing.T) {
	m := newTeam(t, map[int]float64{1: 5, 2: 1, 5: .5})
	p := play(t, m.world, back(1, 9, map[string]any{"discards": 5}), nil)
	require.Nil(t, p.err)
	require.Equal(t, []string{"4 branch_begun 15.000000", "7 branch_given_up 16.000000"}, p.branched(), "%v", p.course())
	require.Equal(t, "5 yes 15.500000", p.course()[4], "its row stays")
	require.Equal(t, []int{1, 2}, p.kept())
	require.Equal(t, 7, p.final.KeptCount+p.final.Discarded)
	require.Equal(t, []int{1, 2}, m.of(p.final.Head))
	require.Equal(t, "16.000000", p.final.Best.String())
	require.Equal(t, loop.Completed, p.final.Status)
	require.Contains(t, p.final.Reason, "5 iterations in a row did not improve the head")
}

// Loops end while they explore a branch.
func TestP8_WhateverEndsALoopItsHeadIsTheBest(t *testing.T) {
	for name, c := range map[string]struct {
		limits map[string]any
		during func(*testsuite.TestWorkflowEnvironment)
		want   loop.Status
	}{
		"the iterations are used up": {map[string]any{"iterations": 5}, nil, loop.Completed},
		"the tool calls are":         {map[string]any{"toolCalls": 5}, nil, loop.Halted},
		"a person halts it": {nil, func(env *testsuite.TestWorkflowEnvironment) {
			at(t, env, time.Second, func(s loop.State) {
				require.NotNil(t, s.Exploring())
				env.SignalWorkflow("halt", nil)
			})
		}, loop.Halted},
		"the agent fails": {map[string]any{"discards": 20, "shiftAfter": 4}, nil, loop.Failed},
	} {
		m := newTeam(t, map[int]float64{1: 5, 2: 1, 5: .5})
		if c.during != nil {
			m.script = map[int][]try{6: {{Metric: "1", Says: "change 6", Hang: true}}}
		}
		if c.want == loop.Failed {
			m.gains[5], m.gains[7] = 0, .5
			m.script = map[int][]try{8: {{Fails: true, Says: "x"}}, 9: {{Fails: true, Says: "x"}}, 10: {{Fails: true, Says: "x"}}}
		}
		p := play(t, m.world, back(1, 12, c.limits), c.during)
		require.Equal(t, c.want, p.final.Status, "%s: %v", name, p.course())
		lines := p.branched()
		require.Len(t, lines, 2, "%s: %v", name, p.course())
		require.Contains(t, lines[1], "branch_given_up 16.000000", name)
		require.Equal(t, []int{1, 2}, m.of(p.final.Head), name)
		if c.want == loop.Completed {
			require.InDelta(t, 60, p.final.Claim.Estimate, .01, name)
		}
	}
}

func TestP8_ABranchIsComparedByFreshPairs(t *testing.T) {
	m := newTeam(t, map[int]float64{1: 5, 2: 1, 3: -.5, 4: -.5, 5: 3, 6: 3, 7: -1, 8: -1})
	m.sigma = .02
	p := play(t, m.world, back(1, 8, nil), nil)
	require.Nil(t, p.err)
	lines := strings.Join(p.branched(), "\n")
	require.Contains(t, lines, "5 branch_compared", "%v", p.course())
	require.Contains(t, lines, "branch_kept")
	require.Equal(t, []int{1, 5, 6}, p.kept())
	s, compared := loop.New("x", "improve"), map[string]int{}
	for _, e := range p.ledger {
		before := s
		s = s.Apply(e)
		switch {
		case e.Type == loop.SampleTaken && (e.Of == stats.Trunk || e.Of == stats.Branch):
			compared[e.Of]++
			require.Equal(t, before.Sampler, s.Sampler, "what the branch is compared by is no reference")
		case e.Type == loop.BranchCompared:
			require.Equal(t, compared[stats.Trunk], e.Judgement.Samples.References)
			require.Equal(t, compared[stats.Branch], e.Judgement.Samples.Samples)
		case e.Type == loop.BranchBegun, e.Type == loop.BranchKept:
			require.Empty(t, s.Sampler.Reference.Values, "only what is measured from now on counts")
		}
	}
	require.GreaterOrEqual(t, compared[stats.Branch], stats.LeastSamples)
	require.InDelta(t, 120, p.final.Claim.Estimate, 15)

	last := newTeam(t, map[int]float64{1: 5, 2: 1, 3: -.5, 4: -.5, 5: 8})
	last.sigma = .02
	q := play(t, last.world, back(1, 5, nil), nil)
	require.Nil(t, q.err)
	for _, e := range q.ledger {
		if e.Type == loop.BranchKept {
			require.InDelta(t, 23, e.Metric.Float(), 2, "what it was measured at, also where no iteration follows")
		}
	}
	require.InDelta(t, 23, q.final.Best.Float(), 2)
}

func TestP2_WhatIsKeptElsewhereIsNoWayOut(t *testing.T) {
	m := newTeam(t, map[int]float64{1: 5, 2: 1})
	p := play(t, m.world, back(1, 5, nil), nil)
	require.Nil(t, p.err)
	again := newTeam(t, map[int]float64{1: 5, 2: 1})
	again.same = map[int]int{5: 2}
	q := play(t, again.world, back(1, 5, nil), nil)
	require.Nil(t, q.err)
	require.Equal(t, "5 no 15.000000", p.course()[4])
	require.Equal(t, "5 no 15.000000 repeat", q.course()[4], "the branch makes what the head has")
}

// The host dies at each of its activities.
func TestALoopOnABranchGoesOnElsewhereWhereverItsHostDies(t *testing.T) {
	world := func() *team { return newTeam(t, map[int]float64{1: 5, 2: 1, 5: .5, 8: 3}) }
	doc := back(1, 8, nil)
	undisturbed := world()
	p := play(t, undisturbed.world, doc, nil)
	want := p.branched()
	require.Len(t, want, 2, "%v", p.course())
	for _, done := range []bool{false, true} {
		for n := 1; ; n += thin() {
			m := world()
			where := m.dies(n, done)
			p := play(t, m.world, doc, nil)
			if *where == "" {
				require.Greater(t, n, 20, "that was all of it")
				break
			}
			at := fmt.Sprintf("thing %d, %s, done: %v", n, *where, done)
			require.Nil(t, p.err, at)
			require.Len(t, p.course(), 8, at)
			if !strings.Contains(strings.Join(p.course(), "\n"), " interrupted") {
				require.Equal(t, want, p.branched(), at)
				require.Equal(t, []int{1, 2, 8}, m.of(p.final.Head), at)
			}
			require.Nil(t, p.final.Exploring(), at)
		}
	}
}
