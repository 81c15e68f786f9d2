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
	p, err := a.place(ctx, in.Ref)
	if err != nil {
		return act.Appended{}, err
	}
	crash.At("settle.before")
	tx := store.Tx{}
	if in.Revert != nil {
		p.leave(p.desk)
		tx.Revert = &store.RevertInput{
			Commit: in.Revert.Commit, Branch: p.Branch, Author: p.author(), Time: timeOf(in.Events),
			Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: p.Loop}},
		}
	}
	out, err := a.append(ctx, p, in.Entry, in.Push, tx, "")
	if err != nil {
		return act.Appended{}, err
	}
	if r := in.Revert; r != nil {
		p.alike(out.Head, r.Parent)
		if !r.KeepDesk {
			a.restoreAhead(p, p.desk, out.Head)
		}
	}
	crash.At("settle.appended")
	if in.Push && !p.Remote { // else it was pushed with the append
		a.pushSoon(p)
	}
	out.PushRefused, out.Stop = p.takeRefusal(), p.loopStop()
	crash.At("settle.after")
	return out, nil
}

// Record appends what happens between iterations and pushes, since somebody is about to look. The
// loop's processes, and with Park its trees, are given up.
func (a *Activities) Record(ctx context.Context, in act.Record) (act.Appended, error) {
	p, err := a.place(ctx, in.Ref)
	if err != nil {
		return act.Appended{}, err
	}
	return a.appendAndRest(ctx, p, in.Entry, in.Park)
}

// Propose works out the proposal and records it.
func (a *Activities) Propose(ctx context.Context, in act.Propose) (act.Appended, error) {
	p, err := a.place(ctx, in.Ref)
	if err != nil {
		return act.Appended{}, err
	}
	proposal, err := a.propose(ctx, p, in.Base, in.Head, in.Events)
	if err != nil {
		return act.Appended{}, err
	}
	out, err := a.appendAndRest(ctx, p, in.Entry, false)
	out.Proposal = proposal
	return out, err
}

// appendAndRest appends for somebody who is about to look: what is in the ledger is pushed, and the
// loop's processes are given up.
func (a *Activities) appendAndRest(ctx context.Context, p *place, in act.Entry, park bool) (act.Appended, error) {
	crash.At("record.before")
	out, err := a.append(ctx, p, in, true, store.Tx{}, "")
	if err != nil {
		return act.Appended{}, err
	}
	crash.At("record.appended")
	if !p.Remote { // else it was pushed with the append
		if out.PushRefused, err = a.push(ctx, p); err != nil {
			return act.Appended{}, err
		}
	}
	if out.PushRefused == "" {
		out.PushRefused = p.takeRefusal()
	}
	p.rest()
	if park {
		if err := p.park(ctx); err != nil {
			return act.Appended{}, err
		}
	}
	out.Stop = p.loopStop()
	crash.At("record.after")
	return out, nil
}

// Close works out the proposal, records the end, pushes for the last time and gives the loop's
// processes and trees up.
func (a *Activities) Close(ctx context.Context, in act.Close) (act.Appended, error) {
	p, err := a.place(ctx, in.Ref)
	if err != nil {
		return act.Appended{}, err
	}
	crash.At("close.before")
	p.rest()
	proposal, err := a.propose(ctx, p, in.Base, in.Head, in.Events)
	if err != nil {
		return act.Appended{}, err
	}
	out, err := a.append(ctx, p, in.Entry, true, store.Tx{}, in.Head)
	if err != nil {
		return act.Appended{}, err
	}
	out.Proposal = proposal
	crash.At("close.appended")
	if p.Remote { // it was pushed with the append
		out.PushRefused = p.takeRefusal()
	} else if out.PushRefused, err = a.push(ctx, p); err != nil {
		return act.Appended{}, err
	}
	crash.At("close.pushed")
	if err := a.vacate(ctx, p); err != nil {
		return act.Appended{}, err
	}
	crash.At("close.after")
	return out, nil
}

// propose works out the proposal where an event asks for it, and completes the event.
func (a *Activities) propose(ctx context.Context, p *place, base, head string, events []loop.Event) (*loop.Proposal, error) {
	i := slices.IndexFunc(events, func(e loop.Event) bool { return e.Type == loop.ProposalMade })
	if i < 0 || head == base {
		return nil, nil
	}
	d, err := p.store.Proposal(ctx, base, head)
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
func (a *Activities) append(ctx context.Context, p *place, in act.Entry, push bool, tx store.Tx, head string) (act.Appended, error) {
	out, err := a.write(ctx, p, in, tx, head)
	if err == nil && p.Remote {
		crash.At("append.written")
		err = a.publish(ctx, p, push)
	}
	return out, err
}

// write folds the events into the ledger's next entry and makes it so: the state in the workflow
// and in the ledger are the same fold.
func (a *Activities) write(ctx context.Context, p *place, in act.Entry, tx store.Tx, head string) (act.Appended, error) {
	if in.Ledger == "" {
		if err := a.rebind(p); err != nil {
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
		files, folded, err := p.ledger.Entry(ctx, in.Ledger, events)
		if err != nil {
			return store.Entry{}, err
		}
		page, taken = folded, events
		if slices.ContainsFunc(events, func(e loop.Event) bool { return e.Type == loop.PlanMade }) {
			if files[ledger.PlanFile], err = a.drafted(p, *folded.State.Plan); err != nil {
				return store.Entry{}, err
			}
		}
		return store.Entry{
			Ref: p.Ledger, Prev: in.Ledger, Code: folded.State.Head, Files: files, Message: message(folded.State, events),
			Time: timeOf(events), Author: p.author(),
		}, nil
	}
	done, err := p.store.Transact(ctx, tx)
	if known, at := a.recorded(ctx, p, in, err); known > 0 {
		in.Ledger, in.Events = at, in.Events[known:]
		if len(in.Events) == 0 && tx.Revert == nil {
			return act.Appended{Ledger: at, Head: head}, nil
		}
		done, err = p.store.Transact(ctx, tx)
	}
	if err != nil {
		return act.Appended{}, p.fenced(err, "appending to the ledger")
	}
	p.ledger.Appended(done.Entry, page)
	a.report(ctx, p, in.Ledger, page.State, taken)
	out.Ledger = done.Entry
	return out, nil
}

// recorded says how many of the events the ledger has already, and where it stands then: a step
// appends some of them first, and where it was cancelled it couldn't say so. Zero where the ledger
// is ahead by anything else.
func (a *Activities) recorded(ctx context.Context, p *place, in act.Entry, err error) (known int, at string) {
	var elsewhere *store.Fenced
	if !errors.As(err, &elsewhere) || elsewhere.Ref != p.Ledger || elsewhere.Have == "" {
		return 0, ""
	}
	have, err := p.ledger.Since(ctx, elsewhere.Have, in.Ledger)
	if err != nil || len(have) > len(in.Events) || !reflect.DeepEqual(have, in.Events[:len(have)]) {
		return 0, ""
	}
	return len(have), elsewhere.Have
}

// fenced says what an error that came of moving the loop's refs means: one that stands elsewhere
// was moved by another run, and trying again can't help.
func (p *place) fenced(err error, doing string) error {
	var elsewhere *store.Fenced
	if !errors.As(err, &elsewhere) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return refuse(fault.New(fault.LedgerAhead, "the ledger or the branch of %s is not where this run left it (%s is %s, expected %s)",
		p.Loop, elsewhere.Ref, orNone(elsewhere.Have), orNone(elsewhere.Want)))
}

// rebind gives the ledger the contract that Open worked out, also where a crash came between. Nothing
// else has it before the ledger's first entry, and nothing was done under it yet.
func (a *Activities) rebind(p *place) error {
	var c ledger.Contract
	err := durable.ReadJSON(filepath.Join(a.Home.Loop(p.Ref), ledger.ContractFile), &c)
	if errors.Is(err, durable.ErrTorn) {
		return refuse(fault.New(fault.PreconditionFailed, "the contract that was drawn can't be read: %v", err).Advise("Start the loop again."))
	}
	if err != nil {
		return fmt.Errorf("reading the contract: %w", err)
	}
	p.ledger.Bind(c)
	return nil
}

// push brings branch and ledger to the user's repository, after a push that may be under way. A
// refusal, or a repository that has gone away, is no error: it is told and tried again with the
// next push. An error means that this attempt is to end.
func (a *Activities) push(ctx context.Context, p *place) (refused string, err error) {
	if p.Remote {
		err := a.publish(ctx, p, true)
		return p.takeRefusal(), err
	}
	p.pushing.Lock()
	defer p.pushing.Unlock()
	p.pushNow()
	err = userrepo.Push(ctx, p.store, p.Repo, p.Branch+":"+p.Branch, p.Ledger+":"+p.Ledger)
	var no *userrepo.Refused
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &no):
		refused = fmt.Sprintf("%s was refused by %s: %s", no.Ref, p.Repo, no.Reason)
	case err != nil:
		refused = fmt.Sprintf("%s can't be pushed to: %v", p.Repo, err)
	default:
		return "", nil
	}
	a.Logger.Warn("push refused", "loop", p.Loop, "reason", refused)
	a.Telemetry.PushRefused(ctx)
	return refused, nil
}

// pushApart is how far apart pushes of keeps are, which nobody waits for. Only a loop whose iterations are
// faster than that sees several keeps in one push.
const pushApart = time.Second

// pushSoon pushes while the loop goes on: a push costs what three other activities do. What is
// lost with a crash the next push brings.
func (a *Activities) pushSoon(p *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pushDue != nil {
		return // that one will take this keep along
	}
	p.pushDue = time.AfterFunc(pushApart-time.Since(p.pushed), func() { a.background.Go(func() { a.pushAhead(p) }) })
}

func (a *Activities) pushAhead(p *place) {
	p.mu.Lock()
	p.pushed = time.Now()
	p.mu.Unlock()
	refused, _ := a.push(context.Background(), p) // it is not to end
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = refused
}

// pushNow takes the place of a push that is due, and reports whether one was.
func (p *place) pushNow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.pushDue != nil && p.pushDue.Stop()
	p.pushDue = nil
	return due
}

// takeRefusal returns why the last push was refused, once.
func (p *place) takeRefusal() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	why := p.refused
	p.refused = ""
	return why
}

// vacate gives up the trees of a loop that is over. Logs, store and ledger stay.
func (a *Activities) vacate(ctx context.Context, p *place) error {
	if err := p.park(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(workspace.Exchange(a.Home, p.Ref)); err != nil {
		return err
	}
	p.Closed, p.ClosedAt = true, time.Now()
	a.mu.Lock()
	delete(a.places, p.Ref)
	a.mu.Unlock()
	return workspace.Write(a.Home, p.Record)
}

// park gives up the trees: they are a cache, made again when something is to run in them.
func (p *place) park(ctx context.Context) error {
	p.leave(p.judge)
	if err := p.judge.Remove(ctx); err != nil {
		return err
	}
	crash.At("tree.removing")
	p.leave(p.desk)
	return p.desk.Remove(ctx)
}

// tree is one of a loop's two trees.
type tree struct {
	*trees.Tree
	busy sync.Mutex // held while the tree is being restored
	at   string     // the commit that it is known to be at, "" for unknown; under the workspace's mu
}

// restore brings a tree to head, once: later calls find it there until something runs in it.
func (a *Activities) restore(ctx context.Context, p *place, t *tree, head string) error {
	t.busy.Lock()
	defer t.busy.Unlock()
	p.mu.Lock()
	turn, ahead := ctx.Value(aheadOf{}).(int)
	over := ahead && turn != p.turn
	there := t.at == head && head != ""
	p.mu.Unlock()
	if over || there {
		return nil
	}
	if err := a.materialise(ctx, p, t, head); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.at = head
	return nil
}

// aheadOf is the turn in which a restore was asked for that nobody waits for yet.
type aheadOf struct{}

// restoreAhead restores a tree for the next step while the workflow hears of the last one. If it fails,
// the step restores the tree itself. If the step, or a parking of the trees, comes first, nothing is done.
func (a *Activities) restoreAhead(p *place, t *tree, head string) {
	p.mu.Lock()
	ctx := context.WithValue(context.Background(), aheadOf{}, p.turn)
	p.mu.Unlock()
	a.background.Go(func() { _ = a.restore(ctx, p, t, head) })
}

// leave notes that something is about to run in a tree. It waits for a restore that is under way, and
// lets none begin that was asked for before.
func (p *place) leave(t *tree) {
	t.busy.Lock()
	defer t.busy.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	t.at = ""
	p.turn++
}

// alike notes that the commit has the tree of another, which it was reverted to.
func (p *place) alike(commit, other string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.same[0] == other {
		other = p.same[1]
	}
	p.same = [2]string{commit, other}
}

// like returns a commit that is known to have the tree of this one, "" where none is.
func (p *place) like(commit string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.same[0] == commit {
		return p.same[1]
	}
	return ""
}

// loopStop says where a loop-stop file asks the loop to end, "" where there is none.
func (p *place) loopStop() string {
	for _, dir := range []string{p.local(), p.desk.Dir} {
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
func (a *Activities) copyResults(ctx context.Context, p *place, head string) error {
	page, err := p.ledger.Read(ctx, head)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(p.desk.Dir)
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
	p, err := a.place(ctx, r.Ref)
	if err != nil {
		return err
	}
	// Its last keep may not have been pushed. Nobody is told of a refusal; another host may have it.
	if !elsewhere {
		if _, err := a.push(ctx, p); err != nil && !ahead(err) {
			return err
		}
	}
	return a.vacate(ctx, p)
}

// ahead reports whether another run, or another host, has gone on with the loop.
func ahead(err error) bool {
	return wire.Is(err, fault.LedgerAhead)
}

// release ends what runs here for a loop that is over, or that another run takes up.
func (a *Activities) release(ref string) {
	a.steps.endAll(ref)
	a.mu.Lock()
	p := a.places[ref]
	a.mu.Unlock()
	if p != nil {
		p.rest()
	}
}
