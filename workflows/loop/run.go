package loop

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
	"pawl/internal/steward/task"
	"pawl/workflows/display"
	"pawl/workflows/gates"
	"pawl/workflows/journal"
	"pawl/workflows/placement"
)

// Resume is the second, optional argument of a loop.
type Resume = launch.Resume[Carry]

// Carry is everything that the next run needs.
type Carry struct {
	journal.Saved[loop.State]
	Opened api.Opened `json:"opened"`
}

// run is one run of a loop of any kind. Each part owns its fields. What the parts do together is in this file, main.go,
// iteration.go, step.go, contract.go and proposal.go.
type run struct {
	*journal.Journal[loop.State]                           // the state, and the one way to change it
	keeper                       *gates.Keeper[loop.State] // people
	host                         *placement.Host           // where things run
	notifier                     display.Notifier          // who is told
	reports                      reports                   // what its steward has been told
	attributes                   display.Attributes        // what Temporal lists about it
	diffs                        display.Diffs             // what its gates ask about, for the details
	iteration                    iteration                 // the attempt at a change that is under way

	kind    kind.Kind
	spec    spec.Spec
	machine phase.Machine
	rules   workflow.Version // the version of the rules, chosen once for each run
	from    string           // the ledger commit to continue from, "" for none
	repeats int              // steps that were repeated in this run
	setups  setups           // of trees
	reserve func() int64     // active milliseconds that are reserved: no step of an iteration may spend them
	midway  phase.Phase      // the phase in which an iteration of an earlier run continues; None if there is none
	since   []loop.Event     // the events of that iteration
	// guardRuns says that the guard noticed, on the unchanged code, that functions only fail.
	guardRuns   bool
	guardTested *loop.Tested // what it tested there, nil if that is not known
	notes       []string     // what a person should know before approving the contract
	goneNoted   string       // the last warning of tests that vanished

	// In a run for one candidate (aside): which candidate, and the desk on which it is made.
	candidate *loop.Candidate
	apart     *apart
}

// setup restores what an earlier run carried over, registers the handlers and reads the input. An invalid spec fails
// the workflow with all its problems.
func setup(ctx workflow.Context, k kind.Kind, input converter.RawValue, resume Resume) (*run, error) {
	info := workflow.GetInfo(ctx)
	carry := Carry{Saved: journal.Saved[loop.State]{State: loop.New(info.WorkflowExecution.ID, k.Name)}}
	if resume.Carry != nil {
		carry = *resume.Carry
	}
	r := &run{kind: k, reserve: func() int64 { return 0 }, rules: newestRules(ctx), from: resume.Ledger, diffs: display.DiffsOf(ctx), iteration: iteration{reworked: map[string]int{}}, Journal: journal.New(ctx, carry.Saved)}
	r.host = placement.New(r.Journal, carry.Opened, func() spec.Spec { return r.spec }, r.begun, r.show)
	r.keeper = gates.New(r.Journal, gates.Rules{
		Messages: loop.Messages, Check: r.checkMessage, Answers: rules.Answers, Show: r.show,
		Record: func(ctx workflow.Context, summary string, late bool) error {
			return r.record(ctx, summary, late && r.parkable())
		},
		Notify:   func(ctx workflow.Context, event loop.Type, _, reason string) { r.notify(ctx, event, reason) },
		Patience: func(loop.Gate) time.Duration { return r.spec.Approvals.EscalateAfter.D() },
	})
	if r.rules >= 6 {
		r.host.Halting = r.keeper.Halting
	}
	parsed, err := parse(k, info.WorkflowExecution.ID, input) // before the handlers: with them come messages that this run was started with
	if fresh := resume == (Resume{}); err == nil && fresh {
		err = parsed.Kept()
	}
	if err == nil {
		r.spec, r.machine = parsed, k.Machine(int(r.rules), parsed.TestRequired())
	}
	if err := r.handleQueries(ctx); err != nil {
		return nil, err
	}
	if err := r.keeper.Handle(ctx); err != nil {
		return nil, err
	}
	if err != nil {
		end := rules.SpecInvalid.Because(err.Error())
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			end = rules.SpecInvalid.Of(f)
		}
		_, err = r.finish(ctx, stop(end))
		return nil, err
	}
	r.show(ctx)
	return r, nil
}

// parse reads the spec strictly, and checks its kind and its name against the workflow.
func parse(k kind.Kind, id string, input converter.RawValue) (spec.Spec, error) {
	if err := k.Takes(input.Payload().GetData()); err != nil {
		return spec.Spec{}, err
	}
	s, err := spec.Parse(input.Payload().GetData())
	if err != nil {
		return spec.Spec{}, err
	}
	if err := s.ValidateInput(); err != nil {
		return spec.Spec{}, err
	}
	if s.Name != "" && !strings.HasPrefix(id, s.Name) {
		return spec.Spec{}, fmt.Errorf("name: the workflow ID %q must begin with the spec's name %q", id, s.Name)
	}
	return s, nil
}

// append writes the pending events, and more, to the ledger in one activity.
func (r *run) append(ctx workflow.Context, name, summary string, events []loop.Event, input func(api.Entry) any) error {
	cut := false
	out, err := r.Append(ctx, events, func(entry func() api.Entry) (out api.Appended, adopted bool, err error) {
		write := func(ctx workflow.Context) error {
			return r.host.Execute(ctx, name, summary, func() any {
				e := entry()
				e.Ref, e.Hasty = r.host.Opened.Ref, r.host.IsHasty(ctx)
				return input(e)
			}, &out)
		}
		err = write(ctx)
		cut = temporal.IsCanceledError(err)
		if cut && len(events) > 0 && r.rules >= 6 {
			err = r.writeAgain(ctx, write, err)
		}
		if errors.Is(err, placement.ErrRecorded) {
			return api.Appended{}, true, nil
		}
		return out, false, err
	})
	if r.host.Halting != nil && cut { // the halt that ended it has its turn now
		_ = workflow.Await(ctx, func() bool { return r.State().HaltRequested != "" || r.keeper.Halting() == "" })
	}
	if err != nil {
		return err
	}
	if out.PushRefused != "" {
		r.Emit(ctx, loop.Event{Type: loop.PushRefused, Reason: out.PushRefused})
	}
	if !r.State().Status.Ended() {
		for _, mended := range out.Mended {
			r.Emit(ctx, loop.Event{Type: loop.Warned, Reason: mended})
		}
	}
	r.stopBy(ctx, out.Stop)
	r.show(ctx)
	return nil
}

// writeAgain makes an append again that was cancelled: the ledger may have the entry although nobody said so, and then it
// is found there. A loop that ended without these events would be behind its ledger.
func (r *run) writeAgain(ctx workflow.Context, write func(workflow.Context) error, cancelled error) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	err := write(placement.Hastily(ctx))
	if err == nil || errors.Is(err, placement.ErrRecorded) {
		return err
	}
	workflow.GetLogger(ctx).Warn("a cancelled append can't be made again", "error", err)
	return cancelled
}

// record appends what happened between iterations and publishes it; the loop's processes end. park removes the trees.
func (r *run) record(ctx workflow.Context, summary string, park bool) error {
	r.publish(ctx)
	if !r.host.IsOpen() {
		return nil
	}
	return r.append(ctx, api.RecordName, summary, nil, func(e api.Entry) any {
		return api.Record{Entry: e, Park: park}
	})
}

// stopBy treats a loop-stop file as a halt; why is "" if there is none.
func (r *run) stopBy(ctx workflow.Context, cause string) {
	if s := r.State(); cause != "" && s.HaltRequested == "" && !s.Status.Ended() {
		r.Emit(ctx, loop.Event{Type: loop.MessageReceived, Message: loop.MessageHalt, Reason: cause, By: "loop-stop"})
	}
}

// enter moves the machine to a phase (L6) and stops at a breakpoint there (L4). It stops each time that the loop
// enters the phase, even if a rework or a fix returns to it within an iteration.
func (r *run) enter(ctx workflow.Context, next phase.Phase) error {
	s := r.State()
	if err := r.machine.Check(s.Phase, next); err != nil {
		return stop(rules.TransitionInvalid.Because(err.Error()))
	}
	r.Emit(ctx, loop.Event{Type: loop.PhaseEntered, Phase: next, Attempt: s.Attempt})
	r.iteration.phaseSpent = 0
	if slices.Contains(r.spec.Breakpoints, string(next)) {
		_, err := r.wait(ctx, loop.Gate{Kind: loop.GateBreakpoint, Summary: fmt.Sprintf("breakpoint at %s", next)})
		return err
	}
	return nil
}

// open makes store, desk and judge ready, and begins the loop or resumes the one in the ledger.
func (r *run) open(ctx workflow.Context, p protocol) error {
	if err := r.host.Open(ctx, r.from); err != nil {
		return err
	}
	if o := &r.host.Opened; o.State != nil {
		s := *o.State
		r.since, o.Since, o.State = o.Since, nil, nil // the next run need not get them
		return r.resume(ctx, s, p)
	}
	r.begun(ctx)
	if cause := r.host.Opened.Stop; cause != "" {
		r.stopBy(ctx, cause)
		return stop(rules.Interrupted.Because(cause))
	}
	return nil
}

// begun records the beginning of a loop, as its host has opened it.
func (r *run) begun(ctx workflow.Context) {
	o := r.host.Opened
	r.Emit(ctx, loop.Event{Type: loop.LoopOpened, Opened: &loop.Opened{
		Kind: r.State().Kind, Goal: r.spec.Goal, Repo: o.Repo, Branch: o.Branch, Base: o.Base, Begun: o.Begun, Desk: o.Desk, Host: o.Host, Limits: rules.Limits(r.spec),
		Steward: r.spec.Session[spec.SessionSteward], Backtrack: r.spec.Backtracks(),
	}})
	r.remember(ctx)
	r.Emit(ctx, loop.Event{Type: loop.ContractDrawn, Contract: &loop.Contract{
		Hash: o.Contract, Base: o.Base, Sealed: o.Sealed, Tools: r.spec.Approvals.Tools,
	}})
	for _, w := range o.Warnings {
		r.noteForContract(ctx, "", w)
	}
}

// noteForContract records a warning, which the contract repeats if it is not approved yet.
func (r *run) noteForContract(ctx workflow.Context, step, text string) {
	r.Emit(ctx, loop.Event{Type: loop.Warned, Step: step, Reason: text})
	if c := r.State().Contract; c == nil || c.ApprovedAt == nil {
		r.notes = append(r.notes, text)
	}
}

// noteGone records that tests vanished, once for each set of tests.
func (r *run) noteGone(ctx workflow.Context, text string) {
	if text == "" || text == r.goneNoted {
		return
	}
	r.goneNoted = text
	r.Emit(ctx, loop.Event{Type: loop.Warned, Step: "guard", Reason: text})
}

// resume continues from a ledger that another run has left, on this or another host. An iteration that was under way
// continues where it was in the ledger. If that is not known, it is recorded as interrupted, and a commit that nobody
// has judged is undone. Whoever has halted or paused the loop still wants that.
func (r *run) resume(ctx workflow.Context, s loop.State, p protocol) error {
	if want := r.State().Kind; s.Status.Ended() || s.Kind != want {
		r.host.Opened = api.Opened{} // nothing is recorded in that ledger
		if s.Kind != want {
			return notReady("the loop of this ledger is of kind %s, this one of kind %s", s.Kind, want)
		}
		return notReady("the loop of this ledger has ended (%s)", s.Status)
	}
	r.Resume(s, s.Ledger)
	current := r.machine.Between()
	if s.Iteration == 0 {
		current = r.machine.Unbegun(s.Phase) // nothing was tried yet
	}
	o := r.host.Opened
	if s.Underway() && len(r.since) > 0 && (s.Gate == nil || s.Gate.Pauses()) { // else the gate's subject is lost
		if goesOn, can := p.again(s); can {
			current, r.midway = goesOn, goesOn
		}
	}
	r.Emit(ctx, loop.Event{Type: loop.LoopResumed, Head: s.Head, Phase: current, Opened: &loop.Opened{Desk: o.Desk, Host: o.Host}})
	if s.HaltRequested != "" { // the run before this one could not record the end
		r.Emit(ctx, loop.Event{Type: loop.MessageReceived, Message: loop.MessageHalt, Reason: s.HaltRequested})
	}
	if s.PauseRequested || s.Gate != nil && s.Gate.Pauses() && (s.Gate.Kind == loop.GatePause || s.Underway()) { // else the breakpoint's phase is entered again
		r.Emit(ctx, loop.Event{Type: loop.MessageReceived, Message: loop.MessagePause, By: s.PausedBy, How: s.PauseAt})
	}
	if r.midway != phase.None || !r.State().Underway() {
		return nil
	}
	r.iteration = iteration{description: "the run before this one was lost"}
	return r.settle(ctx, rules.Unfinished(rules.Interrupted))
}

// iterationSince restores an iteration that another run has begun from its events.
func (r *run) iterationSince(events []loop.Event) {
	iter := iteration{reworked: map[string]int{}, phaseMs: map[string]int64{}, description: r.host.Opened.Unjudged}
	for _, e := range events {
		iter.idea = cmp.Or(e.Idea, iter.idea)
		switch e.Type {
		case loop.PhaseEntered:
			iter.phaseSpent = 0
		case loop.StepEnded:
			if e.Reason != (api.Outcome{Interrupted: true}).Ending() { // else it is run again from its start
				iter.phaseSpent += e.Usage.ActiveMs
			}
			iter.phaseMs[string(e.Phase)] += e.Usage.ActiveMs
			iter.evidence = append(slices.Clip(iter.evidence), e.EvidenceIDs...)
			if e.Agent != "" && (e.Role == spec.RoleWriter || e.Role == spec.RoleFixer) {
				iter.agents = loop.Union(iter.agents, []string{e.Agent})
			}
		case loop.ChangeJudged:
			if j := e.Judgement; j != nil && !j.Passed {
				iter.shown = cmp.Or(j.Log, iter.shown)
			}
		case loop.CandidateTaken:
			iter.evidence, iter.agents = e.Candidate.Evidence, e.Candidate.Agents
			maps.Copy(iter.phaseMs, e.Candidate.PhaseMs)
		case loop.RepairAttempted:
			iter.reworked[e.FailureReason]++
			iter.why = strings.TrimSuffix(e.FailureReason+": "+e.Reason, ": ")
			iter.description = cmp.Or(iter.description, e.Note)
		case loop.ChangeCommitted:
			iter.files, iter.area, iter.tree, iter.note = e.Files, e.Area, e.Tree, e.Note
		case loop.ChangeAccepted:
			iter.accepted = e.Commit
		}
	}
	r.iteration = iter
}

// continueAsNewIfLong limits the history: between iterations, the loop continues in a new run with the same state.
func (r *run) continueAsNewIfLong(ctx workflow.Context) error {
	if !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		return nil
	}
	if err := workflow.Await(ctx, func() bool {
		return workflow.AllHandlersFinished(ctx) && r.Quiet() && r.notifier.Quiet() && r.reports.quiet()
	}); err != nil {
		return err
	}
	r.keeper.Drain(ctx)
	input, err := converter.GetDefaultDataConverter().ToPayload(r.spec)
	if err != nil {
		return err
	}
	carry := &Carry{Saved: r.Save(), Opened: r.host.Opened}
	return workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, converter.NewRawValue(input), Resume{Carry: carry})
}

// finish ends the loop as err says. It undoes a change that was not judged, makes the proposal, records the end and
// returns the result; if the loop failed, it returns an error.
func (r *run) finish(ctx workflow.Context, err error) (*loop.Result, error) {
	if workflow.IsContinueAsNewError(err) {
		return nil, err
	}
	end := r.endOf(ctx, err)
	cancelled := temporal.IsCanceledError(err) || ctx.Err() != nil // through Temporal, or by a halt
	ctx, _ = workflow.NewDisconnectedContext(ctx)                  // the end is recorded after Cancel too
	r.host.Closing = r.rules >= 6 && (cancelled || r.State().HaltRequested != "")
	if r.host.IsOpen() && end.Code != fault.LedgerAhead && end.Code != fault.LedgerDamaged {
		if err := r.close(ctx, end); err != nil {
			end = r.unrecorded(ctx, end, err)
		}
	}
	recorded := r.State().Status.Ended()
	if !recorded { // the state says so all the same
		r.Emit(ctx, end.Event(r.State().Usage))
	}
	r.report(ctx, task.ChildEnded)
	r.notifyEnd(ctx, end, recorded)
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return nil, err
	}
	if !r.reports.quiet() { // a timer is part of the history
		if _, err := workflow.AwaitWithTimeout(ctx, display.Bound, r.reports.quiet); err != nil {
			return nil, err
		}
	}
	r.publish(ctx)
	if r.rules >= 6 && !r.host.IsOpen() {
		display.EndedUnopened(ctx, string(end.Status))
	}
	r.show(ctx)
	result := rules.Result(r.State(), r.spec)
	if end.Status == loop.Failed { // the code is the failure's type, the result a detail
		return nil, wire.Encode(end.Fault(), result)
	}
	return result, nil
}

// unrecorded returns the end of a loop whose end can't be recorded. A halted loop has ended all the same.
func (r *run) unrecorded(ctx workflow.Context, end rules.End, err error) rules.End {
	if !r.host.Closing || end.Status != loop.Halted || wire.Decode(err) != nil {
		return r.endOf(ctx, err)
	}
	return end.Because(end.Reason + "; its ledger doesn't have the end: " + loop.Clip(err.Error(), 300))
}

// close records the iteration that is under way, if any, and the end.
func (r *run) close(ctx workflow.Context, end rules.End) error {
	err := r.cutShort(ctx, end)
	if errors.Is(err, placement.ErrLost) { // the change to undo is lost with the host
		err = r.giveUp(ctx)
	}
	if err != nil {
		return err
	}
	if err := r.returnToHead(ctx, "the loop is over"); err != nil {
		return err
	}
	if r.presentable(end) && r.scratchDue() {
		r.Emit(ctx, loop.Event{Type: loop.JudgedFromScratch, Scratch: &loop.Scratch{Head: r.State().Head, Reason: "the loop ended first: " + end.Reason}})
	}
	s := r.State()
	if r.machine.Completes(s.Phase, end.Status == loop.Completed) {
		r.Emit(ctx, loop.Event{Type: loop.PhaseEntered, Phase: phase.Complete})
	}
	for _, spent := range end.Exhausted(s.Budget) {
		r.Emit(ctx, loop.Event{Type: loop.BudgetExhausted, ExhaustedBudget: spent})
	}
	events := []loop.Event{end.Event(s.Usage)}
	if p := s.Proposal; s.Head != s.Footing() && (p == nil || p.Head != s.Head) && r.presentable(end) {
		events = append([]loop.Event{{Type: loop.ProposalMade}}, events...)
	}
	return r.append(ctx, api.CloseName, "close: "+end.Reason, events, func(e api.Entry) any {
		return api.Close{Entry: e, Base: s.Footing(), Head: s.Head, Anew: s.Moved != ""}
	})
}

// cutShort records the iteration that is under way, if any, in a loop that ends.
func (r *run) cutShort(ctx workflow.Context, end rules.End) error {
	if !r.State().Underway() {
		return nil
	}
	r.iteration.description = cmp.Or(r.iteration.description, "a change that was not finished")
	return r.settle(ctx, rules.Unfinished(end))
}

// presentable reports whether the kept work of a loop with this end may be proposed. If tests judge the work as a
// whole, and not each change by itself, untested work stays on its branch (A7), and so does what fails from scratch.
func (r *run) presentable(end rules.End) bool {
	return (!r.kind.Tests || end.Status == loop.Completed) && !r.nothingKept() && !r.State().Scratch.Failed(r.State().Head)
}

// nothingKept reports whether every change of a loop with a metric was undone: then head and base have the same files.
func (r *run) nothingKept() bool {
	s := r.State()
	return r.kind.Reference && s.KeptCount == 0 && s.Footing() == s.Base
}

// endOf turns the error that ended the main line into one of the ends of the contract.
func (r *run) endOf(ctx workflow.Context, err error) rules.End {
	if s, ok := errors.AsType[*stopped](err); ok {
		return s.end
	}
	if temporal.IsCanceledError(err) || ctx.Err() != nil {
		return rules.Interrupted.Because(cmp.Or(r.State().HaltRequested, "cancelled through Temporal"))
	}
	if f := wire.Decode(err); f != nil {
		for _, end := range []rules.End{rules.NotReady, rules.SpecInvalid, rules.BehindItsLedger, rules.LedgerLost} {
			if end.Code == f.Code {
				return end.Of(f)
			}
		}
	}
	return rules.MachineFailed.Because(err.Error())
}

// stopped carries an end out of the phases as an error.
type stopped struct{ end rules.End }

func (s *stopped) Error() string { return s.end.Reason }

// Unwrap returns the end's fault, for errors.Is and errors.As.
func (s *stopped) Unwrap() error {
	if f := s.end.Fault(); f != nil {
		return f
	}
	return nil
}

func stop(end rules.End) error { return &stopped{end} }

func notReady(format string, args ...any) error {
	return stop(rules.NotReady.Because(fmt.Sprintf(format, args...)))
}

func noteOf(a loop.Answer) string {
	if a.Note == "" {
		return ""
	}
	return ": " + loop.Clip(a.Note, 200)
}
