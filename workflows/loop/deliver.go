package loop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

// Deliver runs the write-test-fix phase machine (L): from a goal in words to a reviewed, tested
// change. Its input and its ways to end are those of Improve; what differs is the machine.
func Deliver(ctx workflow.Context, input converter.RawValue, resume Resume) (*loop.Result, error) {
	r, err := setup(ctx, kind.Deliver, input, resume)
	if err != nil {
		return nil, err
	}
	return r.finish(ctx, r.main(ctx, &deliver{run: r}))
}

// deliver does the work of the phase machine's phases. The agent's own claim of success plays no part.
type deliver struct {
	*run
	turn     int    // counts the steps of this iteration, so that each has a name of its own
	lastTest string // the log of the last test run on what is on the branch
	prevTest string // the log of the one before it
	lastFix  string // the commit of the last fix, "" if it made none
	left     bool   // the last fixer changed nothing
	verified string // the head that verify passed
}

func (l *deliver) law() rules.Deliver { return rules.DeliverOf(l.spec, int(l.rules)) }

func (l *deliver) course() loop.Course { return *l.State().Course }

func (l *deliver) decisions() loopRules { return l.law() }

func (l *deliver) between(workflow.Context) error { return nil }

// ahead has nothing to do: a task is one change.
func (l *deliver) ahead(workflow.Context) (bool, error) { return false, nil }

// begin tells the first writer of an iteration why the previous iteration was not the last. In one that continues, it
// finds out which step names are taken, and which logs there are.
func (l *deliver) begin(events []loop.Event) {
	*l = deliver{run: l.run}
	if past := l.State().Iterations; len(events) == 0 && len(past) > 0 && past[len(past)-1].Reason != reason.Interrupted {
		l.iteration.why = past[len(past)-1].Reason
	}
	for _, e := range events {
		switch e.Type {
		case loop.PermissionGranted: // the call may still have to be made
			l.turn = e.Attempt - 1
		case loop.StepEnded:
			l.turn = max(l.turn, e.Attempt)
			if e.Step == "test" && len(e.EvidenceIDs) > 0 {
				log, _ := api.LogIn(e.EvidenceIDs[0])
				l.prevTest, l.lastTest = l.lastTest, log
				l.iteration.shown = log
			}
		case loop.ChangeAccepted:
			l.turn, l.lastFix = l.turn+1, e.Commit
		case loop.ChangeJudged:
			if j := e.Judgement; j != nil && !j.Passed {
				l.iteration.why = j.Reason
			}
		}
	}
}

// reproduce does nothing: each proposal was judged from scratch before it was made.
func (l *deliver) reproduce(workflow.Context) error { return nil }

// claim does nothing: a delivery has no metric to compare.
func (l *deliver) claim(workflow.Context) error { return nil }

// again returns the phase to begin again, in which an agent was at work.
func (l *deliver) again(s loop.State) (phase.Phase, bool) {
	return s.Phase, (s.Phase == phase.Write || s.Phase == phase.Fix) && s.Unjudged() == nil
}

// leaving records what a move to another phase leaves out, and checks for a loop-stop file in a long iteration.
func (l *deliver) leaving(ctx workflow.Context, m rules.Move) error {
	if m.Skipped {
		l.Emit(ctx, loop.Event{Type: loop.TestsSkipped, Reason: m.Reason})
	}
	if l.iteration.stopAsked != "" && m.To != phase.Complete {
		l.stopBy(ctx, l.iteration.stopAsked)
		return l.waitIfPaused(ctx, loop.PauseStep)
	}
	return nil
}

func (l *deliver) work(m rules.Move) work {
	switch m.Do {
	case rules.RunGuard:
		return l.guard
	case rules.AskReviewer:
		return l.askReviewer
	case rules.AskPerson:
		return l.askPerson
	}
	return map[phase.Phase]work{
		phase.Write: l.author, phase.Test: l.test, phase.Fix: l.author, phase.Verify: l.verify, phase.Complete: l.complete,
	}[l.State().Phase]
}

// prepare has the plan made. A loop whose run was lost after its work was delivered, and before that run could record the
// end, ends.
func (l *deliver) prepare(ctx workflow.Context) error {
	s := l.State()
	if n := len(s.Iterations); n > 0 && s.Iterations[n-1].Kept {
		return stop(rules.DeliveredWith(s.LastTest, s.Moved != ""))
	}
	if s.Contract.ApprovedAt != nil {
		return nil
	}
	if err := l.baseline(ctx); err != nil {
		return err
	}
	return l.plan(ctx)
}

// baseline runs check, guard and tests on the unchanged code. The tests that fail then are shown to the writer and do not
// count later. They end nothing, since the loop may be there to fix them; a command whose program is missing does.
func (l *deliver) baseline(ctx workflow.Context) error {
	if l.State().KnownTests != nil {
		return nil
	}
	if err := l.ready(); err != nil { // without a reason to know, nothing is run
		return err
	}
	guard, err := l.unchanged(ctx)
	if err != nil {
		return err
	}
	if !l.spec.TestRequired() { // where no test decides, nobody has to know which fail
		l.guardKnown(ctx, guard)
		return nil
	}
	input := l.newTest(0)
	l.inTime(&input.Step)
	out, err := step[api.Tested](ctx, l.run, api.TestName, input.Command, &input)
	if err != nil {
		return err
	}
	l.iteration.phaseSpent = 0 // the planner has all of its time
	if err := l.found("test", input.Command, out.Outcome); err != nil {
		return err
	}
	j := l.judgement(out.Outcome, whyTests(out.Outcome))
	j.Tests, j.Leftovers = out.Tests, loop.Union(guard.Leftovers, j.Leftovers)
	l.Emit(ctx, loop.Event{Type: loop.TestsKnown, Step: "test", Judgement: j, Tested: l.guardTested, MeasuredAt: out.Recalled})
	return nil
}

// guardKnown records what the guard, if there is one, tested on the unchanged code.
func (l *deliver) guardKnown(ctx workflow.Context, guard api.Outcome) {
	if l.rules < 6 || l.spec.Guard.Command == "" {
		return
	}
	j := l.judgement(guard, unless(guard.OK(), guard.Ending()))
	l.Emit(ctx, loop.Event{Type: loop.GuardKnown, Step: "guard", Judgement: j, Tested: l.guardTested, MeasuredAt: guard.Recalled})
}

// found ends the loop if a command lacks a program on the unchanged code: no change is meant to mend that.
func (l *deliver) found(name, command string, out api.Outcome) error {
	if l.rules < 6 || !out.Missing() {
		return nil
	}
	return unready(name, command, out.Ending(), out, rules.MissingAdvice)
}

// whyTests returns why a run of the tests failed: "tests" if the command said so itself, by its exit code.
func whyTests(out api.Outcome) string {
	if out.ExitCode > 0 {
		return "tests"
	}
	return unless(out.OK(), out.Ending())
}

// unchanged runs check and guard on the unchanged code. If one fails, a person hears of it before an agent is called:
// every change that does not mend what it fails on is undone. It ends nothing, since that may be the task. guard is how
// the guard ended; check says each time what it leaves behind.
func (l *deliver) unchanged(ctx workflow.Context) (guard api.Outcome, err error) {
	for _, c := range l.judges(l.inTime) {
		run := c.run
		if c.name == "guard" {
			run = func(ctx workflow.Context) (api.Outcome, error) {
				return l.guardUnchanged(ctx, l.law(), l.guardTime(ctx), l.inTime)
			}
		}
		out, err := run(ctx)
		if err != nil {
			return guard, err
		}
		if len(out.Altered) > 0 {
			return guard, unready(c.name, c.command, out.Ending(), out, rules.AlteredAdvice(c.name, out.Altered))
		}
		if err := l.found(c.name, c.command, out); err != nil {
			return guard, err
		}
		if c.name == "guard" {
			guard, l.guardTested = out, l.testedBy(out)
		}
		if !out.OK() {
			l.Emit(ctx, loop.Event{Type: loop.Warned, Step: c.name, Reason: fmt.Sprintf(
				"the %s command fails on the unchanged code (%s), so every change that does not mend that is undone: `%s`%s", c.name, out.Ending(), c.command, where(out))})
		}
	}
	l.iteration.phaseSpent = 0 // the planner has all of its time
	return guard, nil
}

// plan asks the planner, who can't keep a change, for the plan. Without a planner the goal is the plan. The plan is
// approved with the contract and stays fixed.
func (l *deliver) plan(ctx workflow.Context) error {
	if _, planner := l.spec.Agent.Roles[spec.RolePlanner]; !planner || l.State().Plan != nil {
		return nil
	}
	if err := l.ready(); err != nil { // without an agent for it, nobody is asked
		return err
	}
	for {
		out, err := l.call(ctx)
		if err != nil {
			return err
		}
		v := verdictOf(out)
		if v.Failed = v.Failed || out.Plan == nil || strings.TrimSpace(out.Plan.Text) == ""; v.Failed && v.Why == "" {
			v.Why = "it printed no plan"
		}
		switch m := l.law().AfterAgent(l.course(), phase.Plan, v); m.Do {
		case rules.Stop:
			return stop(*m.End)
		case rules.Rework:
			l.iteration.shown = out.Log
			if err := l.rework(ctx, m); err != nil {
				return err
			}
			continue
		}
		c := rules.Draw(l.spec, l.State().Base, l.host.Opened.Onto, l.State().Contract.Sealed)
		c.Plan = out.Plan.Hash
		l.host.Opened.Contract = c.Hash()
		l.Emit(ctx, loop.Event{Type: loop.PlanMade, Plan: out.Plan, Contract: &loop.Contract{
			Hash: c.Hash(), Base: c.Base, Sealed: c.Sealed, Tools: c.Tools,
		}})
		return nil
	}
}

// author lets writer or fixer work on the desk. A rework starts from the state at the beginning of the phase. If the rules
// have given the approach up, no fixer is asked.
func (l *deliver) author(ctx workflow.Context, previous rules.Move) (rules.Move, error) {
	iter := &l.iteration
	if previous.Regenerate && l.State().Phase == phase.Fix {
		iter.why = previous.Reason
		return rules.Move{Do: rules.Enter, To: phase.Write, Reason: previous.Reason}, nil
	}
	out, err := l.call(ctx)
	if err != nil {
		return rules.Move{}, err
	}
	iter.evidence = append(iter.evidence, evidenceOf(out.Outcome)...)
	if said := metric.Description(out.Description); said != "" {
		iter.description = said
	}
	iter.shown = cmp.Or(iter.shown, out.Log)
	m := l.law().AfterAgent(l.course(), l.State().Phase, verdictOf(out))
	iter.why = m.Reason
	return m, nil
}

// guard is the gate out of write and fix (L1): the policies judge the diff, the change is committed, then the check and
// the guard command judge the commit. A change that does not pass is taken off the branch again.
func (l *deliver) guard(ctx workflow.Context, _ rules.Move) (rules.Move, error) {
	current, iter := l.State().Phase, &l.iteration
	l.turn++
	c, err := l.commitChange(ctx, api.Commit{Description: cmp.Or(iter.description, string(current)), Attempt: l.turn})
	if err != nil {
		return rules.Move{}, err
	}
	l.tellLeftOut(ctx, c)
	judged := rules.GuardVerdict{Passed: true}
	event := loop.Event{Type: loop.ChangeJudged, Step: "guard", Judgement: &loop.Judgement{Passed: true, Policy: l.spec.Guard.Policy, Iteration: l.State().Iteration}}
	switch taken := commitVerdict(c); {
	case taken.Nothing:
		l.left = current == phase.Fix
		last := l.State().LastTest
		excused := last != nil && last.Tests != nil && last.Tests.Excused // it failed only where it did before the first write
		if m := l.law().AfterAgent(l.course(), current, rules.AgentVerdict{NoChange: true, Excused: excused, Why: cmp.Or(l.withheld(), leftOut(c))}); m.Do != rules.RunGuard {
			iter.why = m.Reason
			return m, nil
		}
		l.lastFix = ""
	case taken.Rule != "":
		judged, event = rules.GuardVerdict{Violates: true, Why: taken.Where}, l.violated(c.Violations, true)
	default:
		l.left = false
		iter.files = loop.Union(iter.files, c.Files)
		l.committed(ctx, c)
		if judged, event, err = l.commands(ctx, event); err != nil {
			return rules.Move{}, err
		}
	}
	m := l.law().AfterGuard(l.course(), current, judged)
	iter.why = m.Reason
	event.Judgement.Blocked = m.Do == rules.Block
	l.Emit(ctx, event)
	if c.Commit != "" && m.Do == rules.Enter {
		l.Emit(ctx, loop.Event{Type: loop.ChangeAccepted, Commit: c.Commit})
		iter.accepted, l.lastFix = c.Commit, c.Commit
	}
	return m, nil
}

// commands runs check and guard on the commit until one of them fails. Without any, the change passes.
func (l *deliver) commands(ctx workflow.Context, passed loop.Event) (rules.GuardVerdict, loop.Event, error) {
	judged := rules.GuardVerdict{Passed: true}
	for _, c := range l.judges(l.named) {
		var flaky []string
		run := c.run
		if c.name == "guard" {
			run = func(ctx workflow.Context) (out api.Outcome, err error) {
				out, flaky, err = l.guarded(ctx, l.law(), l.guardTime(ctx), l.named)
				return out, err
			}
		}
		out, err := run(ctx)
		if err != nil {
			return judged, passed, err
		}
		passed.Step, passed.Judgement = c.name, l.judgement(out, unless(out.OK(), c.reason))
		passed.Judgement.Flaky = flaky
		l.iteration.flaky = loop.Union(l.iteration.flaky, flaky)
		if c.name == "guard" {
			l.iteration.vanished = out.Vanished
		}
		phaseOver := out.TimedOut && l.phaseLeft() == 0 // and not its own limit (L10)
		judged = rules.GuardVerdict{Command: c.name, Passed: out.OK(), TimedOut: phaseOver, Why: out.Ending()}
		if !out.OK() {
			l.iteration.shown = out.Log
			break
		}
	}
	return judged, passed, nil
}

// guardTime says whether there is time for that many milliseconds of the guard.
func (l *deliver) guardTime(ctx workflow.Context) func(ms int64) bool {
	return func(ms int64) bool { return l.phaseLeft().Milliseconds() > ms && l.timeFor(ctx, ms) }
}

// judge is a command that judges a commit. reason is for the record, if it fails.
type judge struct {
	name, command, reason string
	run                   func(workflow.Context) (api.Outcome, error)
}

// judges are check and guard, those that the spec has, in their order, for a commit that passed the policies. begin gets
// each step first.
func (l *deliver) judges(begin func(*api.Step)) []judge {
	judges := []judge{
		{"check", l.spec.Check.Command, reason.CheckFailed, func(ctx workflow.Context) (api.Outcome, error) {
			input := l.newCheck()
			begin(&input.Step)
			out, err := l.runCheck(ctx, input)
			return out.Outcome, err
		}},
		{"guard", l.spec.Guard.Command, reason.GuardFailed, func(ctx workflow.Context) (api.Outcome, error) {
			return l.runGuard(ctx, begin)
		}},
	}
	return slices.DeleteFunc(judges, func(c judge) bool { return c.command == "" })
}

// test runs the tests, after a failure once more. A test that passes then is flaky: it is reported and not fixed.
func (l *deliver) test(ctx workflow.Context, _ rules.Move) (rules.Move, error) {
	out, err := l.runTests(ctx, l.lastTest)
	if err != nil {
		return rules.Move{}, err
	}
	tests := *out.Tests
	judged := l.testVerdict(out, tests)
	inTime := l.phaseLeft().Milliseconds() > out.ElapsedMs // a second run takes as long as the first
	if !judged.Passed && !judged.TimedOut && !tests.Excused && inTime && l.law().RerunDue(l.course(), tests.Signature, tests.Broken) {
		rerun, err := l.runTests(ctx, out.Log)
		if err != nil {
			return rules.Move{}, err
		}
		flaky := rerun.Tests.Fixed
		if rerun.OK() {
			if flaky = tests.Failing; len(flaky) == 0 {
				flaky = []string{rules.Unnamed}
			}
		}
		firstTests := tests
		out, tests = rerun, *rerun.Tests
		judged = l.testVerdict(out, tests)
		judged.Flaky = flaky
		// The first run was compared with the run before it, so its differences count.
		tests.Flaky, tests.New, tests.Fixed, tests.Worse = flaky, firstTests.New, firstTests.Fixed, firstTests.Worse
	}
	l.prevTest, l.lastTest, l.iteration.evidence = l.lastTest, out.Log, append(l.iteration.evidence, evidenceOf(out.Outcome)...)
	j := l.judgement(out.Outcome, whyTests(out.Outcome))
	if j.Tests = &tests; judged.Passed {
		j.Passed, j.Reason = true, ""
	}
	l.Emit(ctx, loop.Event{Type: loop.ChangeJudged, Step: "test", Judgement: j})
	m := l.law().AfterTest(l.course(), judged)
	l.iteration.why, l.iteration.shown = m.Reason, out.Log
	if m.Undo && l.lastFix != "" {
		return m, l.undoFix(ctx, m.Reason)
	}
	return m, nil
}

// testVerdict returns the result of a test run, for the rules.
func (l *deliver) testVerdict(out api.Tested, tests loop.Tests) rules.TestVerdict {
	v := rules.TestVerdict{
		Passed: out.OK(), TimedOut: out.TimedOut, Excused: tests.Excused, Progress: tests.Progress, Left: l.left, Known: tests.Known, Fewer: out.Failure,
	}
	v.Passed = l.law().TestsPass(v)
	return v
}

// undoFix reverts the last fix: the tests then fail again as they did before it.
func (l *deliver) undoFix(ctx workflow.Context, cause string) error {
	fix := loop.Change{Commit: l.lastFix}
	if last := l.State().LastChange; last != nil && last.Commit == fix.Commit {
		fix.Parent = last.Parent
	}
	l.lastFix, l.lastTest, l.iteration.shown = "", l.prevTest, l.prevTest
	return l.undo(ctx, fix, cause, false)
}

func (l *deliver) newTest(attempt int) api.Test {
	t := l.spec.Test
	return api.Test{Step: l.newStep("test", attempt, t.Timeout.D()), Command: t.Command, Reports: l.spec.TestReports()}
}

func (l *deliver) runTests(ctx workflow.Context, previousLog string) (api.Tested, error) {
	input := l.newTest(l.State().Attempt)
	input.Before = previousLog
	l.named(&input.Step)
	return l.tested(ctx, input)
}

// tested runs the tests of a step, and compares them with those of the unchanged code.
func (l *deliver) tested(ctx workflow.Context, input api.Test) (api.Tested, error) {
	input.Fewer, input.Strict = l.spec.FewerTests(), l.rules >= 6
	if baseline := l.State().KnownTests; baseline != nil {
		input.Known = baseline.Log
	}
	out, err := step[api.Tested](ctx, l.run, api.TestName, input.Command, &input)
	if err == nil && out.Tests == nil { // it could not be started
		out.Tests = &loop.Tests{Broken: true}
	}
	return out, err
}

// verify runs the verify command, if there is one. A change that passes becomes a proposal.
func (l *deliver) verify(ctx workflow.Context, _ rules.Move) (rules.Move, error) {
	judged := rules.VerifyVerdict{Passed: true}
	if l.spec.Verify.Command != "" {
		input := l.newVerify()
		l.named(&input.Step)
		out, err := l.measure(ctx, input)
		if err != nil {
			return rules.Move{}, err
		}
		judged = l.verifyVerdict(out)
		if l.iteration.shown = out.Log; out.OK() { // without a target a metric is optional here
			l.iteration.metric = out.Metric
		}
		l.Emit(ctx, loop.Event{Type: loop.ChangeJudged, Step: "verify", Metric: out.Metric, Judgement: l.measured(out, unless(judged.Passed, judged.Why))})
	}
	if judged.Passed {
		cause, err := l.unreproduced(ctx)
		if err != nil {
			return rules.Move{}, err
		}
		if cause != "" {
			judged = rules.VerifyVerdict{Why: cause}
		}
	}
	m := l.law().AfterVerify(judged)
	if !judged.Passed {
		return m, nil
	}
	l.verified = l.State().Head
	if err := l.makeProposal(ctx); err != nil {
		return m, err
	}
	if m.Do != rules.Enter && l.State().Proposal == nil { // the goal was reached without a change: there is nothing to look at
		return rules.Move{Do: rules.Enter, To: phase.Complete, Reason: "nothing had to be changed"}, nil
	}
	return m, nil
}

// verifyVerdict returns the result of the verify command, for the rules.
func (l *deliver) verifyVerdict(out api.Measured) rules.VerifyVerdict {
	v := rules.VerifyVerdict{Passed: out.OK(), TimedOut: out.TimedOut, Why: out.Ending()}
	target := l.spec.Verify.Target
	switch {
	case !out.OK() || target == nil:
	case out.Metric == nil:
		v = rules.VerifyVerdict{Why: fmt.Sprintf("it prints no number (%s), the target is %s", out.NoNumber, target)}
	case !metric.TargetMet(l.spec.Verify.Direction, *out.Metric, *target):
		v = rules.VerifyVerdict{Why: fmt.Sprintf("the metric is %s, the target %s", out.Metric, target)}
	}
	return v
}

func (l *deliver) askReviewer(ctx workflow.Context, previous rules.Move) (rules.Move, error) {
	o, err := l.opinion(ctx, l.course().Opinions+1, previous.Reason)
	if err != nil {
		return rules.Move{}, err
	}
	m := l.law().AfterReview(l.course(), o)
	l.note(ctx, o, m)
	return m, nil
}

// askPerson opens the diff gate.
func (l *deliver) askPerson(ctx workflow.Context, _ rules.Move) (rules.Move, error) {
	a, err := l.askDiff(ctx)
	if err != nil {
		return rules.Move{}, err
	}
	return l.law().AfterDiff(a.Message == loop.MessageApprove, a.By, a.Note), nil
}

// complete returns the end of a delivery that reached its goal.
func (l *deliver) complete(workflow.Context, rules.Move) (rules.Move, error) {
	return rules.Move{Do: rules.Finish, Kept: true, Measured: true, End: new(rules.DeliveredWith(l.State().LastTest, l.State().Head != l.verified))}, nil
}

// call calls the agent of the current phase, within what is left of the phase's time.
func (l *deliver) call(ctx workflow.Context) (api.Called, error) {
	role := l.machine.Row(l.State().Phase).Role
	c := l.newCall(role, string(l.State().Phase), l.State().Attempt)
	c.Key.Name, c.Attempt = role, l.course().Reworks+1
	l.named(&c.Step)
	return l.callAgent(ctx, c)
}

// named gives a step a name that is unique within the iteration, and no more time than its phase has left.
func (l *deliver) named(s *api.Step) {
	l.turn++
	s.Key.Attempt = l.turn
	l.inTime(s)
}

// verdictOf returns the result of an agent call, for the rules.
func verdictOf(out api.Called) rules.AgentVerdict {
	return rules.AgentVerdict{
		Failed: !out.OK(), TimedOut: out.TimedOut, Regenerate: out.Regenerate, GaveUp: out.GiveUp, Why: cmp.Or(loop.Clip(agentFailure(out), 500), out.Description),
	}
}
