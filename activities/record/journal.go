// Package record appends to the ledgers of loops, reports appended events to logs and metrics, and repairs damaged
// stores. Start at Recorder and Append.
package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/text/excerpt"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/telemetry"
)

// Recorder records what happens to loops in their ledgers.
type Recorder struct{ *workspace.Workspaces }

// Settle keeps the branch as it is or reverts its tip, and appends to the ledger, in one transaction.
func (a *Recorder) Settle(ctx context.Context, input api.Settle) (api.Appended, error) {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return api.Appended{}, err
	}
	crashpoint.At("settle.before")
	tx := store.Tx{}
	if input.Revert != nil {
		ws.Leave(ws.Desk)
		tx.Revert = &store.RevertInput{
			Commit: input.Revert.Commit, Branch: ws.Branch, Author: ws.Author(), Time: TimeOf(input.Events),
			Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: ws.Loop}},
		}
		if input.Revert.GoOn {
			tx.Revert.GoOn = input.Revert.Parent
		}
	}
	out, err := Append(ctx, ws, input.Entry, input.Push, tx, "")
	if err != nil {
		return api.Appended{}, err
	}
	if r := input.Revert; r != nil {
		ws.Alike(out.Head, r.Parent)
		if !r.KeepDesk {
			ws.RestoreAhead(ws.Desk, out.Head)
		}
	}
	crashpoint.At("settle.appended")
	if err := ws.JudgedCaches(input.Revert == nil); err != nil {
		ws.Machine.Logger.Warn("what the judgement left in caches is not kept", "loop", ws.Loop, "error", err)
	}
	ws.FurnishAhead(ws.Desk)
	if input.Push && !ws.Remote { // with a URL it was pushed with the append
		ws.PushSoon(true)
	}
	out.PushRefused, out.Stop = ws.PopRefusal(), ws.LoopStop()
	crashpoint.At("settle.after")
	return out, nil
}

// Record appends what happens between iterations and pushes, because a person is about to look. The loop gives up its
// processes, and with Park its trees.
func (a *Recorder) Record(ctx context.Context, input api.Record) (api.Appended, error) {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return api.Appended{}, err
	}
	if input.Working {
		crashpoint.At("record.before")
		out, err := Append(ctx, ws, input.Entry, true, store.Tx{}, "")
		crashpoint.At("record.after")
		out.Stop = ws.LoopStop()
		return out, err
	}
	return AppendAndWait(ctx, ws, input.Entry, input.Park)
}

// AppendAndWait appends because a person is about to look: it pushes the ledger, and gives up the loop's processes.
func AppendAndWait(ctx context.Context, ws *workspace.Workspace, input api.Entry, park bool) (api.Appended, error) {
	crashpoint.At("record.before")
	out, err := Append(ctx, ws, input, true, store.Tx{}, "")
	if err != nil {
		return api.Appended{}, err
	}
	crashpoint.At("record.appended")
	if !ws.Remote { // with a URL it was pushed with the append
		if out.PushRefused, err = ws.Push(ctx); err != nil {
			return api.Appended{}, err
		}
	}
	if out.PushRefused == "" {
		out.PushRefused = ws.PopRefusal()
	}
	ws.EndProcesses()
	if park {
		if err := ws.Park(ctx); err != nil {
			return api.Appended{}, err
		}
	}
	out.Stop = ws.LoopStop()
	crashpoint.At("record.after")
	return out, nil
}

// Close makes the proposal, records the end, pushes for the last time and gives up the loop's processes and trees.
func (a *Recorder) Close(ctx context.Context, input api.Close) (api.Appended, error) {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return api.Appended{}, err
	}
	crashpoint.At("close.before")
	ws.EndProcesses()
	proposal, err := Propose(ctx, ws, input.Base, input.Head, input.Anew, input.Events)
	if err != nil {
		return api.Appended{}, err
	}
	out, err := Append(ctx, ws, input.Entry, true, store.Tx{}, input.Head)
	if err != nil {
		return api.Appended{}, err
	}
	out.Proposal = proposal
	crashpoint.At("close.appended")
	if ws.Remote { // with a URL it was pushed with the append
		out.PushRefused = ws.PopRefusal()
	} else if out.PushRefused, err = ws.Push(ctx); err != nil {
		return api.Appended{}, err
	}
	crashpoint.At("close.pushed")
	if err := a.CloseTrees(ctx, ws); err != nil {
		return api.Appended{}, err
	}
	crashpoint.At("close.after")
	return out, nil
}

// Append appends to the ledger on this host and, for a loop with a URL, in the shared repository; with push also the
// branch there. If the ledger has another head than expected, another run is ahead of this one.
func Append(ctx context.Context, ws *workspace.Workspace, input api.Entry, push bool, tx store.Tx, head string) (api.Appended, error) {
	out, err := write(ctx, ws, input, tx, head)
	if err == nil {
		out.Mended = MendedSince(ws, input.Events)
	}
	switch {
	case err != nil:
	case ws.Remote && input.Hasty:
		err = ws.PublishBriefly(ctx, push)
	case ws.Remote:
		crashpoint.At("append.written")
		err = ws.Publish(ctx, push)
	default: // a ledger in two places is not lost with one of them
		ws.PushSoon(false)
	}
	return out, err
}

// write makes the ledger's next entry. Workflow and ledger fold the same events, so they have the same state.
func write(ctx context.Context, ws *workspace.Workspace, input api.Entry, tx store.Tx, head string) (api.Appended, error) {
	if input.Ledger == "" {
		if err := Rebind(ws); err != nil {
			return api.Appended{}, err
		}
	}
	out := api.Appended{Head: head}
	var page ledger.Page[loop.State]
	var taken []loop.Event
	left, commit, err := Transact(ctx, ws, input, tx, func(left api.Entry, code string) (store.Entry, error) {
		if tx.Revert != nil {
			out.Head = code
		}
		events := make([]loop.Event, len(left.Events))
		for i, e := range left.Events {
			if api.Reverts(e.Type) && e.Head == "" {
				e = api.Fill(e, out)
			}
			events[i] = e
		}
		files, folded, err := ws.Book.Entry(ctx, left.Ledger, events)
		if err != nil {
			return store.Entry{}, err
		}
		page, taken = folded, events
		if slices.ContainsFunc(events, func(e loop.Event) bool { return e.Type == loop.PlanMade }) {
			if files[ledger.PlanFile], err = unrecordedPlan(ws, *folded.State.Plan); err != nil {
				return store.Entry{}, err
			}
		}
		return store.Entry{
			Ref: ws.Ledger, Prev: left.Ledger, Code: folded.State.Head, Keeps: loop.Aside(events), Files: files, Message: Message(folded.State, events),
			Time: TimeOf(events), Author: ws.Author(),
		}, nil
	})
	if err != nil {
		return api.Appended{}, err
	}
	if len(left.Events) == 0 && tx.Revert == nil {
		return api.Appended{Ledger: commit, Head: head}, nil
	}
	ws.Book.Appended(commit, page)
	NoteHeads(ws, commit, page.State.Head)
	Observe(ctx, ws, left.Ledger, telemetry.Loop(page.State), taken)
	out.Ledger = commit
	return out, nil
}

// Transact makes the ledger's next entry durable, together with the rest of tx. It skips events that the ledger
// already has. left is the entry with the events that still had to be appended; commit is the ledger's head afterwards.
func Transact(ctx context.Context, ws *workspace.Workspace, input api.Entry, tx store.Tx, entry func(left api.Entry, code string) (store.Entry, error)) (left api.Entry, commit string, err error) {
	left = input
	tx.Entry = func(code string) (store.Entry, error) { return entry(left, code) }
	done, err := ws.Objects.Transact(ctx, tx)
	if count, commit := appended(ctx, ws, input, err); count > 0 {
		left.Ledger, left.Events = commit, input.Events[count:]
		if len(left.Events) == 0 && tx.Revert == nil {
			return left, commit, nil
		}
		done, err = ws.Objects.Transact(ctx, tx)
	}
	if err != nil {
		return left, "", Fenced(ctx, ws, err, "appending to the ledger")
	}
	return left, done.Entry, nil
}

// appended returns how many of the events the ledger already has, and its head. A step appends some of them first,
// and can't report that if it is cancelled. It returns zero if the ledger is ahead by anything else.
func appended(ctx context.Context, ws *workspace.Workspace, input api.Entry, err error) (count int, commit string) {
	var elsewhere *store.Fenced
	if !errors.As(err, &elsewhere) || elsewhere.Ref != ws.Ledger || elsewhere.Have == "" {
		return 0, ""
	}
	have, err := ledger.Since(ctx, ws.Objects, elsewhere.Have, input.Ledger)
	if err != nil || len(have) > len(input.Events) || !reflect.DeepEqual(have, input.Events[:len(have)]) {
		return 0, ""
	}
	return len(have), elsewhere.Have
}

// Fenced interprets an error from moving the loop's refs. If a ref is at another commit, another run moved it, and a
// retry can't help. If a ref is gone, nobody moved it, and it is repaired.
func Fenced(ctx context.Context, ws *workspace.Workspace, err error, doing string) error {
	var elsewhere *store.Fenced
	if !errors.As(err, &elsewhere) || elsewhere.Have == "" || elsewhere.Have == store.Damaged {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if lostEntries(ctx, ws, elsewhere) {
		return workspace.Refuse(damaged(ws.Record, elsewhere.Have, elsewhere.Want))
	}
	f := fault.New(fault.LedgerAhead, "the ledger or the branch of %s is not where this run left it (%s is %s, expected %s)",
		ws.Loop, elsewhere.Ref, elsewhere.Have, cmp.Or(elsewhere.Want, "missing"))
	if elsewhere.Ref == ws.Ledger {
		f = f.Advise("This run was reset or restored to a point before its last record, or the engine's database has lost its last writes. Start it again from its ledger, which has everything: `" + ws.Resuming() + " " + elsewhere.Have + "` with the spec of " + ws.Loop + ".")
	}
	return workspace.Refuse(f)
}

// Message is the line for this entry in `git log` of the ledger.
func Message(s loop.State, events []loop.Event) string {
	if len(events) == 0 {
		return fmt.Sprintf("ledger(iter-%d)", s.Iteration)
	}
	last := events[len(events)-1]
	text := string(last.Type)
	if last.Record != nil {
		text += ": " + metric.Description(last.Record.Description)
	}
	return fmt.Sprintf("ledger(iter-%d): %s", s.Iteration, text)
}

// TimeOf returns when the last of the events happened, the epoch if there is none.
func TimeOf(events []loop.Event) time.Time {
	if len(events) == 0 {
		return time.Unix(0, 0).UTC()
	}
	return events[len(events)-1].Time
}

// Propose makes the proposal if an event asks for it, and completes the event.
func Propose(ctx context.Context, ws *workspace.Workspace, base, head string, renewed bool, events []loop.Event) (*loop.Proposal, error) {
	i := slices.IndexFunc(events, func(e loop.Event) bool { return e.Type == loop.ProposalMade })
	if i < 0 || head == base {
		return nil, nil
	}
	proposal, err := ProposalOf(ctx, ws, base, head, renewed)
	if err != nil || proposal.Files == 0 {
		return nil, err
	}
	events[i] = api.Fill(events[i], api.Appended{Proposal: proposal})
	return proposal, nil
}

// ProposalOf returns the diff between two commits as a proposal. renewed: the loop did not start from this base.
func ProposalOf(ctx context.Context, ws *workspace.Workspace, base, head string, renewed bool) (*loop.Proposal, error) {
	p := loop.Proposal{Base: base, Head: head, State: rules.Open, Anew: renewed}
	d, err := ws.Objects.Proposal(ctx, p.Preface(), base, head)
	if err != nil {
		return nil, fmt.Errorf("making the proposal: %w", err)
	}
	p.Hash, p.Files, p.Insertions, p.Deletions = d.Hash, d.Files, d.Insertions, d.Deletions
	NoteDiff(ctx, ws, p.Preface(), base, head, p.Hash)
	return &p, nil
}

// NoteDiff keeps on this host the beginning of a diff that a person is asked about, for the Temporal UI. Temporal
// itself keeps nothing of it. Nothing depends on it, so an error is only logged.
func NoteDiff(ctx context.Context, ws *workspace.Workspace, preface, base, head, hash string) {
	w := &excerpt.Writer{}
	err := ws.Objects.WriteProposal(ctx, preface, base, head, w)
	if err == nil {
		err = hostrecord.NoteDiff(ws.Machine.Home, ws.Ref, w.Excerpt(hash))
	}
	if err != nil && ctx.Err() == nil {
		ws.Machine.Logger.Warn("the Temporal UI can't show the diff", "loop", ws.Loop, "error", err)
	}
}
