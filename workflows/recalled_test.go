package workflows_test

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
