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
	iter, law := &l.iteration, l.law()
	first, reference := *iter.metric, iter.metric.Sub(iter.delta)
	out, err := l.measureAfresh(ctx)
	if f := wire.Decode(err); f != nil && f.Code == fault.PreconditionFailed { // such as setup.command
		kept.Kept, kept.Reason, iter.note = false, reason.Inconclusive, "measured once more, in a fresh judge: "+f.What
		return kept, nil
	}
	if err != nil {
		return rules.Move{}, err
	}
	iter.evidence = append(iter.evidence, evidenceOf(out.Outcome)...)

	second := measurement(out)
	if cause := second.Reason(); cause != "" {
		iter.note = "measured once more, in a fresh judge: " + explain(cause, out)
		return law.AfterVerify(second), nil
	}
	kept.Kept, kept.Reason = false, reason.Inconclusive
	if !law.Agrees(reference, *out.Metric, second) {
		iter.note = fmt.Sprintf("%s, but %s when measured once more in a fresh judge", first, out.Metric)
		return kept, nil
	}
	if cause, sentence := law.Broken(l.State().BaselineMetrics, out.Metrics); cause != "" {
		kept.Reason, iter.note = cause, sentence
		return kept, nil
	}

	kept.Kept, kept.Reason = true, ""
	iter.note = fmt.Sprintf("suspicious: from %s to %s in one step", reference, first)
	m := law.AfterDoubt(kept, iter.passing > 0 || l.State().GuardRuns)
	if m.Do != rules.AskPerson {
		return m, nil
	}
	a, err := l.wait(ctx, loop.Gate{
		Kind: loop.GateQuestion, Choices: m.Choices, Answers: []string{loop.MessageAnswer},
		Summary: fmt.Sprintf("%s. Does it still do its work? %s (git show %s)", iter.note, loop.Clip(iter.description, 100), short(l.State().LastChange.Commit)),
	})
	if err != nil {
		return rules.Move{}, err
	}
	return law.AfterSuspect(kept, a.Choice, a.By), nil
}

// measureAfresh measures the change in a judge that is made anew, without what the loop has left in caches, or, on a
// machine that does not keep those apart, in a clean one.
func (l *improve) measureAfresh(ctx workflow.Context) (api.Measured, error) {
	input := l.newVerify()
	input.Key.Name, input.Form, input.Scratch = "verify-again", l.State().Form, true
	input.Alone = l.State().Judging != loop.JudgedExactly && !l.spec.Verify.Shares()
	out, err := l.measure(ctx, input)
	if err != nil || !out.Unlayered {
		return out, err
	}
	input = l.newVerify()
	input.Key.Name, input.Key.Sample, input.Form, input.Clean = "verify-again", 1, l.State().Form, true
	input.Alone = l.State().Judging != loop.JudgedExactly && !l.spec.Verify.Shares()
	return l.measure(ctx, input)
}
