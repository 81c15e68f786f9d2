// Package commit lets the policies judge the changes on a desk, and commits them. Start at Committer.
package commit

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"pawl/activities/contract"
	"pawl/activities/record"
	"pawl/activities/workspace"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/worktree"
	"pawl/internal/judge/evaluator"
	"pawl/internal/ledger"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
	"pawl/internal/lib/secretscan"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

// Limits for the names of changed files, which are in history more than once. The count is always full.
const (
	maxFiles = 50
	maxNames = 32 << 10
)

// Committer judges the changes on desks, and commits them.
type Committer struct{ *workspace.Workspaces }

// Commit commits the difference between desk and head. First the policies judge it, and a change that violates one is
// not committed (order of judgement). A retry finds its commit.
func (a *Committer) Commit(ctx context.Context, input api.Commit) (api.Committed, error) {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return api.Committed{}, err
	}
	crashpoint.At("commit.before")
	out, shape, verdict, err := JudgeChange(ctx, ws.At(input.Desk), input.Ledger, input.Head, input.Leftovers)
	if err != nil || out.NoChange || len(out.Violations) > 0 {
		return out, err
	}
	out.Note = metric.Several(input.Description, shape)
	if input.OneChange && out.Note != "" {
		out.Several, out.Note = out.Note, ""
		return out, nil
	}
	out.Note = cmp.Or(out.Note, metric.Large(shape))
	if questions := verdict.Asks; len(questions) > 0 {
		d, err := ws.Objects.Proposal(ctx, loop.Gate{On: input.Head, Tree: out.Tree}.Preface(), input.Head, out.Tree)
		if err != nil {
			return api.Committed{}, fmt.Errorf("hashing the change: %w", err)
		}
		if d.Hash != input.AllowNew {
			if !input.Aside {
				record.NoteDiff(ctx, ws, loop.Gate{On: input.Head, Tree: out.Tree}.Preface(), input.Head, out.Tree, d.Hash)
			}
			out.NewFiles, out.NewFilesAll, out.NewFilesHash, out.NewFilesOn = Quoted(questions), len(questions), d.Hash, input.Head
			out.NewRunnable = verdict.Runnable
			return out, nil
		}
	}
	if input.Aside {
		out.Commit, err = ws.Objects.Make(ctx, store.NewCommit{
			Tree: out.Tree, Parents: []string{input.Head}, Author: ws.Author(), Time: input.Time,
			Message:  fmt.Sprintf("loop(candidate-%d): %s", input.Iteration, secretscan.Redact(input.Description)),
			Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: ws.Loop}},
		})
		if err != nil {
			return api.Committed{}, fmt.Errorf("committing the candidate: %w", err)
		}
		crashpoint.At("commit.aside")
		return out, nil
	}
	out.Commit, err = ws.Objects.Commit(ctx, store.CommitInput{
		Tree: out.Tree, Parent: input.Head, Branch: ws.Branch, Author: ws.Author(), Time: input.Time,
		Message: fmt.Sprintf("loop(iter-%d): %s", input.Iteration, secretscan.Redact(input.Description)),
		Trailers: []git.Trailer{
			{Key: "Pawl-Loop", Value: ws.Loop},
			{Key: "Pawl-Iteration", Value: strconv.Itoa(input.Iteration)},
			{Key: "Pawl-Attempt", Value: strconv.Itoa(input.Attempt)},
		},
	})
	if err != nil {
		return api.Committed{}, record.Fenced(ctx, ws, err, "committing the change")
	}
	ws.RestoreAhead(ws.Judge, out.Commit)
	ws.FurnishAhead(ws.Judge)
	crashpoint.At("commit.after")
	return out, nil
}

// JudgeChange judges the difference between desk and head, without leftovers, by the contract's policies. shape is how
// far the change reaches; verdict has the new files that a person has to approve.
func JudgeChange(ctx context.Context, ws *workspace.Workspace, ledger, head string, leftovers []string) (out api.Committed, shape metric.Shape, verdict rules.Verdict, err error) {
	if st, err := os.Lstat(dirfd.At(ws.Desk.Dir)); err != nil || !st.IsDir() {
		return api.Committed{Violations: []api.Violation{{Rule: spec.RuleFileType, Path: ".", Detail: "the desk itself was removed or replaced"}}}, shape, verdict, nil
	}
	contract, err := ws.Book.Contract(ctx, ledger)
	if err != nil {
		return out, shape, verdict, err
	}
	terms := contract.Rules()
	scan := scan{rules: terms.Rules(), asks: terms.NewFiles == spec.Ask}
	change, err := ws.Desk.StageRead(ctx, head, worktree.StageOptions{Largest: int64(*scan.rules.MaxFileBytes), Leftovers: leftovers, Begin: scan.begin()})
	ws.Torn(ws.Desk)
	if err != nil {
		return out, shape, verdict, fmt.Errorf("taking the change from the desk: %w", err)
	}
	crashpoint.At("commit.staged")
	out, judged, paths := described(change)
	for i, f := range judged.Files {
		judged.Files[i].Script = f.Added && scan.scripts[f.Path]
	}
	if scan.rules.Secrets != spec.Allow {
		for _, f := range judged.Files {
			if f.Added || f.Deleted {
				scan.secrets.Line(f.Path, 0, f.Added, f.Path)
			}
		}
	}
	judged.Lines, judged.Secrets = scan.lines, scan.secrets.Secrets()
	if out.NoChange = len(change.Files) == 0 && len(change.Violations) == 0; out.NoChange {
		return out, shape, verdict, nil
	}
	shape = metric.ShapeOf(paths, scan.hunks)
	if err := radius(ctx, ws, ledger, head, terms.Rules(), paths, &out, &judged); err != nil {
		return api.Committed{}, shape, verdict, fmt.Errorf("working out how far the change reaches: %w", err)
	}
	if err := own(ctx, ws, contract, judged.Files); err != nil {
		return api.Committed{}, shape, verdict, err
	}
	if err := directives(ctx, ws, contract.Sealed, change.Files, judged.Files); err != nil {
		return api.Committed{}, shape, verdict, err
	}
	verdict = rules.Judge(terms, asNamedNow(contract.Sealed), judged, git.Quote)
	out.Violations = verdict.Violations
	return out, shape, verdict, nil
}

// asNamedNow returns the seals with their paths as git.Quote shows them: an older version has escaped more.
func asNamedNow(sealed []loop.Seal) []loop.Seal {
	return list.Map(sealed, func(s loop.Seal) loop.Seal {
		if s.Names == "" {
			s.Path = git.Requoted(s.Path)
		}
		return s
	})
}

// own marks the changed files that the loop itself has added: a file that the base lacks was not sealed.
func own(ctx context.Context, ws *workspace.Workspace, contract ledger.Contract, files []rules.Diff) error {
	if !slices.ContainsFunc(files, func(f rules.Diff) bool { return !f.Added && rules.Based(contract.Sealed, f.Path) }) {
		return nil
	}
	entries, err := ws.Objects.Entries(ctx, contract.Base)
	if err != nil {
		return fmt.Errorf("listing the base's files: %w", err)
	}
	for i := range files {
		_, ok := slices.BinarySearchFunc(entries, files[i].Path, func(e store.TreeEntry, path string) int { return strings.Compare(e.Path, path) })
		files[i].Own = !ok
	}
	return nil
}

// directives marks what a change does to lines that are sealed in a file that may change otherwise.
func directives(ctx context.Context, ws *workspace.Workspace, sealed []loop.Seal, files []git.FileChange, judged []rules.Diff) error {
	for _, f := range files {
		path := cmp.Or(f.OldPath, f.Path)
		words := rules.Lines(sealed, path)
		if len(words) == 0 || f.Status == 'A' {
			continue
		}
		i := slices.IndexFunc(judged, func(d rules.Diff) bool { return d.Path == path && !d.Added })
		if i < 0 {
			continue
		}
		earlier, later := store.TreeEntry{Mode: f.OldMode, Blob: f.OldBlob}, store.TreeEntry{}
		if f.OldPath == "" && f.Status != 'D' { // else it is gone
			later = store.TreeEntry{Mode: f.NewMode, Blob: f.NewBlob}
		}
		if !contract.Regular(earlier) || later.Mode != "" && !contract.Regular(later) {
			judged[i].Lines = words // the file is a link now, or was one
			continue
		}
		read, unread := contract.Reading(ctx, ws, map[string]store.TreeEntry{path: earlier})
		readNow, unreadNow := contract.Reading(ctx, ws, map[string]store.TreeEntry{path: later})
		old, current := read(path), readNow(path)
		if err := cmp.Or(unread(), unreadNow()); err != nil {
			return err
		}
		if judged[i].Lines = evaluator.Changed(old, current, words); len(current) > evaluator.MaxScript {
			judged[i].Lines = words
		}
	}
	return nil
}

// described returns a change for the workflow and for the policies, and the touched paths: two for a rename.
func described(change worktree.Change) (out api.Committed, judged rules.Change, paths []string) {
	for _, v := range change.Violations {
		d := rules.Diff{Path: v.Path, Why: v.Why}
		if v.Size > 0 {
			d = rules.Diff{Path: v.Path, Added: v.New, Size: v.Size} // it is too large to be read
		}
		judged.Files = append(judged.Files, d)
	}
	for _, f := range change.Files {
		paths = append(paths, f.Path)
		judged.Files = append(judged.Files, rules.Diff{
			Path: f.Path, Added: f.Status == 'A' || f.Status == 'R' || f.Status == 'C', Deleted: f.Status == 'D',
			Binary: f.Binary, Size: f.Size, Escapes: f.Escapes, Executable: f.NewMode == "100755", Link: f.NewMode == "120000",
		})
		if f.OldPath != "" && f.OldPath != f.Path {
			paths = append(paths, f.OldPath)
			judged.Files = append(judged.Files, rules.Diff{Path: f.OldPath, Deleted: true})
		}
	}
	judged.Unread = change.Unread
	out = api.Committed{
		Tree: change.Tree, Files: Quoted(paths), Area: metric.Area(paths),
		LeftOut: Quoted(change.LeftOut), LeftOutAll: len(change.LeftOut),
	}
	return out, judged, paths
}

// Quoted names the first files of many.
func Quoted(paths []string) []string {
	var out []string
	room := maxNames
	for _, p := range paths[:min(len(paths), maxFiles)] {
		name := secretscan.Redact(git.Quote(p))
		if room -= len(name); room < 0 {
			break
		}
		out = append(out, name)
	}
	return out
}

// scan collects what the rules need to know about the lines of a change.
type scan struct {
	rules   spec.Policy
	asks    bool            // a person is asked about new files
	scripts map[string]bool // the files whose first line begins with #!, if asks
	lines   int
	hunks   int
	before  git.DiffLine // the line before, to find where a hunk begins
	secrets secretscan.Scan
}

// begin returns the function that starts a scan; nil if no rule asks for one.
func (r *scan) begin() func() git.Reader {
	if r.rules.Secrets == spec.Allow && r.rules.MaxLines == nil && !r.asks {
		return nil
	}
	return func() git.Reader {
		r.lines, r.hunks, r.before, r.secrets = 0, 0, git.DiffLine{}, secretscan.Scan{}
		r.scripts = map[string]bool{}
		return func(l git.DiffLine) {
			r.hunk(l)
			if r.asks && l.Added && l.N == 1 && bytes.HasPrefix(l.Text, []byte("#!")) {
				r.scripts[l.Path] = true
			}
			if !l.More {
				r.lines++
			}
			if r.rules.Secrets != spec.Allow {
				r.secrets.Line(l.Path, l.N, l.Added, string(l.Text))
			}
		}
	}
}

// hunk counts the beginnings of hunks: a removed line after added ones, or a gap in the line numbers. Removed lines
// directly before added lines belong to the same hunk, also if a move within a file puts them together.
func (r *scan) hunk(l git.DiffLine) {
	b := r.before
	if l.Path != b.Path || l.Added != b.Added && b.Added || l.Added == b.Added && l.N > b.N+1 {
		r.hunks++
	}
	r.before = git.DiffLine{Path: l.Path, N: l.N, Added: l.Added}
}

// radius adds how far the loop reaches with this change, if a rule asks: all paths that it ever touched, counted from its
// branch once the capped list in the state is full. Other people's changes to a moved base do not count.
func radius(ctx context.Context, ws *workspace.Workspace, ledger, head string, rules spec.Policy, paths []string, out *api.Committed, judged *rules.Change) error {
	page, err := ws.Book.Read(ctx, ledger)
	if err != nil {
		return err
	}
	changed, base := page.State.ChangedFilesCount, page.State.Own()
	full := len(paths) > len(out.Files) || changed != len(page.State.ChangedFiles) || changed+len(paths) > loop.KeepFiles
	if rules.MaxTotalFiles != nil || full {
		touched, err := ws.Objects.Touched(ctx, base, page.State.Base, head)
		if err != nil {
			return err
		}
		files := list.Set(append(touched, paths...))
		out.TotalFiles, judged.TotalFiles = len(files), len(files)
	}
	if rules.MaxTotalLines == nil || out.Tree == "" {
		return nil
	}
	files, err := ws.Objects.Changes(ctx, base, out.Tree)
	for _, f := range files {
		judged.TotalLines += f.Insertions + f.Deletions
	}
	return err
}
