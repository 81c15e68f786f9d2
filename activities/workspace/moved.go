package workspace

import (
	"context"
	"errors"
	"fmt"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
)

// A steward's ledger in a repository on this host is pushed only onto what pawl has pushed there. If somebody has moved
// or deleted it, it stays so until a person has answered: validation finds the same drift and asks.

// HasEntry reports whether a commit is an entry of the steward's ledger at head, and not one of its code commits.
func (ws *Workspace) HasEntry(ctx context.Context, head, commit string) (bool, error) {
	if head == commit {
		return true, nil
	}
	if ok, err := ws.DescendsFrom(ctx, head, commit); !ok || err != nil {
		return false, err
	}
	files, err := ws.Objects.ReadLedger(ctx, commit, ledger.StateFile)
	if git.Starved(err) {
		return false, err
	}
	return err == nil && files[ledger.StateFile] != nil, nil
}

// LedgerInRepository returns the commit of the steward's ledger in the repository, and in words what somebody did to it,
// "" for nothing. head is where the ledger is in the store.
func (ws *Workspace) LedgerInRepository(ctx context.Context, head string) (commit, change string, err error) {
	pushed := hostrecord.Pushed(ws.Machine.Home, ws.Ref) // read first: pawl may push meanwhile
	if pushed != "" {
		ok, err := ws.HasEntry(ctx, head, pushed)
		if err != nil {
			return "", "", err
		}
		if !ok { // of another ledger with this name
			pushed = ""
		}
	}
	commit, err = ws.Pushed(ctx, ws.Ledger)
	if err != nil {
		return "", "", err
	}
	if commit == "" && pushed == "" {
		return "", "", nil
	}
	if commit == "" {
		return "", "was deleted by somebody else", nil
	}
	entry, err := ws.HasEntry(ctx, head, commit)
	if err != nil {
		return "", "", err
	}
	if !entry {
		return commit, "was moved by somebody else", nil
	}
	if pushed == "" {
		return commit, "", nil
	}
	continues, err := ws.DescendsFrom(ctx, commit, pushed)
	if err == nil && !continues {
		change = "was moved back by somebody else"
	}
	return commit, change, err
}

// pushLedger pushes the steward's ledger. If somebody has moved it there, it pushes nothing and returns that in words.
// The caller holds pushes.one.
func (ws *Workspace) pushLedger(ctx context.Context) (held string, err error) {
	head, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err != nil || head == "" {
		return "", err
	}
	commit, change, err := ws.LedgerInRepository(ctx, head)
	if err != nil {
		return "", err
	}
	if change != "" {
		return fmt.Sprintf("%s in %s %s: pawl leaves it so until you answer", ws.Ledger, ws.Repo, change), nil
	}
	return "", ws.moveLedger(ctx, head, commit)
}

// RestoreLedger puts the steward's ledger in the repository back to head, if it is still where the person saw it when
// they said so. If it is elsewhere, that is a new question. The result says why the repository refused it.
func (ws *Workspace) RestoreLedger(ctx context.Context, head, seen string) (refused string, err error) {
	ws.pushes.one.Lock()
	defer ws.pushes.one.Unlock()
	err = ws.moveLedger(ctx, head, seen)
	var rejected *userrepo.Refused
	var fenced *store.Fenced
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &fenced):
		return "", nil
	case errors.As(err, &rejected):
		found := ws.notTaken(rejected)
		return found.why + found.said, nil
	case err != nil:
		return fmt.Sprintf("pawl can't push to %s: %v", ws.Repo, err), nil
	}
	return "", nil
}

// moveLedger moves the ledger in the repository from one commit to another, and notes that.
func (ws *Workspace) moveLedger(ctx context.Context, target, source string) error {
	repo, err := ws.Repository()
	if err != nil {
		return err
	}
	defer repo.Close()
	if target != source {
		if err := userrepo.Move(ctx, ws.Objects, repo, ws.Ledger, target, source); err != nil {
			return err
		}
	}
	return hostrecord.NotePushed(ws.Machine.Home, ws.Ref, target)
}
