package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/durable"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/govern"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/proc"
	"pawl/internal/spec"
	"pawl/internal/store"
	"pawl/internal/trees"
	"pawl/internal/userrepo"
	"pawl/internal/workspace"
)

// Open takes a loop up on this host: the repository's preconditions (P0), the store with the
// base commit, the branch, the sealed files and the contract's hash. A retry finds the
// workspace that an attempt before it made.
func (a *Activities) Open(ctx context.Context, in act.Open) (act.Opened, error) {
	announced := workspace.Record{Loop: in.Loop, FirstRun: in.FirstRun, Namespace: a.Namespace}
	if err := workspace.Announce(a.Home, announced); err != nil {
		return act.Opened{}, err
	}
	defer workspace.Retract(a.Home, announced)
	if err := a.ensure(in.Spec.Sandbox); err != nil {
		return act.Opened{}, err
	}
	crash.At("open.before")
	if in.Ledger != "" {
		return a.takeUp(ctx, in)
	}
	record, source, err := a.register(ctx, in)
	if err != nil {
		return act.Opened{}, err
	}
	crash.At("open.recorded")
	ws, err := a.openWorkspace(ctx, record)
	if err != nil {
		return act.Opened{}, err
	}
	a.mu.Lock()
	a.workspaces[record.Ref] = ws
	a.mu.Unlock()
	crash.At("open.enrolled")
	base, err := ws.base(ctx, source)
	if err != nil {
		return act.Opened{}, err
	}
	out := ws.opened(base)
	if err := ws.contract(ctx, in.Spec, &out); err != nil {
		return act.Opened{}, err
	}
	crash.At("open.after")
	return out, nil
}

// takeUp gives a loop whose run is lost (another engine, another host) to this run: from the
// ledger commit in.Ledger, which must be the ledger's head here or, where this host does not have
// it, in the repository. The branch goes back to the head that the ledger knows.
func (a *Activities) takeUp(ctx context.Context, in act.Open) (act.Opened, error) {
	a.registering.Lock()
	defer a.registering.Unlock()
	record, err := a.takeOver(ctx, in)
	if err != nil {
		return act.Opened{}, err
	}
	a.release(record.Ref) // a run that was reset may have left a step at work here
	ws, err := a.openWorkspace(ctx, record)
	if err != nil {
		return act.Opened{}, err
	}
	state, err := ws.ledger.State(ctx, in.Ledger)
	if err != nil {
		return act.Opened{}, err
	}
	if state.Status.Ended() {
		return act.Opened{}, refuse(fault.New(fault.PreconditionFailed, "the loop of this ledger has ended (%s)", state.Status).
			Advise("Start another loop: it begins where the repository is now."))
	}
	contract, err := ws.ledger.Contract(ctx, in.Ledger)
	if err == nil && !in.Moved {
		err = sameTerms(contract, in.Spec)
	}
	if err != nil {
		return act.Opened{}, err
	}
	at, err := ws.store.Ref(ctx, ws.Ledger)
	if err != nil {
		return act.Opened{}, err
	}
	if at != in.Ledger {
		return act.Opened{}, refuse(fault.New(fault.LedgerAhead, "the ledger of %s is at %s, not at %s", ws.Loop, orNone(at), in.Ledger))
	}
	branch, err := ws.store.Ref(ctx, ws.Branch)
	if err != nil {
		return act.Opened{}, err
	}
	if branch != state.Head {
		if err := ws.store.SetRef(ctx, ws.Branch, state.Head, branch); err != nil {
			return act.Opened{}, fmt.Errorf("setting the branch back: %w", err)
		}
	}
	if ws.Remote {
		ws.rewind(ctx, state.Head)
	}
	record.FirstRun, record.Closed = in.FirstRun, false
	ws.Record = record
	if err := workspace.Write(a.Home, record); err != nil {
		return act.Opened{}, err
	}
	a.mu.Lock()
	a.workspaces[record.Ref] = ws
	a.mu.Unlock()
	out := ws.opened(state.Base)
	out.State, out.Terms = &state, act.Terms{Contract: state.Contract.Hash, Sealed: state.Contract.Sealed}
	return out, nil
}

func (ws *loopWorkspace) opened(base string) act.Opened {
	var moveAfter time.Duration
	if ws.Remote {
		moveAfter = ws.machine.MoveAfter
	}
	return act.Opened{
		Site: act.Site{
			Ref: ws.Ref, Host: ws.machine.Host, Queue: ws.machine.Queue, Agents: ws.machine.Agents, Desk: ws.desk.Dir,
			Protections: ws.protections(), MoveAfterMs: moveAfter.Milliseconds(), Attributes: ws.machine.Attributes,
		},
		Repo: ws.Repo, Branch: branchName(ws.Record), Base: base, Onto: ws.Onto, Stop: ws.loopStop(),
	}
}

// register checks the repository and gives the loop its name on this host, one loop after the
// other: different IDs may be the same name as a ref.
func (a *Activities) register(ctx context.Context, in act.Open) (workspace.Record, userrepo.Source, error) {
	source, err := a.inspect(ctx, in.Spec.Repo, in.Loop)
	if err != nil {
		return workspace.Record{}, source, precondition(err)
	}
	a.registering.Lock()
	defer a.registering.Unlock()
	record, err := a.enroll(in, source)
	return record, source, err
}

// enroll finds the name under which this chain of runs lives, and writes its workspace record: the
// loop's ID as a ref, with .2, .3 … where an earlier loop of this host has it, or one of another
// host in this repository.
func (m *machine) enroll(in act.Open, source userrepo.Source) (workspace.Record, error) {
	name := git.RefName(in.Loop)
	for n := 2; ; n++ {
		r, err := workspace.Read(m.Home, name)
		if err == nil && r.FirstRun == in.FirstRun {
			return r, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return workspace.Record{}, err
		}
		if err != nil && !slices.Contains(source.Loops, name) {
			break
		}
		name = fmt.Sprintf("%s.%d", git.RefName(in.Loop), n)
	}
	id := source.Identity()
	r := workspace.Record{
		Loop: in.Loop, Ref: name, FirstRun: in.FirstRun, Namespace: m.Namespace,
		Repo: source.Path, Remote: in.Spec.Repo.Remote(), Onto: source.Branch, Store: m.storeOf(source.Path),
		Branch: "refs/heads/pawl/" + name, Ledger: "refs/pawl-ledger/" + name,
		Name: id.Name, Email: id.Email, Setup: in.Spec.Setup.Command, Keep: in.Spec.Judge.Keep, Sandbox: in.Spec.Sandbox,
	}
	return r, workspace.Write(m.Home, r)
}

// base returns the commit that the loop starts from: where its branch stands at first. A retry
// keeps to what the first attempt found, even where the user has moved on.
func (ws *loopWorkspace) base(ctx context.Context, source userrepo.Source) (string, error) {
	at := "refs/pawl/base/" + ws.Ref
	if have, err := ws.store.Ref(ctx, at); err != nil || have != "" {
		return have, err
	}
	commit, err := userrepo.Fetch(ctx, ws.store, source.Path, source.Branch)
	if err != nil {
		return "", precondition(fmt.Errorf("fetching the base from %s: %w", source.Path, err))
	}
	crash.At("open.fetched")
	if ws.Remote {
		if err := userrepo.MayPush(ctx, ws.store, ws.Repo, commit, ws.Branch); err != nil {
			return "", precondition(err)
		}
	}
	if err := ws.store.SetRef(ctx, ws.Branch, commit, ""); err != nil {
		return "", fmt.Errorf("making the loop's branch: %w", err)
	}
	crash.At("open.branched")
	return commit, ws.store.SetRef(ctx, at, commit, "")
}

// contract works out what a person will be asked to approve, and notes it for the ledger.
func (ws *loopWorkspace) contract(ctx context.Context, s spec.Spec, out *act.Opened) error {
	d, err := draw(ctx, ws, s, out.Base)
	if err != nil {
		return err
	}
	if f := d.closed(ws, s); f != nil {
		return refuse(f)
	}
	out.Terms, out.InScope, out.Warnings = d.terms(), d.inScope, d.warnings
	ws.ledger.Bind(d.contract)
	if _, err := ws.environment(); err != nil {
		return err
	}
	return durable.WriteJSON(filepath.Join(ws.machine.Home.Loop(ws.Ref), ledger.ContractFile), d.contract)
}

// draft is a contract that nobody was asked to approve yet.
type draft struct {
	contract ledger.Contract
	names    []string // the base's files
	inScope  int      // how many of them the scope matches
	clash    []string // those of them that are sealed
	warnings []string // of what a person should know before
}

// draw makes the contract of a spec at a base commit.
func draw(ctx context.Context, ws *loopWorkspace, s spec.Spec, base string) (draft, error) {
	entries, err := ws.store.Entries(ctx, base)
	if err != nil {
		return draft{}, fmt.Errorf("listing the base's files: %w", err)
	}
	d := draft{names: make([]string, len(entries))}
	blobs := map[string]store.TreeEntry{}
	for i, e := range entries {
		d.names[i], blobs[e.Path] = e.Path, e
		if s.Match(e.Path) {
			d.inScope++
		}
	}
	var sealed []loop.Seal
	for _, name := range spec.Sealed(s, d.names) {
		sealed = append(sealed, loop.Seal{Path: git.Quote(name), Blob: blobs[name].Blob, Mode: blobs[name].Mode})
		if s.Match(name) {
			d.clash = append(d.clash, name)
		}
	}
	d.contract = govern.Draw(s, base, ws.Onto, sealed)
	d.warnings, err = filtered(ctx, ws, entries)
	return d, err
}

// terms are what was added to the spec.
func (d draft) terms() act.Terms {
	return act.Terms{Contract: d.contract.Hash(), Sealed: d.contract.Sealed}
}

// Amend works out the contract that the loop would have with another spec. It becomes the loop's
// only by an event, when it is approved.
func (a *Activities) Amend(ctx context.Context, in act.Amend) (act.Terms, error) {
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return act.Terms{}, err
	}
	d, err := draw(ctx, ws, in.Spec, in.Base)
	return d.terms(), err
}

// closed says why nothing could change, nil where something can.
func (d draft) closed(ws *loopWorkspace, s spec.Spec) *fault.Error {
	switch {
	case d.inScope == 0:
		return fault.New(fault.PreconditionFailed, "the scope matches no file of %s: %s", ws.Repo, strings.Join(s.Scope, ", ")).
			Advise("Correct `scope`: globs are relative to the repository's root, ** crosses folders.")
	case len(d.clash) == d.inScope && s.NewFiles == spec.Deny:
		return fault.New(fault.PreconditionFailed, "every file that the scope matches is sealed: %s", naming(d.clash)).
			Advise("Files of `protect`, and those that guard names or that verify, test and check run, may not change. Name them in a script of its own, such as check.sh, if they are what is to change.")
	}
	return nil
}

// maxNamed is how many files are named in a message; the others are counted.
const maxNamed = 5

// naming names files in a message.
func naming(names []string) string {
	var all []string
	for _, name := range names[:min(len(names), maxNamed)] {
		all = append(all, git.Quote(name))
	}
	if more := len(names) - maxNamed; more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// maxAttributes bounds what is read of a .gitattributes; git itself ignores larger ones.
const maxAttributes = 100 << 20

// filter is where a .gitattributes puts files through a filter, and its name.
var filter = regexp.MustCompile(`(?m)^[^#\n]*[ \t]filter=(\S+)`)

// filtered warns of files that git has in another form than people see them: nothing that runs in the
// trees finds the contents of Git LFS there, unless setup.command fetches them, and no other filter
// (git-crypt, nbstripout) runs for the loop, since it is the user's configuration that says what it is.
func filtered(ctx context.Context, ws *loopWorkspace, entries []store.TreeEntry) (notes []string, err error) {
	var names []string
	for _, e := range entries {
		if path.Base(e.Path) != ".gitattributes" || e.Mode == "120000" {
			continue
		}
		b, err := ws.store.BlobByID(ctx, e.Blob, maxAttributes)
		if err != nil && !errors.Is(err, git.ErrTooLarge) {
			return nil, fmt.Errorf("reading %s: %w", git.Quote(e.Path), err)
		}
		for _, found := range filter.FindAllSubmatch(b, -1) {
			name := string(found[1])
			if slices.Contains(names, name) || len(names) == maxNamed {
				continue
			}
			names = append(names, name)
			if name == "lfs" {
				notes = append(notes, "the repository keeps files in Git LFS: the agent and the commands see their pointers ("+git.Quote(e.Path)+"); where they need the contents, let setup.command bring them")
			} else {
				notes = append(notes, "the repository puts files through the filter "+git.Quote(name)+" ("+git.Quote(e.Path)+"), which does not run for the loop: the agent and the commands see them as git has them, and what they change is committed as it is")
			}
		}
	}
	return notes, nil
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

// materialise brings a tree to commit. Where it is new, or had to be made anew, the setup command
// runs in it, and tracked files that it touched are brought back.
func (ws *loopWorkspace) materialise(ctx context.Context, t *tree, commit string) error {
	options := trees.RestoreOptions{Judge: t == ws.judge, Keep: ws.Keep, Like: ws.like(commit)}
	recreated, err := t.Restore(ctx, commit, options)
	if err != nil {
		return fmt.Errorf("bringing %s to %s: %w", t.Dir, commit, err)
	}
	if !recreated {
		return nil
	}
	crash.At("tree.created")
	if err := ws.setup(ctx, t); err != nil {
		return err
	}
	crash.At("tree.setup")
	if err := t.Pristine(ctx); err != nil {
		return fmt.Errorf("noting what setup made: %w", err)
	}
	crash.At("tree.finished")
	if ws.Setup == "" {
		return nil
	}
	if recreated, err = t.Restore(ctx, commit, options); err == nil && recreated {
		err = errors.New("what setup made does not last")
	}
	if err != nil {
		return fmt.Errorf("bringing %s to %s after setup: %w", t.Dir, commit, err)
	}
	return nil
}

// setupLimit bounds setup.command: dependencies may have to be fetched.
const setupLimit = 20 * time.Minute

// setup runs setup.command in a new tree.
func (ws *loopWorkspace) setup(ctx context.Context, t *tree) error {
	if ws.Setup == "" {
		return nil
	}
	s, err := ws.supervise()
	if err != nil {
		return err
	}
	dir := filepath.Join(workspace.Steps(ws.machine.Home, ws.Ref), "setup-"+filepath.Base(t.Dir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	inherited, err := ws.environment()
	if err != nil {
		return err
	}
	command := proc.Command{
		Argv: []string{"sh", "-c", ws.Setup}, Dir: t.Dir, Env: slices.Clone(inherited), Limit: setupLimit,
		Stdout: filepath.Join(dir, "stdout"), Stderr: filepath.Join(dir, "stderr"),
	}
	command.Sandbox = ws.confine(command, inherited)
	result, err := s.Run(ctx, command)
	if err != nil {
		return err
	}
	if result.ExitCode != 0 || result.Interrupted {
		_ = t.Remove(context.WithoutCancel(ctx)) // a tree half set up is no tree
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return refuse(fault.New(fault.PreconditionFailed, "the setup command fails (exit %d): `%s`\n%s", result.ExitCode, ws.Setup, tailOf(dir)).
			Advise("Run it in a fresh clone of the repository; its output is in " + dir + "."))
	}
	return nil
}
