package activities

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/durable"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/store"
	"pawl/internal/userrepo"
)

// Apply brings an approved proposal onto the user's branch.
func (a *Activities) Apply(ctx context.Context, in act.Apply) (act.Applied, error) {
	out, err := a.ApplyHere(ctx, in)
	return out, refusal(err)
}

// ApplyHere is Apply for a caller on the loop's host; what a person did wrong is a *fault.Error.
func (a *Activities) ApplyHere(ctx context.Context, in act.Apply) (act.Applied, error) {
	if !slices.Contains(act.Ways, in.How) {
		return act.Applied{}, fault.New(fault.InvalidMessage, "a proposal is applied by %s, not %q", strings.Join(act.Ways, ", "), loop.Clip(in.How, 40))
	}
	if in.Proposal != nil { // the loop still runs and records this by itself
		r, ok := a.record(in.Loop)
		if !ok {
			return act.Applied{}, fault.New(fault.LoopNotFound, "this host has no loop %s", in.Loop)
		}
		ws, err := a.workspace(ctx, r.Ref)
		if err != nil {
			return act.Applied{}, err
		}
		s, err := ws.ledger.State(ctx, in.Ledger)
		if err != nil {
			return act.Applied{}, err
		}
		s.Proposal = in.Proposal
		return ws.apply(ctx, in.Ledger, s, in)
	}
	ws, head, s, err := a.ending(ctx, in)
	if err != nil {
		return act.Applied{}, err
	}
	out, err := ws.apply(ctx, head, s, in)
	if err != nil {
		return act.Applied{}, err
	}
	event := loop.Event{Type: loop.ProposalApplied, Time: in.Time, By: loop.Clip(in.By, 200), How: in.How, Proposal: out.Proposal, Commit: out.Commit}
	if out.Moved != nil {
		event = loop.Event{Type: loop.ProposalMade, Time: in.Time, Proposal: out.Moved, Head: out.Moved.Head,
			Reason: fmt.Sprintf("%s has moved since the proposal %s was made", out.Branch, s.Proposal.Hash[:16])}
	}
	if out.Already && s.Proposal.State == govern.Applied {
		return out, nil // and recorded
	}
	if err := ws.addend(ctx, head, s, store.Tx{}, event); err != nil {
		return act.Applied{}, err
	}
	crash.At("apply.recorded")
	out.PushRefused, err = ws.push(ctx)
	return out, err
}

// apply does what in asks for, or finds it done. It records nothing.
func (ws *loopWorkspace) apply(ctx context.Context, head string, s loop.State, in act.Apply) (act.Applied, error) {
	if err := govern.MayApply(s.Proposal, in.Hash); err != nil {
		return act.Applied{}, err
	}
	proposal := *s.Proposal
	out := act.Applied{Loop: in.Loop, Hash: proposal.Hash, How: in.How, Proposal: &proposal}
	d, err := ws.store.Proposal(ctx, proposal.Base, proposal.Head)
	if err != nil {
		return out, fmt.Errorf("reading the proposal: %w", err)
	}
	if d.Hash != proposal.Hash {
		return out, fault.New(fault.HashMismatch, "the proposal %s does not have that hash any more (%s)", proposal.Hash[:16], d.Hash[:16]).
			Advise("The store was changed by something else than pawl: see `pawl log " + in.Loop + " --verify`.")
	}
	if in.How == act.Patch {
		out.Patch = filepath.Join(ws.machine.Home.Loop(ws.Ref), "proposal-"+proposal.Hash[:16]+".patch")
		return out, ws.writePatch(ctx, proposal, out.Patch)
	}
	if out.Branch, err = ws.onto(ctx, head); err != nil {
		return out, err
	}
	if err := ws.standing(ctx, out.Branch); err != nil {
		return out, asFault(err)
	}
	tip, err := userrepo.Fetch(ctx, ws.store, ws.Repo, out.Branch)
	if err != nil {
		return out, fmt.Errorf("fetching %s: %w", out.Branch, err)
	}
	if tip != proposal.Base {
		if out.Commit, err = ws.has(ctx, tip, proposal); err != nil || out.Commit != "" {
			out.Already = err == nil
			applied(&out, &proposal)
			return out, err
		}
		out.Moved, err = ws.renew(ctx, tip, proposal, s, in, out.Branch)
		return out, err
	}
	if out.Commit, err = ws.landing(ctx, proposal, s, in, out.Branch); err != nil {
		return out, err
	}
	made, err := ws.store.Proposal(ctx, proposal.Base, out.Commit)
	if err != nil {
		return out, err
	}
	if made.Hash != proposal.Hash {
		return out, fmt.Errorf("%s of %s would change other things than what was approved", in.How, proposal.Hash[:16])
	}
	crash.At("apply.before")
	land := userrepo.Land
	if ws.Remote {
		land = userrepo.LandAt
	}
	err = land(ctx, ws.store, userrepo.Landing{Repo: ws.Repo, Branch: out.Branch, From: proposal.Base, To: out.Commit, Reason: "pawl apply " + ws.Ref + " (" + in.How + ")"})
	if err != nil {
		return out, asFault(err)
	}
	crash.At("apply.landed")
	if err := ws.check(ctx, out.Branch, proposal); err != nil {
		return out, err
	}
	applied(&out, &proposal)
	return out, nil
}

// standing says whether there is a branch that could be moved, and nobody's work on it in the way.
func (ws *loopWorkspace) standing(ctx context.Context, branch string) error {
	if !ws.Remote {
		_, err := userrepo.Tip(ctx, ws.Repo, branch)
		return err
	}
	_, err := userrepo.InspectAt(ctx, ws.store, ws.Repo, branch, "")
	return err
}

func applied(out *act.Applied, p *loop.Proposal) {
	p.State, p.Branch, p.Commit = govern.Applied, out.Branch, out.Commit
}

// check looks at the user's branch again: what is there now is what was approved.
func (ws *loopWorkspace) check(ctx context.Context, branch string, proposal loop.Proposal) error {
	now, err := userrepo.Fetch(ctx, ws.store, ws.Repo, branch)
	if err != nil {
		return fmt.Errorf("looking at %s again: %w", branch, err)
	}
	d, err := ws.store.Proposal(ctx, proposal.Base, now)
	if err == nil && d.Hash != proposal.Hash {
		err = fmt.Errorf("%s differs from %s by something else than the proposal %s: somebody has moved it meanwhile", branch, proposal.Base, proposal.Hash[:16])
	}
	return err
}

// onto is the branch that the loop started from.
func (ws *loopWorkspace) onto(ctx context.Context, head string) (string, error) {
	c, err := ws.ledger.Contract(ctx, head)
	if err != nil {
		return "", err
	}
	for _, name := range []string{c.Branch, ws.Onto, c.Spec.Repo.Base} {
		if name != "" {
			return strings.TrimPrefix(name, "refs/heads/"), nil
		}
	}
	return "", fault.New(fault.PreconditionFailed, "the loop %s did not record which branch it started from", ws.Loop).
		Advise("Take the change as a patch (`pawl apply --how patch`), or merge " + branchName(ws.Record) + " by hand.")
}

// has returns the commit by which a branch has the proposal already: since an attempt before this
// one was cut, or since somebody merged it by hand. "" where it has not.
func (ws *loopWorkspace) has(ctx context.Context, tip string, proposal loop.Proposal) (string, error) {
	for _, commit := range []string{proposal.Commit, proposal.Head} {
		if commit == "" {
			continue
		}
		if in, err := ws.store.Contains(ctx, tip, commit); err != nil || in {
			return commit, err
		}
	}
	if d, err := ws.store.Proposal(ctx, proposal.Base, tip); err != nil || d.Hash == proposal.Hash {
		return tip, err
	}
	return "", nil
}

// landing is the commit that the branch moves to.
func (ws *loopWorkspace) landing(ctx context.Context, proposal loop.Proposal, s loop.State, in act.Apply, branch string) (string, error) {
	if in.How == act.FastForward {
		return proposal.Head, nil
	}
	commit := store.NewCommit{
		Tree: proposal.Head, Parents: []string{proposal.Base}, Author: ws.author(), Time: in.Time,
		Message:  subject(s.Goal) + kept(s),
		Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: ws.Loop}, {Key: "Pawl-Proposal", Value: proposal.Hash}},
	}
	if in.How == act.Merge {
		commit.Parents = append(commit.Parents, proposal.Head)
		commit.Message = fmt.Sprintf("Merge branch '%s' into %s", branchName(ws.Record), branch) + kept(s)
	}
	return ws.store.Make(ctx, commit)
}

// renew puts the work and the moved base together on the loop's branch: a new proposal, with a
// hash that nobody has approved and work that was measured on the old base only.
func (ws *loopWorkspace) renew(ctx context.Context, tip string, old loop.Proposal, s loop.State, in act.Apply, branch string) (*loop.Proposal, error) {
	tree, err := ws.store.Merge(ctx, old.Head, tip)
	var conflict *store.Conflict
	if errors.As(err, &conflict) {
		return nil, fault.New(fault.BaseMoved, "%s has moved and does not go together with the proposal: %s", branch, conflict.Error()).
			Advise(fmt.Sprintf("Merge %s by hand, or start the loop again from where %s is now.", branchName(ws.Record), branch))
	}
	if err != nil {
		return nil, fmt.Errorf("putting the proposal onto %s: %w", branch, err)
	}
	head, err := ws.store.Make(ctx, store.NewCommit{
		Tree: tree, Parents: []string{old.Head, tip}, Author: ws.author(), Time: in.Time,
		Message: fmt.Sprintf("Merge branch '%s' into %s", branch, branchName(ws.Record)), Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: ws.Loop}},
	})
	if err != nil {
		return nil, err
	}
	if at, err := ws.store.Ref(ctx, ws.Branch); err != nil {
		return nil, err
	} else if c, err := ws.store.ReadCommit(ctx, at); err == nil && slices.Equal(c.Parents, []string{old.Head, tip}) && c.Tree == tree {
		head = at // an attempt before this one was cut
	}
	if err := ws.store.SetRef(ctx, ws.Branch, head, old.Head); err != nil {
		return nil, ws.fenced(err, "moving the loop's branch")
	}
	crash.At("apply.renewed")
	d, err := ws.store.Proposal(ctx, tip, head)
	if err != nil {
		return nil, err
	}
	return &loop.Proposal{Hash: d.Hash, Base: tip, Head: head, Files: d.Files, Insertions: d.Insertions, Deletions: d.Deletions, State: govern.Open}, nil
}

// writePatch writes the proposal as it was hashed, whole or not at all.
func (ws *loopWorkspace) writePatch(ctx context.Context, proposal loop.Proposal, path string) error {
	f, err := durable.NewDraft(path, 0o600)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err = ws.store.WriteProposal(ctx, proposal.Base, proposal.Head, f); err == nil {
		err = f.Replace()
	}
	if err != nil {
		return fmt.Errorf("writing the patch: %w", err)
	}
	return nil
}

// asFault turns what stands in the way in the user's repository into a fault.
func asFault(err error) error {
	var pre *userrepo.Precondition
	var elsewhere *store.Fenced
	switch {
	case errors.As(err, &pre):
		return fault.New(fault.PreconditionFailed, "%s", pre.What).Advise(pre.Do)
	case errors.As(err, &elsewhere):
		return fault.New(fault.BaseMoved, "%s was moved in this very moment", strings.TrimPrefix(elsewhere.Ref, "refs/heads/")).Advise("Apply again: where the base has moved there is a new proposal to look at.")
	}
	return err
}

// subject is a commit's first line.
func subject(goal string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(goal), "\n")
	return loop.Clip(evidence.Description(line), 72)
}

// kept lists what the loop kept, for a commit's message.
func kept(s loop.State) string {
	var b strings.Builder
	for i, k := range s.Kept {
		if i == 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "* %s\n", k.Description)
	}
	return b.String()
}
