package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pawl/internal/act"
	"pawl/internal/charter"
	"pawl/internal/crash"
	"pawl/internal/durable"
	"pawl/internal/fault"
	"pawl/internal/held"
	"pawl/internal/kind"
	"pawl/internal/steward"
	"pawl/internal/userrepo"
	"pawl/internal/workspace"
)

// Stewards does the work of stewards on this host.
type Stewards struct{ *Opener }

// OpenSteward takes a steward up on this host: what P0 asks of a repository that loops are to begin
// from, the store with the project's head, the charter for the ledger, and the project's .pawl folder
// (S7). A retry finds what an attempt before it made.
func (a *Stewards) OpenSteward(ctx context.Context, in act.OpenSteward) (act.StewardOpened[steward.State], error) {
	var none act.StewardOpened[steward.State]
	o := opening{
		repo: in.Charter.Repo, ledger: in.Ledger,
		Record: workspace.Record{
			Loop: in.Steward, Kind: kind.Steward.Name, FirstRun: in.FirstRun, Namespace: a.Namespace,
			Remote: in.Charter.Repo.Remote(), Sandbox: in.Charter.Sandbox(),
		},
		// A steward lives for years: what keeps a loop from starting keeps a task from being begun.
		tolerates: []string{userrepo.DirtyTree, userrepo.UnmergedTree, userrepo.StaleLock},
	}
	done, err := a.announce(o)
	if err != nil {
		return none, err
	}
	defer done()
	var ws *loopWorkspace
	var base string
	var state *steward.State
	if in.Ledger != "" {
		ws, state, err = a.resumeSteward(ctx, o)
		if err == nil {
			base = state.Base
		}
	} else {
		ws, base, err = a.open(ctx, o)
	}
	if err != nil {
		return none, err
	}
	site, err := ws.site(ctx)
	if err != nil {
		return act.StewardOpened[steward.State]{}, err
	}
	out := act.StewardOpened[steward.State]{Site: site, Repo: ws.Repo, Base: base, Onto: ws.Onto, State: state, Stop: ws.loopStop()}
	if out.Charter, err = ws.keepCharter(in.Charter); err != nil {
		return none, err
	}
	if _, err := ws.environment(); err != nil {
		return none, err
	}
	crash.At("steward.chartered")
	if out.Export, out.Warnings, err = ws.export(ctx); err != nil {
		return none, err
	}
	crash.At("open.after")
	return out, nil
}

// resumeSteward gives a steward whose run is lost to this one, from a ledger commit: resume, for a
// steward. Its charter may be another by now; the entry that follows has it then.
func (a *Stewards) resumeSteward(ctx context.Context, o opening) (*loopWorkspace, *steward.State, error) {
	a.registering.Lock()
	defer a.registering.Unlock()
	ws, err := a.adopted(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	state, err := ws.steward.State(ctx, o.ledger)
	if err != nil {
		return nil, nil, err
	}
	if state.Status.Ended() {
		return nil, nil, refuse(fault.New(fault.PreconditionFailed, "the steward of this ledger has ended (%s)", state.Status).
			Advise("Start another steward: it begins with no tasks."))
	}
	ws.Sandbox = o.Sandbox
	return ws, &state, a.takenUp(ws, o.FirstRun)
}

// keepCharter keeps the charter for the ledger's next entry, with the branch that the steward began
// from, whichever the project is on later.
func (ws *loopWorkspace) keepCharter(c charter.Charter) (hash string, err error) {
	c.Repo.Base = ws.Onto
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return "", fmt.Errorf("writing the charter: %w", err)
	}
	return ws.keepText(append(text, '\n'))
}

// keepText keeps a text of the steward's until the ledger has it. It is known by its hash.
func (ws *loopWorkspace) keepText(text []byte) (hash string, err error) {
	hash = hashOf(text)
	path := ws.textFile(hash)
	if err := os.MkdirAll(held.At(filepath.Dir(path)), 0o700); err != nil {
		return "", fmt.Errorf("keeping a text: %w", err)
	}
	return hash, durable.WriteFile(path, text, 0o600)
}

// text returns a text that was kept.
func (ws *loopWorkspace) text(hash string) ([]byte, error) {
	text, err := os.ReadFile(held.At(ws.textFile(hash)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading a text: %w", err)
	}
	if hashOf(text) != hash {
		return nil, refuse(fault.New(fault.PreconditionFailed, "the text with the hash %s is not in %s", hash, ws.machine.Home.Loop(ws.Ref)).
			Advise("A plan can be made again. A steward can be started again from its ledger."))
	}
	return text, nil
}

func (ws *loopWorkspace) textFile(hash string) string {
	return filepath.Join(ws.machine.Home.Loop(ws.Ref), "texts", filepath.Base(hash))
}

// export makes the project's .pawl folder ready, where the project has a folder on this host. What
// keeps it from that is a warning: the ledger has all that would be there.
func (ws *loopWorkspace) export(ctx context.Context) (path string, warnings []string, err error) {
	if owns, err := ws.ownsFolder(); err != nil || !owns {
		return "", []string{fmt.Sprintf("another steward writes into %s, so the status of this one's tasks is in its ledger alone", filepath.Join(ws.Repo, userrepo.FolderName))}, err
	}
	f, err := ws.folder(ctx)
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

// folder opens the project's .pawl folder, nil where the project has no folder on this host.
func (ws *loopWorkspace) folder(ctx context.Context) (*userrepo.Folder, error) {
	if ws.Remote {
		return nil, nil
	}
	repo, err := ws.repository()
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	return userrepo.OpenFolder(ctx, repo)
}
