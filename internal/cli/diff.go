package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pawl/internal/cli/render"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/loop"
)

// diffOptions say how a proposal is shown.
type diffOptions struct {
	stat bool // the files only
}

func (a *app) diffCommand() *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use: "diff [ID]", Short: "Show a loop's proposal, exactly as its hash covers it", Args: atMost(1),
		Long: `Show a loop's proposal: the diff whose SHA-256 is the proposal's hash. While the loop runs, it
shows what the loop has kept so far, or the change with new files that waits for approval.

In a file or a pipe, the diff is exact, byte for byte. At a terminal it is coloured and paged ($PAGER,
or less), and invisible characters are written out: \u{200b}, \r, \xff.`,
		RunE: a.visitingLoop(looksAtLoop, func(ctx context.Context, s *session, args []string) error {
			return a.runDiff(ctx, s, args[0], o)
		}),
	}
	cmd.Flags().BoolVar(&o.stat, "stat", false, "list only the files, with how many lines changed")
	return cmd
}

// Difference is what `pawl diff --json` prints.
type Difference struct {
	Loop     string         `json:"loop"`
	Base     string         `json:"base"`
	Head     string         `json:"head"`
	Hash     string         `json:"hash,omitempty"` // the hash that approves it
	Proposal *loop.Proposal `json:"proposal"`       // null while the loop runs
	Files    []DiffFile     `json:"files"`
}

// DiffFile is one file of it.
type DiffFile struct {
	Path       string `json:"path"`              // git-quoted
	OldPath    string `json:"oldPath,omitempty"` // of a rename
	Status     string `json:"status"`            // A, M, D, T, R as in git
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
	Binary     bool   `json:"binary,omitempty"`
}

func (a *app) runDiff(ctx context.Context, s *session, id string, o diffOptions) error {
	if err := s.aLoop(ctx, id, "Its loops make the proposals: `pawl steward show "+id+" TASK` lists the loops of a task, and `pawl diff LOOP` shows the proposal of a loop."); err != nil {
		return err
	}
	r, err := s.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	if _, ok := s.Record(id); !ok {
		return s.Torn(id, fault.New(fault.PreconditionFailed, "the store of the loop %s is on another host (%s)", id, r.State.Host).
			Advise("Run this there, or `git diff "+r.State.Footing()+" "+r.State.Branch+"` in the repository."))
	}
	store, err := s.Store(ctx, id)
	if err != nil {
		return err
	}
	p := patchOf(r.State)
	d := Difference{Loop: id, Base: p.base, Head: p.head, Hash: p.hash, Proposal: r.State.Proposal, Files: []DiffFile{}}
	if a.json || o.stat {
		return a.diffStat(ctx, store, d, p)
	}
	a.say("%s", p.about)
	if !a.deps.Terminal(a.out) {
		return p.write(ctx, store, a.out)
	}
	return a.page(func(w io.Writer) error { return p.render(ctx, store, a.style(), w) })
}

// amount returns how much of a file changed, in a few words: lines, and whether it can be executed.
func amount(f git.FileChange) string {
	text := fmt.Sprintf("+%d -%d", f.Insertions, f.Deletions)
	if f.Binary {
		text = "binary"
	}
	const plain, executable = "100644", "100755"
	switch {
	case f.OldMode == plain && f.NewMode == executable, f.Status == 'A' && f.NewMode == executable:
		text += " mode +x"
	case f.OldMode == executable && f.NewMode == plain:
		text += " mode -x"
	}
	return strings.TrimPrefix(text, "+0 -0 ")
}

func (a *app) diffStat(ctx context.Context, store *store.Store, d Difference, p patch) error {
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
		lines = append(lines, fmt.Sprintf("%s  %12s  %s", file.Status, amount(f), name))
		d.Files = append(d.Files, file)
		insertions, deletions = insertions+f.Insertions, deletions+f.Deletions
	}
	lines = append(lines, fmt.Sprintf("files %d, +%d -%d", len(files), insertions, deletions), p.about)
	return a.output(d, strings.Join(lines, "\n")+render.Around("\nhash ", p.hash, ""))
}
