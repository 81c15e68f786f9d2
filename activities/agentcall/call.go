// Package agentcall calls agents: it writes the prompt, follows the stream, counts with the meter, and collects what the
// agent left. Start at Caller.
package agentcall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/activities/command"
	"pawl/activities/record"
	"pawl/activities/workspace"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/fsutil/remove"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

// Caller calls agents.
type Caller struct{ *command.Runner }

// CallAgent asks an agent, on the desk.
func (a *Caller) CallAgent(ctx context.Context, input api.Call) (api.Called, error) {
	if input.Proposal != nil { // what a reviewer says does not depend on what is on the desk
		input.Desk = hostrecord.Review
	} else if err := a.dropOther(ctx, input.Step); err != nil {
		return api.Called{}, err
	}
	out, err := command.Do(ctx, a.Runner, input.Step, func(ctx context.Context, w *command.Work) (api.Called, error) {
		return makeCall(ctx, w, input)
	})
	if err == nil {
		err = a.toldAgain(ctx, input, &out)
	}
	return out, err
}

// dropOther drops a result that was not made on the desk as it is now: the ledger of its run has since lost entries.
func (a *Caller) dropOther(ctx context.Context, input api.Step) error {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return err
	}
	if last, _ := os.ReadFile(dirfd.At(ws.At(input.Desk).CallFile())); string(last) == callOf(input) {
		return nil
	}
	path := filepath.Join(command.StepDir(a.Machine, input.Ref, input.Key), command.ResultFile)
	return remove.All(path)
}

// callOf names a call and where it starts from.
func callOf(input api.Step) string { return command.StepName(input.Key) + " " + input.Head }

// toldAgain appends the events of a call whose result comes from an earlier run.
func (a *Caller) toldAgain(ctx context.Context, input api.Call, out *api.Called) error {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return err
	}
	if out.Ledger != input.Ledger && out.Ledger != "" { // the normal case: this run has appended them
		commit, err := ws.Objects.Ref(ctx, ws.Ledger)
		if err != nil || commit == out.Ledger {
			return err
		}
		if ok, err := ws.DescendsFrom(ctx, out.Ledger, input.Ledger); ok || err != nil {
			return err
		}
	}
	out.Ledger, err = appendEvents(ctx, ws, input)
	return err
}

func makeCall(ctx context.Context, w *command.Work, input api.Call) (out api.Called, err error) {
	if err := permit(ctx, w.Workspace, input); err != nil {
		return out, err
	}
	if input.Proposal != nil { // it judges, so it finds nothing that the writer has left
		if err := w.Workspace.GiveUp(ctx); err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, w.Workspace.GiveUp(context.WithoutCancel(ctx))) }()
	}
	if err := w.Ready(ctx, w.OnDesk, func(ctx context.Context) (err error) {
		out.Ledger, err = appendEvents(ctx, w.Workspace.Main(), input)
		return err
	}); err != nil {
		return out, err
	}
	if err := durable.WriteCache(w.Workspace.CallFile(), []byte(callOf(w.In))); err != nil {
		return out, err
	}
	command, err := w.Command(w.Workspace.Desk.Dir)
	if err != nil {
		return out, err
	}
	tell := func(u loop.Usage, tool string) { w.Live.Store(&api.Live{Usage: u, Tool: loop.Clip(tool, 80)}) }
	talk, err := brief(ctx, w.Workspace, input, out.Ledger, &command, tell)
	if err != nil {
		return out, err
	}
	if out.Outcome, err = RunAgent(ctx, w, command, talk); err != nil {
		return out, err
	}
	if err := talk.spared.putBack(w.Workspace.Desk.Dir); err != nil {
		return out, err
	}
	printed := talk.Collect(&out, command.Stdout, input)
	if err := talk.doubtSuccess(ctx, w.Workspace, input, &out, printed); err != nil {
		return out, err
	}
	warnings, err := talk.signed.check()
	for _, text := range warnings {
		out.Warn(text)
	}
	if err != nil {
		return out, err
	}
	if out.Transcript, err = transcribe(w, talk, input, out); err != nil {
		return out, err
	}
	if w.Full != "" { // its report is about work that was removed
		out.Failure, out.Description = w.Full, ""
	}
	if input.Role == spec.RolePlanner && out.OK() {
		if out.Plan, err = record.KeepPlan(w.Workspace, printed, w.Dir); err != nil {
			return out, err
		}
	}
	if err := throwAway(ctx, w.Workspace, input, &out); err != nil {
		return out, err
	}
	if out.Interrupted {
		w.PutBack(ctx)
	}
	return out, nil
}

// appendEvents appends the events from before the call, and returns the ledger's head, "" if there were none.
func appendEvents(ctx context.Context, ws *workspace.Workspace, input api.Call) (string, error) {
	if len(input.Events) == 0 {
		return "", nil
	}
	out, err := record.Append(ctx, ws, api.Entry{Ref: input.Ref, Ledger: input.Ledger, Events: input.Events}, false, store.Tx{}, "")
	crashpoint.At("step.told")
	return out.Ledger, err
}

// permit is the single check that every agent call passes (E1). Without permission nothing is run or prepared.
func permit(ctx context.Context, ws *workspace.Workspace, input api.Call) error {
	if input.Ledger == "" { // the plan is made before the first entry
		if err := record.Rebind(ws); err != nil {
			return err
		}
	}
	contract, err := ws.Book.Contract(ctx, input.Ledger)
	if err != nil {
		return err
	}
	return workspace.Refusal(rules.PermitPhase(contract.Spec, input.Role, input.Phase))
}

// throwAway removes all changes of a role that may not change source in this phase (E1, E6), and reports them.
func throwAway(ctx context.Context, ws *workspace.Workspace, input api.Call, out *api.Called) error {
	if slices.Contains(rules.Needs(input.Phase), spec.CanEditSource) || out.Interrupted || out.StartError != "" {
		return nil
	}
	defer ws.Leave(ws.Desk)
	change, err := ws.Desk.Stage(ctx, input.Head)
	ws.Torn(ws.Desk)
	if err != nil {
		return fmt.Errorf("looking for changes by the %s: %w", input.Role, err)
	}
	if change.Empty() {
		return nil
	}
	names := list.Map(change.Files[:min(len(change.Files), 3)], func(f git.FileChange) string { return git.Quote(f.Path) })
	out.Denied = fmt.Sprintf("the role %s changed source in the phase %s, where no role is permitted %s: its changes to %s (%s) are thrown away",
		input.Role, input.Phase, spec.CanEditSource, metric.Counted(len(change.Files)+len(change.Violations), "file"), strings.Join(names, ", "))
	return nil
}
