package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
)

// TestABaselineOfValidateIsRecordedWithItsTime, and costs the loop no time.
func TestABaselineOfValidateIsRecordedWithItsTime(t *testing.T) {
	when := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	for name, recalled := range map[string]time.Time{"of validate": when, "of the loop": {}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.stepping = func(ctx context.Context, in asked) (stepped, error) {
				out, err := w.step(ctx, in)
				if in.Key.Iteration == 0 {
					out.ElapsedMs, out.Recalled = 5000, recalled
				}
				return out, err
			}
			p := play(t, w, specOf(nil), nil)
			require.Equal(t, recalled, p.final.MeasuredAt)
			measured := false
			for _, e := range p.ledger {
				if e.Type == loop.BaselineMeasured {
					measured = true
					require.Equal(t, recalled, e.MeasuredAt)
				}
				if e.Type == loop.StepEnded && e.Iteration == 0 && e.Usage != nil {
					require.Equal(t, recalled.IsZero(), e.Usage.ActiveMs == 5000, e.Step)
				}
			}
			require.True(t, measured)
		})
	}
}

// TestTheTestsOfValidateAreRecordedWithTheirTime, for a delivery.
func TestTheTestsOfValidateAreRecordedWithTheirTime(t *testing.T) {
	when := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	d := deliver(t, map[string][]stepped{"baseline": {{Recalled: when}}})
	p := d.run(specOfDelivery(nil))
	require.Nil(t, p.err)
	require.Equal(t, when, p.final.MeasuredAt)
}

// TestTheGuardOfValidateIsRecordedWithItsTime, for a delivery whose tests are not required.
func TestTheGuardOfValidateIsRecordedWithItsTime(t *testing.T) {
	when := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	tested := &loop.Tested{Passed: 7}
	d := deliver(t, map[string][]stepped{"unchanged guard": {{Recalled: when, Tested: tested}}})
	p := d.run(specOfDelivery(map[string]any{
		"test": map[string]any{"required": false}, "verify": map[string]any{"command": "v"}, "guard": map[string]any{"command": "g"},
	}))
	require.Nil(t, p.err)
	require.Equal(t, when, p.final.MeasuredAt)
	require.NotNil(t, p.final.Tested)
	require.Equal(t, 7, p.final.Tested.Passed)
	require.Nil(t, p.final.KnownTests)
}

// TestADeliveryWhoseCommandLacksAProgramIsRefused, before an agent is called: no change is meant to mend that.
func TestADeliveryWhoseCommandLacksAProgramIsRefused(t *testing.T) {
	for _, name := range []string{"baseline", "unchanged guard", "unchanged check"} {
		d := deliver(t, map[string][]stepped{name: {{ExitCode: 127}}})
		commands := map[string]any{"guard": map[string]any{"command": "g"}, "check": map[string]any{"command": "c"}}
		p := d.run(specOfDelivery(commands))
		require.Equal(t, loop.Failed, p.final.Status, name)
		require.Contains(t, p.final.Reason, "(exit 127)", name)
		require.Empty(t, d.ran, name)
	}
}
