package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
)

// Mender repairs damaged stores, one store at a time.
type Mender struct {
	*workspace.Workspaces
	mu     sync.Mutex
	looked map[string]time.Time // when each store was last checked, by its folder
}

// lookApart is the time between two examinations of a store: one takes as long as reading all of it.
const lookApart = time.Minute

// Mend checks the store of a loop for damage, and repairs it from its readable parts and from the user's repository.
// It returns what was damaged, "" for nothing. If the loop's ledger can't be found anywhere in its last state, the
// error is LEDGER_DAMAGED. With deep it reads every object.
func (a *Mender) Mend(ctx context.Context, r hostrecord.Record, deep bool) (string, error) {
	return a.mendStore(ctx, r, "", deep, nil)
}

// mendStore is Mend for a caller that knows where refs were, or what is damaged.
func (a *Mender) mendStore(ctx context.Context, r hostrecord.Record, damage string, deep bool, heads map[string]string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	records, err := sharing(a.Machine, r)
	if err != nil {
		return "", err
	}
	places, names := map[string]string{}, map[string]string{}
	for _, record := range records {
		maps.Copy(places, noted(a.Home, record))
		for _, ref := range []string{record.Branch, record.Ledger, "refs/heads/" + record.Onto} {
			if ref != "" && ref != "refs/heads/" {
				names[ref] = "refs/pawl-mend/" + strings.TrimPrefix(ref, "refs/")
			}
		}
	}
	s, err := store.Open(ctx, r.Store) // if the store is gone, Open makes an empty one
	if err != nil {
		return "", fmt.Errorf("opening the store: %w", err)
	}
	if damage == "" {
		if damage, err = damageOf(ctx, s, r, places, deep); err != nil || damage == "" {
			return "", err
		}
	}
	a.Logger.Error("a store is damaged", "loop", r.Loop, "what", damage)
	m, err := s.Mend(ctx, heads, places, func(ctx context.Context, fresh *store.Store) error {
		repo, err := workspace.RepositoryOf(r)
		if err != nil {
			return err
		}
		defer repo.Close()
		return userrepo.FetchAs(ctx, fresh, repo, names)
	})
	if err != nil {
		return damage, err
	}
	for _, record := range records {
		if err := rejoin(ctx, s, record); err != nil {
			return damage, err
		}
	}
	a.Logger.Warn("a store was damaged and is mended", "loop", r.Loop, "what", damage, "lost", m.Lost, "older", m.Older, "aside", m.Aside)
	text := damage + "; it is mended"
	if len(m.Lost) > 0 {
		text += ", without " + strings.Join(m.Lost, ", ")
	}
	if len(m.Older) > 0 {
		text += ", but the last commits of these refs are lost: " + strings.Join(m.Older, ", ")
	}
	for _, record := range records {
		if !record.Closed {
			repairlog.Note(a.Home.Loop(record.Ref), text)
		}
	}
	return damage, nil
}

// damageOf describes the damage of a store that a loop needs.
func damageOf(ctx context.Context, s *store.Store, r hostrecord.Record, want map[string]string, deep bool) (string, error) {
	refs := slices.DeleteFunc([]string{r.Ledger, r.Branch}, func(ref string) bool { return ref == "" })
	for _, ref := range refs {
		if commit, err := s.Ref(ctx, ref); err == nil && commit == "" && want[ref] != "" {
			return fmt.Sprintf("%s is missing from the store %s", ref, s.Dir()), nil
		}
	}
	base, _ := s.Ref(ctx, "refs/pawl/base/"+r.Ref)
	return s.Sound(ctx, deep, refs, []string{base})
}

// rejoin sets the branch of a loop to the head in its ledger, if the branch is gone.
func rejoin(ctx context.Context, s *store.Store, r hostrecord.Record) error {
	head, err := s.Ref(ctx, r.Ledger)
	if err != nil || head == "" || r.Branch == "" {
		return err
	}
	if commit, err := s.Ref(ctx, r.Branch); err != nil || commit != "" {
		return err
	}
	state, err := ledger.Open(s).State(ctx, head)
	if err != nil {
		return err
	}
	return s.SetRef(ctx, r.Branch, state.Head, "")
}

// sharing returns the records of the loops that share the store of one loop, including that loop.
func sharing(m *workspace.Machine, r hostrecord.Record) ([]hostrecord.Record, error) {
	records, err := hostrecord.List(m.Home)
	sharers := list.Filter(records, func(candidate hostrecord.Record) bool { return candidate.Store == r.Store && candidate.Ref != r.Ref })
	return append([]hostrecord.Record{r}, sharers...), err
}

// NoteHeads records where ledger and branch are, beside the store, in case a ref is lost.
func NoteHeads(ws *workspace.Workspace, ledger, branch string) {
	if hostrecord.Note(ws.Machine.Home, ws.Ref, map[string]string{ws.Ledger: ledger, ws.Branch: branch}) {
		ws.IsMended("the note of where its ledger and branch are could not be read: it is written again", nil)
	}
}

// MendedSince returns what was repaired on this host and the ledger does not have, now that it has the events.
func MendedSince(ws *workspace.Workspace, events []loop.Event) []string {
	dir := ws.Machine.Home.Loop(ws.Ref)
	ofStore(ws)
	for _, e := range events {
		if e.Type == loop.Warned {
			repairlog.Tell(dir, e.Reason)
		}
	}
	return repairlog.Untold(dir)
}

// ofStore records for each loop of the store what was repaired when somebody opened the store.
func ofStore(ws *workspace.Workspace) {
	found := repairlog.Take(ws.Store)
	if len(found) == 0 {
		return
	}
	records, err := sharing(ws.Machine, ws.Record)
	if err != nil {
		ws.Machine.Logger.Warn("the loops of a store can't be listed", "loop", ws.Loop, "error", err)
	}
	for _, d := range found {
		ws.Machine.Logger.Warn(d.What, "loop", ws.Loop)
		for _, record := range records {
			if !record.Closed || record.Ref == ws.Ref {
				repairlog.Note(ws.Machine.Home.Loop(record.Ref), d.What)
			}
		}
	}
}

// noted returns where the refs of a loop were, as far as that is known.
func noted(h home.Home, r hostrecord.Record) map[string]string {
	heads := hostrecord.Noted(h, r.Ref)
	maps.DeleteFunc(heads, func(ref, hash string) bool {
		return !git.IsHash(hash) || ref != r.Ledger && ref != r.Branch || ref == ""
	})
	return heads
}

// MendAfter repairs the store if an error may come from a damaged one, and reports whether it did.
func (a *Mender) MendAfter(ctx context.Context, ref string, cause error) bool {
	r, ok := a.RecordOf(ref)
	if !ok {
		return false
	}
	heads, text := map[string]string{}, ""
	_, statErr := os.Stat(dirfd.At(r.Store))
	switch lost := absent(cause); {
	case lost != nil:
		heads[lost.Ref] = lost.Want
		text = fmt.Sprintf("%s is damaged in the store %s", lost.Ref, r.Store)
	case errors.Is(statErr, fs.ErrNotExist):
		text = "the store " + r.Store + " is gone"
	case errors.As(cause, new(*git.Error)), errors.Is(cause, store.ErrDamagedRef), errors.Is(cause, git.ErrNotFound):
		if !a.due(r.Store) {
			return false
		}
	default:
		return false
	}
	text, err := a.mendStore(ctx, r, text, true, heads)
	if err != nil {
		a.Logger.Error("what is damaged can't be mended", "loop", r.Loop, "what", text, "error", err)
		return false // the activity is tried again, and then this repair too
	}
	return text != ""
}

// absent returns an error that says that a ref was not moved but is gone or damaged, nil for any other error.
func absent(err error) *store.Fenced {
	if f, ok := errors.AsType[*store.Fenced](err); ok && (f.Have == "" || f.Have == store.Damaged) {
		return f
	}
	return nil
}

// Lost returns the fault LEDGER_DAMAGED if an error comes from a store that has become whole again without a commit that the
// loop stands on, else nil. The loop can't go on from there: what is left is older.
func (a *Mender) Lost(ctx context.Context, ref string, needs []string, cause error) error {
	r, ok := a.RecordOf(ref)
	if !ok || absent(cause) == nil && !errors.As(cause, new(*git.Error)) && !errors.Is(cause, git.ErrNotFound) {
		return nil
	}
	s, err := store.Open(ctx, r.Store)
	if err != nil {
		return nil
	}
	commit, err := s.Ref(ctx, r.Ledger)
	missing := slices.IndexFunc(needs, func(commit string) bool {
		if commit == "" {
			return false
		}
		holds, unknown := s.Holds(ctx, commit)
		return unknown == nil && !holds
	})
	if err != nil || missing < 0 {
		return nil
	}
	if commit == "" {
		return a.nowhere(ctx, s, r, needs[missing])
	}
	if text, err := s.Sound(ctx, false, []string{r.Ledger, r.Branch}, nil); err != nil || text != "" {
		return nil // it is not mended yet
	}
	return workspace.Refuse(damaged(r, commit, needs[missing]))
}

// nowhere returns the fault LEDGER_DAMAGED if neither the store nor the repository has a loop's ledger any more, although
// the loop has recorded entries; missing is one of them. If the repository can't be asked, it returns nil, because it may
// have the ledger.
func (a *Mender) nowhere(ctx context.Context, s *store.Store, r hostrecord.Record, missing string) error {
	text := fmt.Sprintf("%s is missing from the store %s", r.Ledger, r.Store)
	if _, err := a.mendStore(ctx, r, text, false, nil); err != nil {
		return nil
	}
	if commit, err := s.Ref(ctx, r.Ledger); err != nil || commit != "" {
		return nil // it is mended
	}
	return workspace.Refuse(fault.New(fault.LedgerDamaged, "the ledger of %s is lost: neither the store nor the repository has %s (%s was not found)", r.Loop, r.Ledger, missing).
		Advise("Restore that ref from a backup and resume from it (`" + r.Resuming() + " COMMIT`), or start again. What was applied to your branches stays."))
}

// due reports whether a store was not checked lately, and records that it is checked now.
func (a *Mender) due(dir string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.looked[dir]) < lookApart {
		return false
	}
	if a.looked == nil {
		a.looked = map[string]time.Time{}
	}
	a.looked[dir] = time.Now()
	return true
}

// damaged is the fault of a ledger that is older than what its loop has recorded.
func damaged(r hostrecord.Record, commit, lost string) *fault.Error {
	f := fault.New(fault.LedgerDamaged, "the ledger of %s has lost its last entries (it is at %s, and %s was not found)", r.Loop, commit, lost)
	return f.Advise("Resume from what is left: `" + r.Resuming() + " " + commit + "` with the spec of " + r.Loop + ".")
}

// lostEntries reports whether a ledger has lost its last entries, and was not continued by another run. It looks at the
// disk: what the workspace has read before may be gone.
func lostEntries(ctx context.Context, ws *workspace.Workspace, f *store.Fenced) bool {
	if f.Ref != ws.Ledger || !git.IsHash(f.Have) || f.Want == "" {
		return false
	}
	s, err := store.Open(ctx, ws.Store)
	if err != nil {
		return false
	}
	holds, err := s.Holds(ctx, f.Want)
	return err == nil && !holds
}
