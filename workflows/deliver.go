package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/evidence"
	"pawl/internal/govern"
	"pawl/internal/kind"
	"pawl/internal/loop"
	"pawl/internal/phase"
	"pawl/internal/spec"
)

// Deliver runs the write-test-fix phase machine (L): from a goal in words to a reviewed, tested
// change. Its input and its ways to end are those of Improve; what differs is the machine.
func Deliver(ctx workflow.Context, input converter.RawValue, resume Resume) (*loop.Result, error) {
	r, err := setup(ctx, kind.Deliver, input, resume)
	if err != nil {
		return nil, err
	}
	l := &deliver{run: r}
	return r.finish(ctx, l.loop(ctx))
}

// deliver is the phase machine. Each phase does its work and brings it to the rules (govern), which
// say what comes next; nothing that an agent says of its own success plays a part.
type deliver struct {
	*run
	turn     int    // counts what is run in this iteration, so that each has a name of its own
	lastTest string // the log of the last test run on what is on the branch
	prevTest string // the log of the one before it
	lastFix  string // the commit of the last fix, "" where it made none
	note     string // why the next agent is asked, where it isn't the first
	shown    string // the log that shows it
}

// loop runs the phases. It returns how the loop ended as a *stopped, or continues as new.
func (l *deliver) loop(ctx workflow.Context) error {
	if l.opened.Ref == "" { // not continued as new
		if err := l.enter(ctx, phase.Plan); err != nil {
			return err
		}
		if err := l.open(ctx); err != nil {
			return err
		}
	}
	if l.state.Contract.ApprovedAt == nil {
		if err := l.plan(ctx); err != nil {
			return err
		}
		if err := l.agree(ctx); err != nil {
			return err
		}
	}
	for {
		if end, over := govern.StopDeliver(l.state); over {
			if end.Budget == "" {
				return stop(end)
			}
			if err := l.exhausted(ctx, end); err != nil {
				return err
			}
			continue
		}
		if err := l.continueAsNewIfLong(ctx); err != nil {
			return err
		}
		if err := l.iterate(ctx, phase.Write, l.work); err != nil {
			return err
		}
	}
}

// bounds are what the rules go by.
func (l *deliver) bounds() govern.Bounds {
	_, reviewer := l.spec.Agent.Roles[spec.RoleReviewer]
	return govern.Bounds{
		TestRequired: l.spec.TestRequired(), FixAttempts: l.spec.Limits.FixAttempts,
		Reworks: l.spec.Limits.Reworks, Diff: l.spec.Approvals.Diff, Reviewer: reviewer,
	}
}

func (l *deliver) course() govern.Course { return *l.state.Course }

// plan asks the planner, who can't keep a change, for the plan; without one the goal is the plan. It
// is approved with the contract and stays fixed.
func (l *deliver) plan(ctx workflow.Context) error {
	if _, planner := l.spec.Agent.Roles[spec.RolePlanner]; !planner || l.state.Plan != nil {
		return nil
	}
	if err := l.ready(); err != nil { // no agent is asked for nothing
		return err
	}
	for {
		out, err := l.call(ctx, spec.RolePlanner, nil)
		if err != nil {
			return err
		}
		v := verdictOf(out)
		if v.Failed = v.Failed || out.Plan == nil || strings.TrimSpace(out.Plan.Text) == ""; v.Failed && v.Why == "" {
			v.Why = "it printed no plan"
		}
		m := govern.AfterAgent(l.bounds(), l.course(), phase.Plan, v)
		switch {
		case m.End != nil:
			return stop(*m.End)
		case m.Again:
			l.again(ctx, m.Reason, out.Log)
			continue
		}
		c := govern.Draw(l.spec, l.state.Base, l.opened.Onto, l.state.Contract.Sealed)
		c.Plan = out.Plan.Hash
		l.opened.Contract = c.Hash()
		l.emit(ctx, loop.Event{Type: loop.PlanMade, Plan: out.Plan, Contract: &loop.Contract{
			Hash: c.Hash(), Base: c.Base, Sealed: c.Sealed, Tools: c.Tools,
		}})
		l.note, l.shown = "", ""
		return nil
	}
}

// work is one iteration: from write until the change is complete, or goes back to write in the next
// iteration.
func (l *deliver) work(ctx workflow.Context) (verdict, error) {
	l.turn, l.lastTest, l.prevTest, l.lastFix = 0, "", "", ""
	if n := len(l.state.Iterations); l.note == "" && n > 0 && l.state.Iterations[n-1].Reason != interrupted {
		l.note = l.state.Iterations[n-1].Reason // of the run before this one
	}
	v := verdict{}
	move := govern.Move{To: phase.Write}
	for {
		var err error
		switch l.state.Phase {
		case phase.Write:
			move, err = l.author(ctx, spec.RoleWriter, &v)
		case phase.Test:
			move, err = l.test(ctx, &v)
		case phase.Fix:
			if move.Regenerate { // the rules have given the approach up: nobody is asked
				l.note = move.Reason
				move = govern.Move{To: phase.Write, Reason: move.Reason}
				break
			}
			move, err = l.author(ctx, spec.RoleFixer, &v)
		case phase.Verify:
			move, err = l.verify(ctx, &v)
		}
		if err == nil && move.End != nil {
			err = stop(*move.End)
		}
		if err != nil || move.NextIteration {
			v.Reason, l.note = orElse(move.Reason, v.Reason), move.Reason
			return v, err
		}
		if move.Undo && l.lastFix != "" {
			if err := l.undo(ctx, l.lastFix, move.Reason, false); err != nil {
				return v, err
			}
			l.lastFix = ""
			l.lastTest, l.shown = l.prevTest, l.prevTest // the tests fail again as they did before it
		}
		if move.Skipped {
			l.emit(ctx, loop.Event{Type: loop.TestsSkipped, Reason: move.Reason})
		}
		if l.stopAsked != "" && move.To != phase.Complete { // an iteration may be long
			l.stopBy(ctx, l.stopAsked)
			return v, l.holdIfPaused(ctx)
		}
		if err := l.enter(ctx, move.To); err != nil {
			return v, err
		}
		if move.To == phase.Complete {
			end := govern.Verified
			v.Kept, v.End = true, &end
			return v, nil
		}
	}
}

// author has the writer or fixer work on the desk, then takes the change through the guard gate
// (L1). A rework begins where the phase began.
func (l *deliver) author(ctx workflow.Context, role string, v *verdict) (govern.Move, error) {
	at := l.state.Phase
	for {
		out, err := l.call(ctx, role, nil)
		if err != nil {
			return govern.Move{}, err
		}
		v.Evidence = append(v.Evidence, evidenceOf(out)...)
		if said := evidence.Description(out.Description); said != "" {
			v.Description = said
		}
		m := govern.AfterAgent(l.bounds(), l.course(), at, verdictOf(out))
		if m.Guard {
			if m, err = l.guard(ctx, at, v); err != nil {
				return m, err
			}
		}
		if !m.Again {
			l.note, l.shown = m.Reason, orElse(l.shown, out.Log)
			return m, nil
		}
		l.again(ctx, m.Reason, orElse(l.shown, out.Log))
	}
}

// guard is the gate out of write and fix: the policies judge the diff, the change is committed, the
// check and the guard command judge the commit. What it does not let pass is off the branch again.
func (l *deliver) guard(ctx workflow.Context, at phase.Phase, v *verdict) (govern.Move, error) {
	for {
		l.turn++
		c, err := l.take(ctx, orElse(v.Description, string(at)), l.turn)
		if err != nil {
			return govern.Move{}, err
		}
		judged := govern.GuardVerdict{Passed: true}
		event := loop.Event{Type: loop.ChangeJudged, Step: "guard", Judgement: &loop.Judgement{Passed: true, Policy: l.spec.Guard.Policy, Iteration: l.state.Iteration}}
		what := ""
		switch {
		case c.NoChange:
			if m := govern.AfterAgent(l.bounds(), l.course(), at, govern.AgentVerdict{NoChange: true}); !m.Guard {
				return m, nil
			}
			l.lastFix = ""
		case len(c.Violations) > 0:
			judged, event, what = govern.GuardVerdict{Violates: true, Why: broken(c.Violations)}, l.violated(c.Violations, true), broken(c.Violations)
		default:
			v.Files, v.Area, v.Tree = loop.Union(v.Files, c.Files), c.Area, c.Tree
			l.committed(ctx, c)
			if judged, event, err = l.commands(ctx, event); err != nil {
				return govern.Move{}, err
			}
			what = "the " + judged.Command + ": " + judged.Why
		}
		m := govern.AfterGuard(l.bounds(), l.course(), at, judged)
		if m.Block {
			if l.unjudged.Commit != "" {
				if err := l.undo(ctx, l.unjudged.Commit, "blocked", true); err != nil {
					return m, err
				}
			}
			event.Judgement.Blocked = true
			if err := l.block(ctx, event, what); err != nil {
				return m, err
			}
			continue
		}
		l.emit(ctx, event)
		if m.Again && l.unjudged.Commit != "" {
			return m, l.undo(ctx, l.unjudged.Commit, m.Reason, false)
		}
		if c.Commit != "" && m.End == nil {
			l.emit(ctx, loop.Event{Type: loop.ChangeAccepted, Commit: c.Commit})
			v.Accepted, l.lastFix, l.unjudged.Commit = c.Commit, c.Commit, ""
		}
		return m, nil
	}
}

// commands runs check and guard on the commit, the one after the other, until one of them fails;
// without any nothing is left to be said.
func (l *deliver) commands(ctx workflow.Context, passed loop.Event) (govern.GuardVerdict, loop.Event, error) {
	var steps []act.Step
	if l.spec.Check.Command != "" {
		steps = append(steps, l.checkStep())
	}
	if l.spec.Guard.Command != "" {
		steps = append(steps, l.guardStep())
	}
	judged := govern.GuardVerdict{Passed: true}
	for _, s := range steps {
		s.AsIs, s.Judge = false, nil // what is judged is what was committed, and passed the policies
		out, err := l.step(ctx, l.named(s))
		if err != nil {
			return judged, passed, err
		}
		name := s.Key.Name
		passed.Step, passed.Judgement = name, l.judgement(out, failed(out, map[string]string{"check": errSyntax, "guard": guardFail}[name]))
		judged = govern.GuardVerdict{Command: name, Passed: out.OK(), TimedOut: l.phaseOver(out), Why: howItEnded(out)}
		l.shown = ""
		if !out.OK() {
			l.shown = out.Log
			break
		}
	}
	return judged, passed, nil
}

// test runs the tests in the judge, a failure once more on the unchanged tree: what passes then is
// flaky, is reported and is not fixed.
func (l *deliver) test(ctx workflow.Context, v *verdict) (govern.Move, error) {
	out, err := l.runTests(ctx, l.lastTest)
	if err != nil {
		return govern.Move{}, err
	}
	judged := govern.TestVerdict{Passed: out.OK(), TimedOut: out.TimedOut}
	tests := *out.Tests
	inTime := l.phaseLeft().Milliseconds() > out.ElapsedMs // a second run takes as long as the first
	if !judged.Passed && !judged.TimedOut && inTime && govern.RerunDue(l.course(), tests.Signature, tests.Broken) {
		again, err := l.runTests(ctx, out.Log)
		if err != nil {
			return govern.Move{}, err
		}
		flaky := again.Tests.Fixed
		if again.OK() {
			flaky = tests.Failing
		}
		judged = govern.TestVerdict{Passed: again.OK(), TimedOut: again.TimedOut, Flaky: flaky}
		was := tests
		out, tests = again, *again.Tests
		// What the run before it is to be compared with is the run before the first.
		tests.Flaky, tests.New, tests.Fixed, tests.Worse = flaky, was.New, was.Fixed, was.Worse
	}
	l.prevTest, l.lastTest, v.Evidence = l.lastTest, out.Log, append(v.Evidence, evidenceOf(out)...)
	j := l.judgement(out, failed(out, "tests"))
	j.Tests = &tests
	l.emit(ctx, loop.Event{Type: loop.ChangeJudged, Step: "test", Judgement: j})
	m := govern.AfterTest(l.bounds(), l.course(), judged)
	l.note, l.shown = m.Reason, out.Log
	return m, nil
}

func (l *deliver) runTests(ctx workflow.Context, before string) (act.Stepped, error) {
	s := l.newStep("test", l.state.Attempt, act.Judge, shell(l.spec.Test.Command), l.spec.Test.Timeout.D())
	s.Tests = &act.Tests{Before: before}
	out, err := l.step(ctx, l.named(s))
	if err == nil && out.Tests == nil { // it could not be started
		out.Tests = &loop.Tests{Broken: true}
	}
	return out, err
}

// verify runs the verify command, then closes the change: proposal, review, approval.
func (l *deliver) verify(ctx workflow.Context, v *verdict) (govern.Move, error) {
	judged := govern.VerifyVerdict{Passed: true}
	if l.spec.Verify.Command != "" {
		out, err := l.step(ctx, l.named(l.verifyStep()))
		if err != nil {
			return govern.Move{}, err
		}
		judged = govern.VerifyVerdict{Passed: out.OK(), TimedOut: out.TimedOut, Why: howItEnded(out)}
		if t := l.spec.Verify.Target; out.OK() { // without a target a metric is optional here
			v.Metric = out.Metric
			switch {
			case t == nil:
			case out.Metric == nil:
				judged = govern.VerifyVerdict{Why: fmt.Sprintf("it prints no number (%s), the target is %s", out.NoNumber, t)}
			case !evidence.TargetMet(l.spec.Verify.Direction, *out.Metric, *t):
				judged = govern.VerifyVerdict{Why: fmt.Sprintf("the metric is %s, the target %s", out.Metric, t)}
			}
		}
		l.shown = out.Log
		reason := ""
		if !judged.Passed {
			reason = judged.Why
		}
		l.emit(ctx, loop.Event{Type: loop.ChangeJudged, Step: "verify", Metric: out.Metric, Judgement: l.judgement(out, reason)})
	}
	m := govern.AfterVerify(l.bounds(), l.course(), judged)
	if judged.Passed {
		if err := l.makeProposal(ctx); err != nil {
			return m, err
		}
	}
	for m.Review || m.Gate {
		if l.state.Proposal == nil { // the goal was reached without a change: there is nothing to look at
			return govern.Move{To: phase.Complete, Reason: "nothing had to be changed"}, nil
		}
		if m.Review {
			o, err := l.review(ctx)
			if err != nil {
				return m, err
			}
			if o.Decision == govern.SaysRejected {
				l.rejected(ctx, spec.RoleReviewer, o.Note)
			}
			m = govern.AfterReview(l.bounds(), l.course(), o)
			if m.Review {
				continue
			}
		}
		if m.Gate {
			approved, by, note, err := l.askDiff(ctx)
			if err != nil {
				return m, err
			}
			m = govern.AfterDiff(l.bounds(), l.course(), approved, by, note)
		} else if m.Approved {
			l.approved(ctx, spec.RoleReviewer, m.Reason)
		}
	}
	return m, nil
}

// again notes that the work of a phase is done once more, and why.
func (l *deliver) again(ctx workflow.Context, why, shown string) {
	l.note, l.shown = why, shown
	l.emit(ctx, loop.Event{Type: loop.RepairAttempted, FailureReason: why, Attempt: l.state.Attempt + 1})
}

// undo takes a commit back. With keep its change stays on the desk, for a person to mend.
func (l *deliver) undo(ctx workflow.Context, commit, why string, keep bool) error {
	parent := ""
	if last := l.state.LastChange; last != nil && last.Commit == commit {
		parent = last.Parent
	}
	_, err := l.append(ctx, act.SettleName, fmt.Sprintf("iteration %d: undo %s (%s)", l.state.Iteration, short(commit), loop.Clip(why, 100)),
		[]loop.Event{{Type: loop.ChangeReverted, Commit: commit, Reason: why}}, false, func(e act.Entry) any {
			return act.Settle{Entry: e, Revert: commit, Parent: parent, Keep: keep}
		})
	if err == nil && l.unjudged != nil && l.unjudged.Commit == commit {
		l.unjudged.Commit = ""
	}
	return err
}

// call asks an agent in the phase that the loop is in, within what is left of the phase's time.
func (l *deliver) call(ctx workflow.Context, role string, of *loop.Proposal) (act.Stepped, error) {
	s := l.agentStep(role, string(l.state.Phase), "", l.state.Attempt, repairOf{l.note, l.shown})
	s.Key.Name, s.Agent.Attempt, s.Agent.Proposal = role, l.state.Course.Reworks+1, of
	return l.step(ctx, l.named(s))
}

// named gives a step a name of its own within the iteration, and no more time than its phase has
// left.
func (l *deliver) named(s act.Step) act.Step {
	l.turn++
	s.Key.Attempt = l.turn
	return l.inTime(s)
}

// phaseOver reports whether a step was ended because the time of its phase was used up, and not its
// own (L10).
func (l *deliver) phaseOver(out act.Stepped) bool { return out.TimedOut && l.phaseLeft() == 0 }

// verdictOf is what came of an agent call, for the rules.
func verdictOf(out act.Stepped) govern.AgentVerdict {
	return govern.AgentVerdict{
		Failed: !out.OK(), TimedOut: out.TimedOut, Regenerate: out.Regenerate, GaveUp: out.GiveUp, Why: orElse(loop.Clip(agentFailure(out), 500), out.Description),
	}
}
