package userrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/git"
	"pawl/internal/git/store"
)

// Landing moves a branch of the user's repository, and nothing else there. pawl does nothing else to a branch of
// theirs, and it does this only when a person asks for it.
//
// The branch moves by compare-and-swap. If it is checked out in the repository itself and the tree is clean, index
// and files are updated first, like a fast-forward by `git merge`. If that would overwrite a file, nothing happens.
// No hook of the repository runs. Its filters do.
type Landing struct {
	Repo   Repo
	Branch string // short name
	From   string // where the branch must be
	To     string // a commit of the store that descends from it
	Reason string // for the reflog
}

// Land carries out a Landing. Repeating it changes nothing. It returns *store.Fenced if the branch is neither at From
// nor at To, and *Precondition if the tree is not clean, the branch is checked out elsewhere, a file is in the way or git
// can't write one or move the branch. In all these cases it has changed nothing, or has put it back.
func Land(ctx context.Context, s *store.Store, l Landing) error {
	if err := git.CheckHashes(l.From, l.To); err != nil {
		return err
	}
	insp, tip, checkedOut, err := findBranch(ctx, l.Repo, l.Branch)
	if err != nil {
		return err
	}
	ref := "refs/heads/" + l.Branch
	switch {
	case tip == l.To:
		return nil
	case tip != l.From:
		return &store.Fenced{Ref: ref, Want: l.From, Have: tip}
	}
	if err := lend(ctx, s, insp.repo, l.To); err != nil {
		return err
	}
	if !checkedOut {
		return insp.swap(ref, l)
	}
	files, err := s.Changes(ctx, l.From, l.To)
	if err != nil {
		return err
	}
	if err := makeRoom(insp, l, files); err != nil {
		return err
	}
	old, err := insp.remember(files)
	if err != nil {
		return err
	}
	defer old.forget()
	if err := insp.step(l.From, l.To); err != nil {
		return old.after(err)
	}
	if err := insp.swap(ref, l); err != nil {
		return old.after(err)
	}
	return nil
}

// Tip returns the commit of a branch of the user's repository. It returns *Precondition if the branch is checked out
// in another working tree, or here with uncommitted changes: landing on it would change files under somebody's work.
func Tip(ctx context.Context, repo Repo, branch string) (string, error) {
	insp, tip, checkedOut, err := findBranch(ctx, repo, branch)
	if err == nil && checkedOut {
		err = insp.clean(&Source{Branch: branch, Current: branch})
	}
	return tip, err
}

// findBranch returns the commit of a branch of the repository, and whether it is checked out here.
func findBranch(ctx context.Context, repo Repo, branch string) (insp *inspector, tip string, checkedOut bool, err error) {
	insp = &inspector{ctx: ctx, repo: repo}
	if err = git.CheckBranch(branch); err == nil {
		err = insp.ascend()
	}
	if err == nil {
		tip, err = insp.tip(branch)
	}
	if err == nil {
		checkedOut, err = insp.checkedOut(branch)
	}
	return insp, tip, checkedOut, err
}

func (insp *inspector) tip(branch string) (string, error) {
	tip, err := insp.git("rev-parse", "-q", "--verify", "refs/heads/"+branch+"^{commit}")
	if git.Exited(err, 1) || err == nil && !git.IsHash(tip) {
		return "", &Precondition{Code: NoSuchBranch, What: fmt.Sprintf("there is no branch %s any more", git.Quote(branch)),
			Do: "make it again where the loop began, or take the change as a patch (--how patch)"}
	}
	return tip, err
}

// checkedOut reports whether the branch is checked out here. If it is checked out elsewhere, the error is
// *Precondition. git lists the main working tree first, and names it by its git directory if that is elsewhere, as that of
// a submodule is.
func (insp *inspector) checkedOut(branch string) (checkedOut bool, err error) {
	out, err := insp.git("worktree", "list", "--porcelain", "-z")
	if err != nil {
		return false, err
	}
	top, err := insp.toplevel()
	if err != nil {
		return false, err
	}
	isMain, err := insp.isMainTree()
	if err != nil {
		return false, err
	}

	tree, trees := "", 0
	var elsewhere []string
	for line := range strings.SplitSeq(out, "\x00") {
		if path, ok := strings.CutPrefix(line, "worktree "); ok {
			tree = path
			trees++
		}
		switch {
		case line != "branch refs/heads/"+branch:
		case tree == top || isMain && trees == 1:
			checkedOut = true
		default:
			elsewhere = append(elsewhere, tree)
		}
	}

	if !checkedOut && !isMain {
		// A git before 2.48 prints the relative path of a linked tree as it is in its file, so it is not top.
		i := slices.IndexFunc(elsewhere, func(tree string) bool { return !filepath.IsAbs(tree) })
		head, _, err := insp.maybe("symbolic-ref", "-q", "HEAD")
		if err != nil {
			return false, err
		}
		if i >= 0 && head == "refs/heads/"+branch {
			elsewhere, checkedOut = slices.Delete(elsewhere, i, i+1), true
		}
	}
	if len(elsewhere) > 0 {
		return false, &Precondition{Code: CheckedOutThere, What: fmt.Sprintf("the branch %s is checked out in %s", git.Quote(branch), git.Quote(elsewhere[0])),
			Do: "check out another branch there, or remove that working tree (git worktree remove)"}
	}
	return checkedOut, nil
}

// isMainTree reports whether the working tree is the repository's main one: a linked one has a git directory of its own.
func (insp *inspector) isMainTree() (bool, error) {
	out, err := insp.git("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir")
	if err != nil {
		return false, err
	}
	gitDir, common, _ := strings.Cut(out, "\n")
	return gitDir == common, nil
}

// lend gives the user's repository the objects of a commit. It sets no ref of theirs.
func lend(ctx context.Context, s *store.Store, repo Repo, commit string) error {
	ref := "refs/pawl-apply/" + commit
	if err := s.SetRef(ctx, ref, commit, ""); err != nil {
		return err
	}
	_, err := repo.user().Run(ctx, slices.Concat(fetchArgs, []string{"--", s.Dir(), ref})...)
	return errors.Join(err, s.SetRef(ctx, ref, "", commit))
}

// makeRoom checks that the tree is clean and that nothing exists where the change adds a file, because an ignored
// file would be overwritten.
func makeRoom(insp *inspector, l Landing, files []git.FileChange) error {
	// The comparison below uses what the index knows about the files' times.
	if _, err := insp.git("update-index", "--refresh"); err != nil && !git.Exited(err, 1) {
		return err
	}
	if err := insp.clean(&Source{Branch: l.Branch, Current: l.Branch}); err != nil {
		if !insp.isAt(l.To) {
			return err
		}
		// An earlier attempt was interrupted after the files and before the branch.
		return insp.step(l.To, l.From)
	}
	for _, f := range files {
		if f.Status != 'A' && f.Status != 'R' && f.Status != 'C' {
			continue
		}
		if fi, err := os.Lstat(filepath.Join(insp.repo.here(), filepath.FromSlash(f.Path))); err == nil && !fi.IsDir() {
			return &Precondition{Code: FileInTheWay, What: fmt.Sprintf("%s is in the way: the change adds a file there", git.Quote(f.Path)),
				Do: "move it away (git ignores it, so git status does not show it)"}
		}
	}
	return nil
}

// isAt reports whether index and files are those of a commit.
func (insp *inspector) isAt(commit string) bool {
	_, err := insp.git("diff-index", "--quiet", "--ignore-submodules=none", commit, "--")
	out, lsErr := insp.git("ls-files", "--others", "--exclude-standard")
	return err == nil && lsErr == nil && out == ""
}

// step moves index and files from one commit to another. Both have to be at the first.
func (insp *inspector) step(from, to string) error {
	_, err := insp.git("-c", "submodule.recurse=false", "read-tree", "-m", "-u", from, to)
	if ge := git.Failure(err); ge != nil {
		return &Precondition{Code: TreeRefused, What: "git can't write the working tree: " + saidFirst(ge),
			Do: "mend what git names (a filter, the disk, a permission, a file that git update-index hides), and apply again"}
	}
	return err
}

// swap moves the branch if it is still at From.
func (insp *inspector) swap(ref string, l Landing) error {
	_, err := insp.git("update-ref", "-m", l.Reason, ref, l.To, l.From)
	if err == nil {
		return nil
	}
	if tip, tipErr := insp.tip(l.Branch); tipErr == nil && tip != l.From {
		if tip == l.To {
			return nil
		}
		return &store.Fenced{Ref: ref, Want: l.From, Have: tip}
	}
	if ge := git.Failure(err); ge != nil {
		return &Precondition{Code: BranchRefused, What: fmt.Sprintf("git can't move the branch %s: %s", git.Quote(l.Branch), saidFirst(ge)),
			Do: "mend what git names (a lock that was left, a permission), and apply again"}
	}
	return err
}

// saidFirst returns the first line of what git says of a failure.
func saidFirst(failure *git.Error) string {
	said := strings.TrimSpace(failure.Stderr)
	for _, kind := range []string{"error: ", "fatal: "} {
		said = strings.TrimPrefix(said, kind)
	}
	line, _, _ := strings.Cut(said, "\n")
	return strings.TrimRight(git.Printable(line), ".")
}
