package hosted

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pawl/internal/held"
	"pawl/internal/remove"
	"pawl/internal/sandbox"
)

// Surroundings name what a command finds around its tree: home, scratch folders and, for the judge, the caches that it
// leaves. New surroundings are made anew. The judge's surroundings for the unchanged code leave the caches that all
// later ones find.
type Surroundings string

// Unchanged are the surroundings of commands that the next judgement shares.
const Unchanged Surroundings = "unchanged"

// OfTrial begins those of a candidate on trial. No settlement keeps what that leaves in caches.
const OfTrial = "trial "

// around is what there is around a tree.
type around struct {
	in   Surroundings
	n    int             // counts the surroundings that there were
	last sandbox.Request // of the last command in them
}

// caches are what a workspace knows of the layers over caches that its commands write. They are under the workspace's mu.
type caches struct {
	settled  int    // counts the changes that were kept or undone
	trial    string // the folder of the layers of the judgement since then, "" before one
	keepable bool   // whether a change that is kept keeps what is in it
	trials   int    // counts those folders
	below    int    // counts how often what is below the layers was changed
	epoch    string // tells the layers of its judgements from those of earlier workers
}

// surrounded returns the request with its surroundings: new ones if the last command in the tree had others.
func (ws *Workspace) surrounded(t *Tree, r sandbox.Request, in Surroundings) sandbox.Request {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	judged, trial := t == ws.Judge && in != Unchanged, strings.HasPrefix(string(in), OfTrial)
	if judged {
		in += Surroundings(fmt.Sprintf(" %d", ws.caches.settled))
	}
	a := &t.around
	anew := a.in != in
	if anew {
		a.in, a.n = in, a.n+1
	}
	if anew && t == ws.Judge {
		if judged {
			ws.nextTrial()
			ws.caches.keepable = !trial
		} else {
			ws.caches.below++
		}
	}
	a.last = r
	return ws.around(t, r, a.n, !judged)
}

// around returns the request with the tree's nth surroundings. Surroundings from before a settlement must not be used
// again: the layers that they have open are gone.
func (ws *Workspace) around(t *Tree, r sandbox.Request, n int, lasting bool) sandbox.Request {
	r.Fresh, r.Layered = fmt.Sprintf("%d, %d settled", n, ws.caches.settled), strconv.Itoa(ws.caches.below)
	switch {
	case t == ws.Desk:
		r.Tree, r.Layers = "desk", []string{ws.layers("desk")}
	case lasting:
		r.Tree, r.Layers = "judge", []string{ws.layers("judge")}
	default:
		r.Tree, r.Layers = "judge", []string{ws.caches.trial, ws.layers("judge")}
	}
	return r
}

// FurnishAhead makes the surroundings of the next step ahead of time, while the workflow hears of the last one. If the
// step needs others, it waits until those are made.
func (ws *Workspace) FurnishAhead(t *Tree) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	s := ws.supervisor
	if s == nil || t.around.last.Own == nil {
		return
	}
	if t == ws.Judge {
		ws.nextTrial()
	}
	r := ws.around(t, t.around.last, t.around.n+1, false)
	ws.Machine.Background.Go(func() { s.Prepare(sandbox.Make(r)) })
}

// layers is the folder of the layers over caches that the commands of a tree write.
func (ws *Workspace) layers(of string) string {
	return filepath.Join(ws.Beside(filepath.Join(ws.Machine.Home.Loop(ws.Ref), "layers")), of)
}

// nextTrial prepares the layers for a judgement that begins: new ones, or those of a judgement that has written
// nothing. Layers of failed judgements are removed.
func (ws *Workspace) nextTrial() {
	if ws.caches.trial != "" && sandbox.Untouched(held.At(ws.caches.trial)) {
		return
	}
	ws.caches.trials++
	n := ws.caches.trials
	ws.caches.trial = filepath.Join(ws.layers("trial"), fmt.Sprintf("%s-%d", ws.caches.epoch, n)) // no other worker's has this name
	ws.Machine.Background.Go(func() { ws.forgetTrials(n) })
}

// forgetTrials removes the layers of all judgements from before the nth.
func (ws *Workspace) forgetTrials(n int) {
	dir := ws.layers("trial")
	old, _ := os.ReadDir(held.At(dir))
	for _, e := range old {
		number, ours := strings.CutPrefix(e.Name(), ws.caches.epoch+"-")
		if is, err := strconv.Atoi(number); !ours || err != nil || is < n {
			_ = remove.All(filepath.Join(dir, e.Name()))
		}
	}
}

// JudgedCaches keeps what the last judgement left in caches, or forgets it: only a kept change may decide what the next
// one's commands find.
func (ws *Workspace) JudgedCaches(kept bool) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.caches.settled++
	trial := ws.caches.trial
	if trial == "" || sandbox.Untouched(held.At(trial)) {
		return nil
	}
	ws.caches.trial = ""
	if kept && ws.caches.keepable {
		ws.caches.below++
		return sandbox.Promote(held.At(trial), held.At(ws.layers("judge")))
	}
	ws.Machine.Background.Go(func() { _ = remove.All(trial) })
	return nil
}
