package loop_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
)

// team is a world in which commits have contents: the changes of agents, by number. The metric of a commit is 10 plus
// the gain of its changes.
type team struct {
	*world
	gains     map[int]float64
	sigma     float64
	random    *rand.Rand
	breaks    map[int]bool // changes that the guard refuses
	collides  map[int]int  // a change with one that it can't be put on top of
	contents  map[string][]int
	parents   map[string]string
	desks     map[int][]int
	atWork    int // agents at work now
	most      int
	evaluated []string    // "candidate or iteration, commit" by verify
	same      map[int]int // a change, and the earlier one that it repeats
	hold      func(in asked)
	made      chan struct{} // gets one value for each committed candidate
}

func newTeam(t *testing.T, gains map[int]float64) *team {
	m := &team{
		world: newWorld(t, nil), gains: gains, random: newRandom(3), breaks: map[int]bool{}, collides: map[int]int{},
		contents: map[string][]int{"base": nil}, parents: map[string]string{}, desks: map[int][]int{},
	}
	m.stepping, m.committing, m.taking = m.step, m.commit, m.take
	return m
}

// of returns the changes in a commit. A revert has those of its parent.
func (m *team) of(commit string) []int {
	if undone, is := strings.CutPrefix(commit, "revert-of-"); is {
		return m.of(m.parents[undone])
	}
	var n int
	var from string
	if _, err := fmt.Sscanf(commit, "again-%d-%s", &n, &from); err == nil {
		return m.of(from)
	}
	return m.contents[commit]
}

func (m *team) with(commit string, change int) []int {
	if as, is := m.same[change]; is {
		change = as
	}
	return append(slices.Clone(m.of(commit)), change)
}

func (m *team) step(ctx context.Context, in asked) (stepped, error) {
	if in.Call != nil && in.Key.Name == "modify" {
		m.mu.Lock()
		m.atWork++
		m.most = max(m.most, m.atWork)
		m.desks[in.Desk] = m.with(in.Head, in.Key.Iteration)
		m.mu.Unlock()
		if m.hold != nil {
			m.hold(in)
		}
		defer func() {
			m.mu.Lock()
			m.atWork--
			m.mu.Unlock()
		}()
	}
	out, err := m.world.step(ctx, in)
	m.mu.Lock()
	defer m.mu.Unlock()
	at := in.Head
	switch {
	case in.Verify != nil && in.Key.Name == "verify":
		m.evaluated = append(m.evaluated, fmt.Sprintf("%d.%d %s", in.Key.Iteration, in.Key.Attempt, at))
		d := metric.MustDecimal(fmt.Sprintf("%.6f", m.worth(at)*math.Exp(m.sigma*m.random.NormFloat64())))
		out.Metric, out.NoNumber, out.ExitCode = &d, "", 0
	case in.Verify != nil:
		d := metric.MustDecimal(fmt.Sprintf("%.6f", m.worth(at)*math.Exp(m.sigma*m.random.NormFloat64())))
		out.Metric = &d
	case in.Key.Name == "guard":
		out.ExitCode = 0
		for _, change := range m.of(at) {
			if m.breaks[change] {
				out.ExitCode = 1
			}
		}
	}
	return out, err
}

func (m *team) worth(commit string) float64 {
	worth := 10.
	for _, change := range m.of(commit) {
		worth += m.gains[change]
	}
	return worth
}

func (m *team) commit(_ context.Context, in api.Commit) (api.Committed, error) {
	m.count(api.CommitName)
	m.mu.Lock()
	defer m.mu.Unlock()
	has := m.desks[in.Desk]
	out := api.Committed{Tree: fmt.Sprint("tree", has), Files: []string{"a.go"}, Area: "a.go"}
	var t try
	if len(has) > 0 {
		t = m.tryOf(m.script, api.Key{Iteration: has[len(has)-1], Attempt: in.Attempt})
	}
	if t.Nothing || slices.Equal(has, m.of(in.Head)) {
		return api.Committed{NoChange: true}, nil
	}
	if out.Violations = t.Violations; len(t.Violations) > 0 {
		return out, nil
	}
	if t.NewFile && in.AllowNew != theHash {
		return api.Committed{Tree: out.Tree, NewFiles: []string{"new.go"}, NewFilesHash: theHash}, nil
	}
	if in.Aside {
		out.Commit = fmt.Sprintf("aside-%d", in.Iteration)
		if m.made != nil {
			m.made <- struct{}{}
		}
	} else {
		m.commits++
		out.Commit = fmt.Sprintf("commit-%d", m.commits)
		m.head, m.says = out.Commit, in.Description
	}
	m.contents[out.Commit], m.parents[out.Commit] = slices.Clone(has), in.Head
	return out, nil
}

func (m *team) take(in api.Take) api.Taken {
	if in.Commit == in.Head {
		m.desks[0] = m.of(in.Head)
		return api.Taken{}
	}
	of := m.contents[in.Commit]
	change := of[len(of)-1]
	if with, does := m.collides[change]; does && slices.Contains(m.of(in.Head), with) {
		return api.Taken{Conflict: "a.go"}
	}
	m.desks[0] = m.with(in.Head, change)
	return api.Taken{}
}

// atOnce returns the spec of a loop with that many iterations and k candidates at once.
func atOnce(k, iterations int, more map[string]any) []byte {
	doc := map[string]any{
		"guard": map[string]any{"command": "guard"}, "verify": map[string]any{"evidence": "auto"},
		"limits": map[string]any{"iterations": iterations, "parallel": k, "discards": 100, "reworks": 0},
	}
	for key, value := range more {
		if of, both := doc[key].(map[string]any); both {
			maps.Copy(of, value.(map[string]any))
		} else {
			doc[key] = value
		}
	}
	return specOf(doc)
}

// verdicts returns the result of each change, by its number, with the reason.
func (m *team) verdicts(p played) map[int]string {
	all := map[int]string{}
	for _, e := range p.ledger {
		if e.Record == nil {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(e.Record.Description, "change %d", &n); err != nil {
			continue
		}
		all[n] = fmt.Sprint(e.Record.Kept, e.Record.Reason)
	}
	return all
}

// candidates returns the numbers of the candidates in events of a type.
func (p played) candidates(of loop.Type) (numbers []int) {
	for _, e := range p.ledger {
		if e.Type == of {
			numbers = append(numbers, e.Candidate.N)
		}
	}
	return numbers
}

// mixed has changes of every kind: some improve, some do not, and some break the guard.
func mixed(t *testing.T) *team {
	m := newTeam(t, map[int]float64{1: -1, 2: 2, 3: 5, 4: 0, 5: 3, 6: 4, 8: 1.5, 9: -2})
	m.breaks[6] = true
	m.script = map[int][]try{7: {{Metric: "1", Says: "change 7", Fails: true}}, 10: {{Metric: "1", Says: "change 10", Nothing: true}}, 11: {{Metric: "1", Says: "change 11", Violations: []api.Violation{{Rule: "scope", Path: "x"}}}}}
	return m
}

func TestP6_EveryNumberOfCandidatesGivesTheSameVerdicts(t *testing.T) {
	serial := mixed(t)
	one := play(t, serial.world, atOnce(1, 12, nil), nil)
	require.Nil(t, one.err)
	require.Equal(t, 1, serial.most)
	require.Empty(t, one.candidates(loop.CandidateBegun))
	want := serial.verdicts(one)
	require.Len(t, want, 12, "%v", one.course())
	for _, k := range []int{2, 3, 5, 8, 16} {
		m := mixed(t)
		p := play(t, m.world, atOnce(k, 12, nil), nil)
		require.Nil(t, p.err)
		require.Equal(t, want, m.verdicts(p), "%d at once: %v", k, p.course())
		require.Len(t, p.course(), 12, "each is an iteration of its own")
		require.Equal(t, one.final.Best.String(), p.final.Best.String())
		require.Equal(t, one.final.KeptCount, p.final.KeptCount)
		require.Equal(t, int64(12), p.final.Usage.AgentCalls)
		require.Equal(t, "12", p.final.Budget[loop.Iterations].Used.String())
		require.Empty(t, p.final.Candidates)
		require.Nil(t, p.final.Taken)
		begun := p.candidates(loop.CandidateBegun)
		slices.Sort(begun)
		require.Equal(t, slices.Compact(slices.Clone(begun)), begun, "each has a number of its own")
	}
}

func TestP6_JudgementsAreNotParallel(t *testing.T) {
	m := newTeam(t, map[int]float64{1: 1, 2: -1, 3: 3})
	p := play(t, m.world, atOnce(3, 3, nil), nil)
	require.Nil(t, p.err)
	require.Equal(t, []int{1, 2, 3}, p.candidates(loop.CandidateJudged), "tried in the order in which they were begun")
	require.Equal(t, []int{2, 3, 1}, p.candidates(loop.CandidateTaken), "what failed first, then the best")
	require.Equal(t, []string{"1 no 9.000000", "2 yes 13.000000", "3 yes 14.000000"}, p.course())
	require.Equal(t, []string{
		"0.0 base", "0.0 base", "0.0 base", "1.0 aside-1", "2.0 aside-2", "3.0 aside-3", "3.1 commit-3",
	}, m.evaluated, "the first is committed as it was judged, and the others are judged again on top of it")
	for _, e := range p.ledger {
		if e.Type == loop.IterationSucceeded {
			require.Equal(t, "14.000000", p.final.Best.String())
			require.Contains(t, e.Record.PhaseMs, "modify", "what the agent took is the iteration's")
		}
	}
}

func TestP2_EachAgentIsToldWhatTheOthersTry(t *testing.T) {
	m := newTeam(t, nil)
	for n := range 4 {
		m.ideas[n+1] = []try{{Idea: fmt.Sprintf("idea %d", n+1)}}
	}
	p := play(t, m.world, atOnce(3, 3, map[string]any{"agent": map[string]any{"ideas": true}}), nil)
	require.Nil(t, p.err)
	told := map[int][]string{}
	for _, call := range p.agents {
		require.Equal(t, 3, call.Of)
		require.Equal(t, call.Candidate, call.Desk)
		require.Empty(t, call.Events, "what is pending was recorded before")
		if call.Phase == "modify" {
			require.NotContains(t, call.Beside, "")
			told[call.Candidate] = call.Beside
			require.Equal(t, fmt.Sprintf("idea %d", call.Candidate), call.Idea)
		}
	}
	require.Len(t, told, 3)
	knows := 0
	for _, beside := range told {
		knows += len(beside)
	}
	require.Positive(t, knows, "what is known by then: %v", told)
}

func TestP6_AConflictGoesBackToTheIdeas(t *testing.T) {
	for idea, ideas := range map[string]bool{"change 1": false, "idea 1": true} {
		m := newTeam(t, map[int]float64{1: 1, 2: 2, 3: 3})
		m.collides[1] = 3
		for n := range 5 {
			m.ideas[n+1] = []try{{Idea: fmt.Sprintf("idea %d", n+1)}}
		}
		p := play(t, m.world, atOnce(3, 5, map[string]any{"agent": map[string]any{"ideas": ideas}}), nil)
		require.Nil(t, p.err)
		require.Equal(t, []int{1}, p.candidates(loop.CandidateConflicted))
		require.Equal(t, "3 no 15.000000 conflict", p.course()[2])
		require.Equal(t, "4 no 15.000000", p.course()[3])
		asked, tried := 0, 0
		for _, call := range p.agents {
			switch {
			case call.Phase == "ideate":
				asked++
			case call.Key.Iteration > 3 && call.Idea == idea:
				tried++
			}
		}
		require.Equal(t, 1, tried, "it is tried again, from where the loop is by then")
		require.Equal(t, map[bool]int{true: 4}[ideas], asked, "and nobody is asked for an idea in its place")
	}
}

func TestP2_ACandidateWithoutAnIdeaHasFailed(t *testing.T) {
	m := newTeam(t, map[int]float64{1: 1})
	m.ideas = map[int][]try{1: {{Idea: "idea 1"}}, 2: {{}}}
	p := play(t, m.world, atOnce(2, 2, map[string]any{"agent": map[string]any{"ideas": true}}), nil)
	require.Nil(t, p.err)
	require.Equal(t, []string{"1 no 10.000000 error:agent", "2 yes 11.000000"}, p.course())
	require.Equal(t, "the agent offered no idea", p.final.Iterations[0].Description)
}

func TestP6_CandidatesAreSampledOneAfterTheOther(t *testing.T) {
	m := newTeam(t, map[int]float64{1: -.8, 2: 3, 3: -.8, 4: 2, 5: -.8, 6: -.8})
	m.sigma = .03
	p := play(t, m.world, atOnce(3, 6, nil), nil)
	require.Nil(t, p.err)
	kept := map[string]bool{}
	for _, it := range p.final.Iterations {
		require.NotZero(t, it.Samples, "%v", it)
		require.NotNil(t, it.LLR)
		kept[it.Description] = it.Kept
	}
	require.Equal(t, map[string]bool{"change 1": false, "change 2": true, "change 3": false, "change 4": true, "change 5": false, "change 6": false}, kept)
	var s loop.State
	for _, e := range p.ledger {
		s = s.Apply(e)
		if e.Type == loop.CandidateJudged || e.Type == loop.IterationSucceeded {
			require.Empty(t, s.Sampler.Trial.Values, "no sample of one candidate counts for another")
		}
	}
}

func TestP3_WhatAPolicyRefusesLiesOnItsDeskUntilItIsTaken(t *testing.T) {
	secret := []api.Violation{{Rule: "secrets", Path: "x", Blocks: true}}
	m := newTeam(t, map[int]float64{1: 1, 2: 2})
	m.script = map[int][]try{2: {{Metric: "1", Says: "change 2", Violations: secret}}}
	p := play(t, m.world, atOnce(2, 2, nil), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, loop.Blocked, s.Status)
			require.Contains(t, s.Gate.Summary, "/desk.2", "a person mends it where it is")
			m.script[2] = []try{{Metric: "1", Says: "change 2"}}
			env.SignalWorkflow("continue", nil)
		})
	})
	require.Nil(t, p.err)
	require.Equal(t, map[int]string{1: "true", 2: "true"}, m.verdicts(p), "%v", p.course())
	require.Equal(t, 1, m.calls[api.TakeName], "the other one is where it lies")
}

func TestL9_APauseAndAHaltFindEveryDesk(t *testing.T) {
	for name, c := range map[string]func(t *testing.T, env *testsuite.TestWorkflowEnvironment){
		"pause": func(t *testing.T, env *testsuite.TestWorkflowEnvironment) { env.SignalWorkflow("pause", nil) },
		"halt":  func(t *testing.T, env *testsuite.TestWorkflowEnvironment) { env.SignalWorkflow("halt", nil) },
	} {
		m := newTeam(t, map[int]float64{1: 1, 2: 2, 3: 3})
		m.script = map[int][]try{1: {{Metric: "1", Says: "change 1", Hang: true}}, 2: {{Metric: "1", Says: "change 2", Hang: true}}}
		p := play(t, m.world, atOnce(3, 3, nil), func(env *testsuite.TestWorkflowEnvironment) {
			at(t, env, time.Second, func(s loop.State) {
				require.Len(t, s.Candidates, 3)
				c(t, env)
			})
			at(t, env, time.Minute, func(s loop.State) {
				if s.Gate != nil {
					require.Equal(t, loop.GatePause, s.Gate.Kind)
					require.Zero(t, m.atWork, "no agent works while the loop is paused")
					env.SignalWorkflow("continue", nil)
				}
			})
		})
		require.Nil(t, p.err)
		require.Equal(t, 2, m.interrupts)
		if name == "halt" {
			require.Equal(t, loop.Halted, p.final.Status)
			continue
		}
		calls := 0
		for _, line := range m.steps {
			if strings.HasPrefix(line, "3.") && strings.HasSuffix(line, "modify") {
				calls++
			}
		}
		require.Equal(t, 1, calls, "what was made is not made again")
		require.Equal(t, 3, p.final.KeptCount, "%v", p.course())
	}
}

// The host dies at each of its activities. Nothing that was recorded is made again.
func TestALoopWithThreeDesksGoesOnElsewhereWhereverItsHostDies(t *testing.T) {
	world := func() *team {
		m := newTeam(t, map[int]float64{1: 1, 2: -2, 3: 3, 4: 4})
		m.breaks[4] = true
		m.script = map[int][]try{2: {{Metric: "1", Says: "change 2", Violations: []api.Violation{{Rule: "scope", Path: "x"}}}}}
		return m
	}
	doc := atOnce(3, 5, nil)
	undisturbed := world()
	want := undisturbed.verdicts(play(t, undisturbed.world, doc, nil))
	require.Len(t, want, 5)
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
			require.Len(t, p.course(), 5, at)
			if got := m.verdicts(p); !strings.Contains(strings.Join(p.course(), "\n"), " interrupted") {
				require.Equal(t, want, got, at)
			}
			agents := map[string]int{}
			for _, line := range m.steps {
				if strings.HasSuffix(line, "modify") {
					agents[line]++
				}
			}
			lost := 0
			for _, calls := range agents {
				lost += calls - 1
			}
			require.LessOrEqual(t, lost, 3, "%s: no more than the steps under way: %v", at, agents)
		}
	}
}

func TestE2_ABudgetThatIsUsedUpLosesNothingThatWasMade(t *testing.T) {
	m := newTeam(t, map[int]float64{1: 1, 2: 2, 3: 3, 4: 4})
	m.script = map[int][]try{3: {{Says: "change 3", Metric: "1", Exhausted: loop.ToolCalls}}}
	m.made = make(chan struct{}, 9)
	m.hold = func(in asked) { // the others are done by then
		for range 3 {
			if in.Key.Iteration == 3 {
				<-m.made
			}
		}
	}
	p := play(t, m.world, atOnce(4, 8, map[string]any{"limits": map[string]any{"toolCalls": 9}}), nil)
	require.Nil(t, p.err)
	require.Equal(t, []int{3}, p.candidates(loop.CandidateDropped))
	require.Equal(t, map[int]string{1: "true", 2: "true", 4: "true"}, m.verdicts(p), "%v", p.course())
	require.Contains(t, p.final.Reason, "toolCalls")
}

func TestL4_BreakpointsHoldCandidates(t *testing.T) {
	m := newTeam(t, map[int]float64{1: 1, 2: 2, 3: 3})
	for n := range 3 {
		m.ideas[n+1] = []try{{Idea: fmt.Sprintf("idea %d", n+1)}}
	}
	var gates []string
	steps := map[string]int{}
	p := play(t, m.world, atOnce(3, 3, map[string]any{"agent": map[string]any{"ideas": true}, "breakpoints": []string{"ideate", "modify"}}), func(env *testsuite.TestWorkflowEnvironment) {
		for n := 1; n <= 5; n++ {
			at(t, env, time.Duration(n)*time.Hour, func(s loop.State) {
				require.Equal(t, loop.GateBreakpoint, s.Gate.Kind)
				gates = append(gates, s.Gate.Summary)
				steps[s.Gate.Summary] = len(m.agents)
				env.SignalWorkflow("continue", nil)
			})
		}
	})
	require.Nil(t, p.err)
	require.Equal(t, []string{"breakpoint at ideate (3 candidates)", "breakpoint at modify (3 candidates)", "breakpoint at modify", "breakpoint at modify", "breakpoint at modify"}, gates)
	require.Equal(t, 0, steps[gates[0]], "no agent is at work before")
	require.Equal(t, 3, steps[gates[1]], "the ideas are known, and nothing is changed")
	require.Equal(t, 3, p.final.KeptCount, "%v", p.course())
}

// The result of a call that is made again is on the host's disk, under the call's name.
func TestACandidateThatIsRefusedOrExceedsABudgetIsMadeByAnotherCall(t *testing.T) {
	for longer, exhausted := range map[int]loop.Resource{1: "", 2: "", 0: loop.ToolCalls} {
		var env *testsuite.TestWorkflowEnvironment
		m := newTeam(t, map[int]float64{1: 1, 2: 2})
		calls, desks := map[string]bool{}, map[int]bool{}
		m.stepping = func(ctx context.Context, in asked) (stepped, error) {
			out, err := m.step(ctx, in)
			m.mu.Lock()
			defer m.mu.Unlock()
			call, again := fmt.Sprint(in.Key), desks[in.Desk]
			require.False(t, in.Call != nil && calls[call], "%s was made", call)
			calls[call] = true
			if in.Call == nil || again || err != nil {
				return out, err
			}
			desks[in.Desk] = true
			if exhausted != "" {
				return stepped{Exhausted: exhausted}, nil
			}
			until := env.Now().Add(4 * time.Hour)
			if in.Desk == longer {
				until = env.Now().Add(6 * time.Hour)
			}
			return stepped{Class: result.RateLimited, Refused: &api.Refused{Status: 429, Said: "enough", Until: until.UTC()}}, nil
		}
		p := play(t, m.world, atOnce(2, 4, map[string]any{"verify": map[string]any{"target": 13}, "limits": map[string]any{"onExhausted": "ask"}}), func(e *testsuite.TestWorkflowEnvironment) {
			env = e
			at(t, e, time.Hour, func(s loop.State) {
				if s.Gate != nil {
					e.SignalWorkflow("extend", map[string]any{"limits": map[string]any{"toolCalls": 2000}, "hash": s.Gate.Hash})
				}
			})
		})
		require.Len(t, p.agents, 4)
		require.Equal(t, 2, p.final.KeptCount)
		var slept []time.Duration
		for _, e := range p.events(loop.SleepBegun) {
			slept = append(slept, e.Sleep.Until.Sub(e.Sleep.Since).Round(time.Hour))
		}
		if exhausted == "" {
			require.Equal(t, []time.Duration{6 * time.Hour}, slept, "once, until all of them may work")
		}
	}
}
