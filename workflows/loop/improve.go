// Package loop has the loops as Temporal workflows. From the outside in: main.go is the main line of every loop.
// iteration.go adds a checkpoint, a budget and a record to each attempt at a change. step.go adds a permission, a
// limit and an interrupt to each command or agent call. improve.go and deliver.go do the work of their phases and
// pass the results to their rules. Pure packages decide (rules, phase, metric); activities touch the world.
// Journal, gates and placement are packages of their own. Start at Improve.
package loop

import (
	"cmp"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/metric/stats"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

// ByKind are the workflow functions of loops, by the name of their kind.
var ByKind = map[string]any{kind.Improve.Name: Improve, kind.Deliver.Name: Deliver}

// Improve runs the metric protocol (P): one change, commit, measure, keep or revert, again. Its input is the spec as
// one JSON object. The optional second argument starts the loop from a ledger. If the loop fails, the workflow fails
// with the error code as the failure's type. Every other end returns a loop.Result.
func Improve(ctx workflow.Context, input converter.RawValue, resume Resume) (*loop.Result, error) {
	r, err := setup(ctx, kind.Improve, input, resume)
	if err != nil {
		return nil, err
	}
	l := &improve{run: r}
	r.reserve = l.reserve
	return r.finish(ctx, l.late(ctx, r.main(ctx, l)))
}

// improve is the work of the metric protocol's phases.
type improve struct {
	*run
	claimed bool // the claim was measured, or the attempt was made
	over    bool // the loop is over, and the reserve may be spent
}

func (l *improve) law() rules.Improve {
	law := rules.ImproveOf(l.spec, int(l.rules))
	law.Marked = rules.Marked(l.State())
	return law
}

func (l *improve) decisions() loopRules { return l.law() }

func (l *improve) begin([]loop.Event) {}

// again continues with the attempt under way, whose steps are on disk. A commit that nobody judged is measured.
func (l *improve) again(s loop.State) (phase.Phase, bool) {
	switch {
	case s.Taken != nil && s.Taken.Lies: // on a desk that is gone
		return phase.None, false
	case s.Unjudged() != nil:
		return phase.Verify, s.Phase == phase.Verify
	case s.Phase == phase.Review, s.Phase == phase.Ideate:
		return s.Phase, true
	}
	return phase.Modify, true
}

func (l *improve) leaving(workflow.Context, rules.Move) error { return nil }

func (l *improve) work(m rules.Move) work {
	if m.Do == rules.RunCheck {
		return l.check
	}
	return map[phase.Phase]work{
		phase.Review: l.review, phase.Ideate: l.ideate, phase.Modify: l.modify, phase.Commit: l.commit,
		phase.Verify: l.verify, phase.Guard: l.guard, phase.Decide: l.decide,
	}[l.State().Phase]
}

// prepare makes the baseline (P0): it runs verify and guard on the unchanged code and records the metric as iteration 0.
func (l *improve) prepare(ctx workflow.Context) error {
	if l.State().Baseline != nil {
		return nil
	}
	if err := l.enter(ctx, phase.Baseline); err != nil {
		return err
	}
	verify, err := l.evaluate(ctx, "verify", "")
	if err != nil {
		return err
	}
	if cause := measurement(verify).Reason(); cause != "" {
		return l.unmeasured(cause, verify)
	}
	if err := l.unfit(l.unbounded(verify.Metrics), verify); err != nil {
		return err
	}
	var guard api.Outcome
	tests, leftovers := 0, verify.Leftovers
	if l.spec.Guard.Command != "" {
		if guard, err = l.guardUnchanged(ctx, l.law(), l.guardTime(ctx)); err != nil {
			return err
		}
		if !guard.OK() {
			advice := rules.AdviceFor("guard", guard.Altered, "Run it in a fresh clone: it has to exit 0 before there is anything to guard.")
			if guard.TimedOut {
				advice = rules.SlowAdvice("guard.timeout", l.spec.Guard.Command, guard.Tail)
			}
			return unready("guard", l.spec.Guard.Command, guard.Ending(), guard, advice)
		}
		l.guardTested = l.testedBy(guard)
		tests, leftovers = guard.Tests, loop.Union(leftovers, guard.Leftovers)
	}
	if err := l.checkUnchanged(ctx); err != nil {
		return err
	}
	if l.spec.Canary() {
		if err := l.canary(ctx, l.canaryOf(guard, verify)); err != nil {
			return err
		}
	}
	calibration, cause, verify, err := l.calibrate(verify, func(form *metric.Form) (api.Measured, error) { return l.evaluateIn(ctx, "verify", "", form) })
	if err != nil {
		return err
	}
	if cause != "" {
		if err := l.unfit(rules.Disagreeing(len(calibration.values)+1, cause, verify.NoNumber), verify); err != nil {
			return err
		}
		return l.unmeasured(cause, verify)
	}
	if err := l.unfit(l.unbounded(calibration.printed()), verify); err != nil {
		return err
	}
	judged := l.measured(verify, "")
	judged.Leftovers = leftovers
	l.noted(ctx, calibration, judged, tests)
	return nil
}

// canaryOf returns the canary for commands that have run on the unchanged code.
func (l *improve) canaryOf(guard api.Outcome, verify api.Measured) api.Canary {
	c := rules.CanaryOf(l.spec, &guard, nil)
	if l.rules >= 6 {
		c = rules.Measuring(c, verify)
	}
	return c
}

// checkUnchanged ends the loop if the check command fails on the unchanged code: it would undo every change.
func (l *improve) checkUnchanged(ctx workflow.Context) error {
	command := l.spec.Check.Command
	if command == "" {
		return nil
	}
	out, err := l.runCheck(ctx, l.newCheck())
	if err != nil || out.OK() {
		return err
	}
	return unready("check", command, out.Ending(), out.Outcome, "It runs after each edit and would undo every change: make it pass, or leave check.command out.")
}

// unmeasured returns the end of a loop whose unchanged code has no metric.
func (l *improve) unmeasured(cause string, out api.Measured) error {
	advice := rules.AdviceFor("verify", out.Altered, "Run it in a fresh clone: it has to exit 0 and print a number.")
	if out.TimedOut {
		advice = rules.SlowAdvice("verify.timeout", l.spec.Verify.Command, out.Tail)
	}
	return unready("verify", l.spec.Verify.Command, explain(cause, out), out.Outcome, advice)
}

// unbounded returns why the further metrics of the unchanged code are not enough.
func (l *improve) unbounded(values map[string]metric.Decimal) rules.Unfit {
	if l.rules < 6 {
		return rules.Unfit{}
	}
	return l.law().WithoutMetric(values)
}

// unfit returns the end of a loop that can't start from what verify printed, nil if it can.
func (l *improve) unfit(cause rules.Unfit, out api.Measured) error {
	if cause.What == "" || l.rules < 6 {
		return nil
	}
	end := rules.NotReady.Because(fmt.Sprintf("%s: `%s`%s", cause.What, l.spec.Verify.Command, where(out.Outcome)))
	end.Advice = cause.Do
	return stop(end)
}

// unready returns the end of a loop if one of its commands fails on the unchanged code.
func unready(name, command, cause string, out api.Outcome, advice string) error {
	end := rules.NotReady.Because(fmt.Sprintf("the %s command fails on the unchanged code (%s): `%s`%s", name, cause, command, where(out)))
	end.Advice = advice
	return stop(end)
}

// review decides what to do next (P1). The agent's view of it is made from the state when the agent is called.
func (l *improve) review(ctx workflow.Context, _ rules.Move) (rules.Move, error) {
	if l.takeNext(ctx) {
		return rules.Move{Do: rules.Enter, To: phase.Modify}, nil
	}
	return l.law().AfterReview(len(l.State().Ideas)), nil
}

// ideate takes a queued idea, or asks the agent for exactly one change (P2).
func (l *improve) ideate(ctx workflow.Context, move rules.Move) (rules.Move, error) {
	if queued := l.State().Ideas; len(queued) > 0 && l.candidate == nil {
		l.iteration.idea = queued[0]
		l.Emit(ctx, loop.Event{Type: loop.IdeaTaken, Idea: queued[0]})
		return l.law().AfterIdea(l.tries(), rules.IdeaVerdict{Idea: queued[0]}), nil
	}
	attempt := 1
	if move.Do == rules.Again {
		attempt++
	}
	out, err := l.callAgent(ctx, l.newCall(spec.RoleIdeator, "ideate", attempt))
	if err != nil {
		return rules.Move{}, err
	}
	v := rules.IdeaVerdict{Failed: agentFailure(out), Again: attempt > 1}
	parts := metric.Split(metric.Description(cmp.Or(out.Idea, out.Description)))
	if v.None = len(parts) == 0; !v.None { // "and" alone is no idea either
		v.Idea = parts[0]
		v.Discarded, _ = l.State().Analysis.Discarded(parts[0], l.law().Rewords())
	}
	m := l.law().AfterIdea(l.tries(), v)
	switch m.Do {
	case rules.Finish:
		l.iteration.description = cmp.Or(v.Failed, "the agent offered no idea")
	case rules.Enter:
		l.iteration.idea, l.iteration.why = v.Idea, ""
		for _, rest := range parts[1:] {
			l.Emit(ctx, loop.Event{Type: loop.IdeaQueued, Idea: rest})
		}
	}
	return m, nil
}

// modify lets the agent change the desk (P3), unless the change was made as a candidate.
func (l *improve) modify(ctx workflow.Context, _ rules.Move) (rules.Move, error) {
	if c := l.State().Taken; c != nil && l.candidate == nil {
		return l.takeUp(ctx, *c)
	}
	out, err := l.callAgent(ctx, l.newCall(spec.RoleWriter, "modify", l.attempt()))
	if err != nil {
		return rules.Move{}, err
	}
	iter, failed := &l.iteration, agentFailure(out)
	said := metric.Description(cmp.Or(out.Description, iter.idea))
	iter.description = cmp.Or(cmp.Or(said, failed), undescribed)
	iter.evidence, iter.files, iter.area, iter.tree, iter.metric = evidenceOf(out.Outcome), nil, "", "", nil
	iter.note, iter.samples, iter.metrics, iter.evaluations, iter.passing, iter.flaky, iter.vanished = "", nil, nil, 0, 0, nil, ""
	if failed != "" && said != "" { // its own words do not say why it failed
		iter.note = cmp.Or(unless(out.OK(), out.Ending()), failed)
	}
	return l.law().AfterWriter(failed != ""), nil
}

// check runs the check command on the desk, if there is one (P3).
func (l *improve) check(ctx workflow.Context, _ rules.Move) (rules.Move, error) {
	iter, passed := &l.iteration, true
	if l.spec.Check.Command != "" {
		input, s := l.newCheck(), l.State()
		input.AsIs, input.Desk, input.Ledger, input.Leftovers = true, l.liesOn(), s.Ledger, s.Leftovers // the policies judge the change first
		out, err := l.runCheck(ctx, input)
		if err != nil {
			return rules.Move{}, err
		}
		if !out.Violates { // else commit says what
			l.Emit(ctx, loop.Event{Type: loop.ChangeJudged, Step: "check", Judgement: l.judgement(out.Outcome, unless(out.OK(), reason.CheckFailed))})
		}
		if passed = out.OK() || out.Violates; !passed {
			iter.shown, iter.evidence = out.Log, append(iter.evidence, evidenceOf(out.Outcome)...)
		}
	}
	return l.law().AfterCheck(l.tries(), passed), nil
}

// commit commits the change before anything judges it (P4). A change that violates a policy is not committed.
func (l *improve) commit(ctx workflow.Context, _ rules.Move) (rules.Move, error) {
	iter := &l.iteration
	c, err := l.commitChange(ctx, api.Commit{Description: iter.description, Attempt: l.State().Attempt, OneChange: l.spec.Atomic() == spec.Rework})
	if err != nil {
		return rules.Move{}, err
	}
	iter.files, iter.area, iter.tree, iter.note = c.Files, c.Area, c.Tree, c.Note
	tried, ok := l.tried(c.Tree)
	v := commitVerdict(c)
	v.Repeated = ok && !v.Nothing && v.Rule == ""
	m := l.law().AfterCommit(l.tries(), v)
	l.tellLeftOut(ctx, c)
	if cause := cmp.Or(l.withheld(), leftOut(c)); v.Nothing && cause != "" {
		iter.description = cause + ": " + iter.description
	}
	switch {
	case v.Rule != "":
		l.Emit(ctx, l.violated(c.Violations, m.Do == rules.Block))
	case c.Commit != "":
		l.committed(ctx, c)
	}
	if v.Repeated {
		iter.note = sameFiles(tried)
	}
	return m, nil
}

// sameFiles says which earlier iteration a change leads to the files of.
func sameFiles(earlier loop.Tried) string {
	if earlier.N == 0 {
		return "the same files as the baseline"
	}
	return fmt.Sprintf("the same files as iteration %d", earlier.N)
}

// tried finds the tree among those that were judged and discarded, or that are kept on another branch.
func (l *improve) tried(tree string) (loop.Tried, bool) {
	for _, t := range l.State().Tried {
		if t.Tree == tree {
			return t, true
		}
	}
	if n := rules.KeptElsewhere(l.State(), tree); n != nil {
		return loop.Tried{Tree: tree, Metric: n.Metric, N: n.Iteration}, true
	}
	return loop.Tried{}, false
}

// verify measures the commit (P5), or its reference if the rules want that before the guard runs.
func (l *improve) verify(ctx workflow.Context, move rules.Move) (rules.Move, error) {
	if t := l.trial(); t != nil {
		return l.asTried(ctx, *t), nil
	}
	if move.Do == rules.Again {
		measured, err := l.reference(ctx)
		if err != nil || !measured {
			return l.law().Sampled(stats.Judgement{Do: stats.Inconclusive}), err
		}
		return l.law().AfterVerify(rules.Measurement{Number: true, Samples: l.bySamples()}), nil
	}
	out, err := l.evaluate(ctx, "verify", "")
	if err != nil {
		return rules.Move{}, err
	}
	v := measurement(out)
	v.Waits = rules.WatchAdvice(l.spec.Verify.Command, out.Tail)
	l.iteration.evidence = append(l.iteration.evidence, evidenceOf(out.Outcome)...)
	if v.Failed {
		l.iteration.note = loop.Clip(out.Failure, mostInstead)
	}
	l.noteInstead(out)
	judgement := l.measured(out, v.Reason())
	if v.Number {
		l.tookOf(ctx, out)
		v.Samples, v.Better = l.bySamples(), l.better(*out.Metric)
		judgement.Samples = v.Samples
	}
	l.judgedBy(ctx, "verify", out.Metric, judgement)
	l.iteration.metric = out.Metric
	return l.law().AfterVerify(v), nil
}

// noteInstead notes what verify printed instead of a number, if it printed none.
func (l *improve) noteInstead(out api.Measured) {
	if out.NoNumber != "" && l.rules >= 6 {
		l.iteration.note = loop.Clip(out.NoNumber, mostInstead)
	}
}

// mostInstead bounds in bytes what the record of an iteration says of a command that exits 0 and does not pass.
const mostInstead = 300

// better reports whether one measurement is enough to keep the change.
func (l *improve) better(metric metric.Decimal) bool {
	decided, _ := l.law().Decide(*l.State().Best, metric)
	cause, _ := l.law().Broken(l.State().BaselineMetrics, l.iteration.metrics.Values())
	return decided.Kept && cause == ""
}

// guard runs the guard command on the commit that verify measured (P5.5).
func (l *improve) guard(ctx workflow.Context, _ rules.Move) (rules.Move, error) {
	if t := l.trial(); t != nil {
		return l.guardedAsTried(ctx, *t.Guard), nil
	}
	out, flaky, err := l.guarded(ctx, l.law(), l.guardTime(ctx))
	if err != nil {
		return rules.Move{}, err
	}
	judged := l.judgement(out, unless(out.OK(), reason.GuardFailed))
	judged.Flaky = flaky
	l.judgedBy(ctx, "guard", nil, judged)
	iter := &l.iteration
	iter.flaky, iter.vanished = flaky, out.Vanished
	iter.passing = out.Tests
	iter.evidence = append(iter.evidence, evidenceOf(out)...)
	if !out.OK() {
		iter.shown, iter.note = out.Log, loop.Clip(out.Failure, mostInstead)
	}
	m := l.law().AfterGuard(l.tries(), out.OK())
	if out.Failure != "" {
		m.Why = m.Reason + ": " + out.Failure
	}
	return m, nil
}

// guardTime says whether there is time for that many milliseconds of the guard.
func (l *improve) guardTime(ctx workflow.Context) func(ms int64) bool {
	return func(ms int64) bool { return l.timeFor(ctx, ms) }
}

// decide applies the decision matrix (P6), and doubts an improvement that is too good.
func (l *improve) decide(ctx workflow.Context, move rules.Move) (rules.Move, error) {
	m, err := l.matrix(ctx, move)
	iter := &l.iteration
	if err != nil || l.candidate != nil || iter.metric == nil || !l.law().Doubts(m, iter.metric.Sub(iter.delta), *iter.metric) {
		return m, err
	}
	return l.doubt(ctx, m)
}

// matrix applies the decision matrix.
func (l *improve) matrix(ctx workflow.Context, _ rules.Move) (rules.Move, error) {
	if t := l.trial(); t != nil && t.Samples != nil {
		return l.sampledAsTried(ctx, *t.Samples), nil
	}
	if l.State().Sampler != nil {
		return l.judge(ctx)
	}
	iter := &l.iteration
	m, delta := l.law().Decide(*l.State().Best, *iter.metric)
	iter.delta = delta
	if cause, sentence := l.law().Broken(l.State().BaselineMetrics, iter.metrics.Values()); m.Kept && cause != "" {
		m.Kept, m.Reason, iter.note = false, cause, sentence
	}
	return m, nil
}

// between measures a new head, shifts the strategy (P8), and asks a person if verify itself seems at fault (P5).
func (l *improve) between(ctx workflow.Context) error {
	if err := l.refresh(ctx); err != nil {
		return err
	}
	if s := l.State(); l.law().ShiftDue(s) {
		l.Emit(ctx, loop.Event{
			Type: loop.StrategyShifted, Reason: metric.Counted(s.DiscardsInARow, "discard") + " in a row",
			Note: loop.Clip(s.Analysis.Markdown(1024), 1024),
		})
	}
	if err := l.branches(ctx); err != nil {
		return err
	}
	if l.law().Idles(l.State()) {
		if err := l.askAboutIdling(ctx); err != nil {
			return err
		}
	}
	m := l.law().After(l.State())
	if m.Do == rules.AskPerson && l.rules >= 6 {
		var err error
		if m, err = l.blame(ctx, m); err != nil {
			return err
		}
	}
	for m.Do == rules.AskPerson {
		a, err := l.wait(ctx, loop.Gate{
			Kind: loop.GateQuestion, Summary: fmt.Sprintf("%s: `%s`", m.Reason, l.spec.Verify.Command),
			Choices: m.Choices,
		})
		if err != nil {
			return err
		}
		if a.Message == loop.MessageAnswer {
			if m := l.law().AfterAnswer(a.Choice, a.By); m.Do == rules.Stop {
				return stop(*m.End)
			}
			return nil
		}
		earlier := l.spec.Verify
		approved, err := l.amend(ctx, a)
		if err != nil {
			return err
		}
		if !approved {
			continue
		}
		if now := l.spec.Verify; now.Command == earlier.Command && now.Pattern == earlier.Pattern {
			return nil
		}
		if err := l.returnToHead(ctx, "another command measures now"); err != nil {
			return err
		}
		cause, err := l.measureAnew(ctx)
		if err != nil || cause == "" {
			return err
		}
		m.Reason = "the amended verify command measures nothing (" + cause + ")"
	}
	return nil
}

// blame measures the code without the changes that had no number: if it still has its number, they are at fault and not
// the command, and nobody is asked.
func (l *improve) blame(ctx workflow.Context, question rules.Move) (rules.Move, error) {
	out, err := l.evaluate(ctx, "reference", l.State().Head)
	if err != nil {
		return rules.Move{}, err
	}
	cause := measurement(out).Reason()
	if cause != "" {
		cause = explain(cause, out)
	} else {
		l.Emit(ctx, loop.Event{Type: loop.Warned, Step: "verify", Reason: fmt.Sprintf("verify printed no number twice in a row, but %s for the code without these changes, so they are at fault", out.Metric)})
	}
	return l.law().AfterReference(question, cause), nil
}

// askAboutIdling asks a person whether the agent should be called again, although it seems not to work.
func (l *improve) askAboutIdling(ctx workflow.Context) error {
	ask := fmt.Sprintf("the agent changed nothing %d times in a row, in less than a second each time, so it seems not to work: see what it printed (`pawl log --transcript %d`)", l.State().QuickNothings, l.State().Iteration)
	a, err := l.wait(ctx, loop.Gate{
		Kind: loop.GateQuestion, Summary: ask, Choices: []string{rules.Retry, rules.HaltLoop}, Answers: []string{loop.MessageAnswer},
	})
	if err == nil && a.Choice == rules.HaltLoop {
		return stop(rules.Interrupted.Because("halted by " + cmp.Or(a.By, "a person") + ": the agent seems not to work"))
	}
	return err
}

// measureAnew measures the baseline with an amended verify command, on the code kept so far, before anything is
// compared with measurements of the earlier command (P5). It returns why it measured nothing, "" if it did.
func (l *improve) measureAnew(ctx workflow.Context) (string, error) {
	l.iteration = iteration{reworked: map[string]int{}} // the last iteration is recorded; this time is not part of it
	name, sample := "verify-"+short(l.State().Contract.Hash), 0
	evaluate := func(form *metric.Form) (api.Measured, error) {
		input := l.newVerify()
		input.Form, input.Unchanged = form, true
		input.Key.Name, input.Key.Sample, input.Clean, input.Alone = name, sample, sample > 0, !l.spec.Verify.Shares()
		sample++
		return l.measure(ctx, input)
	}
	out, err := evaluate(nil)
	if err != nil {
		return "", err
	}
	calibration, cause, out, err := l.calibrate(out, evaluate)
	if err != nil {
		return "", err
	}
	if cause != "" {
		return explain(cause, out), nil
	}
	if unfit := l.unbounded(calibration.printed()); unfit.What != "" {
		return unfit.What, nil
	}
	l.guardRuns, l.guardTested = l.State().GuardRuns, l.State().Tested
	l.noted(ctx, calibration, l.measured(out, ""), l.State().GuardTests)
	return "", l.record(ctx, "the baseline by the amended command", false)
}

// measurement returns the result of a verify step, for the rules.
func measurement(out api.Measured) rules.Measurement {
	return rules.Measurement{TimedOut: out.TimedOut, Failed: !out.OK(), Number: out.Metric != nil}
}

// commitVerdict returns the result of a commit, for the rules.
func commitVerdict(c api.Committed) rules.CommitVerdict {
	v := rules.CommitVerdict{Nothing: c.NoChange, Several: c.Several, Sealed: true}
	for _, violation := range c.Violations {
		v.Blocks = v.Blocks || violation.Blocks
		v.Sealed = v.Sealed && (!violation.Blocks || violation.Rule == spec.RuleSealed)
	}
	if len(c.Violations) > 0 {
		first := c.Violations[0]
		v.Rule, v.Where = first.Rule, first.Rule+": "+first.Where()
	}
	return v
}

// agentFailure returns how an agent call failed, "" if it did not.
func agentFailure(out api.Called) string {
	switch {
	case out.GiveUp != "":
		return "the agent gave up: " + out.GiveUp
	case !out.OK():
		return "the agent failed (" + out.Ending() + ")"
	}
	return ""
}
