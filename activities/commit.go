package activities

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/evidence"
	"pawl/internal/govern"
	"pawl/internal/repo"
)

// maxFiles is how many changed files are named; the count is full.
const maxFiles = 50

// Commit takes what the desk differs from the head by. The policies judge it first, and a
// change that violates one is not committed (order of judgement). A retry finds its commit.
func (a *Activities) Commit(ctx context.Context, in act.Commit) (act.Committed, error) {
	beat(ctx)
	p, err := a.place(ctx, in.Ref)
	if err != nil {
		return act.Committed{}, err
	}
	crash.At("commit.before")
	if st, err := os.Lstat(p.desk.Dir); err != nil || !st.IsDir() {
		return act.Committed{Violations: []act.Violation{{Rule: govern.RuleFileType, Path: ".", Detail: "the desk itself was removed or replaced"}}}, nil
	}
	change, err := p.desk.Stage(ctx, in.Head)
	if err != nil {
		return act.Committed{}, fmt.Errorf("taking the change from the desk: %w", err)
	}
	crash.At("commit.staged")
	contract, err := p.ledger.Contract(ctx, in.Ledger)
	if err != nil {
		return act.Committed{}, err
	}
	out := act.Committed{Tree: change.Tree, FileCount: len(change.Files)}
	var diffs []govern.Diff
	var paths []string
	for _, v := range change.Violations {
		diffs = append(diffs, govern.Diff{Path: v.Path, Why: v.Why})
	}
	for _, f := range change.Files {
		paths = append(paths, f.Path)
		if len(out.Files) < maxFiles {
			out.Files = append(out.Files, repo.Quote(f.Path))
		}
		diffs = append(diffs, govern.Diff{Path: f.Path, Added: f.Status == 'A' || f.Status == 'R' || f.Status == 'C', Deleted: f.Status == 'D', Escapes: f.Escapes})
		if f.OldPath != "" && f.OldPath != f.Path {
			diffs = append(diffs, govern.Diff{Path: f.OldPath, Deleted: true})
		}
	}
	out.Area = evidence.Area(paths)
	if out.Violations = govern.Judge(contract.Spec, contract.Sealed, diffs, repo.Quote); len(out.Violations) > 0 {
		return out, nil
	}
	if out.NoChange = len(change.Files) == 0; out.NoChange {
		return out, nil
	}
	out.Commit, err = p.store.Commit(ctx, repo.CommitInput{
		Tree: change.Tree, Parent: in.Head, Branch: p.Branch, Author: p.author(), Time: in.Time,
		Message: fmt.Sprintf("loop(iter-%d): %s", in.Iteration, in.Description),
		Trailers: []repo.Trailer{
			{Key: "Pawl-Loop", Value: p.Loop},
			{Key: "Pawl-Iteration", Value: strconv.Itoa(in.Iteration)},
			{Key: "Pawl-Attempt", Value: strconv.Itoa(in.Attempt)},
		},
	})
	if err != nil {
		return act.Committed{}, p.fenced(err, "committing the change")
	}
	a.restoreAhead(p, out.Commit, a.restoreJudge)
	crash.At("commit.after")
	return out, nil
}
