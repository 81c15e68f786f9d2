package activities

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/ledger"
	"pawl/internal/spec"
	"pawl/internal/store"
	"pawl/internal/userrepo"
	"pawl/internal/workspace"
)

// A loop with a repo.url has its ledger there: every append is pushed, and one that finds another
// there has lost the loop to another host. Of two hosts that append to the same entry the
// repository takes one, so no lock and no clock is needed.

// pushLimit is how long a push of an append may take: a repository that takes connections and
// never answers must not hold up a loop for good.
const pushLimit = 2 * time.Minute

// patience bounds how long a repository is left alone that did not answer. It is as long as it let
// us wait, so that one that is away costs a loop no more than half of its time.
const patience = time.Minute

// publish brings the ledger to the repository, and after it the branch's head as the ledger has it.
// A ledger that another host has gone on with is LEDGER_AHEAD. A repository that refuses, or is
// away, is no error: the loop goes on, says so once, and the next append tries again; what another
// host does meanwhile shows then.
func (ws *loopWorkspace) publish(ctx context.Context, branch bool) error {
	ws.pushing.Lock()
	defer ws.pushing.Unlock()
	ws.branchDue = ws.branchDue || branch
	if time.Now().Before(ws.awayUntil) && !branch {
		return nil
	}
	head, err := ws.store.Ref(ctx, ws.Ledger)
	if err != nil || head == "" {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	began := time.Now()
	why, err := ws.advance(bounded, head)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			return refuse(f)
		}
		ws.awayUntil = time.Now().Add(min(time.Since(began), patience))
		why = fmt.Sprintf("%s can't be pushed to: %v", ws.Repo, userrepo.Unreached(ws.Repo, err))
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if why != "" && why != ws.untaken {
		ws.refused = why
		ws.machine.Logger.Warn("push refused", "loop", ws.Loop, "reason", why)
		ws.machine.Telemetry.PushRefused(ctx)
	}
	ws.untaken = why
	return nil
}

// advance pushes once. It returns why the repository did not take something; an error is a fault
// where another host has the loop, else what kept git from talking to the repository.
func (ws *loopWorkspace) advance(ctx context.Context, head string) (why string, err error) {
	err = userrepo.Push(ctx, ws.store, ws.Repo, head+":"+ws.Ledger)
	var refused *userrepo.Refused
	if errors.As(err, &refused) { // by whatever name: where the ledger is there, is what counts
		if f := ws.behind(ctx, head); f != nil {
			return "", f
		}
		return fmt.Sprintf("%s was refused by %s: %s", ws.Ledger, ws.Repo, refused.Reason), nil
	}
	if err != nil || !ws.branchDue {
		return "", err
	}
	crash.At("push.ledger")
	s, err := ws.ledger.State(ctx, head)
	if err != nil {
		return "", err
	}
	err = userrepo.Push(ctx, ws.store, ws.Repo, s.Head+":"+ws.Branch)
	if errors.As(err, &refused) {
		return fmt.Sprintf("%s was refused by %s: %s", ws.Branch, ws.Repo, refused.Reason), nil
	}
	ws.branchDue = err != nil
	return "", err
}

// behind is a fault where the ledger in the repository is none of head's predecessors.
func (ws *loopWorkspace) behind(ctx context.Context, head string) error {
	refs, err := userrepo.Refs(ctx, ws.store, ws.Repo, ws.Ledger)
	at := refs[ws.Ledger]
	if err != nil || at == "" {
		return err
	}
	if ws.follows(ctx, head, at) {
		return nil
	}
	return fault.New(fault.LedgerAhead, "the ledger of %s in %s is at %s, which is none of this host's (%s): another host goes on with the loop", ws.Loop, ws.Repo, at, head).
		Advise("Nothing has to be done where the loop was moved on purpose. To go on here, start it again from that ledger: `pawl start --ledger " + at + "`.")
}

// follows reports whether a ledger commit is another one or comes after it. One that the store does
// not have is none of its predecessors.
func (ws *loopWorkspace) follows(ctx context.Context, head, earlier string) bool {
	in, err := ws.store.Contains(ctx, head, earlier)
	return err == nil && in
}

// catchUp brings this host's copy of a ledger up to the repository's, where another host has gone
// on with it. What the repository did not take does not count.
func (ws *loopWorkspace) catchUp(ctx context.Context) error {
	head, err := ws.store.Ref(ctx, ws.Ledger)
	if err != nil {
		return err
	}
	refs, err := userrepo.Refs(ctx, ws.store, ws.Repo, ws.Ledger)
	if err != nil {
		return plainFault(userrepo.Unreached(ws.Repo, err))
	}
	at := refs[ws.Ledger]
	if at == "" || at == head || ws.follows(ctx, head, at) {
		return nil
	}
	if at, err = userrepo.FetchLedger(ctx, ws.store, ws.Repo, ws.Ledger); err != nil {
		return err
	}
	return ws.adopt(ctx, at)
}

// adopt sets ledger and branch of this host's copy to a ledger commit and the head that it knows.
// What this host has recorded and nobody has taken stays in the store, under refs/pawl-lost.
func (ws *loopWorkspace) adopt(ctx context.Context, head string) error {
	s, err := ws.ledger.State(ctx, head)
	if err != nil {
		return err
	}
	old, err := ws.store.Ref(ctx, ws.Ledger)
	if err == nil && old != "" && !ws.follows(ctx, head, old) {
		err = ws.store.SetRef(ctx, "refs/pawl-lost/"+old, old, "")
	}
	if err != nil {
		return err
	}
	for ref, to := range map[string]string{ws.Ledger: head, ws.Branch: s.Head} {
		at, err := ws.store.Ref(ctx, ref)
		if err == nil && at != to {
			err = ws.store.SetRef(ctx, ref, to, at)
		}
		if err != nil {
			return fmt.Errorf("setting %s to what the repository has: %w", ref, err)
		}
	}
	return nil
}

// rewind brings the branch in the repository to the head that the ledger knows, where the host that
// had the loop has pushed something that nobody judged. What can't be done now shows as a push that
// is refused.
func (ws *loopWorkspace) rewind(ctx context.Context, head string) {
	refs, err := userrepo.Refs(ctx, ws.store, ws.Repo, ws.Branch)
	if at := refs[ws.Branch]; err == nil && at != head {
		err = userrepo.Move(ctx, ws.store, ws.Repo, ws.Branch, head, at)
	}
	if err != nil {
		ws.machine.Logger.Warn("the branch in the repository can't be set to what the ledger has", "loop", ws.Loop, "error", err)
	}
}

// plainFault is the fault that an unmet precondition is for whoever called.
func plainFault(err error) error {
	if failed := userrepo.Failed(err); len(failed) > 0 {
		return fault.New(fault.PreconditionFailed, "%s", failed[0].What).Advise(failed[0].Do)
	}
	return err
}

// storeOf is where a repository's objects are kept on this host.
func (m *machine) storeOf(address string) string {
	key := sha256.Sum256([]byte(address))
	return m.Home.Store(hex.EncodeToString(key[:8]))
}

// inspect checks what P0 asks of the repository of a spec.
func (m *machine) inspect(ctx context.Context, r spec.Repo, id string) (userrepo.Source, error) {
	if _, err := git.Version(ctx); err != nil {
		return userrepo.Source{}, err
	}
	ref := "refs/heads/pawl/" + git.RefName(id)
	if !r.Remote() {
		return userrepo.Inspect(ctx, r.Path, r.Base, ref)
	}
	store, err := store.Open(ctx, m.storeOf(r.URL))
	if err != nil {
		return userrepo.Source{}, fmt.Errorf("opening the store: %w", err)
	}
	return userrepo.InspectAt(ctx, store, r.URL, r.Base, ref)
}

// local is where the repository is on this host, "" where it is elsewhere.
func (ws *loopWorkspace) local() string {
	if !ws.Remote {
		return ws.Repo
	}
	if u, err := url.Parse(ws.Repo); err == nil && u.Scheme == "file" {
		return filepath.FromSlash(u.Path)
	}
	return ""
}

// numbered matches what follows a loop's name in the names of its later runs.
var numbered = regexp.MustCompile(`^(\.[0-9]+)?$`)

// found returns the names under which a repository has ledgers of a loop, with where they are.
func found(ctx context.Context, store *store.Store, address, id string) (map[string]string, error) {
	const below = "refs/pawl-ledger/"
	refs, err := userrepo.Refs(ctx, store, address, below+git.RefName(id), below+git.RefName(id)+".*")
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

// takeOver finds the ledger commit that a run is to go on from and gives it to this host, where the
// repository has it and this host has not: the loop was at work elsewhere.
func (a *Activities) takeOver(ctx context.Context, in act.Open) (workspace.Record, error) {
	record, here := workspace.Latest(a.Home, in.Loop)
	if here {
		switch is, err := a.isAt(ctx, record, in.Ledger); {
		case err != nil:
			return workspace.Record{}, err
		case is:
			return record, nil
		}
	}
	address := in.Spec.Repo.Address()
	if !in.Spec.Repo.Remote() {
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
		if at == in.Ledger {
			name = n
		}
	}
	switch {
	case name == "" && len(names) > 0:
		newest := slices.MaxFunc(slices.Collect(maps.Keys(names)), func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) })
		return workspace.Record{}, refuse(fault.New(fault.LedgerAhead, "the ledger of %s in %s is at %s, not at %s", in.Loop, address, names[newest], in.Ledger))
	case name == "" && here:
		return workspace.Record{}, refuse(fault.New(fault.LedgerAhead, "neither this host nor %s has the ledger of %s at %s", address, in.Loop, in.Ledger))
	case name == "":
		return workspace.Record{}, refuse(fault.New(fault.PreconditionFailed, "neither this host nor %s has a ledger of the loop %s", address, in.Loop).
			Advise("Start it where it is, with the head that `git ls-remote REPOSITORY 'refs/pawl-ledger/*'` shows."))
	}
	head, err := userrepo.FetchLedger(ctx, store, address, "refs/pawl-ledger/"+name)
	if err != nil {
		return workspace.Record{}, fmt.Errorf("fetching the ledger of %s from %s: %w", in.Loop, address, err)
	}
	if head != in.Ledger {
		return workspace.Record{}, refuse(fault.New(fault.LedgerAhead, "the ledger of %s in %s has just moved to %s", in.Loop, address, head))
	}
	if record, err = a.settleIn(ctx, in, store, address, name); err != nil {
		return workspace.Record{}, err
	}
	ws, err := a.openWorkspace(ctx, record)
	if err != nil {
		return workspace.Record{}, err
	}
	crash.At("takeup.fetched")
	return record, ws.adopt(ctx, head)
}

// isAt reports whether this host's copy of a ledger is at head and nobody is known to be ahead. A
// repository that does not answer now is asked again by the first append.
func (a *Activities) isAt(ctx context.Context, r workspace.Record, head string) (bool, error) {
	ws, err := a.openWorkspace(ctx, r)
	if err != nil {
		return false, err
	}
	at, err := ws.store.Ref(ctx, ws.Ledger)
	if err != nil || at != head || !ws.Remote {
		return at == head, err
	}
	refs, err := userrepo.Refs(ctx, ws.store, ws.Repo, ws.Ledger)
	if there := refs[ws.Ledger]; err != nil || there == "" || ws.follows(ctx, head, there) {
		return true, ctx.Err()
	}
	return false, nil
}

// settleIn makes the workspace record of a loop that comes from elsewhere. Branch and ledger keep
// the names that the repository has them under.
func (a *Activities) settleIn(ctx context.Context, in act.Open, store *store.Store, address, name string) (workspace.Record, error) {
	book := ledger.Open(store)
	state, err := book.State(ctx, in.Ledger)
	if err != nil {
		return workspace.Record{}, err
	}
	if state.Loop != in.Loop {
		return workspace.Record{}, refuse(fault.New(fault.PreconditionFailed, "%s is the ledger of the loop %s, not of %s", in.Ledger, state.Loop, in.Loop).
			Advise("Start it under its own ID."))
	}
	contract, err := book.Contract(ctx, in.Ledger)
	if err != nil {
		return workspace.Record{}, err
	}
	id, err := userrepo.UserIdentity(ctx, store)
	if err != nil {
		return workspace.Record{}, err
	}
	r := workspace.Record{
		Loop: in.Loop, Ref: name, FirstRun: in.FirstRun, Namespace: a.Namespace,
		Repo: address, Remote: in.Spec.Repo.Remote(), Onto: contract.Branch, Store: store.Dir(),
		Branch: "refs/heads/pawl/" + name, Ledger: "refs/pawl-ledger/" + name,
		Name: id.Name, Email: id.Email, Setup: in.Spec.Setup.Command, Keep: in.Spec.Judge.Keep, Sandbox: in.Spec.Sandbox,
	}
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

// sameTerms refuses a spec that is not the one whose contract the ledger has: what a person
// approved is what goes on. Where the repository is, who starts the loop, and whether they approve
// a contract that nobody has approved yet, may differ.
func sameTerms(contract ledger.Contract, given spec.Spec) error {
	terms := func(s spec.Spec) string {
		s.Repo, s.Session, s.Approvals.Plan = spec.Repo{}, nil, ""
		b, _ := json.Marshal(s)
		return string(b)
	}
	if terms(contract.Spec) == terms(given) {
		return nil
	}
	return refuse(fault.New(fault.PreconditionFailed, "the spec is not the one of the contract that the ledger has").
		Advise("Start it with that spec: it is in the ledger's contract.json (git show REF:contract.json)."))
}
