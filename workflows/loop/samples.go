package loop

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
)

// failuresInARow is how often measuring the reference may fail before the loop continues without it.
const failuresInARow = 3

// evaluate measures once: the head, or a commit that stays on the branch. Each evaluation is a step of that name, so
// nothing is lost if the worker dies between two of them.
func (l *improve) evaluate(ctx workflow.Context, name, commit string) (api.Measured, error) {
	return l.evaluateIn(ctx, name, commit, l.State().Form)
}

func (l *improve) evaluateIn(ctx workflow.Context, name, commit string, form *metric.Form) (api.Measured, error) {
	s, iter := l.State(), &l.iteration
	input := l.newVerify()
	input.At, input.Key.Name, input.Key.Sample, input.Form = commit, name, iter.evaluations, form
	if c := l.candidate; c != nil && commit == "" {
		input.At, input.Trial = c.Commit, true
	}
	input.Unchanged = s.Baseline == nil
	input.Clean = s.Sampler != nil || s.Baseline == nil && iter.evaluations > 0
	input.Alone = s.Judging != loop.JudgedExactly && !l.spec.Verify.Shares()
	iter.evaluations++
	return l.measure(ctx, input)
}

// took records an evaluation, if several decide.
func (l *improve) took(ctx workflow.Context, step string, out api.Measured) {
	if l.State().Sampler != nil && out.Metric != nil {
		l.Emit(ctx, loop.Event{Type: loop.SampleTaken, Step: "verify", Of: step, Metric: out.Metric})
	}
}

// tookOf records an evaluation of the change.
func (l *improve) tookOf(ctx workflow.Context, out api.Measured) {
	l.took(ctx, stats.MeasureCandidate, out)
	l.iteration.metrics = l.iteration.metrics.With(out.Metrics)
}

// calibrated is the measured baseline: measured once, or as often as needed to know its noise.
type calibrated struct {
	judging string
	values  []metric.Decimal
	metrics metric.Averages
	form    *metric.Form
	spentMs int64
	took    []time.Duration
	// recalled is when `pawl validate` measured it, zero if the loop did.
	recalled time.Time
}

// calibrate measures the unchanged code until the rules can judge the metric, or returns why that failed.
func (l *improve) calibrate(first api.Measured, measure func(*metric.Form) (api.Measured, error)) (c calibrated, cause string, out api.Measured, err error) {
	for out = first; ; {
		if cause = measurement(out).Reason(); cause != "" {
			return c, cause, out, nil
		}
		c.values, c.metrics, c.form, c.spentMs = append(c.values, *out.Metric), c.metrics.With(out.Metrics), out.Form, c.spentMs+out.ElapsedMs
		c.took = append(c.took, time.Duration(out.ElapsedMs)*time.Millisecond)
		if c.recalled.IsZero() {
			c.recalled = out.Recalled
		}
		if c.judging = l.law().Judging(c.values); c.judging != "" {
			return c, "", out, nil
		}
		if out, err = measure(c.form); err != nil {
			return c, "", out, err
		}
	}
}

// printed returns the further metrics that every measurement had.
func (c calibrated) printed() map[string]metric.Decimal {
	values := c.metrics.Values()
	for name, average := range c.metrics {
		if average.N < len(c.values) {
			delete(values, name)
		}
	}
	return values
}

// noted records what the baseline shows, and what its noise means for the person who approves the contract.
func (l *improve) noted(ctx workflow.Context, c calibrated, judgement *loop.Judgement, tests int) {
	e := loop.Event{Type: loop.BaselineMeasured, Metric: &c.values[0], Judging: c.judging, Judgement: judgement, Tests: tests, Metrics: c.metrics.Values(), Form: c.form, Runs: l.guardRuns, Tested: l.guardTested}
	if l.rules >= 6 {
		e.MeasuredAt = c.recalled
	}
	var noise rules.Noisy
	if c.judging == loop.JudgedBySamples {
		sampler := stats.Start(l.law().Sampling(), c.values)
		judgement.DurationMs = c.spentMs / int64(len(c.values))
		noise = rules.Noise(sampler, l.spec, time.Duration(judgement.DurationMs)*time.Millisecond)
		e.Metric, e.Sampler, e.Note = new(sampler.Best()), &sampler, noise.Says
	}
	l.Emit(ctx, e)
	if took := time.Duration(judgement.DurationMs) * time.Millisecond; took >= rules.LongVerify {
		l.notes = append(l.notes, rules.Slow(l.spec.Verify.Command, took))
	}
	if cached := rules.Cached(c.form, c.values, c.took); cached != "" && l.rules >= 6 {
		l.noteForContract(ctx, "verify", cached)
	}
	for _, line := range noise.Warnings {
		l.noteForContract(ctx, "verify", line)
	}
}

// bySamples returns what the samples of the change show so far, nil if one measurement decides.
func (l *improve) bySamples() *stats.Judgement {
	s := l.State().Sampler
	if s == nil {
		return nil
	}
	l.iteration.samples = new(s.Next(l.law().Sampling()))
	return l.iteration.samples
}

// reference measures the reference of the change, again if that fails. It reports whether it succeeded.
func (l *improve) reference(ctx workflow.Context) (bool, error) {
	compared := l.State().Head
	if l.candidate == nil {
		compared = l.State().LastChange.Parent
	}
	for range failuresInARow {
		out, err := l.evaluate(ctx, "verify", compared)
		if err != nil {
			return false, err
		}
		cause := measurement(out).Reason()
		if cause == "" {
			l.took(ctx, stats.MeasureReference, out)
			return true, nil
		}
		l.Emit(ctx, loop.Event{Type: loop.Warned, Step: "verify", Reason: "the code that the change is compared with could not be measured: " + explain(cause, out)})
	}
	return false, nil
}

// judge evaluates change and reference in turn until one of the verdicts is shown.
func (l *improve) judge(ctx workflow.Context) (rules.Move, error) {
	for {
		j := l.bySamples()
		switch {
		case j.Final():
			return l.judged(ctx, *j), nil
		case j.Do == stats.MeasureReference:
			if measured, err := l.reference(ctx); err != nil || !measured {
				return l.law().Sampled(stats.Judgement{Do: stats.Inconclusive}), err
			}
			continue
		}
		out, err := l.evaluate(ctx, "verify", "")
		if err != nil {
			return rules.Move{}, err
		}
		v := measurement(out)
		if cause := v.Reason(); cause != "" {
			l.noteInstead(out)
			l.judgedBy(ctx, "verify", nil, l.measured(out, cause))
			return l.law().AfterVerify(v), nil
		}
		l.tookOf(ctx, out)
	}
}

// judged records a verdict by samples and decides by it.
func (l *improve) judged(ctx workflow.Context, j stats.Judgement) rules.Move {
	iter := &l.iteration
	iter.metric, iter.delta = &j.Mean, j.Mean.Sub(j.Reference)
	m := l.law().Sampled(j)
	if cause, sentence := l.law().Broken(l.State().BaselineMetrics, iter.metrics.Values()); m.Kept && cause != "" {
		m.Kept, m.Reason, iter.note = false, cause, sentence
	}
	last := l.State().LastVerify
	if l.candidate != nil {
		last = l.candidate.Trial.Verify
	}
	judgement := *last // of the last evaluation: its log shows one of them
	judgement.Passed, judgement.Reason, judgement.Metric, judgement.Samples = true, m.Reason, &j.Mean, &j
	l.judgedBy(ctx, "verify", &j.Mean, &judgement)
	return m
}

// refresh measures the head that was just kept: the samples that selected it are too good. They are of the same commit,
// so these steps have another name, by which a resumed run does not find the old results.
func (l *improve) refresh(ctx workflow.Context) error {
	for failures := 0; l.law().RefreshDue(l.State()); {
		out, err := l.evaluate(ctx, "head", l.State().Head)
		if err != nil {
			return err
		}
		cause := measurement(out).Reason()
		if cause == "" {
			failures = 0
			l.took(ctx, stats.MeasureReference, out)
			continue
		}
		if failures++; failures == failuresInARow {
			return unready("verify", l.spec.Verify.Command, explain(cause, out), out.Outcome, "Run it on the loop's branch: what was kept has to be measured again and again.")
		}
	}
	return nil
}

// claim measures baseline and head again and records how much better the head is.
func (l *improve) claim(ctx workflow.Context) error {
	if err := l.returnToHead(ctx, "the loop is over"); err != nil {
		return err
	}
	s, law := l.State(), l.law()
	if l.claimed || !law.ClaimDue(s) {
		return nil
	}
	l.claimed = true
	v, c := l.spec.Verify, loop.Claim{}
	if s.Sampler != nil {
		c.FalseKeeps = stats.FalseKeeps(s.Judgements())
	}
	switch {
	case s.KeptCount == 0:
		c.Claim = stats.Exact(v.Direction, *s.Baseline, *s.Baseline)
	case s.Judging == loop.JudgedExactly:
		c.Claim = stats.Exact(v.Direction, *s.Baseline, *s.Best)
	default:
		shown, err := l.claimBy(ctx, "claim", v.Command, s.Sampler)
		if err != nil || shown == nil {
			return err
		}
		c.Claim = *shown
	}
	if v.Holdout.Command != "" && s.KeptCount > 0 {
		var err error
		if c.Holdout, err = l.claimBy(ctx, "holdout", v.Holdout.Command, nil); err != nil {
			return err
		}
	}
	l.Emit(ctx, loop.Event{Type: loop.ClaimMade, Claim: &c})
	return nil
}

// late judges the head from scratch, and measures the claim, of a loop that ended within an iteration; the iteration is
// recorded first. Only a loop that a budget ended makes a claim.
func (l *improve) late(ctx workflow.Context, err error) error {
	s, ok := errors.AsType[*stopped](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	claims := s.end.Budget != "" && !l.claimed && l.law().ClaimDue(l.State())
	if !claims && (l.State().HaltRequested != "" || !l.host.IsOpen() || !l.scratchDue()) {
		return err
	}
	if failed := l.cutShort(ctx, s.end); failed != nil {
		return failed
	}
	if failed := l.reproduce(ctx); failed != nil || !claims {
		return cmp.Or(failed, err)
	}
	return cmp.Or(l.claim(ctx), err)
}

// reserve returns how much active time is kept for measurements after the last iteration, in milliseconds.
func (l *improve) reserve() int64 {
	if l.claimed || l.over {
		return 0
	}
	return l.law().Reserve(l.State())
}

// claimBy evaluates baseline and head in turn by a command, whose noise is known if it has a sampler. It returns what they
// show: nil, with a warning, if one can't be measured or the time is used up.
func (l *improve) claimBy(ctx workflow.Context, name, command string, sampler *stats.Sampler) (*stats.Claim, error) {
	var pairs stats.Pairs
	var form *metric.Form
	if command == l.spec.Verify.Command {
		form = l.State().Form
	}
	lacks := func(cause string) (*stats.Claim, error) {
		l.Emit(ctx, loop.Event{Type: loop.Warned, Step: name, Reason: "nothing is claimed by " + name + ": " + cause})
		return nil, nil
	}
	for sample := 0; ; sample++ {
		arm := pairs.Next(0)
		if arm == "" {
			scale, noise := stats.ScaleOf(l.spec.Verify.Direction, append(pairs.Baseline, pairs.Head...)...), stats.Noise{}
			if sampler != nil {
				scale, noise = sampler.Scale, sampler.Noise
			}
			return new(stats.ClaimOf(scale, noise, l.law().Sampling(), pairs)), nil
		}
		if spent := rules.StepExhausted(l.State(), false); spent != "" {
			return lacks(fmt.Sprintf("the budget %s is used up", spent))
		}
		input := l.newVerify()
		input.Command, input.Key.Name, input.Key.Sample, input.Form = command, name, sample, form
		input.At, input.Clean, input.Alone = l.State().Head, true, !l.spec.Verify.Shares()
		if arm == stats.Baseline {
			input.At = l.State().Base
		}
		input.Scratch = l.State().Scratch.Stands(l.State().Head)
		out, err := l.measure(ctx, input)
		if err != nil {
			return nil, err
		}
		if cause := measurement(out).Reason(); cause != "" {
			return lacks("the " + arm + " can't be measured: " + explain(cause, out))
		}
		pairs.Add(arm, *out.Metric)
		form = out.Form
		if command == l.spec.Verify.Command {
			l.took(ctx, arm, out)
		}
	}
}
