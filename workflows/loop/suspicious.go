package loop

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric/reason"
)

// doubt measures a change once more that improves too much to be believed at once (verify.suspicious), and then keeps
// and marks it, sets it aside, or asks a person.
func (l *improve) doubt(ctx workflow.Context, kept rules.Move) (rules.Move, error) {
	it, law := &l.iteration, l.law()
	first, reference := *it.metric, it.metric.Sub(it.delta)
	out, err := l.measureAfresh(ctx)
	if f := wire.Decode(err); f != nil && f.Code == fault.PreconditionFailed { // such as setup.command
		kept.Kept, kept.Reason, it.note = false, reason.Inconclusive, "measured once more, in a fresh judge: "+f.What
		return kept, nil
	}
	if err != nil {
		return rules.Move{}, err
	}
	it.evidence = append(it.evidence, evidenceOf(out.Outcome)...)

	again := measurement(out)
	if why := again.Reason(); why != "" {
		it.note = "measured once more, in a fresh judge: " + explain(why, out)
		return law.AfterVerify(again), nil
	}
	kept.Kept, kept.Reason = false, reason.Inconclusive
	if !law.Agrees(reference, *out.Metric, again) {
		it.note = fmt.Sprintf("%s, but %s when measured once more in a fresh judge", first, out.Metric)
		return kept, nil
	}
	if why, sentence := law.Broken(l.State().BaselineMetrics, out.Metrics); why != "" {
		kept.Reason, it.note = why, sentence
		return kept, nil
	}

	kept.Kept, kept.Reason = true, ""
	it.note = fmt.Sprintf("suspicious: from %s to %s in one step", reference, first)
	m := law.AfterDoubt(kept, it.passing > 0 || l.State().GuardRuns)
	if m.Do != rules.AskPerson {
		return m, nil
	}
	a, err := l.wait(ctx, loop.Gate{
		Kind: loop.GateQuestion, Choices: m.Choices, Answers: []string{loop.MessageAnswer},
		Summary: fmt.Sprintf("%s. Does it still do its work? %s (git show %s)", it.note, loop.Clip(it.description, 100), short(l.State().LastChange.Commit)),
	})
	if err != nil {
		return rules.Move{}, err
	}
	return law.AfterSuspect(kept, a.Choice, a.By), nil
}

// measureAfresh measures the change in a judge that is made anew, without what the loop has left in caches, or, on a
// machine that does not keep those apart, in a clean one.
func (l *improve) measureAfresh(ctx workflow.Context) (api.Measured, error) {
	in := l.newVerify()
	in.Key.Name, in.Form, in.Scratch = "verify-again", l.State().Form, true
	in.Alone = l.State().Judging != loop.JudgedExactly && !l.spec.Verify.Shares()
	out, err := l.measure(ctx, in)
	if err != nil || !out.Unlayered {
		return out, err
	}
	in = l.newVerify()
	in.Key.Name, in.Key.Sample, in.Form, in.Clean = "verify-again", 1, l.State().Form, true
	in.Alone = l.State().Judging != loop.JudgedExactly && !l.spec.Verify.Shares()
	return l.measure(ctx, in)
}
