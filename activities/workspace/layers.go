package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pawl/internal/exec/sandbox"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/remove"
)

// Surroundings name what a command finds around its tree: home, scratch folders and, for the judge, caches. Others are
// made new. What the judge's commands write to caches in Unchanged is there for all later ones.
type Surroundings string

// Unchanged are the surroundings of commands on the unchanged code, whose caches all later judgements share.
const Unchanged Surroundings = "unchanged"

// OfTrial is the prefix of the surroundings of a candidate's trial. What they leave in caches is never kept.
const OfTrial = "trial "

// scratch is the prefix of the surroundings in which a commit is judged from scratch.
const scratch = "scratch "

// FromScratch returns the surroundings of a judgement from scratch: caches have only what the commit's own code wrote.
func FromScratch(commit string) Surroundings { return Surroundings(scratch + commit) }

// around says in which surroundings a tree is.
type around struct {
	in   Surroundings
	n    int             // counts the surroundings so far
	last sandbox.Request // the request of the last command in them
}

// caches is what a workspace knows about the layers over caches that its commands write; under its mu.
type caches struct {
	settled  int    // counts the changes that were kept or undone
	trial    string // the folder of the layers of the judgement since then, "" if there was none
	keepable bool   // whether a kept change also keeps the content of trial
	trials   int    // counts those folders
	below    int    // counts the changes below the layers
	epoch    string // distinguishes the layers of this worker's judgements from those of earlier workers
}

// surrounded returns the request with its surroundings: new ones if the last command in the tree had others.
func (ws *Workspace) surrounded(t *Tree, r sandbox.Request, surroundings Surroundings) sandbox.Request {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	_, alone := strings.CutPrefix(string(surroundings), scratch)
	judged, trial := t == ws.Judge && surroundings != Unchanged && !alone, strings.HasPrefix(string(surroundings), OfTrial)
	if judged {
		surroundings += Surroundings(fmt.Sprintf(" %d", ws.caches.settled))
	}
	a := &t.around
	isNew := a.in != surroundings
	if isNew {
		a.in, a.n = surroundings, a.n+1
	}
	if isNew && t == ws.Judge {
		switch {
		case judged:
			ws.nextTrial()
			ws.caches.keepable = !trial
		case !alone:
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
	commit, alone := strings.CutPrefix(string(t.around.in), scratch)
	switch {
	case t == ws.Desk:
		r.Tree, r.Layers = "desk", []string{ws.layers("desk")}
	case lasting && alone:
		r.Tree, r.Layers = "judge", []string{filepath.Join(ws.layers("scratch"), commit)}
	case lasting:
		r.Tree, r.Layers = "judge", []string{ws.layers("judge")}
	default:
		r.Tree, r.Layers = "judge", []string{ws.caches.trial, ws.layers("judge")}
	}
	return r
}

// FurnishAhead makes the surroundings of the next step ahead of time, while the workflow gets the result of the last
// one. If the step needs other surroundings, it waits until these are made.
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
	ws.Machine.InBackground(func() { s.Prepare(sandbox.Make(r)) })
}

// layers returns the folder of the layers over caches that the commands of a tree write.
func (ws *Workspace) layers(tree string) string {
	return filepath.Join(ws.Beside(filepath.Join(ws.Machine.Home.Loop(ws.Ref), "layers")), tree)
}

// nextTrial prepares the layers for the next judgement, and removes those of failed ones.
func (ws *Workspace) nextTrial() {
	if ws.caches.trial != "" && sandbox.Untouched(dirfd.At(ws.caches.trial)) {
		return
	}
	ws.caches.trials++
	n := ws.caches.trials
	ws.caches.trial = filepath.Join(ws.layers("trial"), fmt.Sprintf("%s-%d", ws.caches.epoch, n)) // no layer of another worker has this name
	ws.Machine.InBackground(func() { ws.forgetTrials(n) })
}

// forgetTrials removes the layers of all judgements from before the nth.
func (ws *Workspace) forgetTrials(n int) {
	dir := ws.layers("trial")
	entries, _ := os.ReadDir(dirfd.At(dir))
	for _, e := range entries {
		number, found := strings.CutPrefix(e.Name(), ws.caches.epoch+"-")
		index, err := strconv.Atoi(number)
		if !found || err != nil || index < n {
			_ = remove.All(filepath.Join(dir, e.Name()))
		}
	}
}

// forgetScratch removes what earlier judgements from scratch left in caches.
func (ws *Workspace) forgetScratch() error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.caches.below++ // what is mounted there must not be used again
	return remove.All(ws.layers("scratch"))
}

// JudgedCaches keeps what the last judgement left in caches, or forgets it. Only a kept change may affect what the
// next judgement's commands find.
func (ws *Workspace) JudgedCaches(kept bool) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.caches.settled++
	trial := ws.caches.trial
	if trial == "" || sandbox.Untouched(dirfd.At(trial)) {
		return nil
	}
	ws.caches.trial = ""
	if kept && ws.caches.keepable {
		ws.caches.below++
		return sandbox.Promote(dirfd.At(trial), dirfd.At(ws.layers("judge")))
	}
	ws.Machine.InBackground(func() { _ = remove.All(trial) })
	return nil
}
