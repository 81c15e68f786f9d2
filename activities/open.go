package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/sandbox"
	"pawl/internal/spec"
	"pawl/internal/store"
	"pawl/internal/userrepo"
	"pawl/internal/workspace"
)

// Opener opens loops on this host.
type Opener struct{ *Runner }

// Open prepares a loop on this host: the repository's preconditions (P0), the store with the base commit, the branch,
// the sealed files and the contract's hash. A retry finds the workspace that an earlier attempt made.
func (a *Opener) Open(ctx context.Context, in act.Open) (act.Opened, error) {
	o := a.openingOf(in)
	done, err := a.announce(o)
	if err != nil {
		return act.Opened{}, err
	}
	defer done()
	if in.Ledger != "" {
		return a.resume(ctx, in)
	}
	ws, base, err := a.open(ctx, o)
	if err != nil {
		return act.Opened{}, err
	}
	out, err := ws.opened(ctx, base)
	if err != nil {
		return out, err
	}
	if out.Begun, err = ws.begun(ctx, in.Spec.Session, base); err != nil {
		return act.Opened{}, err
	}
	if err := ws.contract(ctx, in.Spec, &out); err != nil {
		return act.Opened{}, err
	}
	crash.At("open.after")
	return out, nil
}

// opening is a loop or a steward that is to be opened on this host: its record, as far as it is known
// beforehand, and where the work is.
type opening struct {
	workspace.Record
	repo      spec.Repo
	ledger    string   // to go on from
	tolerates []string // codes of the preconditions that need not hold
	mode      string   // of a loop
}

// unmet returns the part of an error of inspect that is an obstacle.
func (o opening) unmet(err error) error {
	failed := userrepo.Failed(err)
	if err != nil && len(failed) == 0 {
		return err
	}
	failed = slices.DeleteFunc(slices.Clone(failed), func(p *userrepo.Precondition) bool { return slices.Contains(o.tolerates, p.Code) })
	if p := unfit(o.mode); p != nil {
		failed = append(failed, p)
	}
	if len(failed) == 0 {
		return nil
	}
	return failed
}

// unfit returns why a loop in this mode runs nothing, nil if it runs (A1).
func unfit(mode string) *userrepo.Precondition {
	if mode == "" || mode == spec.ModeMission {
		return nil
	}
	return &userrepo.Precondition{Code: "mode", What: "the mode is " + mode + ", but a loop starts only in mode mission", Do: "Set `mode: mission`, or leave `mode` out."}
}

func (m *machine) openingOf(in act.Open) opening {
	s := in.Spec
	r := workspace.Record{
		Loop: in.Loop, Kind: s.Kind, FirstRun: in.FirstRun, Namespace: m.Namespace, Remote: s.Repo.Remote(), Onto: s.Session[spec.SessionOnto],
		Setup: s.Setup.Command, Keep: s.Judge.Keep, Sandbox: s.Sandbox,
	}
	if s.Limits.Memory != nil {
		r.Memory = *s.Limits.Memory
	}
	if s.Limits.Processes != nil {
		r.Processes = *s.Limits.Processes
	}
	if s.Limits.DeskBytes != nil {
		r.DeskBytes = *s.Limits.DeskBytes
	}
	return opening{repo: s.Repo, ledger: in.Ledger, mode: s.Mode, Record: r}
}

// announce records that something is being opened, and refuses a spec that requires a sandbox that this machine lacks.
// Its caller calls done at the end.
func (a *Opener) announce(o opening) (done func(), err error) {
	announced := workspace.Record{Loop: o.Loop, Kind: o.Kind, FirstRun: o.FirstRun, Namespace: o.Namespace}
	if err := workspace.Announce(a.Home, announced); err != nil {
		return nil, err
	}
	done = func() { workspace.Retract(a.Home, announced) }
	if err := ensure(o.Sandbox, sandbox.Probe(), a.closed(), nil); err != nil {
		done()
		return nil, err
	}
	crash.At("open.before")
	return done, nil
}

// open gives a loop or a steward its name, its store and the commit that it starts from.
func (a *Opener) open(ctx context.Context, o opening) (*loopWorkspace, string, error) {
	record, source, err := a.register(ctx, o)
	if err != nil {
		return nil, "", err
	}
	crash.At("open.recorded")
	ws, err := a.openWorkspace(ctx, record)
	if err != nil {
		return nil, "", err
	}
	a.keep(ws) // in the place of that of an attempt whose result was lost
	crash.At("open.enrolled")
	base, err := ws.base(ctx, source)
	return ws, base, err
}

func (ws *loopWorkspace) opened(ctx context.Context, base string) (act.Opened, error) {
	site, err := ws.site(ctx)
	return act.Opened{
		Site: site, Repo: ws.Repo, Branch: git.BranchName(ws.Branch), Base: base, Onto: ws.Onto, Stop: ws.loopStop(),
	}, err
}

// site describes this host for the workflow, with what its sandbox holds after a trial.
func (ws *loopWorkspace) site(ctx context.Context) (act.Site, error) {
	protections, broken, err := ws.protections(ctx)
	if err == nil {
		err = ensure(ws.Sandbox, sandbox.Probe(), ws.machine.closed(), broken)
	}
	var moveAfter time.Duration
	if ws.Remote {
		moveAfter = ws.machine.MoveAfter
	}
	return act.Site{
		Ref: ws.Ref, Host: ws.machine.Host, Queue: ws.machine.Queue, Agents: ws.machine.Agents, Desk: ws.desk.Dir,
		Protections: protections, MoveAfterMs: moveAfter.Milliseconds(), Attributes: ws.machine.Attributes,
	}, err
}

// register checks the repository and gives the loop its name on this host, one loop after the
// other: different IDs may be the same name as a ref.
func (a *Opener) register(ctx context.Context, o opening) (workspace.Record, userrepo.Source, error) {
	source, err := a.inspect(ctx, o.repo, o.Loop)
	if err = o.unmet(err); err != nil {
		return workspace.Record{}, source, precondition(err)
	}
	a.registering.Lock()
	defer a.registering.Unlock()
	record, err := a.enroll(o, source)
	return record, source, err
}

// inspect checks the repository of a spec for everything that P0 asks.
func (m *machine) inspect(ctx context.Context, r spec.Repo, id string) (userrepo.Source, error) {
	if _, err := git.Version(ctx); err != nil {
		return userrepo.Source{}, err
	}
	ref := "refs/heads/pawl/" + git.RefName(id)
	if !r.Remote() {
		return userrepo.Inspect(ctx, userrepo.At(r.Path), r.Base, ref)
	}
	store, err := store.Open(ctx, m.storeOf(r.URL))
	if err != nil {
		return userrepo.Source{}, fmt.Errorf("opening the store: %w", err)
	}
	return userrepo.InspectAt(ctx, store, userrepo.At(r.URL), r.Base, ref)
}

// enroll finds the name under which this chain of runs lives, and writes its workspace record: the
// loop's ID as a ref, with .2, .3 … where an earlier loop of this host has it, or one of another
// host in this repository.
func (m *machine) enroll(o opening, source userrepo.Source) (workspace.Record, error) {
	name := git.RefName(o.Loop)
	for n := 2; ; n++ {
		r, err := workspace.Read(m.Home, name)
		if err == nil && r.FirstRun == o.FirstRun {
			return r, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return workspace.Record{}, err
		}
		if err != nil && !slices.Contains(source.Loops, name) {
			break
		}
		name = fmt.Sprintf("%s.%d", git.RefName(o.Loop), n)
	}
	r := o.named(name, source.Identity)
	r.Repo, r.Origin, r.Onto, r.Store = source.Path, source.Origin, cmp.Or(o.Onto, source.Branch), m.storeOf(source.Path)
	if err := r.Locate(); err != nil {
		return workspace.Record{}, err
	}
	return r, workspace.Write(m.Home, r)
}

// named returns the record with its name in refs and folders, and the name that its commits carry.
func (o opening) named(name string, by git.Identity) workspace.Record {
	r := o.Record
	r.Ref, r.Ledger, r.Name, r.Email = name, "refs/pawl-ledger/"+name, by.Name, by.Email
	if !r.Steward() {
		r.Branch = "refs/heads/pawl/" + name
	}
	return r
}

// base returns the commit that the loop starts from: the first head of its branch. A retry keeps the base of the first
// attempt, even if the user has moved on.
func (ws *loopWorkspace) base(ctx context.Context, source userrepo.Source) (string, error) {
	at := "refs/pawl/base/" + ws.Ref
	if have, err := ws.store.Ref(ctx, at); err != nil || have != "" {
		return have, err
	}
	repo, err := ws.repository()
	if err != nil {
		return "", precondition(err)
	}
	defer repo.Close()
	commit, err := userrepo.Fetch(ctx, ws.store, repo, source.Branch)
	if err != nil {
		return "", precondition(fmt.Errorf("fetching the base from %s: %w", source.Path, err))
	}
	ws.tags(ctx, repo, "refs/heads/"+git.BranchName(source.Branch))
	crash.At("open.fetched")
	if ws.Remote {
		if err := userrepo.MayPush(ctx, ws.store, repo, commit, "refs/heads/pawl/"+ws.Ref); err != nil {
			return "", precondition(err)
		}
	}
	if ws.Branch != "" {
		if err := ws.store.SetRef(ctx, ws.Branch, commit, ""); err != nil {
			return "", fmt.Errorf("making the loop's branch: %w", err)
		}
	}
	crash.At("open.branched")
	return commit, ws.store.SetRef(ctx, at, commit, "")
}

// tags fetches the tags that the trees show. A loop does without them if they can't be had.
func (ws *loopWorkspace) tags(ctx context.Context, source userrepo.Repo, ref string) {
	if err := userrepo.FetchTags(ctx, ws.store, source, ref); err != nil && ctx.Err() == nil {
		ws.machine.Logger.Warn("the trees have no tags of the repository", "loop", ws.Loop, "error", err)
	}
}

// precondition turns what Inspect found into a fault; anything else is the machine's.
func precondition(err error) error {
	if failed := userrepo.Failed(err); len(failed) > 0 {
		var what, do []string
		for _, pre := range failed {
			what, do = append(what, pre.What), append(do, pre.Do)
		}
		return refuse(fault.New(fault.PreconditionFailed, "%s", strings.Join(what, "; ")).Advise(strings.Join(do, "\n")))
	}
	if errors.Is(err, exec.ErrNotFound) {
		return refuse(fault.New(fault.PreconditionFailed, "the worker on this host finds no git on its PATH").
			Advise("Install git, or start the worker (`pawl up`) with a PATH that has it."))
	}
	return err
}
