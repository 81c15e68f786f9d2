package rules_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
)

// node is a kept change; its metric is unknown if it is "".
func node(iteration, on int, value string, left int) loop.Node {
	n := loop.Node{Iteration: iteration, On: on, Left: left, Commit: fmt.Sprint("c", iteration), Tree: fmt.Sprint("t", iteration)}
	if value != "" {
		m := metric.MustDecimal(value)
		n.Metric = &m
	}
	return n
}

// grown is a loop whose head is one of the kept changes, with that many discards since.
func grown(head, discards int, nodes ...loop.Node) loop.State {
	baseline := metric.MustDecimal("100")
	s := loop.State{
		Baseline: &baseline, Best: &baseline, BestIteration: head, DiscardsInARow: discards, Iteration: head + discards,
		Backtrack: &loop.Backtrack{Kept: nodes},
	}
	if n, known := s.Backtrack.Node(head); known {
		s.Best = n.Metric
	}
	return s
}

func TestP8_TheKeptChangeOfWhichMostIsToBeExpected(t *testing.T) {
	for name, c := range map[string]struct {
		direction string
		state     loop.State
		want      map[int]float64 // rounded to hundredths
	}{
		"the head has none":               {metric.Higher, grown(1, 0, node(1, 0, "200", 0)), map[int]float64{}},
		"half of ln 2, with one child":    {metric.Higher, grown(2, 0, node(1, 0, "200", 0), node(2, 1, "210", 0)), map[int]float64{1: .35}},
		"a leaf has no child":             {metric.Higher, grown(3, 0, node(1, 0, "200", 0), node(2, 1, "400", 0), node(3, 1, "900", 0)), map[int]float64{1: .23, 2: .69}},
		"left once is one child":          {metric.Higher, grown(3, 0, node(1, 0, "200", 0), node(2, 1, "400", 1), node(3, 1, "900", 0)), map[int]float64{1: .23, 2: .35}},
		"lower is better":                 {metric.Lower, grown(2, 0, node(1, 0, "50", 0), node(2, 1, "49", 0)), map[int]float64{1: .35}},
		"worse than its parent by now":    {metric.Lower, grown(2, 0, node(1, 0, "150", 0), node(2, 1, "49", 0)), map[int]float64{}},
		"by another command":              {metric.Higher, grown(3, 0, node(1, 0, "", 0), node(2, 1, "400", 0), node(3, 2, "900", 0)), map[int]float64{}},
		"its parent is not remembered":    {metric.Higher, grown(9, 0, node(8, 7, "400", 0), node(9, 8, "900", 0)), map[int]float64{}},
		"not all positive: by difference": {metric.Higher, grown(2, 0, node(1, 0, "0", 0), node(2, 1, "100", 0), node(3, 1, "-50", 0)), map[int]float64{}},
	} {
		got := rules.Weights(c.direction, c.state)
		require.Len(t, got, len(c.want), name)
		for n, want := range c.want {
			require.InDelta(t, want, got[n], .005, "%s: %d", name, n)
		}
	}
}

func TestP8_WhatALoopDoesAboutBranches(t *testing.T) {
	course := rules.Improve{Direction: metric.Higher, Discards: 10, ShiftAfter: 3}
	line := []loop.Node{node(1, 0, "200", 0), node(2, 1, "210", 0)}
	on := func(head, discards int, more ...loop.Node) loop.State {
		s := grown(2, 3, append(line[:2:2], more...)...)
		b := s.Forked(line[0])
		s.Backtrack.Branch = &b
		s.BestIteration, s.DiscardsInARow = head, discards
		return s
	}
	with := func(s loop.State, do func(*loop.State)) loop.State {
		do(&s)
		return s
	}
	for name, c := range map[string]struct {
		state loop.State
		want  string
	}{
		"a loop that never does": {loop.State{DiscardsInARow: 3}, rules.Stay},
		"no plateau":             {grown(2, 2, line...), rules.Stay},
		"a plateau":              {grown(2, 3, line...), rules.Fork},
		"a plateau that was not looked at in time":  {grown(2, 5, line...), rules.Fork},
		"nothing was kept before the head":          {grown(1, 3, line[0]), rules.Stay},
		"the loop is over":                          {grown(2, 10, line...), rules.Stay},
		"no iteration is left":                      {with(grown(2, 3, line...), none), rules.Stay},
		"it was halted":                             {with(grown(2, 3, line...), func(s *loop.State) { s.HaltRequested = "by ann" }), rules.Stay},
		"candidates wait that are of the head":      {with(grown(2, 3, line...), func(s *loop.State) { s.Candidates = []loop.Candidate{{N: 7}} }), rules.Stay},
		"the same plateau, after a branch":          {with(grown(2, 5, line...), func(s *loop.State) { s.Backtrack.Since = 3 }), rules.Stay},
		"another one after a branch":                {with(grown(2, 6, line...), func(s *loop.State) { s.Backtrack.Since = 3 }), rules.Fork},
		"a branch that has kept nothing yet":        {on(1, 5), rules.Stay},
		"a plateau of the branch, at its beginning": {on(1, 6), rules.Return},
		"a branch that has kept something":          {on(7, 2, node(7, 1, "205", 0)), rules.Stay},
		"a plateau of the branch":                   {on(7, 3, node(7, 1, "205", 0)), rules.Return},
		"as good as the head":                       {on(7, 0, node(7, 1, "210", 0)), rules.Stay},
		"better than the head":                      {on(7, 0, node(7, 1, "211", 0)), rules.Replace},
		"candidates of the branch wait":             {with(on(7, 3, node(7, 1, "205", 0)), func(s *loop.State) { s.Candidates = []loop.Candidate{{N: 9}} }), rules.Stay},
		"better by samples":                         {with(on(7, 0, node(7, 1, "211", 0)), noisy), rules.Compare},
		"not better by samples":                     {with(on(7, 0, node(7, 1, "209", 0)), noisy), rules.Stay},
		"compared already":                          {with(with(on(7, 1, node(7, 1, "211", 0)), noisy), func(s *loop.State) { s.Backtrack.Branch.Compared = 7 }), rules.Stay},
	} {
		require.Equal(t, c.want, course.Turn(c.state).Do, name)
	}
	require.Equal(t, rules.Turn{Do: rules.Fork, From: line[0], Reason: "3 discards in a row"}, course.Turn(grown(2, 3, line...)))
	course.MinDelta, _ = metric.ParseThreshold("5")
	require.Equal(t, rules.Stay, course.Turn(on(7, 0, node(7, 1, "211", 0))).Do, "less than verify.minDelta")
	target := metric.MustDecimal("209")
	course.Target = &target
	require.Equal(t, rules.Enter, course.Before(on(7, 0, node(7, 1, "209", 0))).Do, "a branch meets no target: its end may be given up")
}

func none(s *loop.State) {
	s.Budget = loop.NewBudget(map[loop.Resource]metric.Decimal{loop.Iterations: loop.Count(0)})
}

func noisy(s *loop.State) { s.Sampler = &stats.Sampler{} }

// TestP8_APlateauAlwaysEndsSomewhere runs loops whose changes are kept by chance. A loop never forks from its head,
// it always comes back to a head that is no worse, and it ends.
func TestP8_APlateauAlwaysEndsSomewhere(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 8))
		course := rules.Improve{Direction: metric.Higher, Discards: 12, ShiftAfter: 1 + random.IntN(4)}
		s := loop.New("x", "improve").Apply(loop.Event{Type: loop.LoopOpened, Opened: &loop.Opened{Kind: "improve", Base: "base", Backtrack: true}})
		baseline := metric.MustDecimal("100")
		s = s.Apply(loop.Event{Type: loop.BaselineMeasured, Metric: &baseline})
		head, n := baseline, 0
		for ; course.Before(s).Do != rules.Stop; n++ {
			require.Less(t, n, 2000, "the loop must end")
			s = s.Apply(loop.Event{Type: loop.IterationStarted, Iteration: n + 1})
			e := loop.Event{Type: loop.IterationFailed, Record: &loop.Iteration{N: n + 1}}
			if random.IntN(4) == 0 && s.Best.Float() < 120 {
				m := metric.MustDecimal(fmt.Sprintf("%.4f", s.Best.Float()+float64(random.IntN(20))/4+.1))
				e = loop.Event{Type: loop.IterationSucceeded, Metric: &m, Record: &loop.Iteration{N: n + 1, Kept: true, Commit: fmt.Sprint("c", n+1)}}
			}
			s = s.Apply(e)
			for turn := course.Turn(s); turn.Do != rules.Stay; turn = course.Turn(s) {
				switch turn.Do {
				case rules.Fork:
					require.NotEqual(t, s.BestIteration, turn.From.Iteration)
					b := s.Forked(turn.From)
					head = *s.Best
					s = s.Apply(loop.Event{Type: loop.BranchBegun, Branch: &b, Head: "forked"})
					require.Equal(t, turn.From.Metric, s.Best)
				case rules.Replace:
					s = s.Apply(loop.Event{Type: loop.BranchKept, Metric: s.Best})
					require.Positive(t, s.Best.Cmp(head))
				case rules.Return:
					s = s.Apply(loop.Event{Type: loop.BranchGivenUp, Head: "back"})
					require.Zero(t, s.Best.Cmp(head))
				}
				require.Len(t, s.Kept, s.KeptCount)
				require.Equal(t, n+1, s.KeptCount+s.Discarded, "each iteration counts once")
			}
		}
		require.Equal(t, min(12, s.DiscardsInARow), 12, "it ends where nothing gets it further")
	}
}

func TestP2_WhatIsKeptElsewhereIsKnown(t *testing.T) {
	s := grown(2, 0, node(1, 0, "200", 0), node(2, 1, "210", 0))
	require.Equal(t, 1, rules.KeptElsewhere(s, "t1").Iteration)
	require.Nil(t, rules.KeptElsewhere(s, "t9"))
	require.Nil(t, rules.KeptElsewhere(s, ""))
	require.Nil(t, rules.KeptElsewhere(loop.State{}, "t1"))
}
