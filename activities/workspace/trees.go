package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"pawl/internal/git/worktree"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/fsutil/dirfd"
)

// Tree is one of a loop's two trees.
type Tree struct {
	*worktree.Tree
	Name string     // what people call it: desk, judge, desk.2
	busy sync.Mutex // held while the tree is being restored
	at   string     // the commit that the tree equals, "" if unknown; under the workspace's mu
	anew bool       // it was made for judgements from scratch, and has had no others; while busy is held

	around around // under the workspace's mu
}

// Restore brings a tree to head, once: later calls find it there until something runs in it.
func (ws *Workspace) Restore(ctx context.Context, t *Tree, head string) error {
	t.busy.Lock()
	defer t.busy.Unlock()
	t.anew = false
	ws.mu.Lock()
	turn, ahead := ctx.Value(aheadOf{}).(int)
	isOver := ahead && turn != ws.turn
	isThere := t.at == head && head != ""
	ws.mu.Unlock()
	if isOver || isThere {
		return nil
	}
	return ws.bring(ctx, t, head, false)
}

// RestoreClean is Restore for a step that must find nothing of an earlier one, not even what judge.keep names. From
// scratch, the tree is made anew, and what setup makes comes from the caches of this commit.
func (ws *Workspace) RestoreClean(ctx context.Context, t *Tree, head string, scratch bool) error {
	t.busy.Lock()
	defer t.busy.Unlock()
	if scratch && !t.anew {
		if err := errors.Join(t.Remove(ctx), ws.forgetScratch()); err != nil {
			return err
		}
	}
	t.anew = scratch
	return ws.bring(ctx, t, head, true)
}

// bring brings a tree to head. The caller holds busy.
func (ws *Workspace) bring(ctx context.Context, t *Tree, head string, clean bool) error {
	if err := ws.materialise(ctx, t, head, clean); err != nil {
		return err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	t.at = head
	return nil
}

// aheadOf is the context key of the turn in which a restore ahead was requested.
type aheadOf struct{}

// RestoreAhead restores a tree for the next step while the workflow gets the result of the last one. If it fails, the
// step restores the tree itself. If the step comes first, or the trees are parked first, it does nothing.
func (ws *Workspace) RestoreAhead(t *Tree, head string) {
	ws.mu.Lock()
	ctx := context.WithValue(context.Background(), aheadOf{}, ws.turn)
	ws.mu.Unlock()
	ws.Machine.InBackground(func() { _ = ws.Restore(ctx, t, head) })
}

// Leave records that something is about to run in a tree. It waits for a restore that is under way. No restore that
// was requested before begins after it.
func (ws *Workspace) Leave(t *Tree) {
	t.busy.Lock()
	defer t.busy.Unlock()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	t.at = ""
	ws.turn++
}

// Park removes the trees. They are a cache, and are made again when something has to run in them.
func (ws *Workspace) Park(ctx context.Context) error {
	ws.Leave(ws.Judge)
	if err := ws.removeTree(ctx, ws.Judge); err != nil {
		return err
	}
	crashpoint.At("tree.removing")
	for _, r := range ws.Sides(ws.Machine.Home) {
		if err := ws.At(r.Side).GiveUp(ctx); err != nil {
			return err
		}
	}
	ws.Leave(ws.Desk)
	return ws.removeTree(ctx, ws.Desk)
}

// removeTree removes a tree and its link.
func (ws *Workspace) removeTree(ctx context.Context, t *Tree) error {
	if link := ws.linkOf(t); link != t.Dir {
		if err := os.Remove(dirfd.At(link)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the link to %s: %w", t.Dir, err)
		}
	}
	return t.Remove(ctx)
}

// linkOf returns the link in the loop's folder by which people find a tree whose folder has a short name.
func (ws *Workspace) linkOf(t *Tree) string {
	return filepath.Join(ws.Machine.Home.Loop(ws.Ref), t.Name)
}

// link makes that link. Nothing of pawl's goes through it.
func (ws *Workspace) link(t *Tree) error {
	link := ws.linkOf(t)
	if link == t.Dir {
		return nil
	}
	target, err := filepath.Rel(filepath.Dir(link), t.Dir)
	if err != nil {
		return err
	}
	if now, err := os.Readlink(dirfd.At(link)); err == nil && now == target {
		return nil
	}
	if err := os.RemoveAll(dirfd.At(link)); err != nil {
		return err
	}
	return os.Symlink(target, dirfd.At(link))
}

// Alike records that commit has the same tree as second, to which it was reverted.
func (ws *Workspace) Alike(commit, second string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.same[0] == second {
		second = ws.same[1]
	}
	ws.same = [2]string{commit, second}
}

// like returns a commit that is known to have the tree of this one, "" if none is.
func (ws *Workspace) like(commit string) string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.same[0] == commit {
		return ws.same[1]
	}
	return ""
}

// Torn reports which of pawl's own records about a tree could not be read. They are already made again.
func (ws *Workspace) Torn(t *Tree) {
	if t.Torn != "" {
		ws.IsMended(fmt.Sprintf("%s of the %s could not be read: it is made again", t.Torn, t.Name), nil)
		t.Torn = ""
	}
}

// materialise brings a tree to a commit. If the tree is new, or had to be made again, the setup command runs in it,
// and tracked files that it changed are restored. What judge.keep names stays in the judge, unless clean is true.
func (ws *Workspace) materialise(ctx context.Context, t *Tree, commit string, clean bool) error {
	options := worktree.RestoreOptions{Judge: t == ws.Judge, Keep: ws.Keep, Clean: clean, Like: ws.like(commit)}
	pending, reason, err := ws.setupDue(ctx, t, commit)
	if err != nil {
		return err
	}
	recreated, err := t.Restore(ctx, commit, options)
	ws.Torn(t)
	if err != nil {
		return fmt.Errorf("bringing %s to %s: %w", t.Dir, commit, err)
	}
	if !recreated {
		return nil
	}
	if t.Lost {
		ws.IsMended(fmt.Sprintf("the %s could not be used (%s): it is made again", t.Name, t.Why), nil)
	}
	if err := ws.link(t); err != nil {
		return fmt.Errorf("linking %s: %w", t.Dir, err)
	}
	crashpoint.At("tree.created")
	surroundings := Surroundings("setup")
	if t.anew {
		surroundings = FromScratch(commit)
	} else if contract, err := ws.inForce(ctx); err != nil {
		return err
	} else if contract.Base == "" || contract.Base == commit { // what it downloads to caches is there for every judgement
		surroundings = Unchanged
	}
	if err := ws.setup(ctx, t, pending, reason, surroundings); err != nil {
		return err
	}
	crashpoint.At("tree.setup")
	if err := t.Pristine(ctx); err != nil {
		return fmt.Errorf("noting what setup made: %w", err)
	}
	crashpoint.At("tree.finished")
	if ws.Setup == "" {
		return nil
	}
	if recreated, err = t.Restore(ctx, commit, options); err == nil && recreated {
		err = fmt.Errorf("what setup made does not last: %s", t.Why)
	}
	if err != nil {
		return fmt.Errorf("bringing %s to %s after setup: %w", t.Dir, commit, err)
	}
	return nil
}
