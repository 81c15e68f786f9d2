package repo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/repo"
)

const loopRef = "refs/heads/pawl/x"

func TestP0_EachRepositoryPreconditionHasItsOwnError(t *testing.T) {
	for name, c := range map[string]struct {
		code  string
		paths []string
		base  string
		setup func(t *testing.T, dir string) string // returns the path to inspect
	}{
		"no such folder":     {code: repo.NoSuchPath, setup: func(_ *testing.T, dir string) string { return dir + "/nowhere" }},
		"a file, not folder": {code: repo.NoSuchPath, setup: func(_ *testing.T, dir string) string { return dir + "/a.txt" }},
		"no repository":      {code: repo.NotARepository, setup: func(t *testing.T, _ string) string { return t.TempDir() }},
		"inside .git":        {code: repo.NotARepository, setup: func(_ *testing.T, dir string) string { return dir + "/.git" }},
		"a bare repository": {code: repo.BareRepository, setup: func(t *testing.T, dir string) string {
			bare := filepath.Join(t.TempDir(), "bare")
			git(t, dir, "clone", "-q", "--bare", dir, bare)
			return bare
		}},
		"sha256 objects": {code: repo.ObjectFormat, setup: func(t *testing.T, _ string) string {
			dir := t.TempDir()
			git(t, dir, "init", "-q", "--object-format=sha256")
			return dir
		}},
		"no commit": {code: repo.NoCommit, setup: func(t *testing.T, _ string) string {
			dir := t.TempDir()
			git(t, dir, "init", "-q")
			return dir
		}},
		"detached HEAD": {code: repo.DetachedHead, setup: func(t *testing.T, dir string) string {
			git(t, dir, "checkout", "-q", "--detach")
			return dir
		}},
		"no such base":      {code: repo.NoSuchBranch, base: "nope", setup: func(_ *testing.T, dir string) string { return dir }},
		"an option as base": {code: repo.NoSuchBranch, base: "--all", setup: func(_ *testing.T, dir string) string { return dir }},
		"a clone without contents": {code: repo.PartialClone, setup: func(t *testing.T, dir string) string {
			git(t, dir, "config", "uploadpack.allowFilter", "true")
			write(t, dir+"/a.txt", "changed\n")
			git(t, dir, "commit", "-qam", "more")
			part := filepath.Join(t.TempDir(), "part")
			git(t, dir, "clone", "-q", "--filter=blob:none", "file://"+dir, part) // all but the old a.txt
			return part
		}},
		"a modified file": {code: repo.DirtyTree, paths: []string{"a.txt"}, setup: func(t *testing.T, dir string) string {
			write(t, dir+"/a.txt", "changed")
			return dir
		}},
		"a staged file": {code: repo.DirtyTree, paths: []string{"new"}, setup: func(t *testing.T, dir string) string {
			write(t, dir+"/new", "")
			git(t, dir, "add", "new")
			return dir
		}},
		"an untracked file of a strange name": {code: repo.DirtyTree, paths: []string{"new\n\xff"}, setup: func(t *testing.T, dir string) string {
			git(t, dir, "config", "status.showUntrackedFiles", "no") // the user's habit does not hide it
			write(t, dir+"/new\n\xff", "")
			return dir
		}},
		"many untracked files": {code: repo.DirtyTree, paths: []string{"n1", "n2", "n3", "n4", "n5"}, setup: func(t *testing.T, dir string) string {
			for _, n := range "123456789" {
				write(t, dir+"/n"+string(n), "")
			}
			return dir
		}},
		"a conflict": {code: repo.UnmergedTree, paths: []string{"a.txt"}, setup: func(t *testing.T, dir string) string {
			conflict(t, dir)
			return dir
		}},
		"a merge that is not committed": {code: repo.UnmergedTree, setup: func(t *testing.T, dir string) string {
			git(t, dir, "checkout", "-q", "-b", "other")
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "nothing")
			git(t, dir, "checkout", "-q", "-b", "ours", "HEAD~1")
			git(t, dir, "merge", "-q", "--no-ff", "--no-commit", "other") // the tree is clean
			return dir
		}},
		"a rebase that is not finished": {code: repo.UnmergedTree, setup: func(t *testing.T, dir string) string {
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "nothing")
			_, err := tryGit(dir, "rebase", "-q", "--exec", "false", "HEAD~1") // HEAD is detached, the tree clean
			require.Error(t, err)
			return dir
		}},
		"a cherry-pick that is not finished, in a worktree": {code: repo.UnmergedTree, setup: func(t *testing.T, dir string) string {
			side := filepath.Join(t.TempDir(), "side")
			git(t, dir, "worktree", "add", "-q", "-b", "side", side)
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "nothing")
			_, err := tryGit(side, "cherry-pick", git(t, dir, "rev-parse", "HEAD"))
			require.Error(t, err)
			return side
		}},
		"files that a stash could not merge": {code: repo.UnmergedTree, paths: []string{"a.txt"}, setup: func(t *testing.T, dir string) string {
			write(t, dir+"/a.txt", "mine\n")
			git(t, dir, "stash", "-q")
			write(t, dir+"/a.txt", "ours\n")
			git(t, dir, "commit", "-qam", "ours")
			_, err := tryGit(dir, "stash", "pop", "-q")
			require.Error(t, err)
			return dir
		}},
		"a broken configuration": {code: repo.Unreadable, setup: func(_ *testing.T, dir string) string {
			write(t, dir+"/.git/config", "[core\n")
			return dir
		}},
		"a broken index": {code: repo.Unreadable, setup: func(_ *testing.T, dir string) string {
			write(t, dir+"/.git/index", "junk")
			return dir
		}},
		"a branch without its commit": {code: repo.Unreadable, setup: func(_ *testing.T, dir string) string {
			write(t, dir+"/.git/refs/heads/main", "0000000000000000000000000000000000000001\n")
			return dir
		}},
		"a stale lock": {code: repo.StaleLock, paths: []string{"loop-results.tsv.lock"}, setup: func(t *testing.T, dir string) string {
			write(t, dir+"/loop-results.tsv.lock", "")
			return dir
		}},
		"a branch called pawl": {code: repo.NameInTheWay, setup: func(t *testing.T, dir string) string {
			git(t, dir, "branch", "pawl")
			return dir
		}},
		"a branch below the loop's": {code: repo.NameInTheWay, setup: func(t *testing.T, dir string) string {
			git(t, dir, "branch", "pawl/x/y")
			return dir
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := userRepo(t, someFiles)
			path := c.setup(t, dir)
			_, err := repo.Inspect(ctx, path, c.base, loopRef)
			var p *repo.Precondition
			require.ErrorAs(t, err, &p)
			assert.Equal(t, c.code, p.Code, p.Error())
			assert.NotEmpty(t, p.What)
			assert.NotEmpty(t, p.Do)
			if c.paths != nil {
				assert.Equal(t, c.paths, p.Paths)
			}
			assert.NotContains(t, p.Error(), "\n")
		})
	}
}

// conflict leaves a merge of two changes to a.txt unfinished.
func conflict(t testing.TB, dir string) {
	t.Helper()
	git(t, dir, "checkout", "-q", "-b", "other")
	write(t, dir+"/a.txt", "theirs\n")
	git(t, dir, "commit", "-qam", "theirs")
	git(t, dir, "checkout", "-q", "-b", "ours", "HEAD~1")
	write(t, dir+"/a.txt", "ours\n")
	git(t, dir, "commit", "-qam", "ours")
	_, err := tryGit(dir, "merge", "other")
	require.Error(t, err)
}

func TestInspectTellsWhereTheLoopStarts(t *testing.T) {
	dir, head := userRepo(t, someFiles)
	git(t, dir, "config", "user.name", "Ada")
	git(t, dir, "config", "user.email", "ada@example.org")
	before := bytesOf(t, dir)

	s, err := repo.Inspect(ctx, filepath.Join(dir, "src", "deep"), "", loopRef)
	require.NoError(t, err)
	assert.Equal(t, repo.Source{Path: dir, Branch: "main", Head: head, Current: "main", UserName: "Ada", UserEmail: "ada@example.org"}, s)
	assert.Equal(t, repo.Identity{Name: "Ada", Email: "ada@example.org"}, s.Identity())
	assert.Equal(t, repo.Identity{Name: "pawl", Email: "pawl@localhost"}, repo.Source{UserName: "Ada"}.Identity())
	assert.Equal(t, before, bytesOf(t, dir), "looking changes nothing")
}

func TestInspectOverlooksPawlsOwnFiles(t *testing.T) {
	dir, _ := userRepo(t, someFiles)
	write(t, dir+"/loop-results.tsv", "")
	write(t, dir+"/loop-stop", "")
	_, err := repo.Inspect(ctx, dir, "", loopRef)
	require.NoError(t, err)
	write(t, dir+"/src/loop-stop", "")
	_, err = repo.Inspect(ctx, dir, "", loopRef)
	require.Error(t, err, "only in the root")
}

func TestANamedBaseNeedsNoCleanTreeAndNoBranchCheckedOut(t *testing.T) {
	dir, head := userRepo(t, someFiles)
	git(t, dir, "branch", "feature/a")
	write(t, dir+"/a.txt", "changed")
	s, err := repo.Inspect(ctx, dir, "feature/a", loopRef)
	require.NoError(t, err)
	assert.Equal(t, head, s.Head)
	assert.Equal(t, "feature/a", s.Branch)
	_, err = repo.Inspect(ctx, dir, "main", loopRef)
	require.Error(t, err, "named, but checked out")
	git(t, dir, "checkout", "-q", "--detach")
	s, err = repo.Inspect(ctx, dir, "main", loopRef)
	require.NoError(t, err)
	assert.Empty(t, s.Current)
}

func TestInspectListsTakenNames(t *testing.T) {
	dir, head := userRepo(t, someFiles)
	git(t, dir, "branch", "pawl/x")
	git(t, dir, "branch", "pawl/y.2")
	git(t, dir, "update-ref", "refs/pawl-ledger/x", head)
	git(t, dir, "update-ref", "refs/pawl-ledger/z", head)
	s, err := repo.Inspect(ctx, dir, "", loopRef)
	require.NoError(t, err)
	assert.Equal(t, []string{"x", "y.2", "z"}, s.Loops)
}

func TestInspectStartsNoProgramOfTheRepositorysChoosing(t *testing.T) {
	dir, _ := userRepo(t, someFiles)
	canary := filepath.Join(t.TempDir(), "canary")
	git(t, dir, "config", "core.fsmonitor", "touch "+canary)
	_, err := repo.Inspect(ctx, dir, "", loopRef)
	require.NoError(t, err)
	assert.NoFileExists(t, canary)
	_, _ = tryGit(dir, "status")
	assert.FileExists(t, canary, "the canary sings")
}

// bytesOf is every file of a repository with its content and times, .git included.
func bytesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	m := listing(t, dir)
	for k, v := range listing(t, filepath.Join(dir, ".git")) {
		m[".git/"+k] = v
	}
	for k := range m {
		fi, err := os.Lstat(filepath.Join(dir, k))
		require.NoError(t, err)
		if !fi.IsDir() || strings.HasPrefix(k, "src") {
			m[k] += fi.ModTime().String()
		}
	}
	return m
}

func TestA1_AllThatIsWrongWithARepositoryIsSaidAtOnce(t *testing.T) {
	dir, head := userRepo(t, someFiles)
	git(t, dir, "branch", "pawl")
	write(t, dir+"/loop-results.tsv.lock", "")
	write(t, dir+"/a.txt", "changed")
	source, err := repo.Inspect(ctx, dir, "", loopRef)
	var codes []string
	for _, pre := range repo.Failed(err) {
		codes = append(codes, pre.Code)
		assert.ErrorContains(t, err, pre.What)
	}
	assert.Equal(t, []string{repo.NameInTheWay, repo.StaleLock, repo.DirtyTree}, codes)
	assert.Equal(t, head, source.Head, "the loop could start from there")
	assert.Empty(t, repo.Failed(os.ErrInvalid))
}
