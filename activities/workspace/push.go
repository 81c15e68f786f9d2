package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/shell"
)

// There are two ways to the user's repository. A repository on this host gets branch and ledger when a person is
// about to look, and while the loop continues (push). A repository with a URL is shared with other hosts (publish):
// every append is pushed. If the push finds another ledger there, the loop has moved to another host. If two hosts
// append to the same entry, the repository accepts one of them, so no lock and no clock is needed.

// pushApart is the least time between two pushes of kept changes, for which nobody waits. Only a loop with faster
// iterations has several kept changes in one push. git makes one pack of a push with 100 objects, which is what such a
// loop has in this time. Smaller pushes become files, one for each object.
const pushApart = 5 * time.Second

// pushLimit is how long a push of an append may take: a repository that never answers must not stop a loop forever.
const pushLimit = 2 * time.Minute

// briefly is how long a push may take in a loop that a person has halted.
const briefly = 3 * time.Second

// patience is the maximum time for which pawl does not try a repository that did not answer. The time is as long as
// pawl waited for the answer, so a missing repository costs a loop at most half of its time.
const patience = time.Minute

// pushes is what a workspace knows about its pushes to the user's repository.
type pushes struct {
	one       sync.Mutex // held during a push
	branchDue bool       // with a URL: the repository does not have the branch as the ledger has it yet; under one
	awayUntil time.Time  // with a URL: until then pawl does not try a repository that did not answer; under one

	// The rest is under the workspace's mu.
	due     *time.Timer
	keptDue bool      // the due push includes the branch
	last    time.Time // when the last kept change was pushed
	refused string    // why the last push was refused, until that is reported
	untaken refusal   // why the last push was refused, until a push is accepted
}

// refusal is why a push was refused.
type refusal struct {
	why  string // "" if it was not
	said string // what the other side printed: it may have a time or a number that is new with each push
}

// turn waits until no other push is under way. Its error is the context's; else the caller unlocks.
func (p *pushes) turn(ctx context.Context) error {
	for !p.one.TryLock() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// Push pushes branch and ledger to the user's repository, after a push that may be under way. If the repository
// refuses the push, or can't be reached, that is not an error: it is reported, and the next push tries again. An
// error means that this attempt has to end.
func (ws *Workspace) Push(ctx context.Context) (refused string, err error) {
	if ws.Remote {
		err := ws.Publish(ctx, true)
		return ws.PopRefusal(), err
	}
	return ws.pushHere(ctx, true)
}

// pushHere pushes the ledger to a repository on this host, with the branch if branch is true or a push of it is due.
func (ws *Workspace) pushHere(ctx context.Context, branch bool) (refused string, err error) {
	ws.pushes.one.Lock()
	defer ws.pushes.one.Unlock()
	ws.mu.Lock()
	ws.takeDue() // this push includes the due one
	branch, ws.pushes.keptDue = branch || ws.pushes.keptDue, false
	ws.mu.Unlock()
	refs := []string{ws.Ledger + ":" + ws.Ledger}
	if branch && ws.Branch != "" {
		refs = append(refs, ws.Branch+":"+ws.Branch)
	}
	if ws.Steward() { // it has no branch
		refused, err = ws.pushLedger(ctx)
	} else {
		err = ws.send(ctx, refs)
	}
	var no *userrepo.Refused
	var found refusal
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &no):
		found = ws.notTaken(no)
	case err != nil:
		found.why = fmt.Sprintf("pawl can't push to %s: %v", ws.Repo, err)
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if found.why == "" && !branch { // an earlier refusal concerned the branch
		return "", nil
	}
	return ws.news(ctx, found), nil
}

// send pushes refs to the repository on this host.
func (ws *Workspace) send(ctx context.Context, refs []string) error {
	repo, err := ws.Repository()
	if err != nil {
		return err
	}
	defer repo.Close()
	return userrepo.Push(ctx, ws.Objects, repo, refs...)
}

// news records why a push was refused, "" if it was not. It returns and logs that if the push before was not refused for
// the same reason; else it returns "". The caller holds ws.mu.
func (ws *Workspace) news(ctx context.Context, found refusal) string {
	refused, previous := found.why, ws.pushes.untaken.why
	ws.pushes.untaken = found
	if r := ws.Record; r.Closed { // nothing else pushes it
		if r.Unpushed = refused != ""; r.Unpushed || ws.Unpushed {
			if err := hostrecord.Write(ws.Machine.Home, r); err != nil {
				ws.Machine.Logger.Warn("whether the repository has everything can't be recorded", "loop", ws.Loop, "error", err)
			}
		}
	}
	if refused == "" || refused == previous {
		return ""
	}
	refused += found.said
	ws.Machine.Logger.Warn("push refused", "loop", ws.Loop, "reason", refused)
	ws.Machine.Telemetry.PushRefused(ctx)
	return refused
}

// notTaken returns, in words, what the repository refused, and what to do if the user has moved the loop's branch.
func (ws *Workspace) notTaken(refused *userrepo.Refused) refusal {
	text := fmt.Sprintf("%s was refused by %s: %s", refused.Ref, ws.Repo, refused.Reason)
	if name := git.BranchName(ws.Branch); refused.Moved && refused.Ref == ws.Branch {
		text += fmt.Sprintf(". Somebody has moved the branch %s there, and pawl keeps the loop's work. Rename that branch (git branch -m %s %s-moved), "+
			"and the next push brings the loop's own", name, shell.Quote(name), shell.Quote(name))
	}
	return refusal{why: text, said: refused.Saying()}
}

// PushSoon pushes the ledger in the background, with branch also the kept changes: a push costs as much as three
// other activities. If a crash loses a push, the next push makes up for it.
func (ws *Workspace) PushSoon(branch bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.pushes.keptDue = ws.pushes.keptDue || branch
	if ws.pushes.due != nil {
		return // the due push will include this kept change
	}
	ws.pushes.due = time.AfterFunc(pushApart-time.Since(ws.pushes.last), ws.pushDueNow)
}

func (ws *Workspace) pushAhead() {
	ws.mu.Lock()
	ws.pushes.last = time.Now()
	ws.mu.Unlock()
	refused, _ := ws.pushHere(context.Background(), false) // it must not be cancelled
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.pushes.refused = cmp.Or(refused, ws.pushes.refused)
}

// pushDueNow starts a due push in the background now.
func (ws *Workspace) pushDueNow() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.takeDue() {
		ws.Machine.InBackground(ws.pushAhead)
	}
}

// takeDue removes the due push, and reports whether there was one. The caller pushes, and holds ws.mu.
func (ws *Workspace) takeDue() bool {
	if ws.pushes.due == nil {
		return false
	}
	ws.pushes.due.Stop()
	ws.pushes.due = nil
	return true
}

// lateFor is how long after its end a loop's push is tried again, at first every lateEvery, later every hour.
const (
	lateFor   = 30 * 24 * time.Hour
	lateEvery = time.Minute
)

// latePush is the push of a loop that has ended, for which its repository was not there.
type latePush struct {
	ws   *Workspace
	wait time.Duration
	next time.Time
}

// PushLate pushes in the background what a loop that is over could not push.
func (a *Workspaces) PushLate(ctx context.Context, r hostrecord.Record) {
	if age := time.Since(r.ClosedAt); !r.Closed || !r.Unpushed || age < lateEvery || age > lateFor {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.late[r.Ref]
	if l == nil {
		ws, err := a.OpenWorkspace(ctx, r) // without Keep, because the loop has no trees any more
		if err != nil {
			a.Logger.WarnContext(ctx, "what a loop left can't be pushed", "loop", r.Loop, "error", err)
			return
		}
		l = &latePush{ws: ws, wait: lateEvery}
		a.late[r.Ref] = l
	}
	if time.Now().Before(l.next) {
		return
	}
	l.next, l.wait = time.Now().Add(l.wait), min(2*l.wait, time.Hour)
	a.InBackground(func() {
		if _, err := l.ws.Push(ctx); err != nil && ctx.Err() == nil {
			a.Logger.WarnContext(ctx, "what a loop left can't be pushed", "loop", r.Loop, "error", err)
		}
	})
}

// PopRefusal returns why the last push was refused, once.
func (ws *Workspace) PopRefusal() string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	reason := ws.pushes.refused
	ws.pushes.refused = ""
	return reason
}

// Publish pushes the ledger to the repository, and then the branch's head as the ledger has it. If another host has
// continued the ledger, the error is LEDGER_AHEAD. If the repository refuses the push, or can't be reached, that is
// not an error: the loop continues and reports it once, and the next append tries again. Only then does pawl notice
// what another host did meanwhile.
func (ws *Workspace) Publish(ctx context.Context, branch bool) error {
	return ws.publish(ctx, branch, false)
}

// PublishBriefly publishes for a loop that a person has halted: a repository that does not answer soon, or has just not
// answered, counts as one that can't be reached.
func (ws *Workspace) PublishBriefly(ctx context.Context, branch bool) error {
	bounded, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	err := ws.publish(bounded, branch, true)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errAway), err != nil && bounded.Err() != nil:
		reason := "pawl can't push to " + ws.Repo + ": it does not answer, and a halt does not wait for it. What is missing there is pushed later"
		ws.mu.Lock()
		defer ws.mu.Unlock()
		ws.pushes.refused = cmp.Or(ws.news(ctx, refusal{why: reason}), ws.pushes.refused)
		return nil
	}
	return err
}

// errAway says that a repository has just not answered.
var errAway = errors.New("the repository has just not answered")

func (ws *Workspace) publish(ctx context.Context, branch, hasty bool) error {
	if err := ws.pushes.turn(ctx); err != nil {
		return err
	}
	defer ws.pushes.one.Unlock()
	ws.pushes.branchDue = ws.pushes.branchDue || branch
	away := time.Now().Before(ws.pushes.awayUntil)
	if away && hasty {
		return errAway
	}
	if away && !branch {
		return nil
	}
	head, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err != nil || head == "" {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	began := time.Now()
	found, err := ws.advance(bounded, head)
	if ctx.Err() != nil {
		ws.pushes.awayUntil = time.Now().Add(min(time.Since(began), patience))
		return ctx.Err()
	}
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return Refuse(f)
		}
		ws.pushes.awayUntil = time.Now().Add(min(time.Since(began), patience))
		found.why = fmt.Sprintf("pawl can't push to %s: %v", ws.Repo, userrepo.Unreached(ws.Repo, err))
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.pushes.refused = cmp.Or(ws.news(ctx, found), ws.pushes.refused)
	return nil
}

// advance pushes once. found says why the repository refused something. The error is a fault if another host has the
// loop, else it says why git could not reach the repository.
func (ws *Workspace) advance(ctx context.Context, head string) (found refusal, err error) {
	repo, err := ws.Repository()
	if err != nil {
		return found, err
	}
	defer repo.Close()
	err = userrepo.Push(ctx, ws.Objects, repo, head+":"+ws.Ledger)
	var refused *userrepo.Refused
	if errors.As(err, &refused) { // whatever was refused: what counts is where the ledger is there
		if f := ws.behind(ctx, repo, head); f != nil {
			return found, f
		}
		return ws.notTaken(refused), nil
	}
	if err != nil || !ws.pushes.branchDue || ws.Branch == "" {
		return found, err
	}
	crashpoint.At("push.ledger")
	s, err := ws.Book.State(ctx, head)
	if err != nil {
		return found, err
	}
	err = userrepo.Push(ctx, ws.Objects, repo, s.Head+":"+ws.Branch)
	if errors.As(err, &refused) {
		return ws.notTaken(refused), nil
	}
	ws.pushes.branchDue = err != nil
	return found, err
}

// behind returns a fault if the ledger in the repository is not a predecessor of head.
func (ws *Workspace) behind(ctx context.Context, repo userrepo.Repo, head string) error {
	refs, err := userrepo.Refs(ctx, ws.Objects, repo, ws.Ledger)
	commit := refs[ws.Ledger]
	if err != nil || commit == "" {
		return err
	}
	if ok, err := ws.DescendsFrom(ctx, head, commit); ok || err != nil {
		return err
	}
	return fault.New(fault.LedgerAhead, "the ledger of %s in %s is at %s, which this host's ledger (%s) lacks: another host continues it", ws.Loop, ws.Repo, commit, head).
		Advise("If it was moved on purpose, you need to do nothing. To continue it here, start it again from that ledger: `" + ws.Resuming() + " " + commit + "`.")
}
