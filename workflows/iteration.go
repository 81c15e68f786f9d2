package workflows

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/evidence"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/phase"
	"pawl/internal/spec"
)

// verdict is what an iteration came to: kept or not, why, and what shows it.
type verdict struct {
	Kept        bool
	Reason      string // why it is not kept, "" where the metric decided
	Description string
	Metric      *evidence.Decimal // its own measurement, nil without one
	Delta       evidence.Decimal
	Commit      string
	Parent      string
	Tree        string
	Files       []string
	Area        string
	Evidence    []string
	Attempts    int
	Accepted    string      // the commit that passed the guard gate of a Deliver loop
	End         *govern.End // the loop ends with this iteration
}

// iterate is the envelope around one attempt at a change: a budget before it, a checkpoint and
// its event before the start, a record after it, whatever happens in between (A2, A3, A4). What
// the body does is the loop's business.
func (r *run) iterate(ctx workflow.Context, first phase.Phase, body func(workflow.Context) (verdict, error)) error {
	r.phaseMs = map[string]int64{}
	if err := r.enter(ctx, first); err != nil {
		return err
	}
	if err := r.holdIfPaused(ctx); err != nil {
		return err
	}
	r.begin(ctx, r.state.Iteration+1)
	r.unjudged = &verdict{Attempts: 1}
	v, err := body(ctx)
	if err != nil && !errors.Is(err, errLost) {
		r.cut(v, err)
		return err
	}
	var held error
	if err == nil { // whatever a person says at a breakpoint there: what was decided is recorded
		if held = r.enterLog(ctx); errors.Is(held, errLost) {
			err, held = held, nil
		} else {
			err = r.settle(ctx, v)
		}
	}
	if errors.Is(err, errLost) {
		v.End, err = nil, r.giveUp(ctx, v)
	}
	if err != nil {
		return err
	}
	if held != nil {
		return held
	}
	if v.End != nil {
		return stop(*v.End)
	}
	return nil
}

// cut notes what an iteration had come to that ended the loop: its record is made by close. Why it
// is not kept is why the loop failed; anything else has interrupted it.
func (r *run) cut(v verdict, err error) {
	if r.unjudged == nil {
		return
	}
	v.Reason = ""
	if end, ok := isStopped(err); ok && end.Status == loop.Failed {
		v.Reason, _, _ = strings.Cut(end.Reason, "\n") // what to do about it is said elsewhere
	}
	v.Commit, v.Parent, v.Metric = r.unjudged.Commit, r.unjudged.Parent, nil
	*r.unjudged = v
}

// begin makes the checkpoint. The ledger has it before an agent is started: the step that starts
// one appends what is pending first.
func (r *run) begin(ctx workflow.Context, n int) {
	left := r.state.Budget.Spend(loop.Iterations, loop.Count(1)).Left()
	r.emit(ctx, loop.Event{Type: loop.CheckpointCreated, Iteration: n, Head: r.state.Head})
	r.emit(ctx, loop.Event{Type: loop.IterationStarted, Iteration: n, BudgetsRemaining: left})
	r.keepUp(ctx)
}

// take commits what is on the desk, or brings back why it can't be. New files that need approval
// are asked for; approved is exactly the change that was shown.
func (r *run) take(ctx workflow.Context, description string, attempt int) (act.Committed, error) {
	approved := ""
	for {
		if r.uprooted {
			return act.Committed{}, errLost
		}
		in := act.Commit{
			Ref: r.opened.Ref, Ledger: r.state.Ledger, Head: r.state.Head, AllowNew: approved,
			Iteration: r.state.Iteration, Attempt: attempt, Description: description, Time: workflow.Now(ctx).UTC(),
		}
		var out act.Committed
		err := r.execute(ctx, act.CommitName, fmt.Sprintf("iteration %d: commit %q", r.state.Iteration, loop.Clip(description, 80)), func() any { return in }, &out)
		if err != nil || len(out.NewFiles) == 0 {
			return out, err
		}
		a, err := r.hold(ctx, loop.Gate{
			Kind: loop.GateNewFiles, Hash: out.NewFilesHash,
			Summary: fmt.Sprintf("approve new files: %s (%s)", loop.Clip(strings.Join(out.NewFiles, ", "), 300), loop.Clip(description, 100)),
		})
		if err != nil {
			return out, err
		}
		if a.Message == "reject" {
			out.Violations = []act.Violation{{
				Policy: r.spec.Guard.Policy, Rule: spec.RuleNewFiles, Path: out.NewFiles[0], Detail: "rejected by " + orElse(a.By, "a person") + noteOf(a),
			}}
			return out, nil
		}
		approved = out.NewFilesHash
	}
}

// committed notes that the branch now has a commit that nobody has judged.
func (r *run) committed(ctx workflow.Context, c act.Committed) {
	r.unjudged.Commit, r.unjudged.Parent = c.Commit, r.state.Head
	r.emit(ctx, loop.Event{Type: loop.ChangeCommitted, Commit: c.Commit, Tree: c.Tree, Head: c.Commit, Files: c.Files, TotalFiles: c.TotalFiles, Attempt: r.state.Attempt, Area: c.Area})
}

// repair undoes an attempt and announces the next one.
func (r *run) repair(ctx workflow.Context, v verdict, reason string, next int) error {
	event := loop.Event{Type: loop.RepairAttempted, FailureReason: reason, Attempt: next, Note: v.Description}
	if v.Commit == "" {
		r.emit(ctx, event)
		return nil
	}
	undo := loop.Event{Type: loop.ChangeReverted, Commit: v.Commit, Reason: reason}
	_, err := r.append(ctx, act.SettleName, fmt.Sprintf("iteration %d: undo attempt %d (%s)", r.state.Iteration, next-1, reason),
		[]loop.Event{undo, event}, false, func(e act.Entry) any {
			return act.Settle{Entry: e, Revert: v.Commit, Parent: r.unjudged.Parent}
		})
	if err == nil {
		r.unjudged.Commit = ""
	}
	return err
}

// enterLog brings a loop whose machine has that phase to where its iteration is recorded.
func (r *run) enterLog(ctx workflow.Context) error {
	if to := r.machine.Records(); to != phase.None && r.machine.Check(r.state.Phase, to) == nil {
		return r.enter(ctx, to)
	}
	return nil
}

// settle keeps or undoes the iteration's change and records the iteration, once and for all.
func (r *run) settle(ctx workflow.Context, v verdict) error {
	v.Commit, v.Parent = r.unjudged.Commit, r.unjudged.Parent
	if to := r.machine.Records(); to != phase.None && r.machine.Check(r.state.Phase, to) == nil { // it was interrupted
		r.emit(ctx, loop.Event{Type: loop.PhaseEntered, Phase: to, Attempt: r.state.Attempt})
	}
	record := r.entry(ctx, v)
	done := loop.Event{Type: loop.IterationSucceeded, Record: &record, Metric: v.Metric, Area: v.Area, EvidenceIDs: v.Evidence}
	var events []loop.Event
	if !v.Kept {
		if v.Commit != "" {
			events = append(events, loop.Event{Type: loop.ChangeReverted, Commit: v.Commit, Reason: orElse(v.Reason, "no improvement")})
		}
		done.Type, done.FailureReason = loop.IterationFailed, orElse(v.Reason, "no improvement")
		if v.Metric != nil || v.Reason == guardFail {
			done.Tree = v.Tree // the same tree need not be judged again
		}
	}
	events = append(events, done)
	summary := fmt.Sprintf("iteration %d: %s", record.N, outcome(record))
	_, err := r.append(ctx, act.SettleName, summary, events, v.Kept, func(e act.Entry) any {
		in := act.Settle{Entry: e}
		if !v.Kept {
			in.Revert, in.Parent = v.Commit, v.Parent
		}
		return in
	})
	if err == nil {
		r.unjudged = nil
	}
	return err
}

// entry is the iteration as it stays. Without a measurement of its own, or with a guard that
// failed, it carries the reference metric (P7), where there is one.
func (r *run) entry(ctx workflow.Context, v verdict) loop.Iteration {
	now := workflow.Now(ctx)
	it := loop.Iteration{
		N: r.state.Iteration, Description: orElse(v.Description, "nothing was changed"), Kept: v.Kept, Reason: v.Reason,
		Commit: orElse(v.Commit, v.Accepted), PhaseMs: r.phaseMs, DurationMs: now.Sub(r.state.IterationStart).Milliseconds(), Attempts: max(v.Attempts, r.state.Attempt),
		Files: v.Files, Evidence: v.Evidence, EndedAt: now.UTC(),
	}
	it.Metric = r.state.Best
	if v.Metric != nil {
		it.Metric, it.Delta = v.Metric, v.Delta
	}
	return it
}

func outcome(it loop.Iteration) string {
	word := "discarded"
	if it.Kept {
		word = "kept"
	}
	if it.Reason != "" {
		word += " (" + it.Reason + ")"
	}
	if it.Metric != nil {
		word += ", metric " + it.Metric.String()
	}
	return word + ": " + loop.Clip(it.Description, 80)
}

// blocks reports whether a violation stops the loop for a person.
func blocks(violations []act.Violation) bool {
	for _, v := range violations {
		if v.Blocks {
			return true
		}
	}
	return false
}

// broken names the first rule that is broken, and where.
func broken(violations []act.Violation) string {
	return violations[0].Rule + ": " + violations[0].Where()
}

func (r *run) violated(violations []act.Violation, blocked bool) loop.Event {
	j := &loop.Judgement{
		Blocked: blocked, Policy: orElse(violations[0].Policy, "default"), Reason: "policy:" + violations[0].Rule, Iteration: r.state.Iteration,
	}
	for _, v := range violations {
		j.Violations = append(j.Violations, v.String())
	}
	return loop.Event{Type: loop.ChangeJudged, Step: "policy", Judgement: j}
}

// block parks a change that violates a policy, or that the guard does not let pass, until a person
// continues, which judges it again, or rejects it, which ends the loop (L9). It never waives
// anything.
func (r *run) block(ctx workflow.Context, e loop.Event, what string) error {
	r.emit(ctx, e)
	a, err := r.hold(ctx, loop.Gate{
		Kind:    loop.GateGuard,
		Summary: fmt.Sprintf("the change is blocked by %s (mend it on the desk %s and continue, or reject it)", what, r.state.Desk),
	})
	if err == nil && a.Message == "reject" {
		return stop(govern.BlockedGivenUp.Because("the blocked change was rejected by " + orElse(a.By, "a person") + noteOf(a)))
	}
	return err
}

func short(commit string) string {
	if len(commit) > 10 {
		return commit[:10]
	}
	return commit
}
