package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/loop"
)

// lower returns a spec of a metric of which less is better.
func lower(n int, more map[string]any) map[string]any {
	verify := map[string]any{"direction": "lower"}
	for key, value := range more {
		verify[key] = value
	}
	return map[string]any{"verify": verify, "limits": map[string]any{"iterations": n, "discards": 1}}
}

func TestP6_ASuspiciousImprovementIsSetAside(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "zero", Metric: "0"}}, 2: {{Says: "less", Metric: "9"}}})
	p := play(t, w, specOf(lower(2, nil)), nil)
	require.Nil(t, p.err)
	require.Equal(t, []string{"1 no 0 suspicious", "2 yes 9"}, p.course(), "it is no discard, and nothing was compared with it")
	require.Contains(t, p.steps, "1.1 verify-again")
	require.Len(t, p.result.SetAside, 1)
	require.Equal(t, "commit-1", p.result.SetAside[0].Commit)
	require.Zero(t, p.final.Suspicious)
}

func TestP6_ASuspiciousImprovementHasToBeSeenTwice(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "zero", Metric: "0"}}})
	w.afresh = func(asked) try { return try{Metric: "9.5"} }
	p := play(t, w, specOf(lower(1, map[string]any{"suspicious": "mark"})), nil)
	require.Equal(t, []string{"1 no 0 inconclusive"}, p.course())
	require.Contains(t, p.final.Iterations[0].Note, "9.5 when measured once more")
	require.Empty(t, p.result.SetAside)
}

func TestP6_ASuspiciousImprovementIsKeptAndMarked(t *testing.T) {
	counted := lower(1, nil)
	counted["guard"] = map[string]any{"command": "check"}
	for name, on := range map[string]map[string]any{"mark": lower(1, map[string]any{"suspicious": "mark"}), "a counted guard": counted} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[int][]try{1: {{Says: "zero", Metric: "0"}}})
			w.stepping = func(ctx context.Context, in asked) (stepped, error) {
				out, err := w.step(ctx, in)
				if in.Key.Name == "guard" {
					out.Passing = 3
				}
				return out, err
			}
			p := play(t, w, specOf(on), nil)
			require.Equal(t, []string{"1 yes 0"}, p.course())
			require.True(t, p.final.Iterations[0].Suspicious)
			require.True(t, p.final.Kept[0].Suspicious)
			require.Equal(t, 1, p.final.Suspicious)
		})
	}
}

func TestP6_APersonDecidesAboutASuspiciousImprovement(t *testing.T) {
	for choice, course := range map[string]string{"keep": "1 yes 0", "discard": "1 no 0 rejected"} {
		t.Run(choice, func(t *testing.T) {
			w := newWorld(t, map[int][]try{1: {{Says: "zero", Metric: "0"}}})
			p := play(t, w, specOf(lower(1, map[string]any{"suspicious": "ask"})), func(env *testsuite.TestWorkflowEnvironment) {
				at(t, env, time.Hour, func(s loop.State) {
					require.Equal(t, loop.GateQuestion, s.Gate.Kind)
					env.SignalWorkflow(loop.MessageAnswer, map[string]string{"choice": choice})
				})
			})
			require.Equal(t, []string{course}, p.course())
			require.Equal(t, choice == "keep", p.final.Suspicious == 1)
		})
	}
}

// TestP6_ACanaryThatMoreThanTheCompilerNoticedProvesTheGuard: a guard whose tests are not counted shows that it runs the
// code by noticing functions that only fail.
func TestP6_ACanaryThatMoreThanTheCompilerNoticedProvesTheGuard(t *testing.T) {
	on := lower(1, nil)
	on["guard"], on["validate"] = map[string]any{"command": "check"}, map[string]any{"canary": true}
	for course, hollow := range map[string]bool{"1 yes 0": false, "1 no 0 suspicious": true} {
		w := newWorld(t, map[int][]try{1: {{Says: "zero", Metric: "0"}}})
		w.stepping = func(ctx context.Context, in asked) (stepped, error) {
			out, err := w.step(ctx, in)
			if in.Key.Name == "canary" {
				out.Emptied, out.Hollow = 2, hollow
			}
			return out, err
		}
		p := play(t, w, specOf(on), nil)
		require.Equal(t, []string{course}, p.course())
		require.Equal(t, !hollow, p.final.GuardRuns)
	}
}

// A metric that varies is measured several times; what it shows is measured once more all the same.
func TestP6_ASuspiciousImprovementOfASampledMetricIsSetAside(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: 10, 2: .3})
	p := play(t, v.world, noisy(2, nil, nil), nil)
	require.Nil(t, p.err)
	require.Equal(t, loop.JudgedBySamples, p.final.Judging)
	require.Equal(t, "suspicious", p.final.Iterations[0].Reason)
	require.True(t, p.final.Iterations[1].Kept, "it is compared with the reference from before: %v", p.course())
	require.Equal(t, 1, v.count("1 verify-again commit-1"))
	require.Len(t, p.result.SetAside, 1)
	require.InDelta(t, 13, p.final.Best.Float(), 1)
}

// Of several candidates the suspicious one is set aside, and the others are judged as without it.
func TestP6_ASuspiciousCandidateIsSetAside(t *testing.T) {
	m := newTeam(t, map[int]float64{1: 95, 2: 2, 3: -1})
	p := play(t, m.world, atOnce(3, 3, nil), nil)
	require.Nil(t, p.err)
	require.ElementsMatch(t, []int{2}, m.of(p.final.Head), "%v", p.course())
	require.Equal(t, "12.000000", p.final.Best.String())
	require.Len(t, p.result.SetAside, 1)
	require.Equal(t, "change 1", p.result.SetAside[0].Description)
}

// On a branch from an earlier commit, a suspicious change makes neither the branch nor the head better.
func TestP6_ASuspiciousChangeOnABranchIsSetAside(t *testing.T) {
	m := newTeam(t, map[int]float64{1: 5, 2: 1, 5: 200})
	p := play(t, m.world, back(1, 9, map[string]any{"discards": 5}), nil)
	require.Nil(t, p.err)
	require.Contains(t, p.course()[4], "suspicious")
	require.Equal(t, []int{1, 2}, m.of(p.final.Head), "%v %v", p.course(), p.branched())
	require.Equal(t, "16.000000", p.final.Best.String())
	require.Len(t, p.result.SetAside, 1)
}

// TestA7_NobodyButAPersonApprovesASuspiciousChange: approvals.diff auto leaves the proposal open.
func TestA7_NobodyButAPersonApprovesASuspiciousChange(t *testing.T) {
	on := lower(1, map[string]any{"suspicious": "mark"})
	on["approvals"] = map[string]any{"tools": []string{"*"}, "diff": "auto"}
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "zero", Metric: "0"}}}), specOf(on), nil)
	require.Equal(t, []string{"1 yes 0"}, p.course())
	require.Equal(t, "open", p.final.Proposal.State)
}
