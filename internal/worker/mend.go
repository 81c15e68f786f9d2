package worker

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
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"pawl/activities"
	"pawl/activities/workspace"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/dirfd"
)

// mend makes records again that a power cut has damaged, from the ledgers in this host's stores. A loop that is in no
// ledger had not begun: its record is removed, and its Open writes a new one.
func mend(ctx context.Context, o Options, a *activities.Activities) error {
	torn, err := hostrecord.Torn(o.Home)
	if err != nil || len(torn) == 0 {
		return err
	}
	for _, ref := range torn {
		var r hostrecord.Record
		var err error
		var here *workspace.Workspace
		if a != nil {
			here = a.Here(ref)
		}
		if here != nil { // this worker works for it
			r = here.Record
		} else {
			r, err = remade(ctx, o, ref)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			o.Logger.Warn("the record of a loop is damaged and no ledger has the loop: it starts from the beginning", "ref", ref)
			if err = hostrecord.Drop(o.Home, ref); err == nil {
				repairlog.Note(o.Home.Loop(ref), "the workspace record was damaged, and no ledger has the loop: it starts from the beginning")
			}
		case err == nil:
			o.Logger.Warn("the record of a loop was damaged: it was made again from the ledger", "loop", r.Loop, "ref", ref)
			if err = hostrecord.Write(o.Home, r); err == nil {
				repairlog.Note(o.Home.Loop(ref), "the workspace record was damaged: it was made again from the ledger")
			}
		}
		if _, ok := errors.AsType[*serviceerror.Unavailable](err); ok {
			return err
		}
		if err != nil {
			o.Logger.Error("the record of a loop is damaged and can't be made again", "ref", ref, "error", err)
		}
	}
	return nil
}

// restore brings back ledgers of ended loops that are gone from this host's stores: people may still apply what those
// loops proposed. A store that a running loop needs is mended with that loop.
func restore(ctx context.Context, o Options, a *activities.Activities) error {
	records, err := hostrecord.List(o.Home)
	for _, r := range records {
		if !r.Closed || hostrecord.Noted(o.Home, r.Ref)[r.Ledger] == "" {
			continue
		}
		s, err := store.Open(ctx, r.Store)
		if err != nil {
			o.Logger.Warn("the store of an ended loop can't be opened", "loop", r.Loop, "error", err)
			continue
		}
		if at, err := s.Ref(ctx, r.Ledger); err == nil && at == "" {
			if what, err := a.Mend(ctx, r, false); err != nil && ctx.Err() == nil {
				o.Logger.Error("the store of an ended loop is damaged and can't be repaired", "loop", r.Loop, "what", what, "error", err)
			}
		}
	}
	return err
}

// remade returns the record of the loop whose folder on this host is ref, fs.ErrNotExist if it is in no ledger.
func remade(ctx context.Context, o Options, ref string) (hostrecord.Record, error) {
	stores, err := fs.Glob(os.DirFS(dirfd.At(o.Home.Dir)), "stores/*.git") // not filepath.Glob: $PAWL_HOME may have a bracket in it
	if err != nil {
		return hostrecord.Record{}, err
	}
	var unread error // damage of another loop must not affect this one
	for _, name := range stores {
		store, err := store.Open(ctx, filepath.Join(o.Home.Dir, name))
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		ledgers, err := userrepo.Refs(ctx, store, userrepo.At(store.Dir()), ledgerRefs+"*")
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("listing the ledgers of %s: %w", store.Dir(), err))
			ledgers = map[string]string{}
		}
		for at, head := range hostrecord.Noted(o.Home, ref) { // these are known even if the ref itself is lost
			if strings.HasPrefix(at, ledgerRefs) && ledgers[at] == "" {
				ledgers[at] = head
			}
		}
		for at, head := range ledgers {
			facts, err := ledger.About(ctx, store, head)
			if err != nil {
				unread = errors.Join(unread, err)
				continue
			}
			// The ledger has the desk's folder, except for a loop that was killed while it was opened.
			short := hostrecord.ShortName(o.Home, ref)
			switch facts.Desk {
			case hostrecord.Record{Ref: ref, Short: short}.Desk(o.Home):
			case hostrecord.Record{Ref: ref}.Desk(o.Home): // of an earlier version
				short = ""
			case "":
				if at != ledgerRefs+ref {
					continue
				}
			default:
				continue
			}
			entry, err := store.ReadCommit(ctx, head)
			if err != nil {
				return hostrecord.Record{}, err
			}
			first, err := firstRun(ctx, o, facts.Name)
			r := hostrecord.Record{
				Loop: facts.Name, Kind: facts.Kind, Ref: ref, FirstRun: first, Namespace: o.Namespace,
				Repo: facts.Repo, Onto: facts.Onto, Store: store.Dir(), Ledger: at,
				Name: entry.Author.Name, Email: entry.Author.Email, OpenedAt: entry.Time, Short: short,
			}
			r.Demand(facts.Spec)
			if err := r.Locate(nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return hostrecord.Record{}, err
			}
			if !facts.Steward() {
				r.Branch = "refs/heads/pawl/" + strings.TrimPrefix(at, ledgerRefs)
			}
			if facts.Status.Ended() {
				r.Closed, r.ClosedAt = true, time.Now()
			}
			return r, err
		}
	}
	return hostrecord.Record{}, cmp.Or(unread, fs.ErrNotExist)
}

const ledgerRefs = "refs/pawl-ledger/"

// firstRun returns the chain of runs to which a loop belongs: the chain that runs under its ID, unless that chain is
// another loop of this host. It returns "" for an earlier loop with the ID, and for one that the service has lost.
func firstRun(ctx context.Context, o Options, loop string) (string, error) {
	d, err := describe(ctx, o.Client, o.Namespace, loop)
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking about the loop %s: %w", loop, err)
	}
	info := d.GetWorkflowExecutionInfo()
	others, err := cutOff(o)
	if err != nil || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING ||
		slices.ContainsFunc(others, func(r hostrecord.Record) bool { return r.FirstRun == info.GetFirstRunId() && r.Ref != "" }) {
		return "", err
	}
	return info.GetFirstRunId(), nil
}
