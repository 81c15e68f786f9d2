package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"pawl/activities"
	"pawl/config"
	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/shell"
	"pawl/internal/store"
	"pawl/internal/ui"
)

func (a *app) diffCommand() *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use: "diff ID", Short: "Show a loop's proposal, exactly as its hash covers it", Args: oneLoop,
		Long: `Show a loop's proposal: the diff whose SHA-256 is the proposal's hash, byte for byte where
it does not go to a terminal. While the loop runs it is what was kept so far.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.diff(ctx, args[0], stat) }),
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "the files only, with their lines")
	return cmd
}

// Difference is what `pawl diff --json` prints.
type Difference struct {
	Loop     string         `json:"loop"`
	Base     string         `json:"base"`
	Head     string         `json:"head"`
	Proposal *loop.Proposal `json:"proposal"` // null while the loop runs
	Files    []DiffFile     `json:"files"`
}

// DiffFile is one file of it.
type DiffFile struct {
	Path       string `json:"path"`              // git-quoted
	OldPath    string `json:"oldPath,omitempty"` // of a rename
	Status     string `json:"status"`            // A, M, D, T, R as git has it
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
	Binary     bool   `json:"binary,omitempty"`
}

func (a *app) diff(ctx context.Context, id string, stat bool) error {
	s, err := a.visit(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	record, here := s.record(id)
	if !here {
		return fault.New(fault.PreconditionFailed, "the store of the loop %s is on another host (%s)", id, r.state.Host).
			Advise("Run this there, or `git diff " + r.state.Footing() + " " + r.state.Branch + "` in the repository.")
	}
	store, err := store.Open(ctx, record.Store)
	if err != nil {
		return err
	}
	d := Difference{Loop: id, Base: r.state.Footing(), Head: r.state.Head, Proposal: r.state.Proposal, Files: []DiffFile{}}
	if p := d.Proposal; p != nil {
		d.Base, d.Head = p.Base, p.Head
		if !a.json && !stat {
			a.say("proposal %s", ui.Proposal(*p))
		}
	} else {
		a.say("the loop %s has made no proposal; this is what it has kept so far", id)
	}
	if a.json || stat {
		return a.diffStat(ctx, store, d)
	}
	if !a.deps.Terminal(a.out) {
		return store.WriteProposal(ctx, d.Base, d.Head, a.out)
	}
	var text bytes.Buffer
	if err := store.WriteProposal(ctx, d.Base, d.Head, &text); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(a.out, ui.Clean(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) diffStat(ctx context.Context, store *store.Store, d Difference) error {
	files, err := store.Changes(ctx, d.Base, d.Head)
	if err != nil {
		return err
	}
	insertions, deletions := 0, 0
	var lines []string
	for _, f := range files {
		file := DiffFile{Path: git.Quote(f.Path), Status: string(f.Status), Insertions: f.Insertions, Deletions: f.Deletions, Binary: f.Binary}
		name := file.Path
		if f.OldPath != "" {
			file.OldPath = git.Quote(f.OldPath)
			name = file.OldPath + " => " + name
		}
		size := fmt.Sprintf("+%d -%d", f.Insertions, f.Deletions)
		if f.Binary {
			size = "binary"
		}
		lines = append(lines, fmt.Sprintf("%s  %12s  %s", file.Status, size, name))
		d.Files = append(d.Files, file)
		insertions, deletions = insertions+f.Insertions, deletions+f.Deletions
	}
	if a.json {
		return a.printJSON(d)
	}
	if d.Proposal != nil {
		lines = append(lines, ui.Proposal(*d.Proposal), "hash "+d.Proposal.Hash)
	} else {
		lines = append(lines, fmt.Sprintf("files %d, +%d -%d", len(files), insertions, deletions))
	}
	return a.print(strings.Join(lines, "\n"))
}

func (a *app) applyCommand() *cobra.Command {
	in := act.Apply{}
	var out string
	cmd := &cobra.Command{
		Use: "apply ID", Short: "Bring an approved proposal onto the branch that the loop started from", Args: oneLoop,
		Long: `Bring an approved proposal onto the branch that the loop started from: exactly what was
approved, or nothing. The branch must be where the proposal starts; where it has moved, a new
proposal takes the old one's place and wants a new look. A branch that is checked out takes its
working tree along, which must be clean.

--how patch writes the proposal as a patch, to --out or to stdout, and touches no branch.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			in.Loop = args[0]
			return a.apply(ctx, in, out)
		}),
	}
	cmd.Flags().StringVar(&in.Hash, "hash", "", "the hash that was approved (default: the proposal's)")
	cmd.Flags().StringVar(&in.How, "how", act.FastForward, "ff, merge, squash or patch")
	cmd.Flags().StringVar(&in.By, "by", config.User(), "who says so")
	cmd.Flags().StringVar(&out, "out", "", "the file to write a patch to (default: stdout)")
	return cmd
}

func (a *app) apply(ctx context.Context, in act.Apply, out string) error {
	if out != "" && in.How != act.Patch {
		return usage("--out is for --how patch")
	}
	s, err := a.visit(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	return a.applyFrom(ctx, s, in, out)
}

// applyReviewed applies what was just approved of a loop that has ended.
func (a *app) applyReviewed(ctx context.Context, s *session, m loop.Message, sent Sent) error {
	if !a.json { // one document is enough
		if err := a.reportSent(s, sent); err != nil {
			return err
		}
	}
	return a.applyFrom(ctx, s, act.Apply{Loop: sent.Loop, Hash: m.Hash, How: m.Apply, By: m.By}, "")
}

func (a *app) applyFrom(ctx context.Context, s *session, in act.Apply, out string) error {
	r, err := s.read(ctx, in.Loop)
	if err != nil {
		return err
	}
	if in.Hash == "" && r.state.Proposal != nil {
		in.Hash = r.state.Proposal.Hash
	}
	if !r.state.Status.Ended() && r.state.Proposal != nil { // it ends as soon as it is approved
		if err := govern.MayApply(r.state.Proposal, in.Hash); err != nil {
			return err
		}
	}
	var done act.Applied
	if _, here := s.record(in.Loop); here {
		in.Time = a.deps.Now().UTC()
		done, err = s.activities().ApplyHere(ctx, in)
	} else {
		err = s.execute(ctx, "Apply", in.Loop, map[string]string{"loop": in.Loop, "hash": in.Hash, "how": in.How, "by": in.By}, &done)
	}
	if err != nil {
		return plainly(ctx, err)
	}
	return a.reportApplied(s, done, out)
}

func (a *app) reportApplied(s *session, done act.Applied, out string) error {
	if done.PushRefused != "" {
		a.say("the loop's record could not be pushed: %s", ui.Clean(done.PushRefused))
	}
	if m := done.Moved; m != nil {
		return fault.New(fault.BaseMoved, "%s has moved since the proposal was made. Nothing was applied; the new proposal, on top of it, is %s", done.Branch, ui.Proposal(*m)).
			Advise(fmt.Sprintf("Look at it (`pawl diff %s`), approve it (`pawl approve %s --hash %s`) and apply it. It was not measured on the new base.", done.Loop, done.Loop, m.Hash[:16]))
	}
	if done.Patch != "" && !a.json {
		return a.copyPatch(done, out)
	}
	if done.Patch != "" && out != "" {
		if err := a.copyPatch(done, out); err != nil {
			return err
		}
		done.Patch = out
	}
	if a.json {
		return a.printJSON(done)
	}
	what := "applied to"
	if done.Already {
		what = "is already in"
	}
	return a.print(fmt.Sprintf("%s: proposal %s %s %s (%s)", done.Loop, done.Hash[:16], what, ui.Clean(done.Branch), done.Commit[:10]))
}

// copyPatch writes the patch where it is wanted.
func (a *app) copyPatch(done act.Applied, out string) error {
	from, err := os.Open(done.Patch)
	if err != nil {
		return fault.New(fault.PreconditionFailed, "the patch is on the loop's host: %s", done.Patch)
	}
	defer from.Close()
	if out == "" || out == "-" {
		_, err = io.Copy(a.out, from)
		return err
	}
	to, err := os.Create(out)
	if err != nil {
		return usage(err.Error())
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// review takes a person's word on the proposal of a loop that has ended. done is false for a loop
// that has not ended or has made none: then it is a message to a gate.
func (s *session) review(ctx context.Context, id, answer string, m loop.Message) (sent Sent, done bool, err error) {
	in := act.Review{Loop: id, Hash: m.Hash, Answer: answer, By: m.By, Note: m.Note, Time: s.app.deps.Now().UTC()}
	var out act.Reviewed
	p, here, over := s.proposed(ctx, id)
	if !over || m.Gate != "" {
		return Sent{}, false, nil
	}
	if in.Hash == "" && answer == "reject" {
		in.Hash = p.Hash
	}
	sent = Sent{Loop: id, Message: answer, Via: "ledger"}
	if here {
		out, err = s.activities().ReviewHere(ctx, in)
	} else {
		sent.Via = "workflow"
		err = s.execute(ctx, "Review", id, map[string]string{"loop": id, "hash": in.Hash, "answer": answer, "by": in.By, "note": in.Note}, &out)
	}
	sent.Reply = "proposal " + ui.Proposal(out.Proposal)
	return sent, true, plainly(ctx, err)
}

// proposed returns the proposal of a loop that has ended with one, and whether this host has it.
func (s *session) proposed(ctx context.Context, id string) (p loop.Proposal, here, over bool) {
	var state loop.State
	var err error
	if _, here = s.record(id); here {
		state, err = s.recorded(ctx, id)
	} else if s.client != nil && fault.CodeOf(s.alive(ctx, id)) == fault.GateClosed {
		err = s.query(ctx, workerTimeout, id, &state, "state")
	}
	if err != nil || !state.Status.Ended() || state.Proposal == nil {
		return p, here, false
	}
	return *state.Proposal, here, true
}

// activities are this host's, for what needs no engine: the store and the user's repository are
// here, and so is who asks.
func (s *session) activities() *activities.Activities {
	return activities.New(s.home, s.hostID, "", s.temporal.Namespace, false)
}

// execute runs one of the workflows that work on a loop's proposal, on whatever host has it.
func (s *session) execute(ctx context.Context, kind, id string, in map[string]string, out any) error {
	if s.client == nil {
		return noEngine()
	}
	run, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: strings.ToLower(kind) + "-" + id, TaskQueue: act.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL, StaticSummary: kind + " the proposal of " + id,
	}, kind, in)
	if err != nil {
		return err
	}
	return run.Get(ctx, out)
}

// plainly turns an activity's or a workflow's refusal into the fault that it is.
func plainly(ctx context.Context, err error) error {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		if _, known := fault.Lookup(fault.Code(app.Type())); known {
			what, advice, _ := strings.Cut(app.Message(), "\n")
			return fault.New(fault.Code(app.Type()), "%s", what).Advise(advice)
		}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// lookAtProposal shows the proposal of a loop that has ended and asks.
func (a *app) lookAtProposal(ctx context.Context, s *session, id string, p loop.Proposal) error {
	a.screen.Print("\nProposal of " + ui.Clean(id) + ": " + ui.Proposal(p) + "\nhash " + p.Hash + "\nThe whole of it: pawl diff " + shell.Quote(id) + "\n")
	if record, here := s.record(id); here {
		if store, err := store.Open(ctx, record.Store); err == nil {
			a.summarise(ctx, store, p)
		}
	}
	return a.ask(ctx, "Approve?", "not approved")
}

func (a *app) summarise(ctx context.Context, store *store.Store, p loop.Proposal) {
	files, err := store.Changes(ctx, p.Base, p.Head)
	if err != nil {
		return
	}
	for i, f := range files {
		if i == 20 {
			a.screen.Print(fmt.Sprintf("  and %d more", len(files)-i))
			return
		}
		a.screen.Print(fmt.Sprintf("  %c  +%d -%d  %s", f.Status, f.Insertions, f.Deletions, git.Quote(f.Path)))
	}
}
