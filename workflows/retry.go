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
// passes twice; flaky is what had failed. inTime reports whether that many milliseconds are left. Every run is a step of its
// own, which begin gets first.
func (r *run) guarded(ctx workflow.Context, law guardLaw, inTime func(ms int64) bool, begin ...func(*act.Step)) (out act.Outcome, flaky []string, err error) {
	if out, err = r.runGuard(ctx, begin...); err != nil {
		return out, nil, err
	}
	it, first := &r.iteration, out
	for retried := 0; !out.OK(); retried++ {
		f := govern.GuardFailure{
			Retried: retried, Failing: out.Failing, Before: it.guardFailed, Files: it.files,
			Final: out.TimedOut || len(out.Altered) > 0, InTime: inTime(2 * first.ElapsedMs),
		}
		if !law.RetriesGuard(f) {
			break
		}
		for n := range 2 {
			it.evidence = append(it.evidence, evidenceOf(out)...)
			if out, err = r.runGuard(ctx, append(slices.Clip(begin), guardAgain(2*retried+n+1))...); err != nil {
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

// guardLaw decides whether a guard that failed is run again.
type guardLaw interface {
	RetriesGuard(f govern.GuardFailure) bool
}

// guardAgain makes a step of the guard its n-th repetition.
func guardAgain(n int) func(*act.Step) {
	return func(s *act.Step) { s.Key.Name, s.Key.Sample = s.Key.Name+"-again", s.Key.Sample*10+n }
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
