package loop_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
)

// varying is a world in which each commit has a metric of its own, which varies from one evaluation to the next.
type varying struct {
	*world
	mu     sync.Mutex
	random *rand.Rand
	sigma  float64            // of one evaluation, as a share
	gains  map[int]float64    // of the change of an iteration, as a share
	worth  map[string]float64 // of commits
	parent map[string]string
	taken  []string // "iteration name commit" of each evaluation
	spoil  func(in asked, out *stepped)
}

func newVarying(t *testing.T, sigma float64, gains map[int]float64) *varying {
	v := &varying{world: newWorld(t, nil), random: newRandom(7), sigma: sigma, gains: gains, worth: map[string]float64{"base": 10}, parent: map[string]string{}}
	v.committing = func(ctx context.Context, in api.Commit) (api.Committed, error) {
		c, err := v.commit(ctx, in)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.parent[c.Commit] = in.Head
		v.worth[c.Commit] = v.of(in.Head) * (1 + v.gains[in.Iteration])
		return c, err
	}
	v.stepping = func(ctx context.Context, in asked) (stepped, error) {
		out, err := v.step(ctx, in)
		if in.Verify == nil || err != nil {
			return out, err
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.taken = append(v.taken, fmt.Sprintf("%d %s %s", in.Key.Iteration, in.Key.Name, in.Head))
		d := metric.MustDecimal(fmt.Sprintf("%.6f", v.of(in.Head)*math.Exp(v.sigma*v.random.NormFloat64())))
		out.Metric, out.NoNumber, out.ExitCode = &d, "", 0
		if v.spoil != nil {
			v.spoil(in, &out)
		}
		return out, err
	}
	return v
}

// of returns the value of a commit. A revert has its parent's value.
func (v *varying) of(commit string) float64 {
	if reverted, is := strings.CutPrefix(commit, "revert-of-"); is {
		return v.of(v.parent[reverted])
	}
	return v.worth[commit]
}

// count returns the number of evaluations that begin with prefix.
func (v *varying) count(prefix string) (n int) {
	for _, line := range v.taken {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// noisy returns a spec whose metric is judged as its baseline shows.
func noisy(iterations int, verify map[string]any, more map[string]any) []byte {
	doc := map[string]any{"verify": map[string]any{"evidence": "auto"}, "limits": map[string]any{"iterations": iterations, "discards": 100}}
	maps.Copy(doc["verify"].(map[string]any), verify)
	maps.Copy(doc, more)
	return specOf(doc)
}

func TestP5_AMetricThatDoesNotVaryIsMeasuredOnce(t *testing.T) {
	v := newVarying(t, 0, map[int]float64{2: .1})
	p := play(t, v.world, noisy(2, nil, nil), nil)
	require.Nil(t, p.err)
	require.Equal(t, []string{"0 verify base", "0 verify base", "0 verify base", "1 verify commit-1", "2 verify commit-2"}, v.taken, "two more evaluations at the baseline, and nothing else")
	require.Equal(t, []string{"1 no 10.000000", "2 yes 11.000000"}, p.course())
	require.Equal(t, loop.JudgedExactly, p.final.Judging)
	require.Nil(t, p.final.Sampler)
	require.NotContains(t, p.types(), loop.SampleTaken)
	require.InDelta(t, 10, p.result.Claim.Estimate, 1e-6, "the claim is what was measured")
	require.Zero(t, p.result.Claim.Pairs)
}

func TestP6_ANoisyMetricIsJudgedBySamples(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: -.08, 2: .3, 3: -.08, 4: -.08, 5: .2, 6: -.08})
	p := play(t, v.world, noisy(6, nil, nil), nil)
	require.Nil(t, p.err)
	var kept []int
	for _, it := range p.final.Iterations {
		if it.Kept {
			kept = append(kept, it.N)
		}
		require.NotZero(t, it.Samples, "iteration %d", it.N)
		require.NotNil(t, it.LLR)
	}
	require.Equal(t, []int{2, 5}, kept, "%v", p.course())
	require.Equal(t, loop.JudgedBySamples, p.final.Judging)
	require.InDelta(t, 15.6, p.final.Best.Float(), .6, "best is what fresh samples of the head say")

	require.Equal(t, 12, v.count("0 verify base"), "the calibration")
	require.Equal(t, 8, v.count("2 head commit-2"), "a kept head is measured anew, by steps of its own")
	require.Equal(t, 5, v.count("6 claim base"))
	require.Equal(t, 5, v.count("6 claim revert-of-commit-6"))

	judged := 0
	for _, e := range p.events(loop.ChangeJudged) {
		if j := e.Judgement; j.Samples != nil {
			judged++
			require.Equal(t, []any{true, e.Metric.String()}, []any{j.Passed, j.Metric.String()})
		}
	}

	require.Equal(t, 12, judged)

	c := p.result.Claim
	require.Equal(t, c, p.final.Claim)
	require.Equal(t, 5, c.Pairs)
	require.InDelta(t, 56, c.Estimate, 6)
	require.Greater(t, c.Bound, 45.)
	require.InDelta(t, .24, c.FalseKeeps, 1e-9, "alpha for each of six")
	require.Contains(t, p.types(), loop.ClaimMade)
}

// What was kept is measured anew. A failure now and then does not matter.
func TestP6_AHeadThatCanNoLongerBeMeasuredEndsTheLoop(t *testing.T) {
	for every, ends := range map[int]bool{1: true, 2: false} {
		v := newVarying(t, .03, map[int]float64{1: .3})
		heads := 0
		v.spoil = func(in asked, out *stepped) {
			if in.Key.Name == "head" {
				if heads++; heads%every == 0 {
					out.ExitCode, out.Metric = 1, nil
				}
			}
		}
		p := play(t, v.world, noisy(2, nil, nil), nil)
		if !ends {
			require.Nil(t, p.err)
			require.Equal(t, 8+7, heads)
			continue
		}
		require.Equal(t, string(fault.PreconditionFailed), p.err.Type())
		require.Equal(t, 3, heads)
	}
}

func TestP9_ALoopThatKeptNothingClaimsNothing(t *testing.T) {
	p := play(t, newVarying(t, .03, map[int]float64{1: -.3}).world, noisy(1, nil, nil), nil)
	require.Zero(t, p.result.Claim.Estimate)
	require.Equal(t, "percent", p.result.Claim.Unit)
}

// Only a used-up budget leaves a claim to be made.
func TestP9_ALoopThatFailsInAnIterationClaimsNothing(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .3})
	v.script = map[int][]try{2: {{Denied: "the writer may not edit"}}}
	p := play(t, v.world, noisy(9, nil, nil), nil)
	require.Equal(t, string(fault.PermissionDenied), p.err.Type())
	require.Nil(t, p.result.Claim)
	require.Zero(t, v.count("2 claim"))
}

func TestP6_NothingIsComparedWithWhatSelectedIt(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .3})
	p := play(t, v.world, noisy(2, nil, nil), nil)
	var s loop.State
	for _, e := range p.ledger {
		s = s.Apply(e)
		if e.Type == loop.IterationSucceeded {
			require.Empty(t, s.Sampler.Reference.Values, "the reference is gone with the head that it was of")
			require.Empty(t, s.Sampler.Trial.Values)
			require.Less(t, s.Best.Float(), 11., "nothing is said of the new head yet")
		}
	}
}

func TestP5_5_AGuardThatFailsCostsOneEvaluation(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .5})
	v.script = map[int][]try{1: {{Says: "x", Metric: "1", Guard: true}}}
	p := play(t, v.world, noisy(1, nil, map[string]any{"guard": map[string]any{"command": "check"}, "limits": map[string]any{"iterations": 1, "reworks": 0}}), nil)
	require.Equal(t, "guard-fail", p.final.Iterations[0].Reason)
	require.Equal(t, 1, v.count("1 verify"), "%v", v.taken)
	require.Equal(t, 1, p.final.Iterations[0].Samples)
}

func TestP5_5_TheGuardRunsBeforeASecondEvaluation(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .01, 2: .01, 3: .01, 4: -.2, 5: .3})
	p := play(t, v.world, noisy(5, nil, map[string]any{"guard": map[string]any{"command": "check"}}), nil)
	require.Nil(t, p.err)
	evaluated := map[int]int{}
	for _, step := range p.steps {
		var n, attempt int
		var name string
		_, err := fmt.Sscanf(step, "%d.%d %s", &n, &attempt, &name)
		require.NoError(t, err)
		switch {
		case name == "guard":
			require.LessOrEqual(t, evaluated[n], 2, "of the change and once of its reference: %v", p.steps)
			evaluated[n] = -1000
		case name == "verify":
			evaluated[n]++
		}
	}
	require.Equal(t, 2, evaluated[4], "what the first evaluation shows to be worse is not guarded, the reference was measured once more: %v", p.steps)
}

func TestP6_AsManyEvaluationsAsAllowedMaySayNothing(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .03})
	v.spoil = func(in asked, out *stepped) { // the change lies in the middle, again and again
		if in.Key.Iteration == 1 {
			d := metric.MustDecimal("10.1")
			if in.At != "" {
				d = metric.MustDecimal("10")
			}
			out.Metric = &d
		}
	}
	p := play(t, v.world, noisy(1, map[string]any{"maxSamples": 4, "minDelta": "2%"}, nil), nil)
	it := p.final.Iterations[0]
	require.Equal(t, "inconclusive", it.Reason)
	require.False(t, it.Kept)
	require.Equal(t, 4, it.Samples)
	require.Equal(t, []string{"commit-1"}, p.reverts)
	require.Equal(t, "10.1", it.Metric.String())
}

func TestP5_AnEvaluationThatFailsLaterDiscardsTheChange(t *testing.T) {
	for name, c := range map[string]struct {
		at   string
		want string
	}{
		"of the change":    {"", "error:verify-crash"},
		"of the reference": {"base", "inconclusive"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVarying(t, .03, map[int]float64{1: .02})
			v.spoil = func(in asked, out *stepped) {
				if d := metric.MustDecimal("10.3"); in.Key.Iteration == 1 && in.At == "" { // better, but not by enough for one evaluation
					out.Metric = &d
				}
				if in.Key.Iteration == 1 && in.Key.Sample > 0 && in.At == c.at {
					out.ExitCode, out.Metric = 1, nil
				}
			}
			p := play(t, v.world, noisy(1, nil, nil), nil)
			require.Nil(t, p.err)
			require.Equal(t, c.want, p.final.Iterations[0].Reason)
			require.Empty(t, p.final.Sampler.Trial.Values, "its samples are gone")
		})
	}
}

func TestA1_TheContractSaysWhatTheNoiseMeans(t *testing.T) {
	v := newVarying(t, .03, nil)
	var gate *loop.Gate
	p := play(t, v.world, noisy(1, map[string]any{"maxSamples": 3, "minDelta": "0.1%"}, map[string]any{"approvals": map[string]any{"plan": "required"}}), func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			gate = query(t, env).Gate
			env.SignalWorkflow("approve", map[string]any{"hash": gate.Hash})
		}, time.Second)
	})
	require.Nil(t, p.err)
	require.Contains(t, gate.Summary, "the metric is noisy: it varies by")
	var warned []string
	for _, e := range p.ledger {
		if e.Type == loop.Warned {
			warned = append(warned, e.Reason)
		}
	}
	require.Len(t, warned, 1, "%v", warned)
	require.Contains(t, warned[0], "so noisy that an improvement of 0.1 % can't be shown within verify.maxSamples (3)")
}

func TestA6_AHaltDuringTheClaimEndsTheLoopWithoutOne(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .3})
	var env *testsuite.TestWorkflowEnvironment
	v.spoil = func(in asked, _ *stepped) {
		if in.Key.Name == "claim" && in.Key.Sample == 3 {
			env.SignalWorkflow("halt", nil)
		}
	}
	p := play(t, v.world, noisy(1, nil, nil), func(e *testsuite.TestWorkflowEnvironment) { env = e })
	require.Equal(t, loop.Halted, p.final.Status)
	require.Nil(t, p.result.Claim)
	require.LessOrEqual(t, v.count("1 claim"), 5)
}

func TestA6_APauseDuringTheClaimLosesNothing(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .3})
	var env *testsuite.TestWorkflowEnvironment
	paused := false
	v.spoil = func(in asked, _ *stepped) {
		if in.Key.Name == "claim" && in.Key.Sample == 3 && in.Key.Repeat == 0 {
			env.SignalWorkflow("pause", map[string]any{"choice": "step"})
			env.RegisterDelayedCallback(func() {
				paused = query(t, env).Status == loop.Paused
				env.SignalWorkflow("continue", nil)
			}, time.Minute)
		}
	}
	p := play(t, v.world, noisy(1, nil, nil), func(e *testsuite.TestWorkflowEnvironment) { env = e })
	require.Nil(t, p.err)
	require.True(t, paused)
	require.Equal(t, loop.Completed, p.final.Status)
	require.Equal(t, 5, p.result.Claim.Pairs)
	require.Equal(t, 10, v.count("1 claim"), "what was evaluated before is not evaluated again")
}

func TestA2_AClaimThatTheTimeIsTooShortForIsNotMade(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .3})
	v.spoil = func(in asked, out *stepped) {
		if in.Key.Name == "claim" {
			out.ElapsedMs = (4 * time.Hour).Milliseconds()
		}
	}
	p := play(t, v.world, noisy(1, map[string]any{"target": 12}, map[string]any{"limits": map[string]any{"iterations": 9, "activeTime": "10h", "onExhausted": "ask"}}), nil)
	require.Nil(t, p.err)
	require.Equal(t, loop.Completed, p.final.Status, "the loop ends as it would have")
	require.Nil(t, p.result.Claim)
	require.Equal(t, 3, v.count("1 claim"))
	warned := p.events(loop.Warned)
	require.Contains(t, warned[len(warned)-1].Reason, "nothing is claimed by claim: the budget activeTime is used up")
}

func TestA2_TimeIsKeptForTheClaim(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .3})
	v.spoil = func(in asked, out *stepped) { out.ElapsedMs = (10 * time.Minute).Milliseconds() }
	p := play(t, v.world, noisy(99, nil, map[string]any{"limits": map[string]any{"iterations": 99, "discards": 99, "activeTime": "12h"}}), nil)
	require.Equal(t, loop.Halted, p.final.Status)
	require.Equal(t, "BUDGET_EXHAUSTED", p.result.ErrorCode)
	require.Contains(t, p.result.Reason, "is kept to measure the loop's result")
	require.NotNil(t, p.result.Claim, "%v", p.course())
	require.Equal(t, 5, p.result.Claim.Pairs)
	used := time.Duration(p.final.Budget[loop.ActiveTime].Used.Float()) * time.Millisecond
	require.LessOrEqual(t, used, 12*time.Hour, "the claim is within the budget")
	require.Greater(t, used, 10*time.Hour)
	require.Less(t, p.final.Iteration, 60)
}

func TestA2_ALoopThatABudgetEndsInAnIterationClaimsToo(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .3})
	step := v.stepping
	v.stepping = func(ctx context.Context, in asked) (stepped, error) {
		out, err := step(ctx, in)
		if in.Call != nil && in.Key.Iteration == 3 {
			out.Exhausted = loop.ToolCalls
		}
		return out, err
	}
	p := play(t, v.world, noisy(9, nil, nil), nil)
	require.Equal(t, loop.Halted, p.final.Status)
	require.Equal(t, 3, p.final.Iterations[len(p.final.Iterations)-1].N)
	require.Equal(t, "interrupted", p.final.Iterations[len(p.final.Iterations)-1].Reason)
	require.Equal(t, 5, p.result.Claim.Pairs)
	require.Greater(t, p.result.Claim.Bound, 10.)
}

func TestP9_AHoldoutIsMeasuredForTheClaimAlone(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .3})
	p := play(t, v.world, noisy(2, map[string]any{"holdout": map[string]any{"command": "measure-the-other"}}, nil), nil)
	require.NotNil(t, p.result.Claim.Holdout)
	require.Equal(t, 5, p.result.Claim.Holdout.Pairs)
	require.InDelta(t, 30, p.result.Claim.Holdout.Estimate, 8)
	require.Equal(t, 10, v.count("2 holdout"))
	require.Equal(t, v.count("2 holdout"), v.count("2 holdout base")+v.count("2 holdout "+p.final.Head))
	for _, step := range p.steps[:len(p.steps)-20] {
		require.NotContains(t, step, "holdout", "not before the claim")
	}
	for _, e := range p.ledger {
		if e.Type == loop.SampleTaken && e.Phase == "complete" {
			require.Equal(t, "verify", e.Step)
		}
	}
}

func TestP0_ALoopWhoseUnchangedCodeBreaksABoundDoesNotStart(t *testing.T) {
	for says, metrics := range map[string]map[string]metric.Decimal{
		"verify prints no METRIC size=<number>": nil,
		"size is 7 on the unchanged code":       {"size": metric.MustDecimal("7")},
	} {
		v := newVarying(t, .01, nil)
		v.spoil = func(_ asked, out *stepped) { out.Metrics = metrics }
		p := play(t, v.world, noisy(2, nil, map[string]any{
			"metrics": []any{map[string]any{"name": "size", "direction": "lower", "atWorst": "5"}},
		}), nil)
		require.ErrorContains(t, p.err, says)
		require.NotContains(t, p.err.Error(), "fails", "it exits 0")
		require.Zero(t, p.final.Iteration)
	}
}

func TestP0_MeasurementsThatDisagreeDoNotStartALoop(t *testing.T) {
	w := newWorld(t, nil)
	w.stepping = func(ctx context.Context, in asked) (stepped, error) {
		w.baseline = try{Metric: "10", NoNumber: in.Key.Sample == 1}
		return w.step(ctx, in)
	}
	p := play(t, w, specOf(map[string]any{"verify": map[string]any{"evidence": "auto"}}), nil)
	require.ErrorContains(t, p.err, "disagree about where the number is: in run 2, nothing")
}

func TestP6_AChangeThatBreaksABoundIsDiscarded(t *testing.T) {
	for _, evidenceOf := range []string{"single", "sequential"} {
		t.Run(evidenceOf, func(t *testing.T) {
			v := newVarying(t, .01, map[int]float64{1: .3, 2: .3})
			v.spoil = func(in asked, out *stepped) {
				require.Equal(t, []string{"size", "seen"}, in.Verify.Names)
				size := map[int]string{1: "110.0"}[in.Key.Iteration]
				if size == "" || in.At != "" {
					size = "100.0"
				}
				out.Metrics = map[string]metric.Decimal{"size": metric.MustDecimal(size), "seen": metric.MustDecimal("3")}
			}
			p := play(t, v.world, noisy(2, map[string]any{"evidence": evidenceOf}, map[string]any{
				"metrics": []any{map[string]any{"name": "size", "direction": "lower", "atWorst": "5%"}, map[string]any{"name": "seen"}},
			}), nil)
			require.Nil(t, p.err)
			first, second := p.final.Iterations[0], p.final.Iterations[1]
			require.Equal(t, "bound:size", first.Reason)
			require.Contains(t, first.Note, "size is 110")
			require.True(t, second.Kept)
			require.Equal(t, "3", second.Metrics["seen"].String())
			require.Equal(t, "110", strings.TrimSuffix(first.Metrics["size"].String(), ".0"))
		})
	}
}
