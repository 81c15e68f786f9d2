package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/govern"
	"pawl/internal/loop"
)

// guarded runs the guard on the change, and runs it again if it failed (guard.retries). It counts as passed then only if it
// passes twice; flaky is what had failed. Every run is a step of its own.
func (l *improve) guarded(ctx workflow.Context) (out act.Outcome, flaky []string, err error) {
	if out, err = l.runGuard(ctx); err != nil {
		return out, nil, err
	}
	it, first := &l.iteration, out
	for retried := 0; !out.OK(); retried++ {
		f := govern.GuardFailure{
			Retried: retried, Failing: out.Failing, Before: it.guardFailed, Files: it.files,
			Final: out.TimedOut || len(out.Altered) > 0, InTime: l.timeFor(ctx, 2*first.ElapsedMs),
		}
		if !l.law().RetriesGuard(f) {
			break
		}
		for n := range 2 {
			it.evidence = append(it.evidence, evidenceOf(out)...)
			if out, err = l.guardAgain(ctx, 2*retried+n+1); err != nil {
				return out, nil, err
			}
			if !out.OK() {
				break
			}
		}
	}
	if !out.OK() || first.OK() {
		if of := out.Failing; of != nil {
			it.guardFailed = of.Signature
		}
		return out, nil, nil
	}
	if flaky = []string{unnamed}; first.Failing != nil && len(first.Failing.Names) > 0 {
		flaky = first.Failing.Names
	}
	return out, flaky, nil
}

// guardAgain runs the guard for the n-th time again.
func (l *improve) guardAgain(ctx workflow.Context, n int) (act.Outcome, error) {
	return l.runGuard(ctx, func(s *act.Step) { s.Key.Name, s.Key.Sample = s.Key.Name+"-again", s.Key.Sample*10+n })
}

// timeFor reports whether the loop's time suffices for that many milliseconds more.
func (r *run) timeFor(ctx workflow.Context, ms int64) bool {
	budget := r.free(r.State()).Clocked(workflow.Now(ctx))
	return !slices.ContainsFunc([]loop.Resource{loop.ActiveTime, loop.WallClock}, func(of loop.Resource) bool {
		remaining := budget[of].Remaining
		return remaining != nil && int64(remaining.Float()) < ms
	})
}

// flakyNote says what failed in the guard and then did not.
func flakyNote(flaky []string) string {
	if len(flaky) == 0 {
		return ""
	}
	return "flaky guard: it failed and then passed twice on the same tree (" + loop.Clip(strings.Join(flaky, ", "), 300) + ")"
}
