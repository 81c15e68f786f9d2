package loop_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
)

// TestP55_AFlakyGuardIsNotAFailedOne: a guard that failed runs again on the same tree, and passes if it passes twice.
func TestP55_AFlakyGuardIsNotAFailedOne(t *testing.T) {
	broken, touched := &api.Failing{Broken: true}, &api.Failing{Units: []string{"a.go"}}
	for name, c := range map[string]struct {
		fails   []bool // each run of the guard on the first change
		failing *api.Failing
		spec    map[string]any
		course  string
		runs    int
	}{
		"it passes":                       {fails: []bool{false}, course: "1 yes 11", runs: 1},
		"it fails once":                   {fails: []bool{true, false, false}, course: "1 yes 11", runs: 3},
		"it fails twice":                  {fails: []bool{true, true, true}, course: "1 no 10 guard-fail", runs: 2},
		"it fails, passes, fails":         {fails: []bool{true, false, true}, course: "1 no 10 guard-fail", runs: 3},
		"it fails, as the source has it":  {fails: []bool{true}, spec: map[string]any{"retries": 0}, course: "1 no 10 guard-fail", runs: 1},
		"it can't be built":               {fails: []bool{true}, failing: broken, course: "1 no 10 guard-fail", runs: 1},
		"a test that the change touched":  {fails: []bool{true}, failing: touched, course: "1 no 10 guard-fail", runs: 1},
		"it passes twice at a second try": {fails: []bool{true, true, false, false}, spec: map[string]any{"retries": 2}, course: "1 yes 11", runs: 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[int][]try{1: {{Says: "one", Metric: "11"}}})
			step, runs := w.step, 0
			w.stepping = func(ctx context.Context, in asked) (stepped, error) {
				out, err := step(ctx, in)
				if in.Key.Iteration == 1 && strings.HasPrefix(in.Key.Name, "guard") {
					if c.fails[min(runs, len(c.fails)-1)] {
						out.ExitCode, out.Failing = 1, c.failing
					}
					runs++
				}
				return out, err
			}
			guard := map[string]any{"command": "check"}
			for k, v := range c.spec {
				guard[k] = v
			}
			p := play(t, w, specOf(map[string]any{"guard": guard, "limits": map[string]any{"iterations": 1, "reworks": 0}}), nil)
			require.Nil(t, p.err)
			require.Equal(t, []string{c.course}, p.course())
			require.Equal(t, c.runs, runs)

			ended := slices.DeleteFunc(p.events(loop.StepEnded), func(e loop.Event) bool { return !strings.HasPrefix(e.Step, "guard") })
			require.Len(t, ended, c.runs+1, "each run is recorded, and that of the baseline")
			flaky := c.runs > 2 && strings.Contains(c.course, "yes")
			record := p.final.Iterations[0]
			require.Equal(t, flaky, len(record.Flaky) > 0)
			require.Equal(t, flaky, strings.Contains(record.Note, "flaky guard: it failed and then passed twice on the same tree"))
			require.Empty(t, p.events(loop.RepairAttempted), "it uses no rework")
		})
	}
}

// TestL_ADeliverysFlakyGuardIsNotAFailedOne: the guard gate of a delivery is as patient as a metric loop's guard.
func TestL_ADeliverysFlakyGuardIsNotAFailedOne(t *testing.T) {
	names := stepped{ExitCode: 1, Failing: &api.Failing{Signature: "s", Names: []string{"TestA"}}}
	for name, c := range map[string]struct {
		outs  map[string][]stepped
		guard map[string]any
		ran   string
		flaky []string
	}{
		"it fails once": {
			outs: map[string][]stepped{"guard": {names}},
			ran:  "writer commit guard guard-again guard-again test", flaky: []string{"TestA"},
		},
		"it fails, passes, fails": {
			outs: map[string][]stepped{"guard": {exit1, {}}, "guard-again": {{}, exit1}},
			ran:  "writer commit guard guard-again guard-again writer commit guard test",
		},
		"it fails in the same way after the rework": {
			outs: map[string][]stepped{"guard": {names, names, {}}, "guard-again": {names}},
			ran:  "writer commit guard guard-again writer commit guard writer commit guard test",
		},
		"it can't be built": {
			outs: map[string][]stepped{"guard": {{ExitCode: 1, Failing: &api.Failing{Broken: true}}, {}}},
			ran:  "writer commit guard writer commit guard test",
		},
		"it hangs": {
			outs: map[string][]stepped{"guard": {{ExitCode: -1, TimedOut: true}, {}}},
			ran:  "writer commit guard writer commit guard test",
		},
		"as the source has it": {
			outs: map[string][]stepped{"guard": {names, {}}}, guard: map[string]any{"retries": 0},
			ran: "writer commit guard writer commit guard test",
		},
	} {
		t.Run(name, func(t *testing.T) {
			guard := map[string]any{"command": "lint"}
			for k, v := range c.guard {
				guard[k] = v
			}
			d := deliver(t, c.outs)
			p := d.run(specOfDelivery(map[string]any{"guard": guard}))
			require.Nil(t, p.err)
			require.Equal(t, c.ran, strings.Join(d.ran, " "))
			var flaky []string
			for _, e := range p.events(loop.ChangeJudged) {
				flaky = append(flaky, e.Judgement.Flaky...)
			}
			require.Equal(t, c.flaky, flaky)
			require.Equal(t, c.flaky, p.final.Iterations[0].Flaky)
			require.Equal(t, c.flaky != nil, strings.Contains(p.final.Iterations[0].Note, "flaky guard"))
		})
	}
}

// TestP55_AGuardIsFlakyOnTheUnchangedCodeToo: a loop starts if its guard passes twice after it failed, and the contract
// says so. A guard that fails every time, or that lacks a program, refuses the start.
func TestP55_AGuardIsFlakyOnTheUnchangedCodeToo(t *testing.T) {
	names := stepped{ExitCode: 1, Failing: &api.Failing{Names: []string{"TestA"}}}
	for name, c := range map[string]struct {
		outs    []stepped // of each run of the guard on the unchanged code
		retries int
		version workflow.Version
		runs    int
		flaky   []string
		refused string
	}{
		"it passes":                     {outs: []stepped{{}}, retries: 1, runs: 1},
		"it fails once":                 {outs: []stepped{names, {}, {}}, retries: 1, runs: 3, flaky: []string{"TestA"}},
		"it fails once and names none":  {outs: []stepped{exit1, {}, {}}, retries: 1, runs: 3, flaky: []string{rules.Unnamed}},
		"it fails twice, then it holds": {outs: []stepped{names, names, {}, {}}, retries: 2, runs: 4, flaky: []string{"TestA"}},
		"it fails every time":           {outs: []stepped{names}, retries: 1, runs: 2, refused: "the guard command fails on the unchanged code (exit 1)"},
		"it fails, passes, fails":       {outs: []stepped{names, {}, names}, retries: 1, runs: 3, refused: "(exit 1)"},
		"as the source has it":          {outs: []stepped{names, {}, {}}, runs: 1, refused: "(exit 1)"},
		"it can't be built":             {outs: []stepped{{ExitCode: 1, Failing: &api.Failing{Broken: true}}, {}, {}}, retries: 1, runs: 1, refused: "(exit 1)"},
		"its program is missing":        {outs: []stepped{{ExitCode: 127}, {}, {}}, retries: 1, runs: 1, refused: "(exit 127)"},
		"it is no program":              {outs: []stepped{{ExitCode: 126}, {}, {}}, retries: 1, runs: 1, refused: "(exit 126)"},
		"it hangs":                      {outs: []stepped{{ExitCode: -1, TimedOut: true}, {}, {}}, retries: 1, runs: 1, refused: "guard command fails on the unchanged code"},
		"it changes the code":           {outs: []stepped{{ExitCode: 1, Altered: []string{"a.go"}}, {}, {}}, retries: 1, runs: 1, refused: "guard command fails on the unchanged code"},
		"a loop of older rules":         {outs: []stepped{names, {}, {}}, retries: 1, version: 6, runs: 1, refused: "(exit 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[int][]try{1: {{Says: "one", Metric: "11"}}})
			step, runs := w.step, 0
			w.stepping = func(ctx context.Context, in asked) (stepped, error) {
				if in.Key.Iteration != 0 || !strings.HasPrefix(in.Key.Name, "guard") {
					return step(ctx, in)
				}
				out := c.outs[min(runs, len(c.outs)-1)]
				out.ElapsedMs, out.Log, out.Digest = 100, "/log", "feedface"
				if runs++; out.ExitCode == 0 && !out.TimedOut {
					out.Tested = &loop.Tested{Format: "go test", Passed: 3}
				}
				return out, nil
			}
			guard := map[string]any{"command": "check", "retries": c.retries}
			p := play(t, w, specOf(map[string]any{"guard": guard, "limits": map[string]any{"iterations": 1}}), func(env *testsuite.TestWorkflowEnvironment) {
				if c.version != 0 {
					gives(env, c.version)
				}
			})
			require.Equal(t, c.runs, runs)
			if c.refused != "" {
				require.Equal(t, loop.Failed, p.final.Status)
				require.Contains(t, p.final.Reason, c.refused)
				return
			}
			require.Nil(t, p.err)
			require.Equal(t, []string{"1 yes 11"}, p.course())
			require.Equal(t, c.flaky, p.final.Tested.Flaky)
		})
	}
}

// TestL_ADeliverysGuardIsFlakyOnTheUnchangedCodeToo: it is a warning only if it fails every time.
func TestL_ADeliverysGuardIsFlakyOnTheUnchangedCodeToo(t *testing.T) {
	for name, c := range map[string]struct {
		again  []stepped
		warned int
		flaky  []string
	}{
		"it fails once":       {again: []stepped{{Tested: &loop.Tested{Format: "tap", Passed: 1}}}, flaky: []string{rules.Unnamed}},
		"it fails every time": {again: []stepped{exit1}, warned: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := deliver(t, map[string][]stepped{"unchanged guard": {exit1}, "unchanged guard-again": c.again})
			p := d.run(specOfDelivery(map[string]any{"guard": map[string]any{"command": "lint"}}))
			require.Nil(t, p.err)
			require.Len(t, p.events(loop.Warned), c.warned)
			var flaky []string
			if p.final.Tested != nil {
				flaky = p.final.Tested.Flaky
			}
			require.Equal(t, c.flaky, flaky)
		})
	}
}
