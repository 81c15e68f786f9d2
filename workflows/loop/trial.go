package loop

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
	"pawl/internal/spec/phase"
)

// tryCandidates judges the finished candidates one after the other, each at its own commit and against the head. It
// reports whether there was anything to try.
func (l *improve) tryCandidates(ctx workflow.Context) (tried bool, err error) {
	for _, c := range l.State().Candidates {
		if !c.Triable() || c.Base != l.State().Root() {
			continue
		}
		if err := l.waitIfPaused(ctx, loop.PauseIteration); err != nil {
			return true, err
		}
		if err := l.try(ctx, c); err != nil {
			return true, err
		}
		tried = true
	}
	return tried, nil
}

// try judges a candidate as the iteration that takes it would, and records the result. It keeps nothing.
func (l *improve) try(ctx workflow.Context, c loop.Candidate) error {
	side := l.aside(c)
	side.repeats = c.Again
	c.Trial = &loop.Trial{Base: l.State().Root()}
	side.candidate.Trial = c.Trial
	m, err := side.course(ctx)
	if err != nil {
		return err
	}
	t, iter := c.Trial, side.iteration
	t.Passed, t.Reason, t.Metrics, t.Evidence = m.Kept, m.Reason, iter.metrics, iter.evidence
	if !m.Kept {
		t.Note = iter.note
	}
	if l.State().Sampler != nil && t.Metric != nil {
		t.Samples = iter.samples
	}
	l.Emit(ctx, loop.Event{Type: loop.CandidateJudged, Metric: t.Metric, FailureReason: t.Reason, Candidate: &c})
	return nil
}

// course takes a candidate through the phases that judge a change, and returns the verdict.
func (l *improve) course(ctx workflow.Context) (rules.Move, error) {
	works := map[phase.Phase]work{phase.Verify: l.verify, phase.Guard: l.guard, phase.Decide: l.decide}
	m := rules.Move{Do: rules.Enter, To: phase.Verify}
	for {
		switch m.Do {
		case rules.Enter:
			l.iteration.phase, l.iteration.phaseSpent = m.To, 0
		case rules.Again:
		default:
			return m, nil
		}
		var err error
		if m, err = works[l.iteration.phase](ctx, m); err != nil {
			return m, err
		}
	}
}

// judgedBy records a command's result for the change. In a trial, the result goes to the candidate.
func (l *improve) judgedBy(ctx workflow.Context, step string, metric *metric.Decimal, j *loop.Judgement) {
	switch {
	case l.candidate == nil:
		l.Emit(ctx, loop.Event{Type: loop.ChangeJudged, Step: step, Metric: metric, Judgement: j})
	case step == "guard":
		l.candidate.Trial.Guard = j
	default:
		l.candidate.Trial.Verify, l.candidate.Trial.Metric = j, metric
	}
}

// trial returns the trial of the change under way. It returns nil if there was none, or if it was of another tree or
// against another head; then the change is judged again.
func (l *improve) trial() *loop.Trial {
	s := l.State()
	if candidate := s.Taken; l.candidate == nil && candidate != nil && candidate.Trial != nil && candidate.Trial.Base == s.Root() && candidate.Tree == l.iteration.tree {
		return candidate.Trial
	}
	return nil
}

// asTried returns the move that follows from verify's result in the trial.
func (l *improve) asTried(ctx workflow.Context, t loop.Trial) rules.Move {
	iter := &l.iteration
	iter.metric, iter.metrics, iter.samples, iter.evidence = t.Metric, t.Metrics, t.Samples, append(iter.evidence, t.Evidence...)
	iter.note = cmp.Or(t.Note, iter.note)
	l.judgedBy(ctx, "verify", t.Metric, l.now(*t.Verify))
	return l.law().AfterTrial(t)
}

// guardedAsTried returns the move that follows from the guard's result in the trial.
func (l *improve) guardedAsTried(ctx workflow.Context, j loop.Judgement) rules.Move {
	l.judgedBy(ctx, "guard", nil, l.now(j))
	l.iteration.flaky, l.iteration.vanished = j.Flaky, j.Vanished
	if l.iteration.passing = j.Passing; !j.Passed {
		l.iteration.shown = j.Log
	}
	return l.law().AfterGuard(l.tries(), j.Passed)
}

// sampledAsTried returns the move that follows from the trial's evaluations.
func (l *improve) sampledAsTried(ctx workflow.Context, j stats.Judgement) rules.Move {
	if !j.Final() { // the reference could not be measured any more
		return l.law().Sampled(stats.Judgement{Do: stats.Inconclusive})
	}
	return l.judged(ctx, j)
}

// now returns a judgement with the present iteration's number.
func (l *improve) now(j loop.Judgement) *loop.Judgement {
	j.Iteration = l.State().Iteration
	return &j
}
