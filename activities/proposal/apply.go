package proposal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/activities/record"
	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

// Apply applies an approved proposal to the user's branch.
func (a *Proposals) Apply(ctx context.Context, input api.Apply) (api.Applied, error) {
	out, err := a.ApplyHere(ctx, input)
	return out, workspace.Refusal(fault.About(fault.Loop(input.Loop), err))
}

// ApplyHere is Apply for a caller on the loop's host. A person's mistake is a *fault.Error.
func (a *Proposals) ApplyHere(ctx context.Context, input api.Apply) (api.Applied, error) {
	if !slices.Contains(api.Ways, input.How) {
		return api.Applied{}, fault.New(fault.InvalidMessage, "a proposal is applied by %s, not %q", strings.Join(api.Ways, ", "), loop.Clip(input.How, 40))
	}
	if input.Running != nil { // the running loop records the result itself
		return a.applyRunning(ctx, input)
	}
	ws, head, s, err := a.ending(ctx, input)
	if err != nil {
		return api.Applied{}, err
	}
	out, err := apply(ctx, ws, head, s, input)
	if err != nil {
		return api.Applied{}, err
	}
	event := loop.Event{Type: loop.ProposalApplied, Time: input.Time, By: loop.Clip(input.By, 200), How: input.How, Proposal: out.Proposal, Commit: out.Commit}
	if out.Moved != nil {
		event = loop.Event{Type: loop.ProposalMade, Time: input.Time, Proposal: out.Moved, Head: out.Moved.Head,
			Reason: out.MovedReason(s.Proposal.Hash[:16])}
	}
	if out.Already && s.Proposal.State == rules.Applied {
		return out, nil // it is already recorded
	}
	if err := addend(ctx, ws, head, s, event); err != nil {
		return api.Applied{}, err
	}
	crashpoint.At("apply.recorded")
	out.PushRefused, err = ws.Push(ctx)
	return out, err
}

// applyRunning applies the proposal of a loop that has not ended.
func (a *Proposals) applyRunning(ctx context.Context, input api.Apply) (api.Applied, error) {
	r, ok := a.FindRecord(input.Loop)
	if !ok {
		return api.Applied{}, a.NoRecord(input.Loop)
	}
	ws, err := a.Workspace(ctx, r.Ref)
	if err != nil {
		return api.Applied{}, err
	}
	s, err := ws.Book.State(ctx, input.Running.Ledger)
	if err != nil {
		return api.Applied{}, err
	}
	s.Proposal = &input.Running.Proposal
	if len(s.Kept) == 0 { // a delivery records its change after it was applied
		if s.Kept, err = settled(ctx, ws, s.Proposal.Base, s.Proposal.Head); err != nil {
			return api.Applied{}, fmt.Errorf("reading the loop's changes: %w", err)
		}
	}
	return apply(ctx, ws, input.Running.Ledger, s, input)
}

// application is a proposal that is being applied to the user's branch.
type application struct {
	*workspace.Workspace
	repo     userrepo.Repo // held from the first look at the branch to the last
	in       api.Apply
	state    loop.State // the state of the loop
	proposal loop.Proposal
	spec     spec.Spec
	branch   string // the branch as people name it
	change   string // the hash of its diff alone
}

// from returns the hash of the diff from the proposal's base to a commit.
func (x *application) from(ctx context.Context, target string) (string, error) {
	d, err := x.Objects.Proposal(ctx, "", x.proposal.Base, target)
	return d.Hash, err
}

// apply applies the proposal as input says, or finds that this was done. It records nothing.
func apply(ctx context.Context, ws *workspace.Workspace, head string, s loop.State, input api.Apply) (api.Applied, error) {
	if err := rules.MayApply(s.Proposal, input.Hash); err != nil {
		return api.Applied{}, err
	}
	x := &application{Workspace: ws, in: input, state: s, proposal: *s.Proposal}
	out := api.Applied{Loop: input.Loop, Hash: input.Hash, How: input.How, Proposal: &x.proposal}
	d, err := ws.Objects.Proposal(ctx, x.proposal.Preface(), x.proposal.Base, x.proposal.Head)
	if err == nil {
		x.change, err = x.from(ctx, x.proposal.Head)
	}
	if err != nil {
		return out, fmt.Errorf("reading the proposal: %w", err)
	}
	if d.Hash != x.proposal.Hash {
		return out, fault.New(fault.HashMismatch, "the proposal %s does not have that hash any more (%s)", x.proposal.Hash[:16], d.Hash[:16]).
			Advise("Another program changed the store: see `pawl log " + input.Loop + " --verify`.")
	}
	if input.How == api.Patch {
		out.Patch, err = x.writePatch(ctx)
		return out, err
	}
	c, err := ws.Book.Contract(ctx, head)
	if err != nil {
		return out, err
	}
	x.spec = c.Spec
	if x.branch, err = onto(ws, c); err != nil {
		return out, err
	}
	out.Branch = x.branch
	if x.repo, err = ws.Repository(); err != nil {
		return out, asFault(err)
	}
	defer x.repo.Close()
	if err := x.standing(ctx); err != nil {
		return out, asFault(err)
	}
	tip, err := userrepo.Fetch(ctx, ws.Objects, x.repo, x.branch)
	if err != nil {
		return out, fmt.Errorf("fetching %s: %w", x.branch, err)
	}
	if tip == x.proposal.Base {
		out.Commit, err = x.land(ctx)
	} else {
		out.Commit, err = x.landed(ctx, tip)
		if err == nil && out.Commit == "" {
			out.Moved, out.Rewritten, err = x.renew(ctx, tip)
			if err == nil && out.Moved == nil {
				out.Commit = tip
			}
		}
		out.Already = out.Commit != ""
	}
	if err == nil && out.Commit != "" {
		x.proposal.State, x.proposal.Branch, x.proposal.Commit = rules.Applied, x.branch, out.Commit
	}
	return out, err
}

// standing returns an error if the branch does not exist, or if other work on it is in the way.
func (x *application) standing(ctx context.Context) (err error) {
	if x.Remote {
		_, err = userrepo.InspectAt(ctx, x.Objects, x.repo, x.branch, "")
	} else {
		_, err = userrepo.Tip(ctx, x.repo, x.branch)
	}
	return err
}

// onto returns the branch that the loop started from.
func onto(ws *workspace.Workspace, c ledger.Contract) (string, error) {
	if name := cmp.Or(c.Branch, ws.Onto, c.Spec.Repo.Base); name != "" {
		return git.BranchName(name), nil
	}
	return "", fault.New(fault.PreconditionFailed, "the loop %s did not record which branch it started from", ws.Loop).
		Advise("Take the change as a patch (`pawl apply --how patch`), or merge " + git.BranchName(ws.Branch) + " by hand.")
}

// land moves the branch to a commit that changes exactly what was approved, and returns the commit.
func (x *application) land(ctx context.Context) (string, error) {
	commit, err := x.commit(ctx)
	if err != nil {
		return "", err
	}
	made, err := x.from(ctx, commit)
	if err != nil {
		return "", err
	}
	if made != x.change {
		return "", fmt.Errorf("%s of %s would change more than what was approved", x.in.How, x.proposal.Hash[:16])
	}
	crashpoint.At("apply.before")
	land := userrepo.Land
	if x.Remote {
		land = userrepo.LandAt
	}
	err = land(ctx, x.Objects, userrepo.Landing{Repo: x.repo, Branch: x.branch, From: x.proposal.Base, To: commit, Reason: "pawl apply " + x.Ref + " (" + x.in.How + ")"})
	if err != nil {
		return "", asFault(err)
	}
	crashpoint.At("apply.landed")
	return commit, x.check(ctx)
}

// commit makes the commit that the branch moves to.
func (x *application) commit(ctx context.Context) (string, error) {
	switch x.in.How {
	case api.FastForward:
		return x.line(ctx)
	case api.Merge:
		tip, err := x.line(ctx)
		if err != nil {
			return "", err
		}
		text := fmt.Sprintf("Merge branch '%s' into %s", git.BranchName(x.Branch), x.branch) + kept(x.state)
		return x.make(ctx, text, x.proposal.Base, tip)
	}
	return x.squash(ctx)
}

// line returns the last of the commits that bring the proposal onto its base: those that the loop kept, without
// attempts and reverts. They are made from the store. If they don't lead to what was approved, there is one commit.
func (x *application) line(ctx context.Context) (string, error) {
	tip, err := keptLine(ctx, x.Workspace, x.proposal.Base, x.proposal.Head)
	if errors.Is(err, store.ErrMerge) { // the base has moved
		return x.squash(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("making the kept commits: %w", err)
	}
	line, err := x.Objects.ReadCommit(ctx, tip)
	if err != nil {
		return "", fmt.Errorf("reading the kept commits: %w", err)
	}
	head, err := x.Objects.ReadCommit(ctx, x.proposal.Head)
	if err != nil {
		return "", fmt.Errorf("reading the proposal's commit: %w", err)
	}
	if line.Tree != head.Tree {
		return x.squash(ctx)
	}
	return tip, nil
}

// squash makes the one commit on the base that has the proposal.
func (x *application) squash(ctx context.Context) (string, error) {
	return x.make(ctx, message(x.state), x.proposal.Base)
}

// make makes a commit with the proposal's tree.
func (x *application) make(ctx context.Context, text string, parents ...string) (string, error) {
	return x.Objects.Make(ctx, store.NewCommit{
		Tree: x.proposal.Head, Parents: parents, Author: x.Author(), Time: x.in.Time, Message: text,
		Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: x.Loop}, {Key: "Pawl-Proposal", Value: x.proposal.Hash}},
	})
}

// check reads the user's branch again: it must now have exactly what was approved.
func (x *application) check(ctx context.Context) error {
	now, err := userrepo.Fetch(ctx, x.Objects, x.repo, x.branch)
	if err != nil {
		return fmt.Errorf("looking at %s again: %w", x.branch, err)
	}
	current, err := x.from(ctx, now)
	if err == nil && current != x.change {
		err = fmt.Errorf("%s differs from %s by more than the proposal %s: it has been moved meanwhile", x.branch, x.proposal.Base, x.proposal.Hash[:16])
	}
	return err
}

// landed returns the commit by which the branch already has the proposal, "" if it has no such commit: an earlier
// attempt was cut off, or somebody has merged it by hand. Commits are made anew at each apply, so the tree counts.
func (x *application) landed(ctx context.Context, tip string) (string, error) {
	for _, commit := range []string{x.proposal.Commit, x.proposal.Head} {
		if commit == "" {
			continue
		}
		ok, err := x.Objects.Contains(ctx, tip, commit)
		if err != nil {
			return "", err
		}
		if ok {
			return commit, nil
		}
	}
	return x.Objects.WithTree(ctx, x.proposal.Base, tip, x.proposal.Head)
}

// renew brings the loop's own change onto the moved base. The result is a new proposal: nobody has approved its hash, and
// the work was measured on the old base only. It returns nil if the base already has everything: an earlier attempt
// that squashed was cut off, or somebody has taken the change by hand, and more commits may have come since.
func (x *application) renew(ctx context.Context, tip string) (*loop.Proposal, *api.Rewritten, error) {
	hasBase, err := x.Objects.Contains(ctx, tip, x.proposal.Base)
	if err != nil {
		return nil, nil, err
	}
	tree, err := x.carry(ctx, tip, hasBase)
	if err != nil {
		return nil, nil, err
	}
	base, err := x.Objects.ReadCommit(ctx, tip)
	if err != nil {
		return nil, nil, fmt.Errorf("putting the proposal onto %s: %w", x.branch, err)
	}
	if base.Tree == tree {
		return nil, nil, nil
	}
	if err := x.checkScope(ctx, tip, tree); err != nil {
		return nil, nil, err
	}
	renewed, err := x.propose(ctx, tip, tree)
	if err != nil || hasBase {
		return renewed, nil, err
	}
	rewritten, err := x.rewritten(ctx, tip)
	return renewed, rewritten, err
}

// carry returns the tree of the moved base with the loop's own change. If the base was rewritten, the histories say
// nothing: a merge would bring back what was removed.
func (x *application) carry(ctx context.Context, tip string, hasBase bool) (tree string, err error) {
	if hasBase && !x.proposal.Anew {
		tree, err = x.Objects.Merge(ctx, x.proposal.Head, tip)
	} else {
		tree, err = x.Objects.Carry(ctx, x.proposal.Base, x.proposal.Head, tip)
	}
	conflict, conflicts := errors.AsType[*store.Conflict](err)
	switch {
	case conflicts && hasBase:
		return "", fault.New(fault.BaseMoved, "%s has moved and conflicts with the proposal: %s", x.branch, conflict.Error()).
			Advise(fmt.Sprintf("Merge %s by hand, or start the loop again from where %s is now.", git.BranchName(x.Branch), x.branch))
	case conflicts:
		return "", fault.New(fault.BaseMoved, "%s was rewritten: it no longer has %s, and it conflicts with the proposal: %s", x.branch, x.proposal.Base[:10], conflict.Error()).
			Advise(fmt.Sprintf("Start the loop again from where %s is now. Don't merge %s: it still has what was removed.", x.branch, git.BranchName(x.Branch)))
	case err != nil:
		return "", fmt.Errorf("putting the proposal onto %s: %w", x.branch, err)
	}
	return tree, nil
}

// checkScope refuses a change that reaches files which are neither the loop's own nor in its scope: one that was renamed
// on the new base, for example.
func (x *application) checkScope(ctx context.Context, tip, tree string) error {
	approved, err := x.paths(ctx, x.proposal.Base, x.proposal.Head)
	if err != nil {
		return err
	}
	reached, err := x.paths(ctx, tip, tree)
	if err != nil {
		return err
	}
	var outside []string
	for _, path := range reached {
		if !slices.Contains(approved, path) && !x.spec.Match(path) {
			outside = append(outside, path)
		}
	}
	if len(outside) == 0 {
		return nil
	}
	return fault.New(fault.BaseMoved, "%s has moved, and there the change would reach files outside the scope: %s", x.branch, git.QuoteSome(outside)).
		Advise(fmt.Sprintf("Start the loop again from where %s is now.", x.branch))
}

// paths returns the paths that differ between two commits.
func (x *application) paths(ctx context.Context, base, target string) (paths []string, err error) {
	files, err := x.Objects.Changes(ctx, base, target)
	if err != nil {
		return nil, fmt.Errorf("comparing %s with %s: %w", base, target, err)
	}
	for _, f := range files {
		paths = append(paths, f.Path)
		if f.OldPath != "" {
			paths = append(paths, f.OldPath)
		}
	}
	return paths, nil
}

// rewritten says what of pawl still reaches the commits that the branch no longer has.
func (x *application) rewritten(ctx context.Context, tip string) (*api.Rewritten, error) {
	missing, err := x.Objects.Gone(ctx, x.proposal.Base, tip)
	if err != nil {
		return nil, err
	}
	out := &api.Rewritten{Base: x.proposal.Base}
	if out.Refs, err = userrepo.RefsTo(ctx, x.Objects, x.repo, missing); err != nil {
		return nil, fmt.Errorf("looking for refs to what was removed: %w", err)
	}
	records, err := hostrecord.List(x.Machine.Home)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		refs := []string{r.Branch, r.Ledger, hostrecord.CleanBranch(r.Branch)}
		if r.Store == x.Record.Store && slices.ContainsFunc(refs, func(ref string) bool { return slices.Contains(out.Refs, ref) }) {
			out.Loops = append(out.Loops, r.Ref)
		}
	}
	return out, nil
}

// propose moves the loop's branch to a commit with a tree on top of the moved base, and returns the proposal of it.
func (x *application) propose(ctx context.Context, tip, tree string) (*loop.Proposal, error) {
	head, err := x.Objects.Make(ctx, store.NewCommit{
		Tree: tree, Parents: []string{x.proposal.Head, tip}, Author: x.Author(), Time: x.in.Time,
		Message: fmt.Sprintf("Merge branch '%s' into %s", x.branch, git.BranchName(x.Branch)), Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: x.Loop}},
	})
	if err != nil {
		return nil, err
	}
	commit, err := x.Objects.Ref(ctx, x.Branch)
	if err != nil {
		return nil, err
	}
	expected := x.proposal.Head
	if c, err := x.Objects.ReadCommit(ctx, commit); err == nil && len(c.Parents) == 2 && c.Parents[0] == expected { // an earlier attempt was cut off
		if expected = commit; c.Parents[1] == tip && c.Tree == tree {
			head = commit
		}
	}
	if err := x.Objects.SetRef(ctx, x.Branch, head, expected); err != nil {
		return nil, record.Fenced(ctx, x.Workspace, err, "moving the loop's branch")
	}
	crashpoint.At("apply.renewed")
	return record.ProposalOf(ctx, x.Workspace, tip, head, true)
}

// writePatch writes the proposal as a mail from which `git am` makes a commit, and returns the file. Below the mail's
// header is exactly what was hashed. The file is written completely or not at all.
func (x *application) writePatch(ctx context.Context) (string, error) {
	path := filepath.Join(x.Machine.Home.Loop(x.Ref), "proposal-"+x.proposal.Hash[:16]+".patch")
	head, err := x.Objects.ReadCommit(ctx, x.proposal.Head)
	if err != nil {
		return "", fmt.Errorf("reading the proposal's commit: %w", err)
	}
	f, err := durable.NewDraft(path, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Discard()
	if _, err = io.WriteString(f, x.mail(head)); err == nil {
		err = x.Objects.WriteProposal(ctx, x.proposal.Preface(), x.proposal.Base, x.proposal.Head, f)
	}
	if err == nil {
		err = f.Replace()
	}
	if err != nil {
		return "", fmt.Errorf("writing the patch: %w", err)
	}
	return path, nil
}

// mail returns the header of a patch: author, date and message of the commit that it makes.
func (x *application) mail(head git.Commit) string {
	author := mail.Address{Name: x.Name, Address: x.Email}
	return fmt.Sprintf("From %s Mon Sep 17 00:00:00 2001\nFrom: %s\nDate: %s\nSubject: [PATCH] %s\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit%s\n\nPawl-Loop: %s\nPawl-Proposal: %s\n---\n\n",
		head.ID, author.String(), head.Time.Format(time.RFC1123Z), subject(x.state), strings.TrimRight(kept(x.state), "\n"), x.Loop, x.proposal.Hash)
}

// asFault turns an obstacle in the user's repository into a fault.
func asFault(err error) error {
	if elsewhere, ok := errors.AsType[*store.Fenced](err); ok {
		return fault.New(fault.BaseMoved, "%s was moved just now", git.BranchName(elsewhere.Ref)).Advise("Apply again: if the base has moved, there is a new proposal to look at.")
	}
	return record.PlainFault(err)
}

// message returns the message of the one commit that brings everything: what was changed, the goal, and the changes.
func message(s loop.State) string {
	text := subject(s) + "\n\n" + strings.TrimSpace(s.Goal)
	if len(s.Kept) > 1 {
		text += kept(s)
	}
	return text
}

// settled returns the changes from base to head as their commits describe them, none if they are not one line of commits.
func settled(ctx context.Context, ws *workspace.Workspace, base, head string) (kept []loop.Kept, err error) {
	commits, err := ws.Objects.Settled(ctx, base, head)
	if errors.Is(err, store.ErrMerge) { // the base has moved
		return nil, nil
	}
	for _, c := range commits {
		description, _, _ := strings.Cut(iterated().ReplaceAllString(c.Message, ""), "\n")
		kept = append(kept, loop.Kept{Commit: c.ID, Description: description})
	}
	return kept, err
}

// subject returns the first line of a commit message: the description of the change, or of the first of several. A loop
// that has recorded none has its goal's first line.
func subject(s loop.State) string {
	if len(s.Kept) == 0 {
		line, _, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(s.Goal), "# "), "\n")
		return loop.Clip(metric.Description(line), longestSubject)
	}
	suffix := ""
	if n := len(s.Kept) - 1; n > 0 {
		suffix = fmt.Sprintf(" (and %d more)", n)
	}
	return loop.Clip(metric.Description(s.Kept[0].Description), longestSubject-len(suffix)) + suffix
}

// longestSubject is how long the first line of a commit message is at most.
const longestSubject = 72

// kept returns the list of what the loop kept, for a commit message.
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
