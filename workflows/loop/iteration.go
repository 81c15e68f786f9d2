package loop

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/metric/stats"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
	"pawl/internal/steward/task"
	"pawl/workflows/placement"
)

// iteration is one attempt at a change: what it has made so far, what it has spent, and why its next agent call is
// made. The state has its number and its commit.
type iteration struct {
	// For the record.
	description string
	files       []string
	area        string
	tree        string
	metric      *metric.Decimal
	delta       metric.Decimal
	samples     *stats.Judgement // the result of the evaluations, if several decide
	metrics     metric.Averages  // the further metrics
	evaluations int              // of verify, since the attempt began
	passing     int              // how many tests passed in the guard, if its output says that
	flaky       []string         // what failed in the guard, and then did not on the same tree
	vanished    string           // which tests of the unchanged code the guard no longer has
	guardFailed string           // the signature of the last attempt's failure in the guard, "" if it has none
	note        string           // about the change; it is not a verdict
	accepted    string           // the commit that passed the guard gate of a Deliver loop
	evidence    []string
	agents      []string // who made the change, if a role has several agents

	// About the last agent call.
	called   result.Class
	withheld []string // the tools that the agent was not allowed to use

	// For the next agent call.
	idea  string
	why   string // why it is called again
	shown string // the log that shows why

	phase      phase.Phase      // of a candidate; it is in none of the loop's phases
	reworked   map[string]int   // reworks by reason
	phaseMs    map[string]int64 // active time by phase (L10)
	phaseSpent int64            // active milliseconds since the phase was entered, without steps that were run again (L10)
	stopAsked  string           // which loop-stop file asks for the end, as a step saw it
}

// iterate runs one iteration: it records a checkpoint, the start and the spent budget before the work, and a record
// after it, whatever happens in between (A2, A3, A4).
func (r *run) iterate(ctx workflow.Context, first phase.Phase, p protocol) error {
	r.iteration = iteration{reworked: map[string]int{}, phaseMs: map[string]int64{}, shown: r.iteration.shown}
	if err := r.enter(ctx, first); err != nil {
		return err
	}
	if err := r.waitIfPaused(ctx, loop.PauseIteration); err != nil {
		return err
	}
	r.startIteration(ctx)
	p.begin(nil)
	return r.carryOut(ctx, first, p)
}

// carryOut does the work of an iteration, starting at a phase, records it, and does what follows before the next one.
func (r *run) carryOut(ctx workflow.Context, first phase.Phase, p protocol) error {
	var atBreakpoint error
	decision, err := r.drive(ctx, first, p)
	if err == nil {
		atBreakpoint, err = r.recordDecision(ctx, decision)
	}
	if errors.Is(err, placement.ErrLost) { // the decision is not recorded
		decision.End = nil
		err = r.giveUp(ctx)
	}

	switch {
	case err != nil:
		return err
	case atBreakpoint != nil:
		return atBreakpoint
	case decision.End != nil:
		return stop(*decision.End)
	}
	return p.between(ctx)
}

// recordDecision enters the phase log and settles the decision there. A person may end the loop at a breakpoint before that
// phase: the decision is recorded all the same, and atBreakpoint is how the loop ends then.
func (r *run) recordDecision(ctx workflow.Context, decision rules.Move) (atBreakpoint, err error) {
	atBreakpoint = r.enterLog(ctx)
	if errors.Is(atBreakpoint, placement.ErrLost) {
		return nil, atBreakpoint
	}
	return atBreakpoint, r.settle(ctx, decision)
}

// startIteration makes the checkpoint. The step that starts an agent appends it before the agent starts.
func (r *run) startIteration(ctx workflow.Context) {
	s := r.State()
	left := s.Budget.Spend(loop.Iterations, loop.Count(1)).Left()
	r.Emit(ctx, loop.Event{Type: loop.CheckpointCreated, Iteration: s.Iteration + 1, Head: s.Head})
	r.Emit(ctx, loop.Event{Type: loop.IterationStarted, Iteration: s.Iteration + 1, BudgetsRemaining: left})
	r.publishSoon(ctx)
}

// drive carries out the moves of an iteration: it does the work of each, and the rules return the next one.
func (r *run) drive(ctx workflow.Context, first phase.Phase, p protocol) (rules.Move, error) {
	move := rules.Move{Do: rules.Enter, To: first}
	do := p.work(move)
	for {
		if do == nil {
			return move, stop(rules.TransitionInvalid.Because(fmt.Sprintf("the phase %s has no work (%s)", r.State().Phase, move.Do)))
		}
		next, err := do(ctx, move)
		if err == nil && next.Do == rules.Block {
			next, err = r.block(ctx, next, p.decisions())
		}
		if err != nil {
			return next, err
		}
		switch move = next; move.Do {
		case rules.Finish:
			return move, nil
		case rules.Stop:
			return move, stop(*move.End)
		case rules.Again: // the same work
			r.iteration.why = move.Reason
			continue
		case rules.Block: // the same work judges what a person has fixed
			continue
		case rules.Rework:
			if err := r.rework(ctx, move); err != nil {
				return move, err
			}
		case rules.Enter:
			if err := p.leaving(ctx, move); err != nil {
				return move, err
			}
		}
		if move.To != phase.None {
			if err := r.enter(ctx, move.To); err != nil {
				return move, err
			}
		}
		do = p.work(move)
	}
}

// tries returns the number of the iteration's attempts, for the rules.
func (r *run) tries() rules.Tries {
	if c := r.candidate; c != nil {
		return rules.Tries{Reworked: r.iteration.reworked, Calls: c.Steps}
	}
	return rules.Tries{Reworked: r.iteration.reworked, Calls: r.State().IterationSteps}
}

// rework undoes an attempt and announces the next one.
func (r *run) rework(ctx workflow.Context, m rules.Move) error {
	r.iteration.why = cmp.Or(m.Why, m.Reason)
	r.iteration.reworked[m.Reason]++
	undone := r.recordOf(ctx, m)
	event := loop.Event{
		Type: loop.RepairAttempted, FailureReason: m.Reason, Reason: undone.Why(),
		Attempt: undone.Attempts + 1, Note: r.iteration.description,
	}
	if c := r.State().Unjudged(); c != nil {
		return r.undo(ctx, *c, m.Reason, false, event)
	}
	r.Emit(ctx, event)
	return nil
}

// undo reverts a commit and records more events with it. With keep, the change stays on the desk for a person.
func (r *run) undo(ctx workflow.Context, c loop.Change, cause string, keep bool, further ...loop.Event) error {
	events := append([]loop.Event{{Type: loop.ChangeReverted, Commit: c.Commit, Reason: cause}}, further...)
	summary := r.summary("undo %s (%s)", short(c.Commit), loop.Clip(cause, 100))
	return r.append(ctx, api.SettleName, summary, events, func(e api.Entry) any {
		return api.Settle{Entry: e, Revert: &api.Revert{Commit: c.Commit, Parent: c.Parent, KeepDesk: keep}}
	})
}

// commitChange commits the change on the desk, or returns why it can't. It asks for new files that need approval; the
// approval covers exactly the change that was shown. input has the description and the attempt.
func (r *run) commitChange(ctx workflow.Context, input api.Commit) (api.Committed, error) {
	for {
		if r.host.Uprooted {
			return api.Committed{}, placement.ErrLost
		}
		s := r.State()
		input.Ref, input.Ledger, input.Head, input.Iteration, input.Time = r.host.Opened.Ref, s.Ledger, s.Head, s.Iteration, workflow.Now(ctx).UTC()
		input.Desk, input.Leftovers = r.liesOn(), s.Leftovers
		var out api.Committed
		err := r.host.Execute(ctx, api.CommitName, r.summary("commit %q", loop.Clip(input.Description, 80)), func() any { return input }, &out)
		if err != nil || len(out.NewFiles) == 0 {
			return out, err
		}
		a, err := r.wait(ctx, loop.Gate{
			Kind: loop.GateNewFiles, Hash: out.NewFilesHash, On: out.NewFilesOn, Tree: out.Tree,
			Summary: fmt.Sprintf("approve %s (%s)", newFiles(out), loop.Clip(input.Description, 100)),
		})
		if err != nil {
			return out, err
		}
		if a.Message == loop.MessageReject {
			out.Violations = []api.Violation{{
				Policy: r.spec.Guard.Policy, Rule: spec.RuleNewFiles, Path: out.NewFiles[0], Detail: "rejected by " + cmp.Or(a.By, "a person") + noteOf(a),
			}}
			return out, nil
		}
		input.AllowNew = out.NewFilesHash
	}
}

// newFiles names new files of a change. The diff has all.
func newFiles(c api.Committed) string {
	total := max(c.NewFilesAll, len(c.NewFiles))
	text := metric.Counted(total, "new file") + rules.RunnableInWords(c.NewRunnable, total) + ": "
	return text + firstOf(c.NewFiles, total, wide-len(text))
}

// wide is how long a list of names may be.
const wide = 300

// firstOf names as many of all names as there is room for, and counts the others.
func firstOf(names []string, total, room int) string {
	text, named := "", 0
	for _, name := range names {
		if named > 0 && len(text)+len(name) > room {
			break
		}
		if named > 0 {
			text += ", "
		}
		text += loop.Clip(name, room)
		named++
	}
	if total > named {
		text += fmt.Sprintf(" and %d more", total-named)
	}
	return text
}

// tellLeftOut tells what the agent changed in submodules, which is in no commit. If it changed nothing else, the
// iteration's own words have that.
func (r *run) tellLeftOut(ctx workflow.Context, c api.Committed) {
	if text := leftOut(c); text != "" && !c.NoChange {
		r.Emit(ctx, loop.Event{Type: loop.Warned, Step: "commit", Reason: text})
	}
}

// leftOut says what of a change is in submodules, "" if nothing is.
func leftOut(c api.Committed) string {
	if len(c.LeftOut) == 0 {
		return ""
	}
	return "what is in submodules can't change, so this is left out: " + firstOf(c.LeftOut, c.LeftOutAll, wide)
}

// committed records that the branch now has a commit that nobody has judged.
func (r *run) committed(ctx workflow.Context, c api.Committed) {
	r.iteration.area, r.iteration.tree = c.Area, c.Tree
	r.Emit(ctx, loop.Event{Type: loop.ChangeCommitted, Commit: c.Commit, Tree: c.Tree, Head: c.Commit, Files: c.Files, TotalFiles: c.TotalFiles, Attempt: r.State().Attempt, Area: c.Area, Note: r.iteration.note})
}

// recording returns the phase in which the iteration is recorded, if it can be entered from here.
func (r *run) recording() (target phase.Phase, enter bool) {
	target = r.machine.Records()
	return target, target != phase.None && r.machine.Check(r.State().Phase, target) == nil
}

// enterLog enters the phase in which the iteration is recorded, if the loop's machine has one.
func (r *run) enterLog(ctx workflow.Context) error {
	if target, enter := r.recording(); enter {
		return r.enter(ctx, target)
	}
	return nil
}

// settle keeps or undoes the iteration's change and records the iteration, once and for all.
func (r *run) settle(ctx workflow.Context, m rules.Move) error {
	if target, enter := r.recording(); enter { // it was interrupted
		r.Emit(ctx, loop.Event{Type: loop.PhaseEntered, Phase: target, Attempt: r.State().Attempt})
	}
	iter, undone := r.iteration, r.State().Unjudged()
	record := r.recordOf(ctx, m)
	done := loop.Event{Type: loop.IterationSucceeded, Record: &record, Area: iter.area, EvidenceIDs: iter.evidence}
	if m.Measured {
		done.Metric = iter.metric
	}
	var events []loop.Event
	if !m.Kept {
		cause := cmp.Or(m.Reason, "no improvement")
		if undone != nil {
			events = append(events, loop.Event{Type: loop.ChangeReverted, Commit: undone.Commit, Reason: cause})
		}
		done.Type, done.FailureReason = loop.IterationFailed, cause
		done.Idea = iter.idea // what the loop knows decides which ideas are refused
		if m.Judged {
			done.Tree = iter.tree // the same tree need not be judged again
		}
	}
	events = append(events, done)
	err := r.append(ctx, api.SettleName, r.summary("%s", recordedAs(record)), events, func(e api.Entry) any {
		input := api.Settle{Entry: e, Push: m.Kept}
		if undone != nil && !m.Kept {
			input.Revert = &api.Revert{Commit: undone.Commit, Parent: undone.Parent}
		}
		return input
	})
	if err == nil {
		r.report(ctx, task.IterationEnded)
	}
	return err
}

// giveUp records an iteration that can't continue on another host as interrupted.
func (r *run) giveUp(ctx workflow.Context) error {
	s := r.State()
	r.Emit(ctx, loop.Event{
		Type: loop.LoopMoved, Phase: r.machine.Between(), Head: s.Head, Opened: &loop.Opened{Desk: s.Desk, Host: s.Host},
		FailureReason: reason.Interrupted, Reason: placement.ErrLost.Error(),
	})
	r.iteration = iteration{description: cmp.Or(r.iteration.description, placement.ErrLost.Error())}
	return r.settle(ctx, rules.Unfinished(rules.Interrupted))
}

// described returns what the iteration did, as its agents said it.
func (iter iteration) described() string {
	unsaid := "nothing was changed"
	if len(iter.files) > 0 {
		unsaid = undescribed
	}
	return cmp.Or(iter.description, unsaid)
}

// undescribed is the description of a change of which no agent said anything.
const undescribed = "change without a description"

// recordOf returns the record of the iteration. Unmeasured, it has the reference metric (P7), if there is one.
func (r *run) recordOf(ctx workflow.Context, m rules.Move) loop.Iteration {
	s, iter, now := r.State(), r.iteration, workflow.Now(ctx)
	record := loop.Iteration{
		N: s.Iteration, Description: iter.described(), Kept: m.Kept, Reason: m.Reason,
		Commit: iter.accepted, PhaseMs: maps.Clone(iter.phaseMs), DurationMs: now.Sub(s.IterationStart).Milliseconds(), Attempts: s.Attempt,
		Files: iter.files, Evidence: iter.evidence, EndedAt: now.UTC(), Metric: s.Best, Tree: iter.tree, Note: iter.note,
		Suspicious: m.Kept && m.Suspicious, Flaky: iter.flaky, Metrics: iter.metrics.Values(), Agent: strings.Join(iter.agents, ", "),
	}
	if m.Kept {
		record.Vanished = loop.Clip(iter.vanished, 300)
	}
	if note := flakyNote(iter.flaky); note != "" {
		record.Note = strings.TrimPrefix(record.Note+"; "+note, "; ")
	}
	if c := s.Unjudged(); c != nil {
		record.Commit = c.Commit
	}
	if b := s.Exploring(); b != nil {
		record.Branch = b.N
	}
	if m.Measured && iter.metric != nil {
		record.Metric, record.Delta = iter.metric, iter.delta
	} else {
		record.Unmeasured = s.Best != nil && iter.metric == nil
	}
	if j := iter.samples; j != nil && j.Samples > 0 {
		record.Samples, record.LLR = j.Samples, &j.LLR
		if j.Samples > 1 {
			record.Spread = &j.Spread
		}
	}
	return record
}

func recordedAs(iter loop.Iteration) string {
	word := "discarded"
	if iter.Kept {
		word = "kept"
	}
	if iter.Reason != "" {
		word += " (" + iter.Reason + ")"
	}
	if iter.Metric != nil {
		word += ", metric " + iter.Metric.String()
	}
	return word + ": " + loop.Clip(iter.Description, 80)
}

// violated returns the event of a change that violates policies.
func (r *run) violated(violations []api.Violation, blocked bool) loop.Event {
	j := &loop.Judgement{
		Blocked: blocked, Policy: cmp.Or(violations[0].Policy, "default"), Reason: reason.Policy + violations[0].Rule, Iteration: r.State().Iteration,
		Violations: list.Map(violations, api.Violation.String),
	}
	return loop.Event{Type: loop.ChangeJudged, Step: "policy", Judgement: j}
}

// block parks a change that violates a policy, or that the guard does not let pass. A person may continue, and the
// change is judged again, or reject it, and the rules decide what follows (L9). It never waives anything. It returns
// the blocking move if the change is to be judged again.
func (r *run) block(ctx workflow.Context, m rules.Move, decisions loopRules) (rules.Move, error) {
	if c := r.State().Unjudged(); c != nil {
		if err := r.undo(ctx, *c, "blocked", true); err != nil {
			return m, err
		}
	}
	desk := r.State().Desk
	if n := r.liesOn(); n != 0 {
		desk = fmt.Sprintf("%s.%d", desk, n)
	}
	a, err := r.wait(ctx, loop.Gate{
		Kind:    loop.GateGuard,
		Summary: fmt.Sprintf("the change is blocked by %s (fix it on the desk %s and continue, or reject it)", m.Reason, desk),
	})
	if s, ok := errors.AsType[*stopped](err); ok && s.end.Code == rules.Interrupted.Code {
		err = stop(decisions.AfterHalt(s.end.Reason))
	}
	if err == nil && a.Message == loop.MessageReject {
		return decisions.AfterReject(m, a.By, a.Note), nil
	}
	return m, err
}

// summary returns the text that the Temporal UI shows for an activity of the iteration.
func (r *run) summary(format string, args ...any) string {
	scope, n := "iteration", r.State().Iteration
	if c := r.candidate; c != nil {
		scope, n = "candidate", c.N
	}
	return fmt.Sprintf("%s %d: ", scope, n) + fmt.Sprintf(format, args...)
}

func short(commit string) string { return commit[:min(10, len(commit))] }
