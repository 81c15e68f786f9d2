package userrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/userrepo"
	"pawl/test/harness/gittest"
)

const loopRef = "refs/heads/pawl/x"

func TestP0_EachRepositoryPreconditionHasItsOwnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code  string
		paths []string
		base  string
		setup func(t *testing.T, dir string) string // returns the path to inspect
	}{
		"no such folder":     {code: userrepo.NoSuchPath, setup: func(_ *testing.T, dir string) string { return dir + "/nowhere" }},
		"a file, not folder": {code: userrepo.NoSuchPath, setup: func(_ *testing.T, dir string) string { return dir + "/a.txt" }},
		"below a file":       {code: userrepo.Unreadable, setup: func(_ *testing.T, dir string) string { return dir + "/a.txt/below" }},
		"too long a name":    {code: userrepo.Unreadable, setup: func(_ *testing.T, dir string) string { return dir + "/" + strings.Repeat("a", 300) }},
		"links in a circle": {code: userrepo.Unreadable, setup: func(t *testing.T, _ string) string {
			circle := filepath.Join(t.TempDir(), "circle")
			require.NoError(t, os.Symlink(circle, circle))
			return circle
		}},
		"no repository": {code: userrepo.NotARepository, setup: func(t *testing.T, _ string) string { return t.TempDir() }},
		"inside .git":   {code: userrepo.NotARepository, setup: func(_ *testing.T, dir string) string { return dir + "/.git" }},
		"a bare repository": {code: userrepo.BareRepository, setup: func(t *testing.T, dir string) string {
			bare := filepath.Join(t.TempDir(), "bare")
			gittest.Git(t, dir, "clone", "-q", "--bare", dir, bare)
			return bare
		}},
		"sha256 objects": {code: userrepo.ObjectFormat, setup: func(t *testing.T, _ string) string {
			dir := t.TempDir()
			gittest.Git(t, dir, "init", "-q", "--object-format=sha256")
			return dir
		}},
		"no commit": {code: userrepo.NoCommit, setup: func(t *testing.T, _ string) string {
			dir := t.TempDir()
			gittest.Git(t, dir, "init", "-q")
			return dir
		}},
		"detached HEAD": {code: userrepo.DetachedHead, setup: func(t *testing.T, dir string) string {
			gittest.Git(t, dir, "checkout", "-q", "--detach")
			return dir
		}},
		"no such base":      {code: userrepo.NoSuchBranch, base: "nope", setup: func(_ *testing.T, dir string) string { return dir }},
		"an option as base": {code: userrepo.NoSuchBranch, base: "--all", setup: func(_ *testing.T, dir string) string { return dir }},
		"a clone without contents": {code: userrepo.PartialClone, setup: func(t *testing.T, dir string) string {
			gittest.Git(t, dir, "config", "uploadpack.allowFilter", "true")
			gittest.Write(t, dir+"/a.txt", "changed\n")
			gittest.Git(t, dir, "commit", "-qam", "more")
			part := filepath.Join(t.TempDir(), "part")
			gittest.Git(t, dir, "clone", "-q", "--filter=blob:none", "file://"+dir, part) // lacks the old a.txt
			return part
		}},
		"a modified file": {code: userrepo.DirtyTree, paths: []string{"a.txt"}, setup: func(t *testing.T, dir string) string {
			gittest.Write(t, dir+"/a.txt", "changed")
			return dir
		}},
		"a staged file": {code: userrepo.DirtyTree, paths: []string{"new"}, setup: func(t *testing.T, dir string) string {
			gittest.Write(t, dir+"/new", "")
			gittest.Git(t, dir, "add", "new")
			return dir
		}},
		"an untracked file of a strange name": {code: userrepo.DirtyTree, paths: []string{"new\n\xff"}, setup: func(t *testing.T, dir string) string {
			gittest.Git(t, dir, "config", "status.showUntrackedFiles", "no") // does not hide the file
			gittest.Write(t, dir+"/new\n\xff", "")
			return dir
		}},
		"many untracked files": {code: userrepo.DirtyTree, paths: []string{"n1", "n2", "n3", "n4", "n5"}, setup: func(t *testing.T, dir string) string {
			for _, n := range "123456789" {
				gittest.Write(t, dir+"/n"+string(n), "")
			}
			return dir
		}},
		"a conflict": {code: userrepo.UnmergedTree, paths: []string{"a.txt"}, setup: func(t *testing.T, dir string) string {
			gittest.Conflict(t, dir)
			return dir
		}},
		"a merge that is not committed": {code: userrepo.UnmergedTree, setup: func(t *testing.T, dir string) string {
			gittest.Git(t, dir, "checkout", "-q", "-b", "other")
			gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "nothing")
			gittest.Git(t, dir, "checkout", "-q", "-b", "ours", "HEAD~1")
			gittest.Git(t, dir, "merge", "-q", "--no-ff", "--no-commit", "other") // the tree is clean
			return dir
		}},
		"a rebase that is not finished": {code: userrepo.UnmergedTree, setup: func(t *testing.T, dir string) string {
			gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "nothing")
			_, err := gittest.TryGit(dir, "rebase", "-q", "--exec", "false", "HEAD~1") // HEAD is detached, the tree clean
			require.Error(t, err)
			return dir
		}},
		"a cherry-pick that is not finished, in a worktree": {code: userrepo.UnmergedTree, setup: func(t *testing.T, dir string) string {
			side := filepath.Join(t.TempDir(), "side")
			gittest.Git(t, dir, "worktree", "add", "-q", "-b", "side", side)
			gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "nothing")
			_, err := gittest.TryGit(side, "cherry-pick", gittest.Git(t, dir, "rev-parse", "HEAD"))
			require.Error(t, err)
			return side
		}},
		"files that a stash could not merge": {code: userrepo.UnmergedTree, paths: []string{"a.txt"}, setup: func(t *testing.T, dir string) string {
			gittest.Write(t, dir+"/a.txt", "mine\n")
			gittest.Git(t, dir, "stash", "-q")
			gittest.Write(t, dir+"/a.txt", "ours\n")
			gittest.Git(t, dir, "commit", "-qam", "ours")
			_, err := gittest.TryGit(dir, "stash", "pop", "-q")
			require.Error(t, err)
			return dir
		}},
		"a broken configuration": {code: userrepo.Unreadable, setup: func(_ *testing.T, dir string) string {
			gittest.Write(t, dir+"/.git/config", "[core\n")
			return dir
		}},
		"a broken index": {code: userrepo.Unreadable, setup: func(_ *testing.T, dir string) string {
			gittest.Write(t, dir+"/.git/index", "junk")
			return dir
		}},
		"a branch without its commit": {code: userrepo.Unreadable, setup: func(_ *testing.T, dir string) string {
			gittest.Write(t, dir+"/.git/refs/heads/main", "0000000000000000000000000000000000000001\n")
			return dir
		}},
		"a stale lock": {code: userrepo.StaleLock, paths: []string{"loop-results.tsv.lock"}, setup: func(t *testing.T, dir string) string {
			gittest.Write(t, dir+"/loop-results.tsv.lock", "")
			return dir
		}},
		"a branch called pawl": {code: userrepo.NameInTheWay, setup: func(t *testing.T, dir string) string {
			gittest.Git(t, dir, "branch", "pawl")
			return dir
		}},
		"a branch below the loop's": {code: userrepo.NameInTheWay, setup: func(t *testing.T, dir string) string {
			gittest.Git(t, dir, "branch", "pawl/x/y")
			return dir
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := gittest.UserRepo(t, gittest.SomeFiles)
			path := c.setup(t, dir)
			_, err := userrepo.Inspect(ctx, userrepo.At(path), c.base, loopRef)
			var p *userrepo.Precondition
			require.ErrorAs(t, err, &p)
			assert.Equal(t, c.code, p.Code, p.Error())
			assert.NotEmpty(t, p.What)
			assert.NotEmpty(t, p.Do)
			if c.paths != nil {
				assert.Contains(t, p.What, git.QuoteSome(c.paths))
			}
			assert.NotContains(t, p.Error(), "\n")
		})
	}
}

func TestInspectTellsWhereTheLoopStarts(t *testing.T) {
	t.Parallel()
	dir, head := gittest.UserRepo(t, gittest.SomeFiles)
	gittest.Git(t, dir, "config", "user.name", "Ada")
	gittest.Git(t, dir, "config", "user.email", "ada@example.org")
	before := gittest.BytesOf(t, dir)

	s, err := userrepo.Inspect(ctx, userrepo.At(filepath.Join(dir, "src", "deep")), "", loopRef)
	require.NoError(t, err)
	assert.Equal(t, userrepo.Source{Path: dir, Branch: "main", Head: head, Current: "main", Identity: git.Identity{Name: "Ada", Email: "ada@example.org"}}, s)
	assert.Equal(t, before, gittest.BytesOf(t, dir), "looking changes nothing")

	gittest.Git(t, dir, "config", "user.email", "")
	s, err = userrepo.Inspect(ctx, userrepo.At(dir), "", loopRef)
	require.NoError(t, err)
	assert.Equal(t, git.Identity{Name: "pawl", Email: "pawl@localhost"}, s.Identity, "half an identity is none")
}

func TestInspectOverlooksPawlsOwnFiles(t *testing.T) {
	t.Parallel()
	dir, _ := gittest.UserRepo(t, gittest.SomeFiles)
	gittest.Write(t, dir+"/loop-results.tsv", "")
	gittest.Write(t, dir+"/loop-stop", "")
	_, err := userrepo.Inspect(ctx, userrepo.At(dir), "", loopRef)
	require.NoError(t, err)
	gittest.Write(t, dir+"/src/loop-stop", "")
	_, err = userrepo.Inspect(ctx, userrepo.At(dir), "", loopRef)
	require.Error(t, err, "only in the root")
}

func TestANamedBaseNeedsNoCleanTreeAndNoBranchCheckedOut(t *testing.T) {
	t.Parallel()
	dir, head := gittest.UserRepo(t, gittest.SomeFiles)
	gittest.Git(t, dir, "branch", "feature/a")
	gittest.Write(t, dir+"/a.txt", "changed")
	s, err := userrepo.Inspect(ctx, userrepo.At(dir), "feature/a", loopRef)
	require.NoError(t, err)
	assert.Equal(t, head, s.Head)
	assert.Equal(t, "feature/a", s.Branch)
	_, err = userrepo.Inspect(ctx, userrepo.At(dir), "main", loopRef)
	require.Error(t, err, "named, but checked out")
	gittest.Git(t, dir, "checkout", "-q", "--detach")
	s, err = userrepo.Inspect(ctx, userrepo.At(dir), "main", loopRef)
	require.NoError(t, err)
	assert.Empty(t, s.Current)
}

func TestInspectListsTakenNames(t *testing.T) {
	t.Parallel()
	dir, head := gittest.UserRepo(t, gittest.SomeFiles)
	gittest.Git(t, dir, "branch", "pawl/x")
	gittest.Git(t, dir, "branch", "pawl/y.2")
	gittest.Git(t, dir, "update-ref", "refs/pawl-ledger/x", head)
	gittest.Git(t, dir, "update-ref", "refs/pawl-ledger/z", head)
	s, err := userrepo.Inspect(ctx, userrepo.At(dir), "", loopRef)
	require.NoError(t, err)
	assert.Equal(t, []string{"x", "y.2", "z"}, s.Loops)
}

func TestInspectStartsNoProgramOfTheRepositorysChoosing(t *testing.T) {
	t.Parallel()
	dir, _ := gittest.UserRepo(t, gittest.SomeFiles)
	canary := filepath.Join(t.TempDir(), "canary")
	gittest.Git(t, dir, "config", "core.fsmonitor", "touch "+canary)
	_, err := userrepo.Inspect(ctx, userrepo.At(dir), "", loopRef)
	require.NoError(t, err)
	assert.NoFileExists(t, canary)
	_, _ = gittest.TryGit(dir, "status")
	assert.FileExists(t, canary, "the canary sings")
}

func TestA1_AllThatIsWrongWithARepositoryIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	dir, head := gittest.UserRepo(t, gittest.SomeFiles)
	gittest.Git(t, dir, "branch", "pawl")
	gittest.Write(t, dir+"/loop-results.tsv.lock", "")
	gittest.Write(t, dir+"/a.txt", "changed")
	source, err := userrepo.Inspect(ctx, userrepo.At(dir), "", loopRef)
	var codes []string
	for _, pre := range userrepo.Failed(err) {
		codes = append(codes, pre.Code)
		assert.ErrorContains(t, err, pre.What)
	}
	assert.Equal(t, []string{userrepo.NameInTheWay, userrepo.StaleLock, userrepo.DirtyTree}, codes)
	assert.Equal(t, head, source.Head, "the loop could start from there")
	assert.Empty(t, userrepo.Failed(os.ErrInvalid))
}
