package preflight

import (
	"context"
	"slices"
	"time"

	"pawl/activities/baseline"
	"pawl/activities/command"
	"pawl/activities/workspace"
	"pawl/internal/home"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
)

// ran notes a step that a loop would run in the same way.
func (f *Findings) ran(w *command.Work, result interface{ Core() *api.Outcome }) {
	f.steps = append(f.steps, baseline.Step{Key: w.In.Key, Dir: w.Dir, Result: result})
	o := result.Core()
	if o.Warning != "" || o.Stop != "" || o.Interrupted || len(o.Altered) > 0 {
		f.unsure = true
	}
	mayFail := slices.Contains([]string{"test", "guard", guardAgain}, w.In.Key.Name) // in a delivery, whose task that may be
	knownToFail := mayFail && o.ExitCode > 0 && !o.Missing()
	if w.In.Key.Name != command.CanaryStep && !o.OK() && !knownToFail {
		f.unsure = true
	}
}

// measureAlone measures as a loop would: while no loop of this host measures. It does not wait for one that does. What
// was measured beside one is not kept.
func (f *Findings) measureAlone(
	ws *workspace.Workspace, s spec.Spec, measure func() (api.Measured, error),
) (api.Measured, error) {
	if s.Verify.Shares() {
		return measure()
	}
	slot, err := durable.TryLock(ws.Machine.Main.JudgeSlot())
	if err != nil {
		f.unsure = true
		return measure()
	}
	defer slot.Close()
	return measure()
}

// keep keeps what was measured for a loop of this contract, if it is sure. A failure costs only that the loop measures by
// itself.
func (f *Findings) keep(ctx context.Context, h home.Home, ws *workspace.Workspace, s spec.Spec, contract ledger.Contract) {
	if f.unsure || len(f.Problems) > 0 || len(f.steps) == 0 {
		return
	}
	if safe, err := baseline.Safe(ws, s); err != nil || !safe {
		return
	}
	key, err := baseline.KeyOf(ws, contract)
	if err != nil || ctx.Err() != nil {
		return
	}
	_ = baseline.Keep(h, key, time.Now(), f.steps)
}
