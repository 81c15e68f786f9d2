// Package proposal makes the proposals of loops, takes people's reviews, and applies what was approved. Start at
// Proposals.
package proposal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"pawl/activities/record"
	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
)

// Proposals makes the proposals of loops, and applies them.
type Proposals struct{ *workspace.Workspaces }

// Propose makes the proposal and records it.
func (a *Proposals) Propose(ctx context.Context, input api.Propose) (api.Appended, error) {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return api.Appended{}, err
	}
	proposal, err := record.Propose(ctx, ws, input.Base, input.Head, input.Anew, input.Events)
	if err != nil {
		return api.Appended{}, err
	}
	out, err := record.AppendAndWait(ctx, ws, input.Entry, false)
	if out.Proposal = proposal; err == nil && proposal != nil && !input.Anew {
		if err := cleanBranch(ctx, ws, input.Base, input.Head); err != nil && ctx.Err() == nil { // nothing depends on that branch
			a.Logger.Warn("there is no branch of the kept changes alone", "loop", ws.Loop, "error", err)
		}
	}
	return out, err
}

// Review records a person's decision about the proposal of a loop that has ended (E3).
func (a *Proposals) Review(ctx context.Context, input api.Review) (api.Reviewed, error) {
	out, err := a.ReviewHere(ctx, input)
	return out, workspace.Refusal(fault.About(fault.Loop(input.Loop), err))
}

// ReviewHere is Review for a caller on the loop's host. A person's mistake is a *fault.Error.
func (a *Proposals) ReviewHere(ctx context.Context, input api.Review) (api.Reviewed, error) {
	types := map[string]loop.Type{loop.MessageApprove: loop.ProposalApproved, loop.MessageReject: loop.ProposalRejected}
	if types[input.Answer] == "" {
		return api.Reviewed{}, fault.New(fault.InvalidMessage, "a review is approve or reject, not %q", loop.Clip(input.Answer, 40))
	}
	ws, head, s, err := a.ended(ctx, input.Loop)
	if err != nil {
		return api.Reviewed{}, err
	}
	state, err := rules.Review(s.Proposal, input.Hash, input.Answer == loop.MessageApprove)
	if err != nil {
		return api.Reviewed{}, rules.Refused(err, s.Given, input.Answer, "", "", input.Hash)
	}
	proposal := *s.Proposal
	if state == proposal.State {
		return api.Reviewed{Loop: input.Loop, Proposal: proposal, Already: true}, nil
	}
	proposal.State, proposal.By = state, loop.Clip(input.By, 200)
	err = addend(ctx, ws, head, s, loop.Event{
		Type: types[input.Answer], Time: input.Time, By: proposal.By, Note: loop.Clip(input.Note, 1000), Proposal: &proposal,
	})
	if err == nil {
		_, err = ws.Push(ctx)
	}
	return api.Reviewed{Loop: input.Loop, Proposal: proposal}, err
}

// Find returns the queue of the host that has a loop's store: this host, else the one that the loop itself names.
func (a *Proposals) Find(ctx context.Context, input api.Find) (api.Found, error) {
	if _, ok := a.FindRecord(input.Loop); ok {
		return api.Found{Queue: api.HostQueue(a.Host)}, nil
	}
	var s loop.State
	v, err := activity.GetClient(ctx).QueryWorkflow(ctx, input.Loop, "", "state")
	if err == nil {
		err = v.Get(&s)
	}
	if err != nil || s.Host == "" {
		return api.Found{}, workspace.Refuse(fault.New(fault.LoopNotFound, "no host is known that has the loop %s", input.Loop))
	}
	return api.Found{Queue: api.HostQueue(s.Host)}, nil
}

// A loop may take endsWithin from a decision about its proposal to its recorded end. looksEvery is between two looks.
const (
	endsWithin = 10 * time.Second
	looksEvery = 50 * time.Millisecond
)

// ending is ended for a loop that may be about to end: an approval is known before the end that follows from it is
// recorded. It refuses a proposal that still waits for a decision.
func (a *Proposals) ending(ctx context.Context, input api.Apply) (*workspace.Workspace, string, loop.State, error) {
	for began := time.Now(); ; {
		ws, head, s, err := a.ended(ctx, input.Loop)
		if err == nil || s.Status.Ended() || s.Proposal == nil {
			return ws, head, s, err
		}
		if time.Since(began) > endsWithin {
			return ws, head, s, cmp.Or(rules.MayApply(s.Proposal, input.Hash), err)
		}
		select {
		case <-ctx.Done():
			return ws, head, s, ctx.Err()
		case <-time.After(looksEvery):
		}
	}
}

// ended returns a loop that is over, the head of its ledger, and its state there.
func (a *Proposals) ended(ctx context.Context, id string) (*workspace.Workspace, string, loop.State, error) {
	r, ok := a.FindRecord(id)
	if !ok {
		return nil, "", loop.State{}, a.NoRecord(id)
	}
	ws, err := a.OpenWorkspace(ctx, r) // without Keep, because the loop has no trees any more
	if err != nil {
		return nil, "", loop.State{}, err
	}
	if ws.Remote { // another host may have continued it, or have recorded an answer
		if err := record.CatchUp(ctx, ws); err != nil {
			return nil, "", loop.State{}, err
		}
	}
	head, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err == nil && head == "" {
		if err = hostrecord.Lost(a.Home, r); err == nil {
			err = fault.New(fault.LoopNotFound, "the loop %s has recorded nothing yet", id)
		}
	}
	if err != nil {
		return nil, "", loop.State{}, err
	}
	s, err := ws.Book.State(ctx, head)
	if err == nil && !s.Status.Ended() {
		err = fault.New(fault.PreconditionFailed, "the loop %s has not ended (%s)", id, s.Status).Advise("See `pawl show " + id + "` for what it waits for, or halt it.")
	}
	return ws, head, s, err
}

// addend appends an event about a proposal after its loop's end. If somebody else was faster with another answer, it
// returns an error: the first answer counts.
func addend(ctx context.Context, ws *workspace.Workspace, head string, s loop.State, e loop.Event) error {
	e.Seq, e.Loop, e.Iteration, e.Phase = s.Seq+1, s.Loop, s.Iteration, s.Phase
	entry := func(string) (store.Entry, error) {
		files, page, err := ws.Book.Entry(ctx, head, []loop.Event{e})
		if err != nil {
			return store.Entry{}, err
		}
		return store.Entry{Ref: ws.Ledger, Prev: head, Code: page.State.Head, Files: files, Message: record.Message(page.State, []loop.Event{e}), Time: e.Time, Author: ws.Author()}, nil
	}
	_, err := ws.Objects.Transact(ctx, store.Tx{Entry: entry})
	if _, ok := errors.AsType[*store.Fenced](err); ok {
		return fault.New(fault.GateClosed, "somebody else has just answered this proposal").Advise("Look again: `pawl show " + s.Loop + "`.")
	}
	if err != nil {
		return fmt.Errorf("appending to the ledger: %w", err)
	}
	return nil
}

// iterated matches the beginning of the subjects of commits on a loop's branch (P4).
var iterated = lazyregexp.New(`^loop\(iter-\d+\): `)

// cleanBranch pushes a branch with only the kept changes, from base to head, to the user's repository. The loop's own
// branch there has everything that was tried.
func cleanBranch(ctx context.Context, ws *workspace.Workspace, base, head string) error {
	ref := hostrecord.CleanBranch(ws.Branch)
	previous, err := ws.Objects.Ref(ctx, ref)
	if err != nil {
		return err
	}
	if previous != "" { // another loop may have that name
		if c, err := ws.Objects.ReadCommit(ctx, previous); err != nil || !strings.Contains(c.Message, "\nPawl-Loop: "+ws.Loop+"\n") {
			return errors.Join(err, fmt.Errorf("%s is another loop's", ref))
		}
	}
	tip, err := keptLine(ctx, ws, base, head)
	if err != nil || tip == base {
		return err
	}
	if previous != tip {
		if err := ws.Objects.SetRef(ctx, ref, tip, previous); err != nil {
			return err
		}
	}
	repo, err := ws.Repository()
	if err != nil {
		return err
	}
	defer repo.Close()
	return userrepo.Move(ctx, ws.Objects, repo, ref, tip, previous)
}

// keptLine makes the kept changes from base to head a line of commits, and returns the last one; base if there are none.
// The same base and head make the same commits.
func keptLine(ctx context.Context, ws *workspace.Workspace, base, head string) (tip string, err error) {
	kept, err := ws.Objects.Settled(ctx, base, head)
	if err != nil {
		return "", err
	}
	tip = base
	for _, c := range kept {
		tip, err = ws.Objects.Make(ctx, store.NewCommit{
			Tree: c.Tree, Parents: []string{tip}, Author: c.Author, Time: c.Time, Message: iterated().ReplaceAllString(c.Message, ""),
		})
		if err != nil {
			return "", err
		}
	}
	return tip, nil
}
