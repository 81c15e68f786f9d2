package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/govern"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/store"
)

// Recorder records what happens to loops in their ledgers.
type Recorder struct{ *Workspaces }

// Settle keeps the branch as it stands or reverts its tip, and appends to the ledger, in one.
func (a *Recorder) Settle(ctx context.Context, in act.Settle) (act.Appended, error) {
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
		if in.Revert.GoOn {
			tx.Revert.GoOn = in.Revert.Parent
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
	if err := ws.judgedCaches(in.Revert == nil); err != nil {
		ws.machine.Logger.Warn("what the judgement left in caches is not kept", "loop", ws.Loop, "error", err)
	}
	ws.furnishAhead(ws.desk)
	if in.Push && !ws.Remote { // else it was pushed with the append
		ws.pushSoon(true)
	}
	out.PushRefused, out.Stop = ws.popRefusal(), ws.loopStop()
	crash.At("settle.after")
	return out, nil
}

// Record appends what happens between iterations and pushes, since somebody is about to look. The loop gives up its
// processes, and with Park its trees.
func (a *Recorder) Record(ctx context.Context, in act.Record) (act.Appended, error) {
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return act.Appended{}, err
	}
	if in.Working {
		crash.At("record.before")
		out, err := ws.append(ctx, in.Entry, true, store.Tx{}, "")
		crash.At("record.after")
		out.Stop = ws.loopStop()
		return out, err
	}
	return ws.appendAndWait(ctx, in.Entry, in.Park)
}

// appendAndWait appends for somebody who is about to look: it pushes the ledger, and gives up the loop's processes.
func (ws *loopWorkspace) appendAndWait(ctx context.Context, in act.Entry, park bool) (act.Appended, error) {
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
		out.PushRefused = ws.popRefusal()
	}
	ws.endProcesses()
	if park {
		if err := ws.park(ctx); err != nil {
			return act.Appended{}, err
		}
	}
	out.Stop = ws.loopStop()
	crash.At("record.after")
	return out, nil
}

// Close makes the proposal, records the end, pushes for the last time and gives up the loop's processes and trees.
func (a *Recorder) Close(ctx context.Context, in act.Close) (act.Appended, error) {
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return act.Appended{}, err
	}
	crash.At("close.before")
	ws.endProcesses()
	proposal, err := ws.propose(ctx, in.Base, in.Head, in.Anew, in.Events)
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
		out.PushRefused = ws.popRefusal()
	} else if out.PushRefused, err = ws.push(ctx); err != nil {
		return act.Appended{}, err
	}
	crash.At("close.pushed")
	if err := a.removeTrees(ctx, ws); err != nil {
		return act.Appended{}, err
	}
	crash.At("close.after")
	return out, nil
}

// append appends to the ledger on this host and, for a loop with a URL, in the repository that it shares with others;
// there with the branch, if that is to be pushed. A ledger at another place means that another run is ahead of this
// one.
func (ws *loopWorkspace) append(ctx context.Context, in act.Entry, push bool, tx store.Tx, head string) (act.Appended, error) {
	out, err := ws.write(ctx, in, tx, head)
	if err == nil {
		out.Mended = ws.mendedSince(in.Events)
	}
	switch {
	case err != nil:
	case ws.Remote:
		crash.At("append.written")
		err = ws.publish(ctx, push)
	default: // what is in two places is not lost with one
		ws.pushSoon(false)
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
	var page ledger.Page[loop.State]
	var taken []loop.Event
	left, at, err := ws.transact(ctx, in, tx, func(left act.Entry, code string) (store.Entry, error) {
		if tx.Revert != nil {
			out.Head = code
		}
		events := make([]loop.Event, len(left.Events))
		for i, e := range left.Events {
			if act.Reverts(e.Type) && e.Head == "" {
				e = act.Fill(e, out)
			}
			events[i] = e
		}
		files, folded, err := ws.ledger.Entry(ctx, left.Ledger, events)
		if err != nil {
			return store.Entry{}, err
		}
		page, taken = folded, events
		if slices.ContainsFunc(events, func(e loop.Event) bool { return e.Type == loop.PlanMade }) {
			if files[ledger.PlanFile], err = ws.unrecordedPlan(*folded.State.Plan); err != nil {
				return store.Entry{}, err
			}
		}
		return store.Entry{
			Ref: ws.Ledger, Prev: left.Ledger, Code: folded.State.Head, Keeps: loop.Aside(events), Files: files, Message: message(folded.State, events),
			Time: timeOf(events), Author: ws.author(),
		}, nil
	})
	if err != nil {
		return act.Appended{}, err
	}
	if len(left.Events) == 0 && tx.Revert == nil {
		return act.Appended{Ledger: at, Head: head}, nil
	}
	ws.ledger.Appended(at, page)
	ws.noteHeads(at, page.State.Head)
	ws.observe(ctx, left.Ledger, page.State, taken)
	out.Ledger = at
	return out, nil
}

// transact makes the ledger's next entry durable, together with the rest of tx. Events that the ledger has
// already are skipped: left is the entry with the events that were still to be appended, at the ledger's head
// afterwards.
func (ws *loopWorkspace) transact(ctx context.Context, in act.Entry, tx store.Tx, entry func(left act.Entry, code string) (store.Entry, error)) (left act.Entry, at string, err error) {
	left = in
	tx.Entry = func(code string) (store.Entry, error) { return entry(left, code) }
	done, err := ws.store.Transact(ctx, tx)
	if known, at := ws.appended(ctx, in, err); known > 0 {
		left.Ledger, left.Events = at, in.Events[known:]
		if len(left.Events) == 0 && tx.Revert == nil {
			return left, at, nil
		}
		done, err = ws.store.Transact(ctx, tx)
	}
	if err != nil {
		return left, "", ws.fenced(ctx, err, "appending to the ledger")
	}
	return left, done.Entry, nil
}

// appended returns how many of the events the ledger has already, and its head. A step appends some of them first, and
// can't report that if it is cancelled. Zero if the ledger is ahead by anything else.
func (ws *loopWorkspace) appended(ctx context.Context, in act.Entry, err error) (known int, at string) {
	var elsewhere *store.Fenced
	if !errors.As(err, &elsewhere) || elsewhere.Ref != ws.Ledger || elsewhere.Have == "" {
		return 0, ""
	}
	have, err := ledger.Since(ctx, ws.store, elsewhere.Have, in.Ledger)
	if err != nil || len(have) > len(in.Events) || !reflect.DeepEqual(have, in.Events[:len(have)]) {
		return 0, ""
	}
	return len(have), elsewhere.Have
}

// fenced interprets an error from moving the loop's refs. If a ref is elsewhere, another run moved it, and a retry
// can't help. If a ref is gone, nobody moved it: it is repaired.
func (ws *loopWorkspace) fenced(ctx context.Context, err error, doing string) error {
	var elsewhere *store.Fenced
	if !errors.As(err, &elsewhere) || elsewhere.Have == "" || elsewhere.Have == store.Damaged {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if ws.lostEntries(ctx, elsewhere) {
		return refuse(ws.damaged(elsewhere))
	}
	return refuse(fault.New(fault.LedgerAhead, "the ledger or the branch of %s is not where this run left it (%s is %s, expected %s)",
		ws.Loop, elsewhere.Ref, cmp.Or(elsewhere.Have, "missing"), cmp.Or(elsewhere.Want, "missing")))
}

// message is the line for this entry in `git log` of the ledger.
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

// propose works out the proposal if an event asks for it, and completes the event.
func (ws *loopWorkspace) propose(ctx context.Context, base, head string, anew bool, events []loop.Event) (*loop.Proposal, error) {
	i := slices.IndexFunc(events, func(e loop.Event) bool { return e.Type == loop.ProposalMade })
	if i < 0 || head == base {
		return nil, nil
	}
	proposal, err := ws.proposalOf(ctx, base, head, anew)
	if err != nil || proposal.Files == 0 {
		return nil, err
	}
	events[i] = act.Fill(events[i], act.Appended{Proposal: proposal})
	return proposal, nil
}

// proposalOf is the diff between two commits as a proposal; anew says that the base is not the one that the
// loop started from.
func (ws *loopWorkspace) proposalOf(ctx context.Context, base, head string, anew bool) (*loop.Proposal, error) {
	p := loop.Proposal{Base: base, Head: head, State: govern.Open, Anew: anew}
	d, err := ws.store.Proposal(ctx, p.Preface(), base, head)
	if err != nil {
		return nil, fmt.Errorf("making the proposal: %w", err)
	}
	p.Hash, p.Files, p.Insertions, p.Deletions = d.Hash, d.Files, d.Insertions, d.Deletions
	return &p, nil
}
