package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/kind"
	"pawl/internal/loop"
	"pawl/internal/phase"
	"pawl/internal/spec"
)

// Resume is the second, optional argument of a loop: where to go on from.
type Resume struct {
	// Ledger starts the loop from a ledger commit that the store or the repository has.
	Ledger string `json:"ledger,omitempty"`
	// Carry is what a run hands to the next one at continue-as-new.
	Carry *Carry `json:"carry,omitempty"`
}

// Carry is everything that the next run needs.
type Carry struct {
	State   loop.State   `json:"state"`
	Opened  act.Opened   `json:"opened"`
	Recent  []loop.Event `json:"recent"`
	Pending []loop.Event `json:"pending"`
}

// run is what all kinds of loops share: the state and the one way to change it.
type run struct {
	spec     spec.Spec
	firstRun string // names the chain of runs
	state    loop.State
	machine  phase.Machine
	opened   act.Opened
	resume   Resume

	recent  []loop.Event // the last events, for the query
	pending []loop.Event // not in the ledger yet
	busy    bool         // a ledger append is under way: messages wait their turn

	sending  []loop.Event // what an append under way is to record beyond what is pending
	moves    int          // to other hosts, in this run
	uprooted bool         // the loop has moved, and no step has made its desk anew

	unjudged  *verdict         // a commit on the branch that nobody has judged yet
	telling   int              // how many are being told of something
	stopAsked string           // a loop-stop file was there when a step had ended
	repeats   int              // steps repeated by a pause in this run
	phaseMs   map[string]int64 // active time of the iteration by phase
	inPhase   int64            // active time in milliseconds since the phase was entered (L10)
	published map[string]any   // what the search attributes say
	toldAt    time.Time        // when the search attributes were brought up to date
}

// recentEvents bounds the events that the query answers with; the ledger has them all.
const recentEvents = 100

// setup reads the input, takes up what an earlier run carried over and registers the handlers.
// An invalid spec fails the workflow with all that is wrong with it.
func setup(ctx workflow.Context, k kind.Kind, input converter.RawValue, resume Resume) (*run, error) {
	version := int(workflow.GetVersion(ctx, "rules", phase.Version, phase.Version))
	r := &run{resume: resume}
	info := workflow.GetInfo(ctx)
	r.firstRun = info.FirstRunID
	r.state = loop.New(info.WorkflowExecution.ID, k.Name)
	if c := resume.Carry; c != nil {
		r.state, r.opened, r.recent, r.pending = c.State, c.Opened, c.Recent, c.Pending
	}
	if err := r.handle(ctx); err != nil {
		return nil, err
	}
	parsed, err := parse(k, info.WorkflowExecution.ID, input)
	if err != nil {
		_, err = r.finish(ctx, stop(govern.SpecInvalid.Because(err.Error())))
		return nil, err
	}
	r.spec, r.machine = parsed, k.Machine(version, parsed.TestRequired())
	r.state.Goal = parsed.Goal
	r.show(ctx)
	return r, nil
}

// parse reads the spec strictly and holds the workflow to it: the kind must match the type, and
// the ID must begin with the name where one is given.
func parse(k kind.Kind, id string, input converter.RawValue) (spec.Spec, error) {
	s, err := spec.Parse(input.Payload().GetData())
	if err != nil {
		return spec.Spec{}, err
	}
	if err := s.ValidateInput(); err != nil {
		return spec.Spec{}, err
	}
	if s.Kind != k.Name {
		return spec.Spec{}, fmt.Errorf("kind: the spec is for a loop of kind %s, the workflow type is for %s", s.Kind, k.Name)
	}
	if s.Name != "" && !strings.HasPrefix(id, s.Name) {
		return spec.Spec{}, fmt.Errorf("name: the workflow ID %q must begin with the spec's name %q", id, s.Name)
	}
	return s, nil
}

// emit lets something have happened: it numbers the event, applies it and keeps it for the
// ledger. It is the one way in which the state of a loop changes.
func (r *run) emit(ctx workflow.Context, e loop.Event) {
	e = r.number(ctx, e, r.state.Seq+1)
	r.apply(e)
	r.pending = append(r.pending, e)
}

func (r *run) number(ctx workflow.Context, e loop.Event, seq int64) loop.Event {
	e.Seq, e.Time, e.Loop = seq, workflow.Now(ctx).UTC(), r.state.Loop
	if e.Iteration == 0 {
		e.Iteration = r.state.Iteration
	}
	if e.Phase == phase.None {
		e.Phase = r.state.Phase
	}
	return e
}

func (r *run) apply(e loop.Event) {
	ledger := r.state.Ledger
	r.state = r.state.Apply(e)
	r.state.Ledger = ledger
	r.recent = append(slices.Clip(r.recent), e)
	if len(r.recent) > recentEvents {
		r.recent = r.recent[len(r.recent)-recentEvents:]
	}
}

// append sends the pending events and more to the ledger in one activity. More counts as having
// happened only when the activity has returned; until then messages wait, so that the order of
// events in the ledger and in the state is the same.
func (r *run) append(ctx workflow.Context, name, summary string, more []loop.Event, push bool, input func(act.Entry) any) (act.Settled, error) {
	if err := workflow.Await(ctx, func() bool { return !r.busy }); err != nil {
		return act.Settled{}, err
	}
	r.busy = true
	defer func() { r.busy = false }()
	r.sending = more
	defer func() { r.sending = nil }()
	numbered := -1
	var out act.Settled
	err := r.execute(ctx, name, summary, func() any {
		if seq := r.state.Seq; numbered != r.moves { // the same host is sent the same events again
			for i := range more {
				seq++
				more[i] = r.number(ctx, more[i], seq)
			}
			numbered = r.moves
		}
		return input(act.Entry{Ref: r.opened.Ref, Ledger: r.state.Ledger, Events: append(slices.Clone(r.pending), more...), Push: push})
	}, &out)
	if errors.Is(err, errRecorded) {
		r.busy = false
		r.show(ctx)
		return act.Settled{}, nil
	}
	if err != nil {
		return out, err
	}
	for _, e := range more {
		r.apply(act.Fill(e, out))
	}
	r.pending = nil
	r.state.Ledger = out.Ledger
	r.busy = false
	if out.PushRefused != "" {
		r.emit(ctx, loop.Event{Type: loop.PushRefused, Reason: out.PushRefused})
	}
	r.stopBy(ctx, out.Stop)
	r.show(ctx)
	return out, nil
}

// stopBy takes a loop-stop file for a halt; why is "" where there is none.
func (r *run) stopBy(ctx workflow.Context, why string) {
	if why != "" && r.state.HaltRequested == "" && !r.state.Status.Ended() {
		r.emit(ctx, loop.Event{Type: loop.MessageReceived, Message: "halt", Reason: why, By: "loop-stop"})
	}
}

// enter moves the machine to a phase (L6) and stops at a breakpoint there (L4): every time, also where
// a rework or a fix comes back to it within an iteration.
func (r *run) enter(ctx workflow.Context, to phase.Phase) error {
	return r.enterAttempt(ctx, to, r.state.Attempt)
}

func (r *run) enterAttempt(ctx workflow.Context, to phase.Phase, attempt int) error {
	if err := r.machine.Check(r.state.Phase, to); err != nil {
		return stop(govern.TransitionInvalid.Because(err.Error()))
	}
	r.emit(ctx, loop.Event{Type: loop.PhaseEntered, Phase: to, Attempt: attempt})
	r.inPhase = 0
	if slices.Contains(r.spec.Breakpoints, string(to)) {
		_, err := r.hold(ctx, loop.Gate{Kind: loop.GateBreakpoint, Summary: fmt.Sprintf("breakpoint at %s", to)})
		return err
	}
	return nil
}

// open is the activity that makes store, desk and judge ready.
func (r *run) open(ctx workflow.Context) error {
	info := workflow.GetInfo(ctx)
	in := act.Open{
		Loop: r.state.Loop, FirstRun: r.firstRun, Run: info.WorkflowExecution.RunID, Spec: r.spec, Ledger: r.resume.Ledger,
	}
	if err := r.execute(ctx, act.OpenName, "open "+r.spec.Repo.Place(), func() any { return in }, &r.opened); err != nil {
		return err
	}
	o := r.opened
	if o.State != nil {
		return r.takeUp(ctx, *o.State)
	}
	r.begun(ctx)
	if o.Stop != "" {
		r.emit(ctx, loop.Event{Type: loop.MessageReceived, Message: "halt", Reason: o.Stop, By: "loop-stop"})
		return stop(govern.Interrupted.Because(o.Stop))
	}
	return nil
}

// begun is the beginning of a loop as its host has opened it.
func (r *run) begun(ctx workflow.Context) {
	o := r.opened
	r.emit(ctx, loop.Event{Type: loop.LoopOpened, Opened: &loop.Opened{
		Kind: r.state.Kind, Goal: r.spec.Goal, Repo: o.Repo, Branch: o.Branch, Base: o.Base, Desk: o.Desk, Host: o.Host, Limits: govern.Limits(r.spec),
	}})
	r.remember(ctx)
	r.emit(ctx, loop.Event{Type: loop.ContractDrawn, Contract: &loop.Contract{
		Hash: o.Contract, Base: o.Base, Sealed: o.Sealed, Tools: r.spec.Approvals.Tools,
	}})
	for _, w := range o.Warnings {
		r.emit(ctx, loop.Event{Type: loop.Warned, Reason: w})
	}
}

// takeUp goes on from a ledger that another run has left, on this or another host. An iteration
// that it had begun and not recorded is recorded as interrupted, and a commit that nobody had
// judged is undone.
func (r *run) takeUp(ctx workflow.Context, s loop.State) error {
	if s.Status.Ended() {
		return notReady("the loop of this ledger has ended (%s)", s.Status)
	}
	if s.Kind != r.state.Kind {
		return notReady("the loop of this ledger is of kind %s, this one of kind %s", s.Kind, r.state.Kind)
	}
	r.state, r.pending = s, nil
	at := r.machine.Between()
	if s.Iteration == 0 {
		at = r.machine.Unbegun(s.Phase) // nothing was tried yet
	}
	r.emit(ctx, loop.Event{Type: loop.LoopResumed, Head: s.Head, Phase: at, Opened: &loop.Opened{Desk: r.opened.Desk, Host: r.opened.Host}})
	if n := len(s.Iterations); s.Iteration > 0 && (n == 0 || s.Iterations[n-1].N != s.Iteration) {
		r.unjudged = &verdict{}
		if last := s.LastChange; last != nil && s.Head == last.Commit && !last.Accepted && !wasKept(s, last.Commit) {
			r.unjudged.Commit, r.unjudged.Parent = last.Commit, last.Parent
		}
		return r.settle(ctx, verdict{Reason: interrupted, Description: "the run before this one was lost"})
	}
	return nil
}

func wasKept(s loop.State, commit string) bool {
	return slices.ContainsFunc(s.Kept, func(k loop.Kept) bool { return k.Commit == commit })
}

// continueAsNewIfLong bounds the history: at an iteration boundary, with every message taken,
// the loop goes on in a new run with the same state.
func (r *run) continueAsNewIfLong(ctx workflow.Context) error {
	if !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		return nil
	}
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) && !r.busy && r.telling == 0 }); err != nil {
		return err
	}
	r.drain(ctx)
	input, err := converter.GetDefaultDataConverter().ToPayload(r.spec)
	if err != nil {
		return err
	}
	carry := &Carry{State: r.state, Opened: r.opened, Recent: r.recent, Pending: r.pending}
	return workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, converter.NewRawValue(input), Resume{Carry: carry})
}

// finish ends the loop in the way that err says: it undoes what was not judged, makes the
// proposal, records the end and returns the result, as a failure where the loop failed.
func (r *run) finish(ctx workflow.Context, err error) (*loop.Result, error) {
	if workflow.IsContinueAsNewError(err) {
		return nil, err
	}
	end := r.endOf(ctx, err)
	ctx, _ = workflow.NewDisconnectedContext(ctx) // the end is recorded also after Cancel
	if r.opened.Ref != "" && end.Code != fault.LedgerAhead {
		if err := r.close(ctx, end); err != nil {
			end = r.endOf(ctx, err)
		}
	}
	recorded := r.state.Status.Ended()
	if !recorded { // the state says so all the same
		r.emit(ctx, end.Event(r.state.Usage))
	}
	r.tellEnd(ctx, end, recorded)
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return nil, err
	}
	r.publish(ctx)
	r.show(ctx)
	result := govern.Result(r.state, r.spec)
	if end.Status == loop.Failed {
		return nil, failure(end, result)
	}
	return result, nil
}

func (r *run) close(ctx workflow.Context, end govern.End) error {
	if r.unjudged != nil {
		v := *r.unjudged
		v.Reason, v.Kept, v.Metric = orElse(v.Reason, interrupted), false, nil
		v.Description = orElse(v.Description, "a change that was not finished")
		err := r.settle(ctx, v)
		if errors.Is(err, errLost) { // and with it what was to be undone
			err = r.giveUp(ctx, v)
		}
		if err != nil {
			return err
		}
	}
	if r.machine.Completes(r.state.Phase, end.Successful()) {
		r.emit(ctx, loop.Event{Type: loop.PhaseEntered, Phase: phase.Complete})
	}
	if end.Budget != "" {
		r.emit(ctx, loop.Event{Type: loop.BudgetExhausted, ExhaustedBudget: end.Budget})
	}
	events := []loop.Event{end.Event(r.state.Usage)}
	if p := r.state.Proposal; p == nil || p.Head != r.state.Head {
		events = append([]loop.Event{{Type: loop.ProposalMade}}, events...)
	}
	_, err := r.append(ctx, act.CloseName, "close: "+end.Reason, events, true, func(e act.Entry) any {
		return act.Close{Entry: e, Base: r.state.Footing(), Head: r.state.Head}
	})
	return err
}

// endOf turns whatever ended the main line into one of the ends of the contract.
func (r *run) endOf(ctx workflow.Context, err error) govern.End {
	if end, ok := isStopped(err); ok {
		return end
	}
	if temporal.IsCanceledError(err) || ctx.Err() != nil {
		return govern.Interrupted.Because(orElse(r.state.HaltRequested, "cancelled through Temporal"))
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		switch fault.Code(app.Type()) {
		case fault.PreconditionFailed:
			return govern.NotReady.Because(app.Message())
		case fault.InvalidSpec:
			return govern.SpecInvalid.Because(app.Message())
		case fault.LedgerAhead:
			return govern.BehindItsLedger.Because(app.Message())
		}
	}
	return govern.MachineFailed.Because(err.Error())
}

// failure is how a failed loop fails its workflow: the code is the type, the result a detail.
func failure(end govern.End, result *loop.Result) error {
	return temporal.NewNonRetryableApplicationError(end.Reason, string(end.Code), nil, result)
}

// stopped carries an end out of the phases.
type stopped struct{ end govern.End }

func (s *stopped) Error() string { return s.end.Reason }

// Unwrap is the fault that it is, for those who match it.
func (s *stopped) Unwrap() error { return s.end.Fault() }

func stop(end govern.End) error { return &stopped{end} }

func notReady(format string, args ...any) error {
	return stop(govern.NotReady.Because(fmt.Sprintf(format, args...)))
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

func noteOf(a loop.Answer) string {
	if a.Note == "" {
		return ""
	}
	return ": " + loop.Clip(a.Note, 200)
}
