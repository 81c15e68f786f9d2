package loop

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
)

// guarded runs the guard on the change, and runs it again if it failed (guard.retries). It counts as passed then only if it
// passes twice; flaky is what had failed. inTime reports whether that many milliseconds are left. Every run is a step of its
// own, which begin gets first.
func (r *run) guarded(ctx workflow.Context, law guardLaw, inTime func(ms int64) bool, begin ...func(*api.Step)) (out api.Outcome, flaky []string, err error) {
	first, err := r.runGuard(ctx, begin...)
	if err != nil {
		return first, nil, err
	}
	iter := &r.iteration
	retries := func(retried int, last api.Outcome) bool {
		return law.RetriesGuard(rules.GuardFailure{
			Retried: retried, Failing: last.Failing, Before: iter.guardFailed, Files: iter.files,
			Final: r.final(last), InTime: inTime(2 * first.ElapsedMs),
		})
	}
	rerun := func(n int, previous api.Outcome) (api.Outcome, error) {
		iter.evidence = append(iter.evidence, evidenceOf(previous)...)
		return r.runGuard(ctx, append(slices.Clip(begin), guardAgain(n))...)
	}
	out, flaky, err = rules.RunAgain(first, retries, rerun)
	if err == nil && !out.OK() && out.Failing != nil {
		iter.guardFailed = out.Failing.Signature
	}
	return out, flaky, err
}

// final reports whether a failure of the guard is no matter of chance.
func (r *run) final(guard api.Outcome) bool {
	missing := guard.Missing() && rules.RetriesUnchanged(int(r.rules))
	return guard.TimedOut || len(guard.Altered) > 0 || missing
}

// guardUnchanged runs the guard on the unchanged code, and again if it failed there.
func (r *run) guardUnchanged(ctx workflow.Context, law guardLaw, inTime func(ms int64) bool, begin ...func(*api.Step)) (out api.Outcome, err error) {
	var flaky []string
	if rules.RetriesUnchanged(int(r.rules)) {
		out, flaky, err = r.guarded(ctx, law, inTime, begin...)
	} else {
		out, err = r.runGuard(ctx, begin...)
	}
	if out.Tested != nil {
		out.Tested.Flaky = flaky
	}
	return out, err
}

// guardLaw decides whether a guard that failed is run again.
type guardLaw interface {
	RetriesGuard(f rules.GuardFailure) bool
}

// guardAgain makes a step of the guard its n-th repetition.
func guardAgain(n int) func(*api.Step) {
	return func(s *api.Step) { s.Key.Name, s.Key.Sample = s.Key.Name+"-again", s.Key.Sample*10+n }
}

// timeFor reports whether the loop's time suffices for that many milliseconds more.
func (r *run) timeFor(ctx workflow.Context, ms int64) bool {
	budget := r.free(r.State()).Clocked(workflow.Now(ctx))
	return !slices.ContainsFunc([]loop.Resource{loop.ActiveTime, loop.WallClock}, func(resource loop.Resource) bool {
		remaining := budget[resource].Remaining
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
