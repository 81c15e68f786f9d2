package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/lazyregexp"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/store"
	"pawl/internal/userrepo"
	"pawl/internal/workspace"
)

// resume gives a loop whose run is lost (another engine, another host) to this run: from the
// ledger commit in.Ledger, which must be the ledger's head here or, where this host does not have
// it, in the repository. The branch goes back to the head that the ledger knows.
func (a *Opener) resume(ctx context.Context, in act.Open) (act.Opened, error) {
	a.registering.Lock()
	defer a.registering.Unlock()
	ws, err := a.adopted(ctx, a.openingOf(in))
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
	if err := a.takenUp(ws, in.FirstRun); err != nil {
		return act.Opened{}, err
	}
	out, err := ws.opened(ctx, state.Base)
	if err != nil {
		return out, err
	}
	if err := ws.midway(ctx, in.Ledger, state, &out); err != nil {
		return act.Opened{}, err
	}
	out.State, out.Terms = &state, act.Terms{Contract: state.Contract.Hash, Sealed: state.Contract.Sealed}
	return out, nil
}

// maxSince is how large the events of an iteration may be that goes on in another run: Temporal refuses results above
// 2 MB.
const maxSince = 512 << 10

// midway tells what the run needs to go on with the iteration that was under way.
func (ws *loopWorkspace) midway(ctx context.Context, head string, state loop.State, out *act.Opened) error {
	if !state.Underway() {
		return nil
	}
	events, err := ws.ledger.Events(ctx, head)
	if err != nil {
		return err
	}
	for i, e := range slices.Backward(events) {
		if e.Type == loop.CheckpointCreated {
			out.Since = events[i:]
			break
		}
	}
	if doc, err := json.Marshal(out.Since); err != nil || len(doc) > maxSince {
		out.Since = nil
	}
	if c := state.Unjudged(); c != nil {
		commit, err := ws.store.ReadCommit(ctx, c.Commit)
		if err != nil {
			return fmt.Errorf("reading the commit that nobody has judged: %w", err)
		}
		_, out.Unjudged, _ = strings.Cut(commit.Subject(), ": ")
	}
	return nil
}

// adopted is the workspace of a ledger that another run has left, at the entry that this one is to go
// on from.
func (a *Opener) adopted(ctx context.Context, o opening) (*loopWorkspace, error) {
	record, err := a.adopt(ctx, o)
	if err != nil {
		return nil, err
	}
	a.release(record.Ref) // a run that was reset may have left a step at work here
	ws, err := a.openWorkspace(ctx, record)
	if err != nil {
		return nil, err
	}
	at, err := ws.store.Ref(ctx, ws.Ledger)
	if err != nil {
		return nil, err
	}
	if at != o.ledger {
		return nil, refuse(fault.New(fault.LedgerAhead, "the ledger of %s is at %s, not at %s", ws.Loop, cmp.Or(at, "missing"), o.ledger))
	}
	return ws, nil
}

// takenUp gives the workspace to the run.
func (a *Opener) takenUp(ws *loopWorkspace, firstRun string) error {
	ws.FirstRun, ws.Closed = firstRun, false
	if err := ws.Locate(); err != nil && !errors.Is(err, fs.ErrNotExist) { // a person may have put it elsewhere
		return err
	}
	if err := workspace.Write(a.Home, ws.Record); err != nil {
		return err
	}
	a.keep(ws)
	return nil
}

// adopt finds the ledger commit that a run is to go on from and gives it to this host, where the
// repository has it and this host has not: the loop was at work elsewhere.
func (a *Opener) adopt(ctx context.Context, in opening) (workspace.Record, error) {
	record, here := workspace.Latest(a.Home, in.Loop)
	if here {
		switch is, err := a.isAt(ctx, record, in.ledger); {
		case err != nil:
			return workspace.Record{}, err
		case is:
			return record, nil
		}
	}
	address := in.repo.Address()
	if !in.repo.Remote() {
		root, err := userrepo.Root(ctx, address)
		if err != nil {
			return workspace.Record{}, precondition(err)
		}
		address = root
	}
	store, err := store.Open(ctx, a.storeOf(address))
	if err != nil {
		return workspace.Record{}, fmt.Errorf("opening the store: %w", err)
	}
	names, err := found(ctx, store, address, in.Loop)
	if err != nil {
		return workspace.Record{}, precondition(userrepo.Unreached(address, err))
	}
	name := ""
	for n, at := range names {
		if at == in.ledger {
			name = n
		}
	}
	switch {
	case name == "" && len(names) > 0:
		newest := slices.MaxFunc(slices.Collect(maps.Keys(names)), func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) })
		return workspace.Record{}, refuse(fault.New(fault.LedgerAhead, "the ledger of %s in %s is at %s, not at %s", in.Loop, address, names[newest], in.ledger))
	case name == "" && here:
		return workspace.Record{}, refuse(fault.New(fault.LedgerAhead, "neither this host nor %s has the ledger of %s at %s", address, in.Loop, in.ledger))
	case name == "":
		return workspace.Record{}, refuse(fault.New(fault.PreconditionFailed, "neither this host nor %s has a ledger of the loop %s", address, in.Loop).
			Advise("Start it where it is, with the head that `git ls-remote REPOSITORY 'refs/pawl-ledger/*'` shows."))
	}
	head, err := userrepo.FetchLedger(ctx, store, userrepo.At(address), "refs/pawl-ledger/"+name)
	if err != nil {
		return workspace.Record{}, fmt.Errorf("fetching the ledger of %s from %s: %w", in.Loop, address, err)
	}
	if head != in.ledger {
		return workspace.Record{}, refuse(fault.New(fault.LedgerAhead, "the ledger of %s in %s has just moved to %s", in.Loop, address, head))
	}
	if record, err = a.adoptedRecord(ctx, in, store, address, name); err != nil {
		return workspace.Record{}, err
	}
	ws, err := a.openWorkspace(ctx, record)
	if err != nil {
		return workspace.Record{}, err
	}
	ws.tags(ctx, userrepo.At(address), ws.Ledger)
	crash.At("takeup.fetched")
	return record, ws.setTo(ctx, head)
}

// isAt reports whether this host's copy of a ledger is at head and nobody is known to be ahead. A
// repository that does not answer now is asked again by the first append.
func (a *Opener) isAt(ctx context.Context, r workspace.Record, head string) (bool, error) {
	ws, err := a.openWorkspace(ctx, r)
	if err != nil {
		return false, err
	}
	at, err := ws.store.Ref(ctx, ws.Ledger)
	if err != nil || at != head || !ws.Remote {
		return at == head, err
	}
	repo, err := ws.repository()
	if err != nil {
		return false, precondition(err)
	}
	defer repo.Close()
	refs, err := userrepo.Refs(ctx, ws.store, repo, ws.Ledger)
	if there := refs[ws.Ledger]; err != nil || there == "" || ws.descendsFrom(ctx, head, there) {
		return true, ctx.Err()
	}
	return false, nil
}

// adoptedRecord makes the workspace record of a loop that comes from elsewhere. Branch and ledger keep
// the names that the repository has them under.
func (a *Opener) adoptedRecord(ctx context.Context, in opening, store *store.Store, address, name string) (workspace.Record, error) {
	facts, err := ledger.About(ctx, store, in.ledger)
	if err != nil {
		return workspace.Record{}, err
	}
	if facts.Name != in.Loop || facts.Steward() != in.Steward() {
		return workspace.Record{}, refuse(fault.New(fault.PreconditionFailed, "%s is the ledger of the %s %s, not of the %s %s", in.ledger, facts.Kind, facts.Name, in.Kind, in.Loop).
			Advise("Start it under its own ID."))
	}
	id, err := userrepo.UserIdentity(ctx, store)
	if err != nil {
		return workspace.Record{}, err
	}
	r := in.named(name, id)
	r.Repo, r.Origin, r.Onto, r.Store = address, userrepo.Origin(address), facts.Onto, store.Dir()
	for n := 2; ; n++ { // another loop of this host may have the name in folders
		have, err := workspace.Read(a.Home, r.Ref)
		if errors.Is(err, os.ErrNotExist) || err == nil && have.Loop == r.Loop && have.Store == r.Store && have.Ledger == r.Ledger {
			return r, workspace.Write(a.Home, r)
		}
		if err != nil {
			return workspace.Record{}, err
		}
		r.Ref = fmt.Sprintf("%s.%d", name, n)
	}
}

// numbered matches what follows a loop's name in the names of its later runs.
var numbered = lazyregexp.New(`^(\.[0-9]+)?$`)

// found returns the names under which a repository has ledgers of a loop, with where they are.
func found(ctx context.Context, store *store.Store, address, id string) (map[string]string, error) {
	const below = "refs/pawl-ledger/"
	refs, err := userrepo.Refs(ctx, store, userrepo.At(address), below+git.RefName(id), below+git.RefName(id)+".*")
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for ref, at := range refs {
		name, ok := strings.CutPrefix(ref, below)
		if rest, is := strings.CutPrefix(name, git.RefName(id)); ok && is && numbered.MatchString(rest) {
			names[name] = at
		}
	}
	return names, nil
}

// rewind brings the branch in the repository to the head that the ledger knows, where the host that
// had the loop has pushed something that nobody judged. What can't be done now shows as a push that
// is refused.
func (ws *loopWorkspace) rewind(ctx context.Context, head string) {
	repo, err := ws.repository()
	if err == nil {
		defer repo.Close()
		var refs map[string]string
		refs, err = userrepo.Refs(ctx, ws.store, repo, ws.Branch)
		if at := refs[ws.Branch]; err == nil && at != head {
			err = userrepo.Move(ctx, ws.store, repo, ws.Branch, head, at)
		}
	}
	if err != nil {
		ws.machine.Logger.Warn("the branch in the repository can't be set to what the ledger has", "loop", ws.Loop, "error", err)
	}
}
