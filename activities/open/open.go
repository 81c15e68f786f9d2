// Package open brings loops to this host: it opens and resumes them, and finds out whether another host is gone.
// Start at Opener.
package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"pawl/activities/command"
	"pawl/activities/contract"
	"pawl/activities/record"
	"pawl/activities/workspace"
	"pawl/internal/exec/sandbox"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// Opener opens loops on this host.
type Opener struct{ *command.Runner }

// Open prepares a loop on this host: the repository's preconditions (P0), the store with the base commit, the branch,
// the sealed files and the contract's hash. A retry finds the workspace that an earlier attempt made.
func (a *Opener) Open(ctx context.Context, input api.Open) (api.Opened, error) {
	o := RequestOf(a.Machine, input)
	done, err := a.Announce(o)
	if err != nil {
		return api.Opened{}, err
	}
	defer done()
	if input.Ledger != "" {
		return a.resume(ctx, input)
	}
	ws, base, err := a.Begin(ctx, o)
	if err != nil {
		return api.Opened{}, err
	}
	out, err := opened(ctx, ws, base)
	if err != nil {
		return out, err
	}
	if out.Begun, err = taskBaseOf(ctx, ws, input.Spec.Session, base); err != nil {
		return api.Opened{}, err
	}
	if err := drawContract(ctx, ws, input.Spec, &out); err != nil {
		return api.Opened{}, err
	}
	crashpoint.At("open.after")
	return out, nil
}

// Request is a loop or a steward that is to be opened here: its record, as far as it is known, and where its work is.
type Request struct {
	hostrecord.Record
	Wanted    spec.Repo
	From      string     // the ledger commit from which to continue
	Tolerates []string   // codes of the preconditions that need not hold
	spec      *spec.Spec // a loop's spec; nil for a steward
}

// unmet returns the part of an error of inspect that is an obstacle.
func (o Request) unmet(err error) error {
	failed := userrepo.Failed(err)
	if err != nil && len(failed) == 0 {
		return err
	}
	failed = slices.DeleteFunc(slices.Clone(failed), func(p *userrepo.Precondition) bool { return slices.Contains(o.Tolerates, p.Code) })
	if o.spec != nil {
		if p := Unfit(o.spec.Mode); p != nil {
			failed = append(failed, p)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return failed
}

// furtherProblem returns what else, beside the reason for which a request is refused, keeps its spec from starting, nil if
// nothing does. It writes only the base commit, into the store.
func (a *Opener) furtherProblem(
	ctx context.Context, o Request, found userrepo.Repo, source userrepo.Source,
) (*userrepo.Precondition, error) {
	if o.spec == nil || source.Head == "" || source.Branch == "" {
		return nil, nil
	}
	r, err := o.record(a.Machine, git.RefName(o.Loop), found, source)
	if err != nil {
		return nil, err
	}
	ws, err := a.OpenWorkspace(ctx, r)
	if err != nil {
		return nil, err
	}
	ws.Env, _ = rules.Inherited(os.Environ()) // the loop has no folder to keep it in
	repo, err := ws.Repository()
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	base, err := userrepo.Fetch(ctx, ws.Objects, repo, source.Branch)
	if err != nil {
		return nil, err
	}
	d, err := contract.Draw(ctx, ws, *o.spec, base)
	if err != nil {
		return nil, err
	}
	if f := d.Closed(ws, *o.spec); f != nil {
		return &userrepo.Precondition{Code: "scope", What: f.What, Do: f.Do}, nil
	}
	return nil, nil
}

// Unfit returns why a loop in this mode runs nothing, nil if it runs (A1).
func Unfit(mode string) *userrepo.Precondition {
	if mode == "" || mode == spec.ModeMission {
		return nil
	}
	return &userrepo.Precondition{Code: "mode", What: "the mode is " + mode + ", but a loop starts only in mode mission", Do: "Set `mode: mission`, or leave `mode` out."}
}

// RequestOf returns what is to be opened on this host for a loop.
func RequestOf(m *workspace.Machine, input api.Open) Request {
	s := input.Spec
	r := hostrecord.Record{Loop: input.Loop, Kind: s.Kind, FirstRun: input.FirstRun, Namespace: m.Namespace, Onto: s.Session[spec.SessionOnto]}
	r.Demand(s)
	return Request{Wanted: s.Repo, From: input.Ledger, spec: &s, Record: r}
}

// Announce records that something is being opened, if this machine has the sandbox it requires. The caller calls done.
func (a *Opener) Announce(o Request) (done func(), err error) {
	announced := hostrecord.Record{Loop: o.Loop, Kind: o.Kind, FirstRun: o.FirstRun, Namespace: o.Namespace}
	if err := hostrecord.Announce(a.Home, announced); err != nil {
		return nil, err
	}
	done = func() { hostrecord.RetractOpened(a.Home, announced) }
	if err := workspace.Ensure(o.Sandbox, sandbox.Probe(), a.ClosedPorts(), nil); err != nil {
		done()
		return nil, err
	}
	crashpoint.At("open.before")
	return done, nil
}

// Begin gives a loop or a steward its name, its store and the commit that it starts from.
func (a *Opener) Begin(ctx context.Context, o Request) (*workspace.Workspace, string, error) {
	record, source, err := a.register(ctx, o)
	if err != nil {
		return nil, "", err
	}
	crashpoint.At("open.recorded")
	ws, err := a.OpenWorkspace(ctx, record)
	if err != nil {
		return nil, "", err
	}
	a.Keep(ws) // replaces the workspace of an attempt whose result was lost
	crashpoint.At("open.enrolled")
	base, err := Base(ctx, ws, source)
	return ws, base, err
}

func opened(ctx context.Context, ws *workspace.Workspace, base string) (api.Opened, error) {
	site, err := Site(ctx, ws)
	return api.Opened{
		Site: site, Repo: ws.Repo, Branch: git.BranchName(ws.Branch), Base: base, Onto: ws.Onto, Stop: ws.LoopStop(),
	}, err
}

// Site describes this host for the workflow, with the result of trying its sandbox.
func Site(ctx context.Context, ws *workspace.Workspace) (api.Site, error) {
	protection, err := ws.Protections(ctx)
	if err == nil {
		err = workspace.Ensure(ws.Sandbox, sandbox.Probe(), ws.Machine.ClosedPorts(), protection.Broken)
	}
	var moveAfter time.Duration
	if ws.Remote {
		moveAfter = ws.Machine.MoveAfter
	}
	return api.Site{
		Ref: ws.Ref, Host: ws.Machine.Host, Queue: ws.Machine.Queue, Agents: ws.Machine.Agents, Desk: ws.Desk.Dir,
		Protections: protection.Lines, Claims: protection.Claims, Lacks: protection.Lacks, MoveAfterMs: moveAfter.Milliseconds(), Attributes: ws.Machine.Attributes,
	}, err
}

// register checks the repository and gives the loop its name on this host. It does so for one loop at a time, because
// different IDs may give the same name of a ref.
func (a *Opener) register(ctx context.Context, o Request) (hostrecord.Record, userrepo.Source, error) {
	var source userrepo.Source
	repo, err := workspace.Find(ctx, o.Wanted)
	if err == nil {
		defer repo.Close()
		source, err = Inspect(ctx, a.Machine, repo, o.Wanted, o.Loop)
	}
	if err = o.unmet(err); err != nil {
		if failed := userrepo.Failed(err); len(failed) > 0 {
			further, cause := a.furtherProblem(ctx, o, repo, source)
			if cause != nil {
				a.Logger.WarnContext(ctx, "what else keeps the loop from starting can't be told", "loop", o.Loop, "error", cause)
			} else if further != nil {
				err = append(failed, further)
			}
		}
		return hostrecord.Record{}, source, Precondition(ctx, err)
	}
	a.Registering.Lock()
	defer a.Registering.Unlock()
	record, err := Enroll(a.Machine, o, repo, source)
	return record, source, err
}

// Inspect checks everything that P0 requires of a spec's repository.
func Inspect(ctx context.Context, m *workspace.Machine, repo userrepo.Repo, r spec.Repo, id string) (userrepo.Source, error) {
	ref := "refs/heads/pawl/" + git.RefName(id)
	if !r.Remote() {
		return userrepo.Inspect(ctx, repo, r.Base, ref)
	}
	store, err := store.Open(ctx, m.StoreOf(r.URL))
	if err != nil {
		return userrepo.Source{}, fmt.Errorf("opening the store: %w", err)
	}
	return userrepo.InspectAt(ctx, store, repo, r.Base, ref)
}

// Enroll finds a name for this chain of runs, and writes its workspace record. The name is the loop's ID as a ref,
// with .2, .3 … if an earlier loop of this host has that name, or a loop of another host in this repository.
func Enroll(m *workspace.Machine, o Request, repo userrepo.Repo, source userrepo.Source) (hostrecord.Record, error) {
	name := git.RefName(o.Loop)
	for n := 2; ; n++ {
		r, err := hostrecord.Read(m.Home, name)
		if err == nil && r.FirstRun == o.FirstRun {
			return r, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return hostrecord.Record{}, err
		}
		if err != nil && !slices.Contains(source.Loops, name) {
			break
		}
		name = fmt.Sprintf("%s.%d", git.RefName(o.Loop), n)
	}
	r, err := o.record(m, name, repo, source)
	if err != nil {
		return hostrecord.Record{}, err
	}
	return r, hostrecord.Write(m.Home, r)
}

// record returns the workspace record of a loop of this name in a repository. It writes nothing.
func (o Request) record(m *workspace.Machine, name string, repo userrepo.Repo, source userrepo.Source) (r hostrecord.Record, err error) {
	r = o.named(name, source.Identity)
	r.OpenedAt, r.Short = time.Now(), hostrecord.ShortName(m.Home, name)
	r.Repo, r.Origin, r.Onto, r.Store = source.Path, source.Origin, cmp.Or(o.Onto, source.Branch), m.StoreOf(source.Path)
	return r, r.Locate(repo.Folder())
}

// named returns the record with its name in refs and folders, and the name that its commits carry.
func (o Request) named(name string, by git.Identity) hostrecord.Record {
	r := o.Record
	r.Ref, r.Ledger, r.Name, r.Email = name, "refs/pawl-ledger/"+name, by.Name, by.Email
	if !r.Steward() {
		r.Branch = "refs/heads/pawl/" + name
	}
	return r
}

// Base returns the commit from which the loop starts: the first head of its branch. A retry keeps the base of the
// first attempt, even if the user has added commits.
func Base(ctx context.Context, ws *workspace.Workspace, source userrepo.Source) (string, error) {
	baseRef := "refs/pawl/base/" + ws.Ref
	commit, err := ws.Objects.Ref(ctx, baseRef)
	if err != nil {
		return "", err
	}
	branch := ""
	if ws.Branch != "" {
		if branch, err = ws.Objects.Ref(ctx, ws.Branch); err != nil {
			return "", err
		}
	}
	if commit == "" {
		if commit, err = fetch(ctx, ws, source); err != nil {
			return "", err
		}
		if branch != "" && branch != commit {
			return "", fmt.Errorf("making the loop's branch: %w", &store.Fenced{Ref: ws.Branch, Have: branch})
		}
		if err := ws.Objects.SetRef(ctx, baseRef, commit, ""); err != nil {
			return "", err
		}
		crashpoint.At("open.based")
	}
	if ws.Branch != "" && branch == "" {
		if err := ws.Objects.SetRef(ctx, ws.Branch, commit, ""); err != nil {
			return "", fmt.Errorf("making the loop's branch: %w", err)
		}
	}
	crashpoint.At("open.branched")
	return commit, nil
}

// fetch brings the base into the store.
func fetch(ctx context.Context, ws *workspace.Workspace, source userrepo.Source) (string, error) {
	repo, err := ws.Repository()
	if err != nil {
		return "", Precondition(ctx, err)
	}
	defer repo.Close()
	commit, err := userrepo.Fetch(ctx, ws.Objects, repo, source.Branch)
	if err != nil {
		return "", Precondition(ctx, fmt.Errorf("fetching the base from %s: %w", source.Path, err))
	}
	tags(ctx, ws, repo, "refs/heads/"+git.BranchName(source.Branch))
	crashpoint.At("open.fetched")
	if ws.Remote {
		if err := userrepo.MayPush(ctx, ws.Objects, repo, commit, "refs/heads/pawl/"+ws.Ref); err != nil {
			return "", Precondition(ctx, err)
		}
	}
	return commit, nil
}

// tags fetches the tags for the trees. A loop works without them if they can't be fetched.
func tags(ctx context.Context, ws *workspace.Workspace, source userrepo.Repo, ref string) {
	if err := userrepo.FetchTags(ctx, ws.Objects, source, ref); err != nil && ctx.Err() == nil {
		ws.Machine.Logger.Warn("the trees have no tags of the repository", "loop", ws.Loop, "error", err)
	}
}

// patience is how many attempts at an activity find no way to a repository before a person hears of it: half a minute.
const patience = 8

// MayPass reports whether these conditions may be met soon by themselves: the repository can't be reached, as in an
// outage of the network. Temporal then tries the activity again.
func MayPass(ctx context.Context, failed userrepo.Preconditions) bool {
	lasting := func(p *userrepo.Precondition) bool { return p.Code != userrepo.Unreachable }
	return len(failed) > 0 && !slices.ContainsFunc(failed, lasting) && activity.IsActivity(ctx) && activity.GetInfo(ctx).Attempt < patience
}

// Precondition turns the findings of Inspect into a fault, unless they may pass. Any other error is a failure of the
// machine.
func Precondition(ctx context.Context, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return workspace.Refuse(fault.New(fault.PreconditionFailed, "the worker on this host finds no git on its PATH").
			Advise("Install git, or start the worker (`pawl up`) with a PATH that has it."))
	}
	if MayPass(ctx, userrepo.Failed(err)) {
		return err
	}
	return workspace.Refusal(record.PlainFault(err))
}

// taskBaseOf returns the commit at which the steward's task of this loop began, "" if that is the loop's own base. The
// proposal is the diff from there, so that one proposal covers all steps of a task. It returns a PRECONDITION_FAILED
// if the base does not descend from that commit, or if the branch to apply to does not exist.
func taskBaseOf(ctx context.Context, ws *workspace.Workspace, session map[string]string, base string) (string, error) {
	if base := session[spec.SessionOnto]; base != "" {
		tip := ""
		if git.CheckBranch(base) == nil {
			var err error
			if tip, err = ws.Pushed(ctx, "refs/heads/"+base); err != nil {
				return "", Precondition(ctx, userrepo.Unreached(ws.Repo, err))
			}
		}
		if tip == "" {
			return "", workspace.Refuse(fault.New(fault.PreconditionFailed, "session.onto is %q, and %s has no such branch", loop.Clip(base, 80), ws.Repo).
				Advise("Name the branch that the task's work is to be applied to."))
		}
	}
	taskBase := session[spec.SessionBase]
	if taskBase == "" || taskBase == base {
		return "", nil
	}
	descends, err := ws.DescendsFrom(ctx, base, taskBase)
	if err != nil {
		return "", err
	}
	if !descends {
		return "", workspace.Refuse(fault.New(fault.PreconditionFailed, "session.base is %q, but the loop's base %s does not descend from such a commit", loop.Clip(taskBase, 80), base[:10]).
			Advise("Give the full hash of the commit at which the task began, or leave session.base out."))
	}
	return taskBase, nil
}
