package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/loop"
	"pawl/internal/store"
	"pawl/internal/ui"
)

func (a *app) diffCommand() *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use: "diff ID", Short: "Show a loop's proposal, exactly as its hash covers it", Args: oneLoop,
		Long: `Show a loop's proposal: the diff whose SHA-256 is the proposal's hash, byte for byte unless
it goes to a terminal. While the loop runs, it shows what the loop has kept so far.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.diff(ctx, args[0], stat) }),
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "list only the files, with how many lines changed")
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
	if err := s.aLoop(ctx, id, "Its loops make the proposals: `pawl steward show "+id+" TASK` names those of a task, and `pawl diff LOOP` shows what one has made."); err != nil {
		return err
	}
	r, err := s.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	if _, here := s.Record(id); !here {
		return fault.New(fault.PreconditionFailed, "the store of the loop %s is on another host (%s)", id, r.State.Host).
			Advise("Run this there, or `git diff " + r.State.Footing() + " " + r.State.Branch + "` in the repository.")
	}
	store, err := s.Store(ctx, id)
	if err != nil {
		return err
	}
	d := Difference{Loop: id, Base: r.State.Footing(), Head: r.State.Head, Proposal: r.State.Proposal, Files: []DiffFile{}}
	if p := d.Proposal; p != nil {
		d.Base, d.Head = p.Base, p.Head
		if !a.json && !stat {
			a.say("proposal %s", ui.Proposal(*p))
		}
	} else {
		a.say("the loop %s has made no proposal yet; this is what it has kept so far", id)
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
