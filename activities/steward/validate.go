package steward

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/integrations/forge"
	"pawl/internal/integrations/health"
	"pawl/internal/integrations/schedule"
	"pawl/internal/ledger"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// Validate compares what a steward has recorded with the world (S11, S12): its ledger, the project's branch, the
// files for people, its loops in Temporal and their branches, and, if a remote is set, CI and the branch there. It
// changes nothing. Each kind of difference has its own name. It also counts the slots that schedules have missed, and
// runs the health checks (S5).
func (a *Stewards) Validate(ctx context.Context, input stewardapi.Validate) (stewardapi.Validated, error) {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return stewardapi.Validated{}, err
	}
	crashpoint.At("validate.before")
	v := validation{ws: ws, in: input}
	if err := v.twice(ctx, v.ledger, v.base, v.artifacts, v.children); err != nil {
		return stewardapi.Validated{}, err
	}
	for _, check := range []func(context.Context) error{v.remote, v.schedules, v.health} {
		if err := check(ctx); err != nil {
			return stewardapi.Validated{}, err
		}
	}
	return v.out, nil
}

// twice makes checks, and makes them again if they find something. Only what both runs find counts: the steward and its
// loops continue meanwhile, so a difference that is gone the second time was an entry that was half written.
func (v *validation) twice(ctx context.Context, checks ...func(context.Context) error) error {
	var previous []task.Drift
	for look := range 2 {
		v.out.Drift, v.out.Well, v.lost, v.state = nil, nil, false, steward.State{}
		for _, check := range checks {
			if err := check(ctx); err != nil {
				return err
			}
		}
		if look > 0 {
			v.out.Drift = slices.DeleteFunc(v.out.Drift, func(d task.Drift) bool {
				return !slices.ContainsFunc(previous, func(b task.Drift) bool { return b.Name == d.Name && b.What == d.What && b.Theirs == d.Theirs })
			})
		}
		if previous = v.out.Drift; len(previous) == 0 {
			break
		}
	}
	return nil
}

type validation struct {
	ws   *workspace.Workspace
	in   stewardapi.Validate
	out  stewardapi.Validated
	lost bool // the ledger is not where the steward left it, so it can't be compared with the rest
	// state is what the ledger has, nothing if it is lost.
	state steward.State
}

func (v *validation) found(name, subject, theirs, ours, text string, args ...any) {
	v.out.Drift = append(v.out.Drift, task.Drift{Name: name, What: subject, Text: fmt.Sprintf(text, args...), Theirs: theirs, Ours: ours})
}

// well records that there is no such difference, if there was one. Every check that can compare calls it or found.
func (v *validation) well(name, subject, text string, args ...any) {
	matches := func(d task.Drift) bool { return d.Name == name && d.What == subject }
	if slices.ContainsFunc(v.state.Drift, matches) || slices.ContainsFunc(v.state.Accepted, matches) {
		v.out.Well = append(v.out.Well, task.Drift{Name: name, What: subject, Text: fmt.Sprintf(text, args...)})
	}
}

// ledger checks that the ledger continues from where the steward has it, and the repository's copy is a part of it.
func (v *validation) ledger(ctx context.Context) error {
	ws, want := v.ws, v.in.Ledger
	head, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err != nil {
		return err
	}
	ok, err := ws.HasEntry(ctx, head, want)
	if err != nil {
		return err
	}
	if head == "" || !ok {
		v.found(task.DriftLedger, ws.Ledger, head, want, "%s in pawl's store is not where the steward left it", ws.Ledger)
		v.lost = true
		return nil
	}
	if v.state, err = ws.StewardBook.State(ctx, want); err != nil {
		return err
	}
	v.well(task.DriftLedger, ws.Ledger, "%s in pawl's store is again where the steward left it", ws.Ledger)
	subject := ws.Ledger + " in " + ws.Repo
	commit, change, err := ws.LedgerInRepository(ctx, head)
	if err != nil { // nobody can compare it, and a push says why
		return ctx.Err()
	}
	if change == "" {
		v.well(task.DriftLedger, subject, "%s in %s is as pawl has pushed it again", ws.Ledger, ws.Repo)
		return nil
	}
	v.found(task.DriftLedger, subject, commit, head, "%s in %s %s", ws.Ledger, ws.Repo, change)
	v.out.Drift[len(v.out.Drift)-1].Restorable = !ws.Remote
	return nil
}

// base checks that the project's branch continues from where the steward last read it.
func (v *validation) base(ctx context.Context) error {
	if v.lost {
		return nil
	}
	ws := v.ws
	commit, governance, err := project(ctx, ws, v.in.Charter)
	if err != nil || commit == "" {
		return err
	}
	v.out.Base, v.out.Governance = commit, governance
	base := v.state.Base
	for _, d := range v.state.Drift { // the base is read anew each time, so only the question knows what was lost
		if d.Name == task.DriftBranch && d.What == ws.Onto && d.Well == "" {
			base = d.Ours
		}
	}
	ok, err := ws.DescendsFrom(ctx, commit, base)
	if err != nil {
		return err
	}
	if base != "" && !ok {
		v.found(task.DriftBranch, ws.Onto, commit, base, "the branch %s was rewritten: it no longer continues from %s", ws.Onto, base[:min(12, len(base))])
	} else {
		v.well(task.DriftBranch, ws.Onto, "the branch %s continues again from %s", ws.Onto, base[:min(12, len(base))])
	}
	return nil
}

// artifacts checks that the files in the project's folder are as they were written, or as a person keeps them.
func (v *validation) artifacts(ctx context.Context) error {
	ws := v.ws
	if owns, err := ownsFolder(ws); err != nil || !owns || v.lost {
		return err
	}
	names := []string{ledger.StatusFile, ledger.LastKnownFile}
	for _, t := range v.state.Tasks {
		if t.Plan != nil {
			names = append(names, ledger.TaskPlanFile(t.ID))
		}
	}
	folder, err := folder(ctx, ws)
	var pre *userrepo.Precondition
	switch {
	case errors.As(err, &pre):
		v.out.Drift = append(v.out.Drift, driftOf(userrepo.FolderName, pre.What, "", ""))
		return nil
	case userrepo.Unwritten(err) || err == nil && folder == nil:
		return nil
	case err != nil:
		return err
	}
	defer folder.Close()
	if _, deleted, err := gone(ws, folder); err != nil || deleted != nil {
		if deleted != nil {
			v.out.Drift = append(v.out.Drift, *deleted)
		}
		return err
	}
	for _, name := range names {
		n, err := note(ws, name)
		if err != nil {
			return err
		}
		if len(n.Written) == 0 {
			continue
		}
		now, err := folder.Digest(name)
		if err != nil {
			return err
		}
		if !slices.Contains(n.Written, now) && (n.Kept == nil || *n.Kept != now) {
			v.out.Drift = append(v.out.Drift, driftOf(name, saysOf(filepath.Join(folder.Path, name), now), now, n.Written[0]))
		}
	}
	healed, err := wellAgain(ws, folder, v.state)
	v.out.Well = append(v.out.Well, healed...)
	return err
}

// children checks the loops at work: Temporal knows them, this steward started them, their branches have their heads.
func (v *validation) children(ctx context.Context) error {
	if err := v.former(ctx); err != nil {
		return err
	}
	if len(v.in.Children) == 0 {
		return nil
	}
	c := loopsOf(ctx, v.ws.Machine)
	for _, child := range v.in.Children {
		found, err := c.Snapshot(ctx, child.Loop)
		switch {
		case fault.CodeOf(err) == fault.LoopNotFound:
			v.found(task.DriftEngine, child.Loop, "", child.Status, "neither Temporal nor a ledger on this host knows the loop %s, which is %s as recorded", child.Loop, child.Status)
			continue
		case err != nil:
			return err
		case found.Gone && !found.State.Status.Ended():
			v.found(task.DriftEngine, child.Loop, "", child.Status, "Temporal does not know the loop %s any more, which is %s as recorded", child.Loop, child.Status)
		default:
			v.well(task.DriftEngine, child.Loop, "the loop %s is known again", child.Loop)
		}
		if record, ok := v.record(child.Loop); ok {
			if err := v.child(ctx, child, record); err != nil {
				return err
			}
		}
	}
	return nil
}

// record returns the record of a loop on this host; the branch of any other loop is on another host.
func (v *validation) record(id string) (hostrecord.Record, bool) {
	record, ok := hostrecord.Latest(v.ws.Machine.Home, id)
	return record, ok && record.Store == v.ws.Store
}

// former checks what was found about loops that are not at work any more, and that nobody has answered yet.
func (v *validation) former(ctx context.Context) error {
	works := func(id string) bool {
		return slices.ContainsFunc(v.in.Children, func(c stewardapi.Child) bool { return c.Loop == id })
	}
	for _, d := range v.state.Drift {
		switch {
		case d.Well != "":
		case (d.Name == task.DriftEngine || d.Name == task.DriftChild) && !works(d.What):
			v.well(d.Name, d.What, "the steward does not wait for the loop %s any more", d.What)
		case d.Name == task.DriftBranch:
			st := v.state.StepOn(d.What)
			if st == nil || works(st.Loop) {
				continue
			}
			if record, ok := v.record(st.Loop); ok {
				if err := v.branch(ctx, record.Branch, st.Head); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (v *validation) child(ctx context.Context, child stewardapi.Child, record hostrecord.Record) error {
	ws := v.ws
	head, err := ws.Objects.Ref(ctx, record.Ledger)
	if err != nil || head == "" {
		return err
	}
	contract, err := ledger.Open(ws.Objects).Contract(ctx, head)
	if err != nil {
		return err
	}
	if owner := contract.Spec.Session[spec.SessionSteward]; owner != ws.Loop {
		v.found(task.DriftChild, child.Loop, owner, ws.Loop, "the loop %s was not started by this steward", child.Loop)
		return nil
	}
	v.well(task.DriftChild, child.Loop, "the loop %s is again the one that this steward started", child.Loop)
	if child.Head == "" {
		return nil
	}
	return v.branch(ctx, record.Branch, child.Head)
}

// branch checks that a loop's branch has the recorded head, and in the repository nothing else.
func (v *validation) branch(ctx context.Context, ref, head string) error {
	ws, name := v.ws, git.BranchName(ref)
	commit, err := ws.Objects.Ref(ctx, ref)
	if err != nil {
		return err
	}
	ok, err := ws.DescendsFrom(ctx, commit, head)
	if err != nil {
		return err
	}
	if !ok {
		v.found(task.DriftBranch, name, commit, head, "the branch %s in pawl's store lacks the loop's last commit", name)
		return nil
	}
	theirs, err := ws.Pushed(ctx, ref)
	if err != nil { // nobody can compare it, and a push says why
		return ctx.Err()
	}
	if ok, err = ws.DescendsFrom(ctx, commit, theirs); err != nil {
		return err
	}
	if theirs != "" && !ok {
		v.found(task.DriftBranch, name, theirs, commit, "the branch %s in %s was moved by somebody else", name, ws.Repo)
		return nil
	}
	v.well(task.DriftBranch, name, "the branch %s has the loop's work again, and nothing else", name)
	return nil
}

// remote reads the remote's open work and CI status, if there is one. That it does not answer is no difference.
func (v *validation) remote(ctx context.Context) error {
	r := v.in.Charter.Remote
	if r.API == "" {
		return nil
	}
	status, err := forge.Scan(ctx, v.ws.Machine.Home, r, v.ws.Onto, time.Now())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		v.out.Remote = "the remote can't be read now: " + err.Error()
		return nil
	}
	suffix := ""
	if status.More {
		suffix = " or more"
	}
	v.out.Remote = fmt.Sprintf("%s and %s%s are open, CI of %s: %s", metric.Counted(status.Issues, "issue"), metric.Counted(status.Pulls, "pull request"), suffix, v.ws.Onto, status.CI)
	if len(status.Failing) > 0 {
		v.out.Remote += " (" + strings.Join(status.Failing, ", ") + ")"
	}
	commit := v.out.Base
	ok, err := v.ws.DescendsFrom(ctx, commit, status.Commit)
	if err != nil {
		return err
	}
	if ok {
		v.well(task.DriftRemote, v.ws.Onto, "the project's %s has all commits of the remote's %s again", v.ws.Onto, v.ws.Onto)
	} else if commit != "" && status.Commit != "" {
		v.found(task.DriftRemote, v.ws.Onto, status.Commit, commit, "the remote's %s is at %s, which the project's %s does not contain: pull it", v.ws.Onto, status.Commit[:min(12, len(status.Commit))], v.ws.Onto)
	}
	switch status.CI {
	case forge.Success:
		v.well(task.DriftCI, v.ws.Onto, "CI of %s is well again", v.ws.Onto)
	case forge.Failure:
		v.found(task.DriftCI, v.ws.Onto, status.Commit, "", "CI of %s fails: %s", v.ws.Onto, strings.Join(status.Failing, ", "))
	}
	return nil
}

// schedules counts the slots that Temporal skipped because they came later than the catch-up window allows. Schedules
// that can't be read now are read the next time.
func (v *validation) schedules(ctx context.Context) error {
	if len(v.in.Charter.Schedules) == 0 {
		return nil
	}
	m := v.ws.Machine
	missed, slots, err := schedule.Reader{Client: m.Temporal(ctx), Namespace: m.Namespace, Now: time.Now}.Missed(ctx, v.in.Charter, v.in.Missed, v.in.Slots)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		m.Logger.Warn("the schedules of a steward can't be read", "steward", v.ws.Loop, "error", err)
		return nil
	}
	v.out.Missed, v.out.Slots = missed, slots
	return nil
}

// health runs the charter's health checks. A command runs in the user's repository, if that is on this host.
func (v *validation) health(ctx context.Context) error {
	dir, release := v.ws.Machine.Workplace(v.in.Ref)
	defer release()
	for _, t := range v.in.Charter.Triggers {
		if t.From != charter.Health {
			continue
		}
		ill := health.Check(ctx, t, workspace.Notifying(), dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		v.out.Health = append(v.out.Health, stewardapi.Health{Name: t.Name, Ill: loop.Clip(workspace.Said(ill), 2000)})
	}
	return nil
}
