package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/durable"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/govern"
	"pawl/internal/held"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/store"
)

// Caller calls agents.
type Caller struct{ *Runner }

// CallAgent asks an agent, on the desk.
func (a *Caller) CallAgent(ctx context.Context, in act.Call) (act.Called, error) {
	if err := a.dropOther(ctx, in.Step); err != nil {
		return act.Called{}, err
	}
	out, err := step(ctx, a.Runner, in.Step, func(ctx context.Context, w *work) (act.Called, error) { return w.call(ctx, in) })
	if err == nil {
		err = a.toldAgain(ctx, in, &out)
	}
	return out, err
}

// dropOther drops the result of a call that was not made on the desk as it is now: it belongs to a run whose ledger has
// since lost entries.
func (a *Caller) dropOther(ctx context.Context, in act.Step) error {
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return err
	}
	path := filepath.Join(a.stepDir(in.Ref, in.Key), resultFile)
	if _, err := os.Stat(held.At(path)); err != nil || ws.at(in.Desk).lastOnDesk() == callOf(in) {
		return nil //nolint:nilerr // there is none, or the step says so
	}
	if err := os.Remove(held.At(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// callOf names a call and where it starts from.
func callOf(in act.Step) string { return stepName(in.Key) + " " + in.Head }

// toldAgain makes the ledger take the events of a call whose result comes from an earlier run.
func (a *Caller) toldAgain(ctx context.Context, in act.Call, out *act.Called) error {
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return err
	}
	if out.Ledger != in.Ledger && out.Ledger != "" { // as always: this very run has appended them
		at, err := ws.store.Ref(ctx, ws.Ledger)
		if err != nil || at == out.Ledger || ws.descendsFrom(ctx, out.Ledger, in.Ledger) {
			return err
		}
	}
	out.Ledger = ""
	if len(in.Events) == 0 {
		return nil
	}
	told, err := ws.append(ctx, act.Entry{Ref: in.Ref, Ledger: in.Ledger, Events: in.Events}, false, store.Tx{}, "")
	out.Ledger = told.Ledger
	return err
}

func (w *work) call(ctx context.Context, in act.Call) (out act.Called, err error) {
	if err := w.ws.permit(ctx, in); err != nil {
		return out, err
	}
	if err := w.ready(ctx, w.onDesk, func(ctx context.Context) (err error) {
		out.Ledger, err = w.appendEvents(ctx, in)
		return err
	}); err != nil {
		return out, err
	}
	if err := durable.WriteCache(w.ws.callFile(), []byte(callOf(w.in))); err != nil {
		return out, err
	}
	command, err := w.command(w.ws.desk.Dir)
	if err != nil {
		return out, err
	}
	tell := func(u loop.Usage, tool string) { w.live.Store(&act.Live{Usage: u, Tool: loop.Clip(tool, 80)}) }
	talk, err := w.ws.brief(ctx, in, out.Ledger, &command, tell)
	if err != nil {
		return out, err
	}
	if out.Outcome, err = w.runAgent(ctx, command, talk); err != nil {
		return out, err
	}
	if err := talk.spared.putBack(w.ws.desk.Dir); err != nil {
		return out, err
	}
	printed := talk.collect(&out, command.Stdout, in)
	warnings, err := talk.signed.check()
	for _, text := range warnings {
		out.Warn(text)
	}
	if err != nil {
		return out, err
	}
	if out.Transcript, err = w.transcribe(talk, in, out); err != nil {
		return out, err
	}
	out.Failure = cmp.Or(w.full, out.Failure)
	if in.Role == spec.RolePlanner && out.OK() {
		if out.Plan, err = w.ws.planOf(printed, w.dir); err != nil {
			return out, err
		}
	}
	if err := w.ws.throwAway(ctx, in, &out); err != nil {
		return out, err
	}
	if out.Interrupted {
		w.putBack(ctx)
	}
	return out, nil
}

// appendEvents appends what happened before the call, and returns the ledger's head, "" where there was nothing.
func (w *work) appendEvents(ctx context.Context, in act.Call) (string, error) {
	if len(in.Events) == 0 {
		return "", nil
	}
	out, err := w.ws.append(ctx, act.Entry{Ref: in.Ref, Ledger: in.Ledger, Events: in.Events}, false, store.Tx{}, "")
	crash.At("step.told")
	return out.Ledger, err
}

// permit is the one gateway that every agent call passes (E1). Without permission nothing is run or prepared.
func (ws *loopWorkspace) permit(ctx context.Context, in act.Call) error {
	if in.Ledger == "" { // the plan is made before the first entry
		if err := ws.rebind(); err != nil {
			return err
		}
	}
	contract, err := ws.ledger.Contract(ctx, in.Ledger)
	if err != nil {
		return err
	}
	var denied *fault.Error
	if err := govern.PermitPhase(contract.Spec, in.Role, in.Phase); errors.As(err, &denied) {
		return refuse(denied)
	}
	return nil
}

// throwAway makes sure that nothing stays of a role's changes if the role may not change source there (E1, E6), and
// reports them.
func (ws *loopWorkspace) throwAway(ctx context.Context, in act.Call, out *act.Called) error {
	if slices.Contains(govern.Needs(in.Phase), spec.CanEditSource) || out.Interrupted || out.StartError != "" {
		return nil
	}
	defer ws.leave(ws.desk)
	change, err := ws.desk.Stage(ctx, in.Head)
	ws.torn(ws.desk)
	if err != nil {
		return fmt.Errorf("looking for changes by the %s: %w", in.Role, err)
	}
	if change.Empty() {
		return nil
	}
	var names []string
	for _, f := range change.Files[:min(len(change.Files), 3)] {
		names = append(names, git.Quote(f.Path))
	}
	out.Denied = fmt.Sprintf("the role %s changed source in the phase %s, where no role is permitted %s: its changes to %s (%s) are thrown away",
		in.Role, in.Phase, spec.CanEditSource, evidence.Counted(len(change.Files)+len(change.Violations), "file"), strings.Join(names, ", "))
	return nil
}
