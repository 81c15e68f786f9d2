package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"pawl/internal/crash"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/shell"
	"pawl/internal/userrepo"
)

// Two ways to the user's repository. A repository on this host gets branch and ledger when somebody is
// about to look, and while the loop goes on (push). A repository with a URL is shared with other hosts
// (publish): every append is pushed, and one that finds another ledger there has lost the loop to another
// host. If two hosts append to the same entry, the repository takes one of them, so no lock and no clock
// is needed.

// pushApart is how far apart pushes of keeps are, which nobody waits for. Only a loop whose iterations are
// faster than that sees several keeps in one push.
const pushApart = time.Second

// pushLimit is how long a push of an append may take: a repository that takes connections and
// never answers must not hold up a loop for good.
const pushLimit = 2 * time.Minute

// patience bounds how long a repository is left alone that did not answer. It is as long as it let
// us wait, so that one that is away costs a loop no more than half of its time.
const patience = time.Minute

// pushes are what a workspace knows of its pushes to the user's repository.
type pushes struct {
	one       sync.Mutex // held by the one that is under way
	branchDue bool       // with a URL: the branch is not yet in the repository as the ledger has it; under one
	awayUntil time.Time  // with a URL: until when a repository that did not answer is left alone; under one

	// The rest is under the workspace's mu.
	due     *time.Timer
	keptDue bool      // the push that is due is to bring the branch
	last    time.Time // when the last keep was pushed
	refused string    // why the last one was refused, until it is told
	untaken string    // why the last one was refused, until one is accepted
}

// Push brings branch and ledger to the user's repository, after a push that may be under way. A
// refusal, or a repository that has gone away, is no error: it is told and tried again with the
// next push. An error means that this attempt is to end.
func (ws *Workspace) Push(ctx context.Context) (refused string, err error) {
	if ws.Remote {
		err := ws.Publish(ctx, true)
		return ws.PopRefusal(), err
	}
	return ws.pushHere(ctx, true)
}

// pushHere pushes the ledger to a repository of this host, and the branch where that is due or branch says so.
func (ws *Workspace) pushHere(ctx context.Context, branch bool) (refused string, err error) {
	ws.pushes.one.Lock()
	defer ws.pushes.one.Unlock()
	ws.mu.Lock()
	ws.takeDue() // this push takes it along
	branch, ws.pushes.keptDue = branch || ws.pushes.keptDue, false
	ws.mu.Unlock()
	refs := []string{ws.Ledger + ":" + ws.Ledger}
	if branch && ws.Branch != "" {
		refs = append(refs, ws.Branch+":"+ws.Branch)
	}
	repo, err := ws.Repository()
	if err == nil {
		err = userrepo.Push(ctx, ws.Objects, repo, refs...)
		repo.Close()
	}
	var no *userrepo.Refused
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &no):
		refused = ws.notTaken(no)
	case err != nil:
		refused = fmt.Sprintf("pawl can't push to %s: %v", ws.Repo, err)
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if refused == "" && !branch { // what was refused before was the branch
		return "", nil
	}
	if ws.known(refused) {
		return "", nil
	}
	ws.Machine.Logger.Warn("push refused", "loop", ws.Loop, "reason", refused)
	ws.Machine.Telemetry.PushRefused(ctx)
	return refused, nil
}

// known notes why a push was refused, "" where none was, and reports whether there is nothing new to tell. The
// caller holds ws.mu.
func (ws *Workspace) known(refused string) bool {
	same := refused == "" || refused == ws.pushes.untaken
	ws.pushes.untaken = refused
	return same
}

// notTaken says what the repository did not take, and what to do where the user has moved the loop's branch.
func (ws *Workspace) notTaken(no *userrepo.Refused) string {
	text := fmt.Sprintf("%s was refused by %s: %s", no.Ref, ws.Repo, no.Reason)
	if name := git.BranchName(ws.Branch); no.Moved && no.Ref == ws.Branch {
		text += fmt.Sprintf(". Somebody has moved the branch %s there, and pawl keeps the loop's work. Rename that branch (git branch -m %s %s-moved), "+
			"and the next push brings the loop's own", name, shell.Quote(name), shell.Quote(name))
	}
	return text
}

// PushSoon pushes the ledger while the loop goes on, with branch also what was kept: a push costs what three
// other activities do. What is lost with a crash the next push brings.
func (ws *Workspace) PushSoon(branch bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.pushes.keptDue = ws.pushes.keptDue || branch
	if ws.pushes.due != nil {
		return // that one will take this keep along
	}
	ws.pushes.due = time.AfterFunc(pushApart-time.Since(ws.pushes.last), func() { ws.pushDueNow() })
}

func (ws *Workspace) pushAhead() {
	ws.mu.Lock()
	ws.pushes.last = time.Now()
	ws.mu.Unlock()
	refused, _ := ws.pushHere(context.Background(), false) // it is not to end
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.pushes.refused = cmp.Or(refused, ws.pushes.refused)
}

// pushDueNow pushes in the background where a push is due that nobody has taken up yet.
func (ws *Workspace) pushDueNow() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.takeDue() {
		ws.Machine.Background.Go(func() { ws.pushAhead() })
	}
}

// takeDue takes up the push that is due, and reports whether one was. The caller holds ws.mu.
func (ws *Workspace) takeDue() bool {
	if ws.pushes.due == nil {
		return false
	}
	ws.pushes.due.Stop()
	ws.pushes.due = nil
	return true
}

// PopRefusal returns why the last push was refused, once.
func (ws *Workspace) PopRefusal() string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	why := ws.pushes.refused
	ws.pushes.refused = ""
	return why
}

// Publish brings the ledger to the repository, and after it the branch's head as the ledger has it.
// A ledger that another host has gone on with is LEDGER_AHEAD. A repository that refuses, or is
// away, is no error: the loop goes on, says so once, and the next append tries again; what another
// host does meanwhile shows then.
func (ws *Workspace) Publish(ctx context.Context, branch bool) error {
	ws.pushes.one.Lock()
	defer ws.pushes.one.Unlock()
	ws.pushes.branchDue = ws.pushes.branchDue || branch
	if time.Now().Before(ws.pushes.awayUntil) && !branch {
		return nil
	}
	head, err := ws.Objects.Ref(ctx, ws.Ledger)
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
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return Refuse(f)
		}
		ws.pushes.awayUntil = time.Now().Add(min(time.Since(began), patience))
		why = fmt.Sprintf("pawl can't push to %s: %v", ws.Repo, userrepo.Unreached(ws.Repo, err))
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if !ws.known(why) {
		ws.pushes.refused = why
		ws.Machine.Logger.Warn("push refused", "loop", ws.Loop, "reason", why)
		ws.Machine.Telemetry.PushRefused(ctx)
	}
	return nil
}

// advance pushes once. It returns why the repository did not take something; an error is a fault
// where another host has the loop, else what kept git from talking to the repository.
func (ws *Workspace) advance(ctx context.Context, head string) (why string, err error) {
	repo, err := ws.Repository()
	if err != nil {
		return "", err
	}
	defer repo.Close()
	err = userrepo.Push(ctx, ws.Objects, repo, head+":"+ws.Ledger)
	var refused *userrepo.Refused
	if errors.As(err, &refused) { // by whatever name: where the ledger is there, is what counts
		if f := ws.behind(ctx, repo, head); f != nil {
			return "", f
		}
		return ws.notTaken(refused), nil
	}
	if err != nil || !ws.pushes.branchDue || ws.Branch == "" {
		return "", err
	}
	crash.At("push.ledger")
	s, err := ws.Book.State(ctx, head)
	if err != nil {
		return "", err
	}
	err = userrepo.Push(ctx, ws.Objects, repo, s.Head+":"+ws.Branch)
	if errors.As(err, &refused) {
		return ws.notTaken(refused), nil
	}
	ws.pushes.branchDue = err != nil
	return "", err
}

// behind is a fault where the ledger in the repository is none of head's predecessors.
func (ws *Workspace) behind(ctx context.Context, repo userrepo.Repo, head string) error {
	refs, err := userrepo.Refs(ctx, ws.Objects, repo, ws.Ledger)
	at := refs[ws.Ledger]
	if err != nil || at == "" {
		return err
	}
	if ws.DescendsFrom(ctx, head, at) {
		return nil
	}
	return fault.New(fault.LedgerAhead, "the ledger of %s in %s is at %s, which this host's ledger (%s) lacks: another host continues the loop", ws.Loop, ws.Repo, at, head).
		Advise("If the loop was moved on purpose, you need to do nothing. To continue it here, start it again from that ledger: `pawl start --ledger " + at + "`.")
}
