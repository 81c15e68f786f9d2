package loop_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
)

// twoKept are two changes that are kept.
var twoKept = map[int][]try{1: {{Says: "one", Metric: "11"}}, 2: {{Says: "two", Metric: "12"}}}

func guarded(more map[string]any) map[string]any {
	doc := map[string]any{"guard": map[string]any{"command": "check"}, "limits": map[string]any{"iterations": 2}}
	for k, v := range more {
		doc[k] = v
	}
	return doc
}

// TestP5_WhatIsProposedWasJudgedFromScratch: guard and verify run once more, and nothing is proposed that fails there.
func TestP5_WhatIsProposedWasJudgedFromScratch(t *testing.T) {
	for name, c := range map[string]struct {
		script   map[int][]try
		afresh   func(asked) try
		control  *try // the base from scratch, nil if it passes
		unproven bool
		spec     map[string]any
		steps    []string
		judged   bool // from scratch
		fails    string
		proposes bool
	}{
		"it passes": {script: twoKept, steps: []string{"2.1 scratch-guard", "2.1 scratch-verify"}, judged: true, proposes: true},
		"the guard fails": {
			script: twoKept, afresh: func(asked) try { return try{Metric: "12", Guard: true} },
			steps: scratchedGuard(4), judged: true, fails: "the guard command passed before, and fails from scratch (exit 1): `check`",
		},
		"the guard fails, and on the base too": {
			script: twoKept, afresh: func(in asked) try { return try{Metric: "12", Guard: in.Key.Name == "scratch-guard"} }, control: &try{Guard: true},
			steps: append(scratchedGuard(3), "2.1 scratch-verify"), judged: true, proposes: true, unproven: true,
		},
		"the guard fails, and on the base too, and verify fails": {
			script: twoKept, afresh: func(asked) try { return try{Metric: "10", Guard: true} }, control: &try{Metric: "10", Guard: true},
			steps: append(scratchedGuard(3), scratchedVerify(4)...), judged: true, fails: "it measures 10, where it measured 12 before",
		},
		"the guard fails twice, and the base passes": {
			script: twoKept, afresh: func(in asked) try { return try{Metric: "12", Guard: in.Key.Sample < 2} },
			steps: append(scratchedGuard(4), "2.1 scratch-verify"), judged: true, proposes: true,
		},
		"the machine is slower than it was": {
			script: twoKept, afresh: func(asked) try { return try{Metric: "9"} }, control: &try{Metric: "7"},
			steps: append(scratchedGuard(1), scratchedVerify(3)...), judged: true, proposes: true, unproven: true,
		},
		"verify crashes on the base too": {
			script: twoKept, afresh: func(asked) try { return try{Crash: true} }, control: &try{Crash: true},
			steps: append(scratchedGuard(1), scratchedVerify(3)...), judged: true, proposes: true, unproven: true,
		},
		"the guard is flaky": {
			script: twoKept, afresh: func(in asked) try { return try{Metric: "12", Guard: in.Key.Sample == 0} },
			steps: []string{"2.1 scratch-guard", "2.1 scratch-guard", "2.1 scratch-verify"}, judged: true, proposes: true,
		},
		"the metric is no improvement": {
			script: twoKept, afresh: func(asked) try { return try{Metric: "10"} },
			steps: append(scratchedGuard(1), scratchedVerify(4)...), judged: true, fails: "it measures 10, where it measured 12 before",
		},
		"the metric is smaller, and varies": {script: twoKept, afresh: func(asked) try { return try{Metric: "11.5"} }, steps: []string{"2.1 scratch-guard", "2.1 scratch-verify"}, judged: true, proposes: true},
		"verify crashes": {
			script: twoKept, afresh: func(asked) try { return try{Crash: true} },
			steps: append(scratchedGuard(1), scratchedVerify(4)...), judged: true, fails: "the verify command passed before, and fails from scratch (exit 1)",
		},
		"setup fails once": {
			script: twoKept, afresh: func(in asked) try {
				return try{Metric: "12", Setup: in.Key.Name == "scratch-guard" && in.Key.Sample == 0}
			},
			steps: []string{"2.1 scratch-guard", "2.1 scratch-guard", "2.1 scratch-verify"}, judged: true, proposes: true,
		},
		"setup fails": {
			script: twoKept, afresh: func(asked) try { return try{Setup: true} },
			steps: scratchedGuard(4), judged: true, fails: "from scratch the setup command fails",
		},
		"one change was kept, and nothing else could write to caches": {script: map[int][]try{1: twoKept[1]}, proposes: true},
		"one change was kept, and judge.keep shares what others wrote": {
			script: map[int][]try{1: twoKept[1]}, spec: map[string]any{"judge": map[string]any{"keep": []string{"target"}}},
			steps: []string{"2.1 scratch-guard", "2.1 scratch-verify"}, judged: true, proposes: true,
		},
		"nothing was kept":       {script: map[int][]try{1: {{Says: "worse", Metric: "9"}}}},
		"there is no sandbox":    {script: twoKept, spec: map[string]any{"sandbox": map[string]any{"use": "off"}}, proposes: true},
		"the machine can't tell": {script: twoKept, afresh: func(asked) try { return try{Unlayered: true} }, steps: []string{"2.1 scratch-guard"}, proposes: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.script)
			w.afresh, w.control = c.afresh, c.control
			p := play(t, w, specOf(guarded(c.spec)), nil)
			require.Equal(t, c.steps, scratchSteps(w))
			require.Equal(t, c.proposes, p.final.Proposal != nil)
			require.Equal(t, c.judged, p.final.Scratch != nil && p.final.Scratch.Judged)
			if c.fails == "" {
				require.Nil(t, p.err)
				require.Equal(t, c.judged && !c.unproven, p.final.Scratch.Stands(p.final.Head))
				require.Equal(t, c.unproven, p.final.Scratch.Doubtful(p.final.Head))
				return
			}
			require.Equal(t, string(fault.NotReproduced), p.err.Type())
			require.Contains(t, p.result.Reason, c.fails)
			require.Contains(t, p.result.Recovery, "git log -p base..pawl/", "it says how to look at the branch")
			require.Equal(t, p.result.Scratch, p.final.Scratch)
		})
	}
}

func scratchedGuard(n int) []string { return slices.Repeat([]string{"2.1 scratch-guard"}, n) }

func scratchedVerify(n int) []string { return slices.Repeat([]string{"2.1 scratch-verify"}, n) }

// TestE3_OnlyAPersonApprovesWhatIsUnproven: not the reviewer, and nobody by approvals.diff.
func TestE3_OnlyAPersonApprovesWhatIsUnproven(t *testing.T) {
	reviewed := map[string]any{"agent": map[string]any{"roles": map[string]any{"reviewer": map[string]any{"command": "review"}}}}
	for name, doc := range map[string]map[string]any{"reviewer": reviewed, "auto": {}, "a person": {"approvals": map[string]any{"diff": "required"}}} {
		t.Run(name, func(t *testing.T) {
			var waits loop.State
			w := newWorld(t, twoKept)
			w.afresh, w.control = func(in asked) try { return try{Metric: "12", Guard: true} }, &try{Guard: true}
			step := w.step
			w.stepping = func(ctx context.Context, in asked) (stepped, error) {
				out, err := step(ctx, in)
				if in.Call != nil && in.Call.Role == "reviewer" {
					out.Opinion = &api.Opinion{Decision: string(rules.SaysApproved)}
				}
				return out, err
			}
			p := play(t, w, specOf(guarded(doc)), func(env *testsuite.TestWorkflowEnvironment) {
				at(t, env, time.Hour, func(s loop.State) {
					if waits = s; s.Gate != nil {
						env.SignalWorkflow("approve", map[string]any{"by": "ann", "hash": s.Gate.Hash})
					}
				})
			})
			require.Nil(t, p.err)
			require.True(t, p.final.Scratch.Doubtful(p.final.Head))
			if name == "auto" {
				require.Equal(t, "open", p.final.Proposal.State)
				return
			}
			require.Equal(t, loop.GateDiff, waits.Gate.Kind)
			require.Contains(t, waits.Gate.Points[0], "unproven: the guard command passed before, and fails from scratch (exit 1)")
			require.Contains(t, waits.Gate.Points[0], "The base fails from scratch as well")
			require.Equal(t, "ann", p.final.Proposal.By)
		})
	}
}

// scratchSteps returns the steps from scratch.
func scratchSteps(w *world) (all []string) {
	for _, s := range w.steps {
		if strings.Contains(s, " scratch-") {
			all = append(all, s)
		}
	}
	return all
}

// TestP5_ALoopThatEndsEarlyIsJudgedFromScratchToo: a budget or a failed agent ends the loop. What a person halts is
// proposed, and said not to have been judged.
func TestP5_ALoopThatEndsEarlyIsJudgedFromScratchToo(t *testing.T) {
	for name, c := range map[string]struct {
		third  try
		code   fault.Code
		halts  bool // a loop-stop file is there after the third iteration
		judged bool
	}{
		"a budget, within an iteration": {third: try{Exhausted: loop.ToolCalls}, code: fault.BudgetExhausted, judged: true},
		"a slow verify":                 {third: try{Says: "slow", Timeout: true}, code: fault.PhaseTimeout, judged: true},
		"the agent fails three times":   {third: try{Fails: true}, code: fault.AgentFailed, judged: true},
		"a person":                      {third: try{Says: "three", Metric: "9"}, code: fault.Cancelled, halts: true},
	} {
		t.Run(name, func(t *testing.T) {
			stop := func(n int) string {
				if c.halts && n == 3 {
					return "loop-stop"
				}
				return ""
			}
			w := newWorld(t, map[int][]try{1: twoKept[1], 2: twoKept[2], 3: {c.third}, 4: {c.third}, 5: {c.third}})
			w.onSettle = stop
			p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 9}}), nil)
			require.Equal(t, string(c.code), p.final.ErrorCode)
			require.NotNil(t, p.final.Proposal)
			require.Equal(t, p.final.Head, p.final.Scratch.Head)
			require.Equal(t, c.judged, p.final.Scratch.Passed)
			require.Equal(t, c.judged, p.final.Scratch.Judged)
			if !c.judged {
				require.Equal(t, "the loop ended first: loop-stop", p.final.Scratch.Reason)
			}

			w = newWorld(t, w.script)
			w.afresh = func(asked) try { return try{Crash: true} }
			w.onSettle = stop
			p = play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 9}}), nil)
			require.Equal(t, c.judged, p.final.Proposal == nil, "what fails from scratch is not proposed")
			require.Equal(t, c.judged, p.final.ErrorCode == string(fault.NotReproduced))
		})
	}
}

// TestP5_TheClaimIsMeasuredFromScratch: what several evaluations claim of a head that was judged from scratch comes from
// its own caches.
func TestP5_TheClaimIsMeasuredFromScratch(t *testing.T) {
	v := newVarying(t, .03, map[int]float64{1: .3, 2: .3})
	apart := 0
	v.spoil = func(in asked, _ *stepped) {
		if in.Key.Name == "claim" {
			require.True(t, in.Scratch)
			apart++
		}
	}
	p := play(t, v.world, noisy(2, nil, nil), nil)
	require.Nil(t, p.err)
	require.Equal(t, 2*p.result.Claim.Pairs, apart)
	require.NotZero(t, apart)
}

// TestP5_TimeIsKeptForJudgingFromScratch: iterations leave enough of the loop's time.
func TestP5_TimeIsKeptForJudgingFromScratch(t *testing.T) {
	w := newWorld(t, twoKept)
	w.slow = 30e9
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 100, "activeTime": "2m"}}), nil)
	require.Equal(t, string(fault.BudgetExhausted), p.final.ErrorCode)
	require.True(t, p.final.Scratch.Stands(p.final.Head))
}

// TestL7_WhatIsDeliveredWasJudgedFromScratch: a later iteration finds in caches what an earlier one wrote.
func TestL7_WhatIsDeliveredWasJudgedFromScratch(t *testing.T) {
	number := func(text string) stepped { d := metric.MustDecimal(text); return stepped{Metric: &d} }
	doc := map[string]any{"guard": map[string]any{"command": "check"}, "verify": map[string]any{"command": "measure", "target": 2}}
	d := deliver(t, map[string][]stepped{"verify": {number("1"), number("3")}})
	p := d.run(specOfDelivery(doc))
	require.Nil(t, p.err)
	require.Equal(t, []string{"2 guard", "2 test", "2 verify"}, d.scratched, "the first iteration was judged in its own caches")
	require.True(t, p.final.Scratch.Stands(p.final.Head))

	for step, why := range map[string]string{"guard": "the guard command passed before", "test": "the test command passed before", "verify": "the metric is 1, the target 2"} {
		fails := stepped{ExitCode: 1}
		if step == "verify" {
			fails = number("1")
		}
		d := deliver(t, map[string][]stepped{"verify": {number("1"), number("3")}, "scratch-" + step: {fails, fails, {Metric: number("3").Metric}}})
		p := d.run(specOfDelivery(doc))
		require.Nil(t, p.err)
		require.Contains(t, p.final.Iterations[1].Reason, why)
		require.False(t, p.final.Iterations[1].Kept)
		require.True(t, p.final.Iterations[2].Kept, "the writer hears of it, and the next iteration passes")
		require.Len(t, p.events(loop.ProposalMade), 1)
	}
}
