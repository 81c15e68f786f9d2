package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
)

// unset makes setup.command fail before these runs of a step, each counted from 1. It counts the runs.
func unset(w *world, name string, iteration int, failing func(n int) bool) *int {
	step, n := w.step, 0
	w.stepping = func(ctx context.Context, in asked) (stepped, error) {
		if in.Key.Name != name || in.Key.Iteration != iteration {
			return step(ctx, in)
		}
		w.mu.Lock()
		n++
		fails := failing(n)
		w.mu.Unlock()
		if fails {
			f := fault.New(fault.PreconditionFailed, "the setup command fails (exit 1): `npm ci`\nECONNRESET").Advise("Run it.").In(fault.Setup)
			return stepped{}, wire.Encode(f, nil)
		}
		return step(ctx, in)
	}
	return &n
}

func upTo(last int) func(int) bool { return func(n int) bool { return n <= last } }

// TestP0_ASetupThatFailsForAMomentEndsNothing: a setup that passed before in the loop runs again after 30 s and 2 m.
func TestP0_ASetupThatFailsForAMomentEndsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		step      string
		iteration int
		fails     int
		slept     time.Duration
	}{
		"in the judge":           {"verify", 2, 1, 30 * time.Second},
		"in the judge, twice":    {"verify", 2, 2, 150 * time.Second},
		"right after the answer": {"modify", 1, 1, 30 * time.Second},
		"at the start, once":     {"verify", 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoKept)
			runs := unset(w, c.step, c.iteration, upTo(c.fails))
			limits := map[string]any{"iterations": 2, "phaseTimeout": "1m", "activeTime": "10m"}
			p := play(t, w, specOf(map[string]any{"limits": limits}), nil)
			require.Nil(t, p.err)
			require.Equal(t, []string{"1 yes 11", "2 yes 12"}, p.course())
			require.Equal(t, c.fails+1, *runs)
			slept := time.Duration(0)
			for _, e := range p.events(loop.SleepBegun) {
				slept += e.Sleep.Until.Sub(e.Sleep.Since)
				require.Equal(t, "setup", e.Step)
				require.Equal(t, "the setup command fails (exit 1): `npm ci` (ECONNRESET)", e.Reason)
			}
			require.Equal(t, c.slept, slept)
			require.Len(t, p.events(loop.SleepEnded), len(p.events(loop.SleepBegun)))
		})
	}
}

func TestP0_ASetupThatFailsTwiceAtTheStartIsRefused(t *testing.T) {
	w := newWorld(t, twoKept)
	runs := unset(w, "verify", 0, upTo(9))
	p := play(t, w, specOf(nil), nil)
	require.Equal(t, string(fault.PreconditionFailed), p.err.Type())
	require.Equal(t, 2, *runs)
	require.Empty(t, p.events(loop.SleepBegun))
}

// TestP0_ASetupThatKeepsFailingAsksAPerson: the loop is still there in the morning.
func TestP0_ASetupThatKeepsFailingAsksAPerson(t *testing.T) {
	for choice, code := range map[string]string{"retry": "", "halt": string(fault.Cancelled)} {
		t.Run(choice, func(t *testing.T) {
			var asked loop.State
			w := newWorld(t, twoKept)
			runs := unset(w, "verify", 2, upTo(4))
			p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 2}}), func(env *testsuite.TestWorkflowEnvironment) {
				at(t, env, 8*time.Hour, func(s loop.State) {
					asked = s
					env.SignalWorkflow("answer", map[string]any{"choice": choice, "by": "ada"})
				})
			})
			require.Equal(t, loop.GateQuestion, asked.Gate.Kind)
			require.Equal(t, []string{"retry", "halt"}, asked.Gate.Choices)
			require.Contains(t, asked.Gate.Summary, "the setup command fails (exit 1): `npm ci` (ECONNRESET), 3 times in a row")
			require.Equal(t, code, p.final.ErrorCode)
			if choice == "retry" {
				require.Equal(t, 5, *runs, "it has its pauses again")
				require.Equal(t, []string{"1 yes 11", "2 yes 12"}, p.course())
			}
		})
	}
}

// TestP0_CandidatesWaitForSetup: setup fails on the desk of one candidate of several.
func TestP0_CandidatesWaitForSetup(t *testing.T) {
	w := newWorld(t, twoKept)
	runs := unset(w, "modify", 2, upTo(2))
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 2, "parallel": 2}}), nil)
	require.Nil(t, p.err)
	require.Equal(t, 3, *runs)
	require.Len(t, p.events(loop.SleepBegun), 2)
	require.Equal(t, 2, p.final.Iteration)
}
