package open

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
	"time"

	"pawl/activities/record"
	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

// resume continues a loop whose run is lost (because of another engine or another host) in this run, from the ledger
// commit input.Ledger. That must be the head of the ledger on this host, or, if this host does not have it, in the
// repository. The branch is set back to the head that the ledger has.
func (a *Opener) resume(ctx context.Context, input api.Open) (api.Opened, error) {
	a.Registering.Lock()
	defer a.Registering.Unlock()
	ws, err := a.Adopted(ctx, RequestOf(a.Machine, input))
	if err != nil {
		return api.Opened{}, err
	}
	state, err := ws.Book.State(ctx, input.Ledger)
	if err != nil {
		return api.Opened{}, err
	}
	if state.Status.Ended() {
		return api.Opened{}, workspace.Refuse(fault.New(fault.PreconditionFailed, "the loop of this ledger has ended (%s)", state.Status).
			Advise("Start another loop: it begins where the repository is now."))
	}
	contract, err := ws.Book.Contract(ctx, input.Ledger)
	if err == nil && !input.Moved {
		err = sameTerms(contract, input.Spec)
	}
	if err != nil {
		return api.Opened{}, err
	}
	branch, err := ws.Objects.Ref(ctx, ws.Branch)
	if err != nil {
		return api.Opened{}, err
	}
	if branch != state.Head {
		if err := ws.Objects.SetRef(ctx, ws.Branch, state.Head, branch); err != nil {
			return api.Opened{}, fmt.Errorf("setting the branch back: %w", err)
		}
	}
	if ws.Remote { // the loop's last host may have pushed something that nobody judged; if this fails, a later push is refused and says so
		if err := ws.SetThere(ctx, ws.Branch, state.Head); err != nil {
			a.Logger.Warn("the branch in the repository can't be set to what the ledger has", "loop", ws.Loop, "error", err)
		}
	}
	if err := a.TakenUp(ws, input.FirstRun); err != nil {
		return api.Opened{}, err
	}
	out, err := opened(ctx, ws, state.Base)
	if err != nil {
		return out, err
	}
	if err := midway(ctx, ws, input.Ledger, state, &out); err != nil {
		return api.Opened{}, err
	}
	out.State, out.Terms = &state, api.Terms{Contract: state.Contract.Hash, Sealed: state.Contract.Sealed}
	return out, nil
}

// maxSince limits the events of an iteration that continues in another run. Temporal refuses results above 2 MB.
const maxSince = 512 << 10

// midway adds what the run needs to continue the iteration that was under way.
func midway(ctx context.Context, ws *workspace.Workspace, head string, state loop.State, out *api.Opened) error {
	if !state.Underway() {
		return nil
	}
	events, err := ws.Book.Events(ctx, head)
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
		commit, err := ws.Objects.ReadCommit(ctx, c.Commit)
		if err != nil {
			return fmt.Errorf("reading the commit that nobody has judged: %w", err)
		}
		_, out.Unjudged, _ = strings.Cut(commit.Subject(), ": ")
	}
	return nil
}

// Adopted returns the workspace of a ledger from a lost run, at the entry from which this run has to continue.
func (a *Opener) Adopted(ctx context.Context, o Request) (*workspace.Workspace, error) {
	record, err := a.adopt(ctx, o)
	if err != nil {
		return nil, err
	}
	a.Release(record.Ref) // a run that was reset may have left a running step here
	ws, err := a.OpenWorkspace(ctx, record)
	if err != nil {
		return nil, err
	}
	head, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err != nil {
		return nil, err
	}
	if head != o.From {
		return nil, workspace.Refuse(fault.New(fault.LedgerAhead, "the ledger of %s is at %s, not at %s", ws.Loop, cmp.Or(head, "missing"), o.From))
	}
	return ws, nil
}

// TakenUp gives the workspace to the run.
func (a *Opener) TakenUp(ws *workspace.Workspace, firstRun string) error {
	ws.FirstRun, ws.Closed, ws.OpenedAt = firstRun, false, time.Now()
	if err := hostrecord.Write(a.Home, ws.Record); err != nil {
		return err
	}
	a.Keep(ws)
	return nil
}

// adopt finds the ledger commit from which a run has to continue. If only the repository has it, because the loop
// worked on another host, adopt fetches it to this host.
func (a *Opener) adopt(ctx context.Context, in Request) (hostrecord.Record, error) {
	records, err := hostrecord.Of(a.Home, in.Loop)
	if err != nil {
		return hostrecord.Record{}, err
	}
	for _, record := range records {
		if err := record.Locate(nil); err != nil && !errors.Is(err, fs.ErrNotExist) { // a person may have put it elsewhere
			return hostrecord.Record{}, err
		}
		if current, err := a.isAt(ctx, record, in.From); current || err != nil {
			return record, err
		}
	}
	repo, err := workspace.Find(ctx, in.Wanted)
	if err != nil {
		return hostrecord.Record{}, Precondition(ctx, err)
	}
	defer repo.Close()
	address := repo.Address
	store, err := store.Open(ctx, a.StoreOf(address))
	if err != nil {
		return hostrecord.Record{}, fmt.Errorf("opening the store: %w", err)
	}
	names, err := ledgersOf(ctx, store, repo, in.Loop)
	if err != nil {
		return hostrecord.Record{}, Precondition(ctx, userrepo.Unreached(address, err))
	}
	name := ""
	for ledgerName, tip := range names {
		if tip == in.From {
			name = ledgerName
		}
	}
	switch {
	case name == "" && len(names) > 0:
		newest := slices.MaxFunc(slices.Collect(maps.Keys(names)), func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) })
		return hostrecord.Record{}, workspace.Refuse(fault.New(fault.LedgerAhead, "the ledger of %s in %s is at %s, not at %s", in.Loop, address, names[newest], in.From))
	case name == "" && len(records) > 0:
		return hostrecord.Record{}, workspace.Refuse(fault.New(fault.LedgerAhead, "neither this host nor %s has the ledger of %s at %s", address, in.Loop, in.From))
	case name == "":
		return hostrecord.Record{}, workspace.Refuse(fault.New(fault.PreconditionFailed, "neither this host nor %s has a ledger of the loop %s", address, in.Loop).
			Advise("Start it where it is, with the head that `git ls-remote REPOSITORY 'refs/pawl-ledger/*'` shows."))
	}
	head, err := userrepo.FetchLedger(ctx, store, repo, "refs/pawl-ledger/"+name)
	if err != nil {
		return hostrecord.Record{}, fmt.Errorf("fetching the ledger of %s from %s: %w", in.Loop, address, err)
	}
	if head != in.From {
		return hostrecord.Record{}, workspace.Refuse(fault.New(fault.LedgerAhead, "the ledger of %s in %s has just moved to %s", in.Loop, address, head))
	}
	saved, err := a.adoptedRecord(ctx, in, store, repo, name)
	if err != nil {
		return hostrecord.Record{}, err
	}
	ws, err := a.OpenWorkspace(ctx, saved)
	if err != nil {
		return hostrecord.Record{}, err
	}
	tags(ctx, ws, repo, ws.Ledger)
	crashpoint.At("takeup.fetched")
	return saved, record.SetTo(ctx, ws, head)
}

// isAt reports whether this host's copy of a ledger is at head and no other copy is known to be ahead. If the
// repository does not answer now, the first append asks it again.
func (a *Opener) isAt(ctx context.Context, r hostrecord.Record, head string) (bool, error) {
	ws, err := a.OpenWorkspace(ctx, r)
	if err != nil {
		return false, err
	}
	here, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err != nil || here != head || !ws.Remote {
		return here == head, err
	}
	repo, err := ws.Repository()
	if err != nil {
		return false, Precondition(ctx, err)
	}
	defer repo.Close()
	refs, err := userrepo.Refs(ctx, ws.Objects, repo, ws.Ledger)
	remote := refs[ws.Ledger]
	if err != nil || remote == "" {
		return true, ctx.Err()
	}
	return ws.DescendsFrom(ctx, head, remote)
}

// adoptedRecord makes the record of a loop from another host. Branch and ledger keep their names in the repository.
func (a *Opener) adoptedRecord(ctx context.Context, in Request, store *store.Store, repo userrepo.Repo, name string) (hostrecord.Record, error) {
	facts, err := ledger.About(ctx, store, in.From)
	if err != nil {
		return hostrecord.Record{}, err
	}
	if facts.Name != in.Loop || facts.Steward() != in.Steward() {
		return hostrecord.Record{}, workspace.Refuse(fault.New(fault.PreconditionFailed, "%s is the ledger of the %s %s, not of the %s %s", in.From, facts.Kind, facts.Name, in.Kind, in.Loop).
			Advise("Start it under its own ID."))
	}
	id, err := userrepo.UserIdentity(ctx, store)
	if err != nil {
		return hostrecord.Record{}, err
	}
	r := in.named(name, id)
	r.Repo, r.Origin, r.Onto, r.Store = repo.Address, userrepo.Origin(repo.Address), facts.Onto, store.Dir()
	if err := r.Locate(repo.Folder()); err != nil {
		return hostrecord.Record{}, err
	}
	for n := 2; ; n++ { // another loop of this host may already use the name for its folders
		existing, err := hostrecord.Read(a.Home, r.Ref)
		r.Short = hostrecord.ShortName(a.Home, r.Ref)
		if err == nil {
			r.Short = existing.Short
		}
		sameLoop := existing.Loop == r.Loop && existing.Store == r.Store && existing.Ledger == r.Ledger
		if errors.Is(err, os.ErrNotExist) || err == nil && sameLoop {
			return r, hostrecord.Write(a.Home, r)
		}
		if err != nil {
			return hostrecord.Record{}, err
		}
		r.Ref = fmt.Sprintf("%s.%d", name, n)
	}
}

// numbered matches the end of the names of a loop's later runs.
var numbered = lazyregexp.New(`^(\.[0-9]+)?$`)

// ledgersOf returns the names of a loop's ledgers in a repository, and the commits at which they are.
func ledgersOf(ctx context.Context, store *store.Store, repo userrepo.Repo, id string) (map[string]string, error) {
	const folder = "refs/pawl-ledger/"
	refs, err := userrepo.Refs(ctx, store, repo, folder+git.RefName(id), folder+git.RefName(id)+".*")
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for ref, head := range refs {
		number, ok := strings.CutPrefix(ref, folder+git.RefName(id))
		if ok && numbered().MatchString(number) {
			names[git.RefName(id)+number] = head
		}
	}
	return names, nil
}
