// Package workflows holds the loops as Temporal workflows: Improve, and the envelopes it stands
// in. From the outside in: improve.go is the machine of the metric protocol, iteration.go puts a
// checkpoint, a budget and a record around each attempt at a change, step.go a permission, a
// limit and an interrupt around each thing that runs; messages.go and gate.go are how people
// come in, details.go what they see. What is decided is decided in pure packages (govern, phase,
// evidence); the world is touched in activities. Start at Improve.
package workflows

import (
	"errors"
	"fmt"

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

// ByKind are the workflow functions by the name of their kind.
var ByKind = map[string]any{kind.Improve.Name: Improve, kind.Deliver.Name: Deliver}

// Improve runs the metric protocol (P): one change, commit, measure, keep or revert, again. Its
// input is the spec as one JSON object. The optional second argument starts the loop from a
// ledger. A loop that fails fails the workflow with its error code as the failure's type;
// everything else completes with a loop.Result.
func Improve(ctx workflow.Context, input converter.RawValue, resume Resume) (*loop.Result, error) {
	r, err := setup(ctx, kind.Improve, input, resume)
	if err != nil {
		return nil, err
	}
	l := &improve{run: r}
	return r.finish(ctx, l.loop(ctx))
}

// improve is the machine of the metric protocol.
type improve struct{ *run }

// loop runs the phases. It returns how the loop ended as a *stopped, or continues as new.
func (l *improve) loop(ctx workflow.Context) error {
	if l.opened.Ref == "" { // not continued as new
		if err := l.precheck(ctx); err != nil {
			return err
		}
	}
	if l.state.Baseline == nil {
		if err := l.baseline(ctx); err != nil {
			return err
		}
	}
	if l.state.Contract.ApprovedAt == nil {
		if err := l.agree(ctx); err != nil {
			return err
		}
	}
	for {
		if end, over := govern.Stop(l.state, l.thresholds()); over {
			if err := l.conclude(ctx, end); err != nil {
				return err
			}
			continue // a person has extended the budget
		}
		if err := l.continueAsNewIfLong(ctx); err != nil {
			return err
		}
		if err := l.iterate(ctx, phase.Review, l.attempts); err != nil {
			return err
		}
		if err := l.reflect(ctx); err != nil {
			return err
		}
	}
}

// conclude ends the loop that is over, unless a person extends the budget that it used up. What a
// completed loop has made is proposed.
func (l *improve) conclude(ctx workflow.Context, end govern.End) error {
	if end.Budget != "" && l.spec.Limits.OnExhausted == spec.Ask {
		return l.exhausted(ctx, end)
	}
	if end.Status == loop.Completed {
		if err := l.enter(ctx, phase.Complete); err != nil {
			return err
		}
		if err := l.propose(ctx); err != nil {
			return err
		}
	}
	return stop(end)
}

func (l *improve) thresholds() govern.Thresholds {
	return govern.Thresholds{
		Direction: l.spec.Verify.Direction, Target: l.spec.Verify.Target,
		Discards: l.spec.Limits.Discards, ShiftAfter: l.spec.Limits.ShiftAfter,
	}
}

// precheck is phase 0: the repository's preconditions, then store, desk and judge (P0).
func (l *improve) precheck(ctx workflow.Context) error {
	if err := l.enter(ctx, phase.Precheck); err != nil {
		return err
	}
	return l.open(ctx)
}

// baseline dry-runs verify and guard on the unchanged code and takes the metric as iteration 0.
func (l *improve) baseline(ctx workflow.Context) error {
	if err := l.enter(ctx, phase.Baseline); err != nil {
		return err
	}
	verify, err := l.step(ctx, l.verifyStep())
	if err != nil {
		return err
	}
	if why := l.verifyFailure(verify); why != "" {
		return notReady("the verify command fails on the unchanged code (%s): `%s`%s\nRun it in a fresh clone: it has to exit 0 and print a number.", explain(why, verify), l.spec.Verify.Command, where(verify))
	}
	if l.spec.Guard.Command != "" {
		guard, err := l.step(ctx, l.guardStep())
		if err != nil {
			return err
		}
		if !guard.OK() {
			return notReady("the guard command fails on the unchanged code (%s): `%s`%s\nRun it in a fresh clone: it has to exit 0 before there is anything to guard.", howItEnded(guard), l.spec.Guard.Command, where(guard))
		}
	}
	l.emit(ctx, loop.Event{Type: loop.BaselineMeasured, Metric: verify.Metric, Judgement: l.judgement(verify, "")})
	return nil
}

// attempts is one iteration's work: an idea, then attempts at it until one is kept, discarded or
// the reworks are used up.
func (l *improve) attempts(ctx workflow.Context) (verdict, error) {
	idea, v, err := l.ideate(ctx)
	if err != nil || v.Reason != "" {
		return v, err
	}
	reworked := map[string]int{}
	repair := repairOf{}
	for attempt := 1; ; attempt++ {
		v, repair, err = l.attempt(ctx, idea, attempt, repair)
		v.Attempts = attempt
		if err != nil || repair.reason == "" {
			return v, err
		}
		reworked[repair.reason]++
		if reworked[repair.reason] > l.reworksFor(repair.reason) || l.state.IterationSteps >= l.spec.Limits.Steps {
			return v, nil
		}
		if err := l.repair(ctx, v, repair.reason, attempt+1); err != nil {
			return v, err
		}
	}
}

// reworksFor returns how often an attempt that failed so is reworked. A description that names
// several changes gets one rework, everything else what the spec allows.
func (l *improve) reworksFor(reason string) int {
	if reason == notAtomic && l.spec.Limits.Reworks > 1 {
		return 1
	}
	return l.spec.Limits.Reworks
}

// repairOf says why an attempt gets another one, and what shows it.
type repairOf struct {
	reason   string
	evidence string
}

// The reasons for which a change is not kept; they stand before the description in the results.
const (
	notAtomic   = "not-atomic"
	noChange    = "no-change"
	repeated    = "repeat"
	guardFail   = "guard-fail"
	errAgent    = "error:agent"
	errSyntax   = "error:syntax"
	errCrash    = "error:verify-crash"
	errTimeout  = "error:timeout"
	errNoNumber = "error:no-number"
	interrupted = "interrupted"
)

// attempt makes one change and judges it. A repair with a reason asks for another attempt.
func (l *improve) attempt(ctx workflow.Context, idea string, n int, why repairOf) (verdict, repairOf, error) {
	v, again, err := l.modify(ctx, idea, n, why)
	if err != nil || v.Reason != "" {
		return v, again, err
	}
	if v, again, err = l.commit(ctx, v, n); err != nil || v.Reason != "" {
		return v, again, err
	}
	if v, err = l.verify(ctx, v); err != nil || v.Reason != "" {
		return v, repairOf{}, err
	}
	if v, again, err = l.guard(ctx, v); err != nil || v.Reason != "" {
		return v, again, err
	}
	return l.decide(ctx, v)
}

// ideate asks an agent that offers ideas for one change, or takes a queued one (P2).
func (l *improve) ideate(ctx workflow.Context) (string, verdict, error) {
	if !l.spec.Agent.OffersIdeas() && len(l.state.Ideas) == 0 {
		return "", verdict{}, nil
	}
	if err := l.enter(ctx, phase.Ideate); err != nil {
		return "", verdict{}, err
	}
	if len(l.state.Ideas) > 0 {
		idea := l.state.Ideas[0]
		l.emit(ctx, loop.Event{Type: loop.IdeaTaken, Idea: idea})
		return idea, verdict{}, nil
	}
	why := repairOf{}
	for attempt := 1; ; attempt++ {
		out, err := l.step(ctx, l.agentStep("ideator", "ideate", "", attempt, why))
		if err != nil {
			return "", verdict{}, err
		}
		parts := evidence.Split(evidence.Description(orElse(out.Idea, out.Description)))
		if fail := agentFailure(out); fail != "" || len(parts) == 0 { // "and" alone is none either
			return "", verdict{Reason: errAgent, Description: orElse(fail, "the agent offered no idea")}, nil
		}
		if n, known := l.state.Analysis.Discarded(parts[0]); known && attempt == 1 && l.state.IterationSteps < l.spec.Limits.Steps {
			why = repairOf{reason: fmt.Sprintf("the idea %q was tried in iteration %d and discarded", parts[0], n)}
			continue
		}
		for _, rest := range parts[1:] {
			l.emit(ctx, loop.Event{Type: loop.IdeaQueued, Idea: rest})
		}
		return parts[0], verdict{}, nil
	}
}

// modify lets the agent change the desk, then checks syntax and atomicity (P2, P3).
func (l *improve) modify(ctx workflow.Context, idea string, n int, why repairOf) (verdict, repairOf, error) {
	if err := l.enterAttempt(ctx, phase.Modify, n); err != nil {
		return verdict{}, repairOf{}, err
	}
	out, err := l.step(ctx, l.agentStep("writer", "modify", idea, n, why))
	if err != nil {
		return verdict{}, repairOf{}, err
	}
	v := verdict{Description: evidence.Description(orElse(out.Description, idea)), Evidence: evidenceOf(out)}
	if fail := agentFailure(out); fail != "" {
		v.Reason, v.Description = errAgent, orElse(v.Description, fail)
		return v, repairOf{}, nil
	}
	if v.Description == "" {
		v.Description = "change without a description"
	}
	if l.spec.Check.Command != "" {
		check, err := l.step(ctx, l.checkStep())
		if err != nil {
			return verdict{}, repairOf{}, err
		}
		if !check.Violates { // else commit says what
			l.emit(ctx, loop.Event{Type: loop.ChangeJudged, Step: "check", Judgement: l.judgement(check, failed(check, errSyntax))})
		}
		if !check.OK() {
			v.Reason, v.Evidence = errSyntax, append(v.Evidence, evidenceOf(check)...)
			return v, repairOf{errSyntax, check.Log}, nil
		}
	}
	if !evidence.Atomic(v.Description) {
		v.Reason = notAtomic
		return v, repairOf{reason: notAtomic}, nil
	}
	return v, repairOf{}, nil
}

// commit takes the change before anything judges it (P4). A violation of a policy is not
// committed: it discards, or blocks the loop for a person where the rule says so.
func (l *improve) commit(ctx workflow.Context, v verdict, n int) (verdict, repairOf, error) {
	if err := l.enterAttempt(ctx, phase.Commit, n); err != nil {
		return v, repairOf{}, err
	}
	for {
		c, err := l.take(ctx, v.Description, n)
		if err != nil {
			return v, repairOf{}, err
		}
		v.Tree, v.Files, v.Area = c.Tree, c.Files, c.Area
		switch {
		case c.NoChange:
			v.Reason = noChange
			return v, repairOf{}, nil
		case len(c.Violations) > 0 && blocks(c.Violations):
			if err := l.block(ctx, l.violated(c.Violations, true), broken(c.Violations)); err != nil {
				return v, repairOf{}, err
			}
			continue
		case len(c.Violations) > 0:
			l.emit(ctx, l.violated(c.Violations, false))
			v.Reason = "policy:" + c.Violations[0].Rule
			return v, repairOf{}, nil
		}
		if tried, known := l.tried(c.Tree); known {
			v.Commit, v.Metric, v.Reason = c.Commit, tried.Metric, repeated
			l.committed(ctx, c)
			if v.Metric != nil {
				_, v.Delta = evidence.Decide(l.spec.Verify.Direction, *l.state.Best, *v.Metric, l.spec.Verify.MinDelta)
			}
			return v, repairOf{}, nil
		}
		v.Commit = c.Commit
		l.committed(ctx, c)
		return v, repairOf{}, nil
	}
}

// tried finds the tree among those that were judged and discarded.
func (l *improve) tried(tree string) (loop.Tried, bool) {
	for _, t := range l.state.Tried {
		if t.Tree == tree {
			return t, true
		}
	}
	return loop.Tried{}, false
}

// verify measures the commit (P5).
func (l *improve) verify(ctx workflow.Context, v verdict) (verdict, error) {
	if err := l.enter(ctx, phase.Verify); err != nil {
		return v, err
	}
	out, err := l.step(ctx, l.verifyStep())
	if err != nil {
		return v, err
	}
	v.Metric, v.Evidence = out.Metric, append(v.Evidence, evidenceOf(out)...)
	v.Reason = l.verifyFailure(out)
	if v.Reason == errTimeout {
		end := govern.VerifyTimeout.Because(fmt.Sprintf("verify took longer than %s", l.spec.Verify.Timeout))
		v.End = &end
	}
	l.emit(ctx, loop.Event{Type: loop.ChangeJudged, Step: "verify", Metric: out.Metric, Judgement: l.judgement(out, v.Reason)})
	if v.Reason != "" {
		v.Metric = nil
	}
	return v, nil
}

// guard runs the guard command on the commit that verify measured (P5.5).
func (l *improve) guard(ctx workflow.Context, v verdict) (verdict, repairOf, error) {
	if l.spec.Guard.Command == "" {
		return v, repairOf{}, nil
	}
	if err := l.enter(ctx, phase.Guard); err != nil {
		return v, repairOf{}, err
	}
	out, err := l.step(ctx, l.guardStep())
	if err != nil {
		return v, repairOf{}, err
	}
	l.emit(ctx, loop.Event{Type: loop.ChangeJudged, Step: "guard", Judgement: l.judgement(out, failed(out, guardFail))})
	v.Evidence = append(v.Evidence, evidenceOf(out)...)
	if !out.OK() {
		v.Reason, v.Metric = guardFail, nil
		return v, repairOf{guardFail, out.Log}, nil
	}
	return v, repairOf{}, nil
}

// decide is the decision matrix (P6).
func (l *improve) decide(ctx workflow.Context, v verdict) (verdict, repairOf, error) {
	if err := l.enter(ctx, phase.Decide); err != nil {
		return v, repairOf{}, err
	}
	v.Kept, v.Delta = evidence.Decide(l.spec.Verify.Direction, *l.state.Best, *v.Metric, l.spec.Verify.MinDelta)
	return v, repairOf{}, nil
}

// reflect is what happens between iterations: a shift of strategy after discards in a row (P8),
// and a question where the verify command itself seems to be at fault (P5).
func (l *improve) reflect(ctx workflow.Context) error {
	if govern.ShiftDue(l.state, l.thresholds()) && l.state.DiscardsInARow < l.spec.Limits.Discards {
		l.emit(ctx, loop.Event{
			Type: loop.StrategyShifted, Reason: fmt.Sprintf("%d discards in a row", l.state.DiscardsInARow),
			Note: loop.Clip(l.state.Analysis.Markdown(1024), 1024),
		})
	}
	for l.state.NoNumbers >= 2 {
		a, err := l.hold(ctx, loop.Gate{
			Kind:    loop.GateQuestion,
			Summary: fmt.Sprintf("verify printed no number twice in a row, so the command and not the change seems to be at fault: `%s`", l.spec.Verify.Command),
			Choices: []string{"retry", "halt"},
		})
		switch {
		case err != nil:
			return err
		case a.Choice == "halt":
			return stop(govern.Interrupted.Because("halted by " + orElse(a.By, "a person") + ": verify prints no number"))
		case a.Message == "answer":
			return nil
		}
		if approved, err := l.amend(ctx, a); err != nil || approved {
			return err
		}
	}
	return nil
}

// verifyFailure returns the reason for which a verify step measured nothing, "" where it did.
func (l *improve) verifyFailure(out act.Stepped) string {
	switch {
	case out.TimedOut:
		return errTimeout
	case !out.OK():
		return errCrash
	case out.Metric == nil:
		return errNoNumber
	}
	return ""
}

// agentFailure says how an agent call failed, "" where it did not.
func agentFailure(out act.Stepped) string {
	switch {
	case out.GiveUp != "":
		return "the agent gave up: " + out.GiveUp
	case !out.OK():
		return "the agent failed (" + howItEnded(out) + ")"
	}
	return ""
}

// isStopped takes the end out of an error.
func isStopped(err error) (govern.End, bool) {
	var s *stopped
	if errors.As(err, &s) {
		return s.end, true
	}
	return govern.End{}, false
}
