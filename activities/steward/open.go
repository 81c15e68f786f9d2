// Package steward does the work of stewards: it opens them, plans and records their tasks, joins branches, and
// checks that the world is as their ledgers say. Start at Stewards.
package steward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pawl/activities/open"
	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/integrations/schedule"
	"pawl/internal/ledger"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/loop/rules"
	"pawl/internal/spec/kind"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// Stewards does the work of stewards on this host.
type Stewards struct{ *open.Opener }

// OpenSteward opens a steward on this host: P0, the store with the project's head, the charter for the ledger, and the
// project's .pawl folder (S7). A retry finds what an earlier attempt made.
func (a *Stewards) OpenSteward(ctx context.Context, input stewardapi.OpenSteward) (stewardapi.StewardOpened[steward.State], error) {
	var zero stewardapi.StewardOpened[steward.State]
	o := open.Request{
		Wanted: input.Charter.Repo, From: input.Ledger,
		Record: hostrecord.Record{
			Loop: input.Steward, Kind: kind.Steward.Name, FirstRun: input.FirstRun, Namespace: a.Namespace,
			Remote: input.Charter.Repo.Remote(), Sandbox: input.Charter.Sandbox(),
		},
		// A steward lives for years, so it starts with these: they only keep its tasks from beginning.
		Tolerates: []string{userrepo.DirtyTree, userrepo.UnmergedTree, userrepo.StaleLock},
	}
	done, err := a.Announce(o)
	if err != nil {
		return zero, err
	}
	defer done()
	var ws *workspace.Workspace
	var base string
	var state *steward.State
	if input.Ledger != "" {
		ws, state, err = a.resumeSteward(ctx, o)
		if err == nil {
			base = state.Base
		}
	} else if err = without(input.Charter); err == nil {
		ws, base, err = a.Begin(ctx, o)
	}
	if err != nil {
		return zero, err
	}
	site, err := open.Site(ctx, ws)
	if err != nil {
		return zero, err
	}
	out := stewardapi.StewardOpened[steward.State]{Site: site, Repo: ws.Repo, Base: base, Onto: ws.Onto, State: state}
	if input.Ledger == "" {
		if out.Known, err = doneBefore(ctx, ws); err != nil {
			return zero, err
		}
	}
	if out.Charter, err = keepCharter(ws, input.Charter); err != nil {
		return zero, err
	}
	if _, err := ws.Environment(); err != nil {
		return zero, err
	}
	crashpoint.At("steward.chartered")
	if out.Export, out.Warnings, err = export(ctx, ws); err != nil {
		return zero, err
	}
	taken, err := a.setSchedules(ctx, input.Charter)
	if err != nil {
		return zero, err
	}
	out.Warnings = append(out.Warnings, taken...)
	crashpoint.At("open.after")
	return out, nil
}

// doneBefore returns the tasks that earlier stewards of this name did on this host. The same task would otherwise run
// again without a word, where a script or a provider submits it once more.
func doneBefore(ctx context.Context, ws *workspace.Workspace) ([]task.Known, error) {
	records, err := hostrecord.List(ws.Machine.Home)
	if err != nil {
		return nil, fmt.Errorf("listing this host's stewards: %w", err)
	}
	var tasks []task.Known
	for _, r := range records {
		earlier := r.Steward() && r.Loop == ws.Loop && r.Store == ws.Store && r.Ref != ws.Ref
		if !earlier {
			continue
		}
		head, err := ws.Objects.Ref(ctx, r.Ledger)
		if err != nil || head == "" { // it recorded nothing, or was cleaned away
			continue
		}
		s, err := ws.StewardBook.State(ctx, head)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			tasks = append(tasks, s.Known...)
		}
	}
	return steward.DoneBefore(tasks), nil
}

// setSchedules makes the schedules of a charter in Temporal (S5): whoever starts the steward, and on whatever engine it
// continues, it has them. A schedule whose ID somebody else uses is only a warning.
func (a *Stewards) setSchedules(ctx context.Context, c charter.Charter) (warnings []string, err error) {
	if len(c.Schedules) == 0 {
		return nil, nil
	}
	err = schedule.Ensure(ctx, a.Temporal(ctx).ScheduleClient(), c)
	if _, taken := errors.AsType[*schedule.TakenError](err); taken {
		return []string{err.Error()}, nil
	}
	return nil, err
}

// without refuses a charter that contains a credential, because a charter gets into the ledger.
func without(c charter.Charter) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing the charter: %w", err)
	}
	if f := rules.Carried(text); f != nil {
		return workspace.Refuse(fault.New(fault.InvalidSpec, "%s", f.What).Advise("Leave it out, or let a command read it from a file."))
	}
	return nil
}

// resumeSteward continues a steward whose run is lost in this run, from a ledger commit. It is what resume is for
// loops. Its charter may have changed; the next entry then has the new one.
func (a *Stewards) resumeSteward(ctx context.Context, o open.Request) (*workspace.Workspace, *steward.State, error) {
	a.Registering.Lock()
	defer a.Registering.Unlock()
	ws, err := a.Adopted(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	state, err := ws.StewardBook.State(ctx, o.From)
	if err != nil {
		return nil, nil, err
	}
	if state.Status.Ended() {
		return nil, nil, workspace.Refuse(fault.New(fault.PreconditionFailed, "the steward of this ledger has ended (%s)", state.Status).
			Advise("Start another steward: it begins with no tasks."))
	}
	ws.Sandbox = o.Sandbox
	return ws, &state, a.TakenUp(ws, o.FirstRun)
}

// keepCharter keeps the charter for the ledger's next entry, with the branch from which the steward began, even if
// another branch of the project is checked out later.
func keepCharter(ws *workspace.Workspace, c charter.Charter) (hash string, err error) {
	c.Repo.Base = ws.Onto
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return "", fmt.Errorf("writing the charter: %w", err)
	}
	return keepText(ws, append(text, '\n'))
}

// keepText keeps a text of the steward until the ledger has it, and returns its hash, by which it is known.
func keepText(ws *workspace.Workspace, text []byte) (hash string, err error) {
	hash = ledger.HashOf(text)
	path := textFile(ws, hash)
	if err := os.MkdirAll(dirfd.At(filepath.Dir(path)), 0o700); err != nil {
		return "", fmt.Errorf("keeping a text: %w", err)
	}
	return hash, durable.WriteFile(path, text, 0o600)
}

func text(ws *workspace.Workspace, hash string) ([]byte, error) {
	text, err := os.ReadFile(dirfd.At(textFile(ws, hash)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading a text: %w", err)
	}
	if ledger.HashOf(text) != hash {
		return nil, workspace.Refuse(fault.New(fault.PreconditionFailed, "the text with the hash %s is not in %s", hash, ws.Machine.Home.Loop(ws.Ref)).
			Advise("A plan can be made again. A steward can be started again from its ledger."))
	}
	return text, nil
}

func textFile(ws *workspace.Workspace, hash string) string {
	return filepath.Join(ws.Machine.Home.Loop(ws.Ref), "texts", filepath.Base(hash))
}

// export prepares the project's .pawl folder, if the project has a folder on this host. A failure is only a warning,
// because the ledger has everything that would be there.
func export(ctx context.Context, ws *workspace.Workspace) (path string, warnings []string, err error) {
	if owns, err := ownsFolder(ws); err != nil || !owns {
		return "", []string{fmt.Sprintf("another steward writes into %s, so the status of this one's tasks is in its ledger alone", filepath.Join(ws.Repo, userrepo.FolderName))}, err
	}
	f, err := folder(ctx, ws)
	var pre *userrepo.Precondition
	switch {
	case errors.As(err, &pre):
		return "", []string{pre.Error()}, nil
	case userrepo.Unwritten(err):
		return "", []string{fmt.Sprintf("%s can't be written, so the status of tasks is in the ledger alone: %v", ws.Repo, err)}, nil
	case err != nil || f == nil:
		return "", nil, err
	}
	return f.Path, nil, f.Close()
}

// folder opens the project's .pawl folder, nil if this host has none, or a person wants it to stay deleted.
func folder(ctx context.Context, ws *workspace.Workspace) (*userrepo.Folder, error) {
	if ws.Remote {
		return nil, nil
	}
	repo, err := ws.Repository()
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	if n, err := note(ws, userrepo.FolderName); err != nil || n.Kept != nil {
		if ok, failed := userrepo.HasFolder(repo); err != nil || failed != nil || !ok {
			return nil, errors.Join(err, failed)
		}
	}
	return userrepo.OpenFolder(ctx, repo)
}
