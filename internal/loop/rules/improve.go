package rules

import (
	"cmp"
	"fmt"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/metric/stats"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
)

// Improve holds the rules of the metric protocol (P): the values that a spec sets, and the decisions. A decision is a
// method that takes the latest result and returns the next move.
type Improve struct {
	Version     int
	Direction   string // of the metric: metric.Higher or metric.Lower
	Target      *metric.Decimal
	MinDelta    metric.Threshold
	Discards    int                   // in a row: the loop stops
	ShiftAfter  int                   // discards in a row: the strategy shifts
	Calls       int                   // agent calls within an iteration (E4)
	Within      spec.Duration         // how long verify may take
	Guard       bool                  // there is a guard command
	Retries     int                   // guard.retries
	Ideas       bool                  // the agent is asked for an idea before it writes
	BlockSealed bool                  // limits.onSealed: a person is asked
	Evidence    string                // verify.evidence
	Suspicious  string                // verify.suspicious
	Samples     stats.Rules           // of a noisy metric
	Bounds      []metric.Bound        // metrics
	Holdout     bool                  // there is a verify.holdout.command
	Scratch     func(loop.State) bool // whether the head has to be judged from scratch before it is proposed
	Approval                          // to approve a completed loop's result; and limits.reworks of one kind within an iteration
}

// NewestVersion is the newest version of the rules, of Improve and of Deliver.
const NewestVersion = 7

// ImproveOf returns a version of the rules for a loop with that spec. A changed decision is a new version beside the old
// ones, because running loops keep theirs. Version 1 was the first, and
//
//   - version 2 recognises an idea that was discarded in other words too;
//   - in version 3 further samples of the unchanged code do not meet the target;
//   - in version 4 evaluations that are far from the others, but not rare, are levels of the metric and count as noise;
//   - in version 5 a metric that is sampled although it was never seen to vary takes three evaluations to keep a change, as
//     any other;
//   - version 6 trusts a number only if it comes from where the baseline's came from, and a guard that fails only if it
//     fails again; an improvement that is too good is measured once more, and marked or set aside;
//   - version 7 runs a guard that fails on the unchanged code again, as on a change.
func ImproveOf(s spec.Spec, version int) Improve {
	v := s.Verify
	return Improve{
		Version: version, Direction: v.Direction, Target: v.Target, MinDelta: v.MinDelta,
		Discards: s.Limits.Discards, ShiftAfter: s.Limits.ShiftAfter, Calls: s.Limits.Steps, Within: v.Timeout,
		Guard: s.Guard.Command != "", Retries: s.GuardRetries(), Ideas: s.Agent.OffersIdeas(), Approval: ApprovalOf(s),
		BlockSealed: s.OnSealed() == spec.Block,
		Evidence:    v.Judging(), Suspicious: v.OnSuspicious(), Bounds: s.Metrics, Holdout: v.Holdout.Command != "",
		Samples: stats.Rules{
			Direction: v.Direction, MinDelta: v.MinDelta, MaxSamples: v.MostSamples(), Calibration: v.Calibrations(),
			Levels: version >= 4, Exact: version >= 5,
		},
		Scratch: func(state loop.State) bool { return ScratchDue(state, s) },
	}
}

// Numbers that no spec sets.
const (
	agentFailures = 3 // error:agent in a row: the loop fails
	noNumbers     = 2 // error:no-number in a row: the command is at fault, not the change
	quickNothings = 5 // calls in a row that changed nothing, in under a second each: the agent does not work
)

// Tries is what the iteration has spent on its change so far.
type Tries struct {
	Reworked map[string]int // reworks by their reason
	Calls    int            // agent calls
}

// Before decides whether another iteration starts, and if not, how the loop ends. A loop has not completed if the agent
// has failed in every iteration, however few there were.
func (r Improve) Before(s loop.State) Move {
	m := r.before(s)
	if m.Do != Stop || len(s.Iterations) == 0 {
		return m
	}
	last := s.Iterations[len(s.Iterations)-1]
	cause := because(cmp.Or(last.Why(), last.Description))
	switch {
	case m.End.Code == AgentFailed.Code:
		return stops(AgentFailed.Because(AgentFailed.Reason + cause))
	case m.End.Status == loop.Completed && s.AgentFailures >= s.Iteration:
		return stops(AgentFailed.Because("the agent failed in every iteration" + cause))
	}
	return m
}

// before makes the checks in the order of E4: interrupted, timeout, max_steps. A success comes before a used-up limit.
func (r Improve) before(s loop.State) Move {
	best := s.Best
	if r.Version >= 3 {
		best = s.Reached()
	}
	switch {
	case s.HaltRequested != "":
		return stops(Interrupted.Because(s.HaltRequested))
	case r.Target != nil && best != nil && s.Exploring() == nil && metric.TargetMet(r.Direction, *best, *r.Target):
		return stops(TargetMet.Because(fmt.Sprintf("the target %s is met", r.Target)))
	case passedWaits(s):
	case s.AgentFailures >= agentFailures:
		return stops(AgentFailed)
	case s.DiscardsInARow >= r.Discards:
		often := metric.Counted(s.DiscardsInARow, "discard") + " in a row"
		if s.Backtrack != nil { // may include changes that a branch kept
			often = metric.Counted(s.DiscardsInARow, "iteration") + " in a row did not improve the head"
		}
		return stops(DiscardsInARow.Because(often + ": a person should look at what was tried and decide"))
	}
	free := s
	free.Budget = s.Budget.Keeping(loop.ActiveTime, r.Reserve(s))
	if spent := exhausted(free); spent != "" {
		return stops(BudgetEndOf(s, spent))
	}
	return enter(phase.Review, "")
}

// AfterReview decides whether an idea comes before the change: a queued one, or one that the agent is asked for (P2).
func (r Improve) AfterReview(queued int) Move {
	if r.Ideas || queued > 0 {
		return enter(phase.Ideate, "")
	}
	return enter(phase.Modify, "")
}

// IdeaVerdict is the result of asking for an idea.
type IdeaVerdict struct {
	Failed    string // how the agent failed, "" if it did not
	None      bool   // it offered no idea
	Discarded int    // the iteration that tried and discarded the same idea, 0 for none
	Idea      string
	Again     bool // another idea was asked for before
}

// AfterIdea decides what follows the ideator's answer (P2). An idea that was discarded before is refused once.
func (r Improve) AfterIdea(t Tries, v IdeaVerdict) Move {
	switch {
	case v.Failed != "" || v.None:
		return discard(reason.AgentFailed)
	case v.Discarded > 0 && !v.Again && t.Calls < r.Calls:
		return Move{Do: Again, Reason: fmt.Sprintf("the idea %q was tried in iteration %d and discarded", v.Idea, v.Discarded)}
	}
	return enter(phase.Modify, "")
}

// AfterWriter decides what follows the writer's call. The agent's own claim of success plays no part (P10).
func (r Improve) AfterWriter(failed bool) Move {
	if failed {
		return discard(reason.AgentFailed)
	}
	return Move{Do: RunCheck}
}

// AfterCheck decides what follows the check command; a spec without one passes (P3).
func (r Improve) AfterCheck(t Tries, passed bool) Move {
	if !passed {
		return r.rework(t, reason.CheckFailed)
	}
	return enter(phase.Commit, "")
}

// CommitVerdict is the result of taking the change from the desk.
type CommitVerdict struct {
	Nothing  bool   // the desk is as it was
	Rule     string // the first policy rule that the change breaks, "" for none
	Blocks   bool   // one of the broken rules requires a person
	Where    string // the first violation in words
	Repeated bool   // the same tree was judged before
	Sealed   bool   // the only blocking rule is that of sealed files
	Several  string // why it is not committed: it is several changes at once; "" if it is one, or may be several
}

// AfterCommit decides what follows P4. Policies are judged before anything is committed. A touched sealed file costs a
// rework and then the iteration, and so do several changes at once, unless the spec accepts them with a note (P2, P3). A
// secret blocks. A tree that was judged before is not measured again.
func (r Improve) AfterCommit(t Tries, v CommitVerdict) Move {
	switch {
	case v.Blocks && v.Sealed && !r.BlockSealed:
		m := r.rework(t, reason.Policy+v.Rule)
		m.Why = v.Where
		return m
	case v.Nothing:
		return discard(reason.NoChange)
	case v.Blocks:
		return Move{Do: Block, Reason: v.Where, Drop: reason.Policy + v.Rule}
	case v.Rule != "":
		return discard(reason.Policy + v.Rule)
	case v.Several != "":
		m := r.rework(t, reason.NotAtomic)
		m.Why = reason.NotAtomic + ": " + v.Several
		return m
	case v.Repeated:
		return discard(reason.Repeated)
	}
	return enter(phase.Verify, "")
}

// AfterReject decides what follows when a person rejects a blocked change: it is dropped, and the loop continues.
func (r Improve) AfterReject(blocked Move, _, _ string) Move { return discard(blocked.Drop) }

// Measurement is the result of the verify command.
type Measurement struct {
	TimedOut bool
	Waits    string // what to do if it waits for changes, "" if it does not
	Failed   bool   // exited other than with 0, or could not be started
	Number   bool   // it printed a number
	Better   bool   // the decision matrix would keep it, and no bound forbids that
	// Samples is what the samples of the change show so far, nil if one measurement decides.
	Samples *stats.Judgement
}

// Reason returns why nothing was measured, "" if something was (P5).
func (m Measurement) Reason() string {
	switch {
	case m.TimedOut:
		return reason.VerifySlow
	case m.Failed:
		return reason.VerifyFailed
	case !m.Number:
		return reason.NoNumber
	}
	return ""
}

// AfterVerify decides what follows P5. A timeout ends the loop with the iteration. If the metric would not keep the
// change, the guard need not run. If the metric is noisy, the guard runs before the change is evaluated a second time: as
// soon as its first evaluation is promising, or, if that is undecided, after a fresh evaluation of the reference.
func (r Improve) AfterVerify(v Measurement) Move {
	cause, j := v.Reason(), v.Samples
	switch {
	case v.TimedOut:
		m, end := discard(cause), VerifyTimeout.Because("verify took longer than "+r.Within.String())
		end.Advice = v.Waits
		m.End = &end
		return m
	case cause != "":
		return discard(cause)
	case !r.Guard:
	case j == nil:
		if v.Better {
			return enter(phase.Guard, "")
		}
	case j.Do == stats.Keep, j.Do == stats.MeasureCandidate, j.Do == stats.MeasureReference && j.LLR > 0:
		return enter(phase.Guard, "")
	case j.Do == stats.MeasureReference:
		return Move{Do: Again}
	}
	return enter(phase.Decide, "")
}

// AfterGuard decides what follows the guard command (P5.5).
func (r Improve) AfterGuard(t Tries, passed bool) Move {
	if passed {
		return enter(phase.Decide, "")
	}
	m := r.rework(t, reason.GuardFailed)
	m.Judged = m.Do == Finish
	return m
}

// Decide is the decision matrix (P6). delta is the metric minus the reference.
func (r Improve) Decide(reference, value metric.Decimal) (m Move, delta metric.Decimal) {
	keep, delta := metric.Decide(r.Direction, reference, value, r.MinDelta.Of(reference))
	return Move{Do: Finish, Kept: keep, Measured: true, Judged: true}, delta
}

// After decides what happens between two iterations: AskPerson if verify itself seems to be at fault (P5), else Enter.
func (r Improve) After(s loop.State) Move {
	if s.NoNumbers >= noNumbers && (r.Version < 6 || s.NoNumbers%noNumbers == 0) { // the reference had its number then
		return Move{Do: AskPerson, Reason: "verify printed no number twice in a row, so the command seems to be at fault, not the change", Choices: []string{Retry, HaltLoop}}
	}
	return enter(phase.Review, "")
}

// AfterReference decides what follows once the code that the changes are compared with was measured, because of changes
// without a number: it is a question only if that has none either. cause says why it has none, "" if it has one.
func (r Improve) AfterReference(question Move, cause string) Move {
	if cause == "" {
		return enter(phase.Review, "")
	}
	question.Reason = "verify printed no number twice in a row, and for the code without these changes neither: " + cause
	return question
}

// Idles reports whether the agent seems not to work at all: it answers at once, again and again, and changes nothing.
func (r Improve) Idles(s loop.State) bool { return r.Version >= 6 && s.QuickNothings >= quickNothings }

// The choices of a person when the verify command or the agent seems to be at fault.
const (
	Retry    = "retry"
	HaltLoop = "halt"
)

// AfterAnswer decides what follows the person's choice.
func (r Improve) AfterAnswer(choice, person string) Move {
	if choice == HaltLoop {
		return stops(Interrupted.Because("halted by " + cmp.Or(person, "a person") + ": verify prints no number"))
	}
	return enter(phase.Review, "")
}

// ShiftDue reports whether the strategy shifts now: after each ShiftAfter discards in a row, unless they end the loop
// (P8).
func (r Improve) ShiftDue(s loop.State) bool {
	n := s.DiscardsInARow
	return r.ShiftAfter > 0 && n > 0 && n < r.Discards && n%r.ShiftAfter == 0
}

// rework asks for another attempt, or discards if the reworks for that reason, or the agent calls, are used up.
func (r Improve) rework(t Tries, cause string) Move {
	allowed := r.Reworks
	if cause == reason.NotAtomic || cause == reason.Policy+spec.RuleSealed {
		allowed = min(allowed, 1)
	}
	if t.Reworked[cause] >= allowed || t.Calls >= r.Calls {
		return discard(cause)
	}
	return Move{Do: Rework, To: phase.Modify, Reason: cause}
}

func discard(reason string) Move { return Move{Do: Finish, Reason: reason} }

// Rewords reports whether an idea that was discarded is recognised in other words too.
func (r Improve) Rewords() bool { return r.Version >= 2 }
