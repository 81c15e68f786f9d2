package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/durable"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/store"
	"pawl/internal/trees"
	"pawl/internal/userrepo"
	"pawl/internal/wire"
	"pawl/internal/workspace"
)

// Settle keeps the branch as it stands or reverts its tip, and appends to the ledger, in one.
func (a *Activities) Settle(ctx context.Context, in act.Settle) (act.Appended, error) {
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return act.Appended{}, err
	}
	crash.At("settle.before")
	tx := store.Tx{}
	if in.Revert != nil {
		ws.leave(ws.desk)
		tx.Revert = &store.RevertInput{
			Commit: in.Revert.Commit, Branch: ws.Branch, Author: ws.author(), Time: timeOf(in.Events),
			Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: ws.Loop}},
		}
	}
	out, err := ws.append(ctx, in.Entry, in.Push, tx, "")
	if err != nil {
		return act.Appended{}, err
	}
	if r := in.Revert; r != nil {
		ws.alike(out.Head, r.Parent)
		if !r.KeepDesk {
			ws.restoreAhead(ws.desk, out.Head)
		}
	}
	crash.At("settle.appended")
	if in.Push && !ws.Remote { // else it was pushed with the append
		ws.pushSoon()
	}
	out.PushRefused, out.Stop = ws.takeRefusal(), ws.loopStop()
	crash.At("settle.after")
	return out, nil
}

// Record appends what happens between iterations and pushes, since somebody is about to look. The
// loop's processes, and with Park its trees, are given up.
func (a *Activities) Record(ctx context.Context, in act.Record) (act.Appended, error) {
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return act.Appended{}, err
	}
	return ws.appendAndRest(ctx, in.Entry, in.Park)
}

// Propose works out the proposal and records it.
func (a *Activities) Propose(ctx context.Context, in act.Propose) (act.Appended, error) {
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return act.Appended{}, err
	}
	proposal, err := ws.propose(ctx, in.Base, in.Head, in.Events)
	if err != nil {
		return act.Appended{}, err
	}
	out, err := ws.appendAndRest(ctx, in.Entry, false)
	out.Proposal = proposal
	return out, err
}

// appendAndRest appends for somebody who is about to look: what is in the ledger is pushed, and the
// loop's processes are given up.
func (ws *loopWorkspace) appendAndRest(ctx context.Context, in act.Entry, park bool) (act.Appended, error) {
	crash.At("record.before")
	out, err := ws.append(ctx, in, true, store.Tx{}, "")
	if err != nil {
		return act.Appended{}, err
	}
	crash.At("record.appended")
	if !ws.Remote { // else it was pushed with the append
		if out.PushRefused, err = ws.push(ctx); err != nil {
			return act.Appended{}, err
		}
	}
	if out.PushRefused == "" {
		out.PushRefused = ws.takeRefusal()
	}
	ws.rest()
	if park {
		if err := ws.park(ctx); err != nil {
			return act.Appended{}, err
		}
	}
	out.Stop = ws.loopStop()
	crash.At("record.after")
	return out, nil
}

// Close works out the proposal, records the end, pushes for the last time and gives the loop's
// processes and trees up.
func (a *Activities) Close(ctx context.Context, in act.Close) (act.Appended, error) {
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return act.Appended{}, err
	}
	crash.At("close.before")
	ws.rest()
	proposal, err := ws.propose(ctx, in.Base, in.Head, in.Events)
	if err != nil {
		return act.Appended{}, err
	}
	out, err := ws.append(ctx, in.Entry, true, store.Tx{}, in.Head)
	if err != nil {
		return act.Appended{}, err
	}
	out.Proposal = proposal
	crash.At("close.appended")
	if ws.Remote { // it was pushed with the append
		out.PushRefused = ws.takeRefusal()
	} else if out.PushRefused, err = ws.push(ctx); err != nil {
		return act.Appended{}, err
	}
	crash.At("close.pushed")
	if err := a.vacate(ctx, ws); err != nil {
		return act.Appended{}, err
	}
	crash.At("close.after")
	return out, nil
}

// propose works out the proposal where an event asks for it, and completes the event.
func (ws *loopWorkspace) propose(ctx context.Context, base, head string, events []loop.Event) (*loop.Proposal, error) {
	i := slices.IndexFunc(events, func(e loop.Event) bool { return e.Type == loop.ProposalMade })
	if i < 0 || head == base {
		return nil, nil
	}
	d, err := ws.store.Proposal(ctx, base, head)
	if err != nil {
		return nil, fmt.Errorf("making the proposal: %w", err)
	}
	if d.Files == 0 {
		return nil, nil
	}
	proposal := &loop.Proposal{
		Hash: d.Hash, Base: base, Head: head, Files: d.Files, Insertions: d.Insertions, Deletions: d.Deletions, State: "open",
	}
	events[i] = act.Fill(events[i], act.Appended{Proposal: proposal})
	return proposal, nil
}

// append appends to the ledger, on this host and, with a URL, in the repository that it shares
// with others, there with the branch where that is to be pushed. A ledger that stands elsewhere means that another run is ahead of this one.
func (ws *loopWorkspace) append(ctx context.Context, in act.Entry, push bool, tx store.Tx, head string) (act.Appended, error) {
	out, err := ws.write(ctx, in, tx, head)
	if err == nil && ws.Remote {
		crash.At("append.written")
		err = ws.publish(ctx, push)
	}
	return out, err
}

// write folds the events into the ledger's next entry and makes it so: the state in the workflow
// and in the ledger are the same fold.
func (ws *loopWorkspace) write(ctx context.Context, in act.Entry, tx store.Tx, head string) (act.Appended, error) {
	if in.Ledger == "" {
		if err := ws.rebind(); err != nil {
			return act.Appended{}, err
		}
	}
	out := act.Appended{Head: head}
	var page ledger.Page
	var taken []loop.Event
	tx.Entry = func(code string) (store.Entry, error) {
		if tx.Revert != nil {
			out.Head = code
		}
		events := make([]loop.Event, len(in.Events))
		for i, e := range in.Events {
			if e.Type == loop.ChangeReverted && e.Head == "" {
				e = act.Fill(e, out)
			}
			events[i] = e
		}
		files, folded, err := ws.ledger.Entry(ctx, in.Ledger, events)
		if err != nil {
			return store.Entry{}, err
		}
		page, taken = folded, events
		if slices.ContainsFunc(events, func(e loop.Event) bool { return e.Type == loop.PlanMade }) {
			if files[ledger.PlanFile], err = ws.drafted(*folded.State.Plan); err != nil {
				return store.Entry{}, err
			}
		}
		return store.Entry{
			Ref: ws.Ledger, Prev: in.Ledger, Code: folded.State.Head, Files: files, Message: message(folded.State, events),
			Time: timeOf(events), Author: ws.author(),
		}, nil
	}
	done, err := ws.store.Transact(ctx, tx)
	if known, at := ws.recorded(ctx, in, err); known > 0 {
		in.Ledger, in.Events = at, in.Events[known:]
		if len(in.Events) == 0 && tx.Revert == nil {
			return act.Appended{Ledger: at, Head: head}, nil
		}
		done, err = ws.store.Transact(ctx, tx)
	}
	if err != nil {
		return act.Appended{}, ws.fenced(err, "appending to the ledger")
	}
	ws.ledger.Appended(done.Entry, page)
	ws.report(ctx, in.Ledger, page.State, taken)
	out.Ledger = done.Entry
	return out, nil
}

// recorded says how many of the events the ledger has already, and where it stands then: a step
// appends some of them first, and where it was cancelled it couldn't say so. Zero where the ledger
// is ahead by anything else.
func (ws *loopWorkspace) recorded(ctx context.Context, in act.Entry, err error) (known int, at string) {
	var elsewhere *store.Fenced
	if !errors.As(err, &elsewhere) || elsewhere.Ref != ws.Ledger || elsewhere.Have == "" {
		return 0, ""
	}
	have, err := ws.ledger.Since(ctx, elsewhere.Have, in.Ledger)
	if err != nil || len(have) > len(in.Events) || !reflect.DeepEqual(have, in.Events[:len(have)]) {
		return 0, ""
	}
	return len(have), elsewhere.Have
}

// fenced says what an error that came of moving the loop's refs means: one that stands elsewhere
// was moved by another run, and trying again can't help.
func (ws *loopWorkspace) fenced(err error, doing string) error {
	var elsewhere *store.Fenced
	if !errors.As(err, &elsewhere) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return refuse(fault.New(fault.LedgerAhead, "the ledger or the branch of %s is not where this run left it (%s is %s, expected %s)",
		ws.Loop, elsewhere.Ref, orNone(elsewhere.Have), orNone(elsewhere.Want)))
}

// rebind gives the ledger the contract that Open worked out, also where a crash came between. Nothing
// else has it before the ledger's first entry, and nothing was done under it yet.
func (ws *loopWorkspace) rebind() error {
	var c ledger.Contract
	err := durable.ReadJSON(filepath.Join(ws.machine.Home.Loop(ws.Ref), ledger.ContractFile), &c)
	if errors.Is(err, durable.ErrTorn) {
		return refuse(fault.New(fault.PreconditionFailed, "the contract that was drawn can't be read: %v", err).Advise("Start the loop again."))
	}
	if err != nil {
		return fmt.Errorf("reading the contract: %w", err)
	}
	ws.ledger.Bind(c)
	return nil
}

// push brings branch and ledger to the user's repository, after a push that may be under way. A
// refusal, or a repository that has gone away, is no error: it is told and tried again with the
// next push. An error means that this attempt is to end.
func (ws *loopWorkspace) push(ctx context.Context) (refused string, err error) {
	if ws.Remote {
		err := ws.publish(ctx, true)
		return ws.takeRefusal(), err
	}
	ws.pushing.Lock()
	defer ws.pushing.Unlock()
	ws.pushNow()
	err = userrepo.Push(ctx, ws.store, ws.Repo, ws.Branch+":"+ws.Branch, ws.Ledger+":"+ws.Ledger)
	var no *userrepo.Refused
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &no):
		refused = fmt.Sprintf("%s was refused by %s: %s", no.Ref, ws.Repo, no.Reason)
	case err != nil:
		refused = fmt.Sprintf("%s can't be pushed to: %v", ws.Repo, err)
	default:
		return "", nil
	}
	ws.machine.Logger.Warn("push refused", "loop", ws.Loop, "reason", refused)
	ws.machine.Telemetry.PushRefused(ctx)
	return refused, nil
}

// pushApart is how far apart pushes of keeps are, which nobody waits for. Only a loop whose iterations are
// faster than that sees several keeps in one push.
const pushApart = time.Second

// pushSoon pushes while the loop goes on: a push costs what three other activities do. What is
// lost with a crash the next push brings.
func (ws *loopWorkspace) pushSoon() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.pushDue != nil {
		return // that one will take this keep along
	}
	ws.pushDue = time.AfterFunc(pushApart-time.Since(ws.pushed), func() { ws.machine.background.Go(func() { ws.pushAhead() }) })
}

func (ws *loopWorkspace) pushAhead() {
	ws.mu.Lock()
	ws.pushed = time.Now()
	ws.mu.Unlock()
	refused, _ := ws.push(context.Background()) // it is not to end
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.refused = refused
}

// pushNow takes the place of a push that is due, and reports whether one was.
func (ws *loopWorkspace) pushNow() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	due := ws.pushDue != nil && ws.pushDue.Stop()
	ws.pushDue = nil
	return due
}

// takeRefusal returns why the last push was refused, once.
func (ws *loopWorkspace) takeRefusal() string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	why := ws.refused
	ws.refused = ""
	return why
}

// vacate gives up the trees of a loop that is over. Logs, store and ledger stay.
func (a *Activities) vacate(ctx context.Context, ws *loopWorkspace) error {
	if err := ws.park(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(workspace.Exchange(a.Home, ws.Ref)); err != nil {
		return err
	}
	ws.Closed, ws.ClosedAt = true, time.Now()
	a.mu.Lock()
	delete(a.workspaces, ws.Ref)
	a.mu.Unlock()
	return workspace.Write(a.Home, ws.Record)
}

// park gives up the trees: they are a cache, made again when something is to run in them.
func (ws *loopWorkspace) park(ctx context.Context) error {
	ws.leave(ws.judge)
	if err := ws.judge.Remove(ctx); err != nil {
		return err
	}
	crash.At("tree.removing")
	ws.leave(ws.desk)
	return ws.desk.Remove(ctx)
}

// tree is one of a loop's two trees.
type tree struct {
	*trees.Tree
	busy sync.Mutex // held while the tree is being restored
	at   string     // the commit that it is known to be at, "" for unknown; under the workspace's mu
}

// restore brings a tree to head, once: later calls find it there until something runs in it.
func (ws *loopWorkspace) restore(ctx context.Context, t *tree, head string) error {
	t.busy.Lock()
	defer t.busy.Unlock()
	ws.mu.Lock()
	turn, ahead := ctx.Value(aheadOf{}).(int)
	over := ahead && turn != ws.turn
	there := t.at == head && head != ""
	ws.mu.Unlock()
	if over || there {
		return nil
	}
	if err := ws.materialise(ctx, t, head); err != nil {
		return err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	t.at = head
	return nil
}

// aheadOf is the turn in which a restore was asked for that nobody waits for yet.
type aheadOf struct{}

// restoreAhead restores a tree for the next step while the workflow hears of the last one. If it fails,
// the step restores the tree itself. If the step, or a parking of the trees, comes first, nothing is done.
func (ws *loopWorkspace) restoreAhead(t *tree, head string) {
	ws.mu.Lock()
	ctx := context.WithValue(context.Background(), aheadOf{}, ws.turn)
	ws.mu.Unlock()
	ws.machine.background.Go(func() { _ = ws.restore(ctx, t, head) })
}

// leave notes that something is about to run in a tree. It waits for a restore that is under way, and
// lets none begin that was asked for before.
func (ws *loopWorkspace) leave(t *tree) {
	t.busy.Lock()
	defer t.busy.Unlock()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	t.at = ""
	ws.turn++
}

// alike notes that the commit has the tree of another, which it was reverted to.
func (ws *loopWorkspace) alike(commit, other string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.same[0] == other {
		other = ws.same[1]
	}
	ws.same = [2]string{commit, other}
}

// like returns a commit that is known to have the tree of this one, "" where none is.
func (ws *loopWorkspace) like(commit string) string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.same[0] == commit {
		return ws.same[1]
	}
	return ""
}

// loopStop says where a loop-stop file asks the loop to end, "" where there is none.
func (ws *loopWorkspace) loopStop() string {
	for _, dir := range []string{ws.local(), ws.desk.Dir} {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, "loop-stop")
		if _, err := os.Lstat(path); err == nil {
			return "the file " + path + " asks the loop to stop"
		}
	}
	return ""
}

// copyResults puts the results where the agent can read them. The desk is the agent's: what it
// may have put in the place of the file is removed, never followed.
func (ws *loopWorkspace) copyResults(ctx context.Context, head string) error {
	page, err := ws.ledger.Read(ctx, head)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(ws.desk.Dir)
	if err != nil {
		return fmt.Errorf("opening the desk: %w", err)
	}
	defer root.Close()
	const name = ledger.ResultsFile
	tmp := name + ".lock"
	_ = root.RemoveAll(tmp)
	if err := root.WriteFile(tmp, page.Results, 0o644); err != nil {
		return fmt.Errorf("copying the results to the desk: %w", err)
	}
	if st, err := root.Lstat(name); err == nil && st.IsDir() {
		_ = root.RemoveAll(name)
	}
	if err := root.Rename(tmp, name); err != nil {
		return fmt.Errorf("copying the results to the desk: %w", err)
	}
	return nil
}

// message is what `git log` of the ledger shows.
func message(s loop.State, events []loop.Event) string {
	if len(events) == 0 {
		return fmt.Sprintf("ledger(iter-%d)", s.Iteration)
	}
	last := events[len(events)-1]
	text := string(last.Type)
	if last.Record != nil {
		text += ": " + evidence.Description(last.Record.Description)
	}
	return fmt.Sprintf("ledger(iter-%d): %s", s.Iteration, text)
}

func timeOf(events []loop.Event) time.Time {
	if len(events) == 0 {
		return time.Unix(0, 0).UTC()
	}
	return events[len(events)-1].Time
}

func orNone(s string) string {
	if s == "" {
		return "missing"
	}
	return s
}

// Vacate gives up the processes and trees of a loop that was ended without this worker (Terminate,
// a reset behind its ledger), unless another run has taken the loop up since. What was not pushed is,
// unless the loop goes on elsewhere: from what the repository has.
func (a *Activities) Vacate(ctx context.Context, r workspace.Record, elsewhere bool) error {
	a.registering.Lock()
	defer a.registering.Unlock()
	now, err := workspace.Read(a.Home, r.Ref)
	if err != nil || now.FirstRun != r.FirstRun || now.Closed {
		return err
	}
	a.release(r.Ref)
	ws, err := a.workspace(ctx, r.Ref)
	if err != nil {
		return err
	}
	// Its last keep may not have been pushed. Nobody is told of a refusal; another host may have it.
	if !elsewhere {
		if _, err := ws.push(ctx); err != nil && !ahead(err) {
			return err
		}
	}
	return a.vacate(ctx, ws)
}

// ahead reports whether another run, or another host, has gone on with the loop.
func ahead(err error) bool {
	return wire.Is(err, fault.LedgerAhead)
}

// release ends what runs here for a loop that is over, or that another run takes up.
func (a *Activities) release(ref string) {
	a.steps.endAll(ref)
	a.mu.Lock()
	ws := a.workspaces[ref]
	a.mu.Unlock()
	if ws != nil {
		ws.rest()
	}
}
