package repository_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// The loop starts from where repo.path leads, whatever the path looks like.
func TestRepositoryThatIsUnusual(t *testing.T) {
	t.Run("a folder in it", func(t *testing.T) {
		world.Slow(t, "as the other cases")
		w := world.New(t, world.Raises)
		w.Set(doc{"repo": doc{"path": filepath.Join(w.Repo, "work")}}).Run(0)
		require.Equal(t, "11", w.Kept("work/n"))
	})
	t.Run("a linked worktree", func(t *testing.T) {
		world.Slow(t, "TestWorktreesOfTheUsers has them, too")
		w := world.New(t, world.Raises)
		tree := filepath.Join(w.Dir, "tree")
		w.Git("worktree", "add", "-q", "-b", "side", tree)
		w.Before = w.Snapshot()
		w.Set(doc{"repo": doc{"path": tree}}).Run(0)
		require.Equal(t, "11", w.Kept("work/n"))
		require.Empty(t, w.Git("-C", tree, "status", "--porcelain"))
	})
	t.Run("another branch than the one that is checked out", func(t *testing.T) {
		world.Slow(t, "as the other cases")
		w := world.New(t, world.Raises)
		w.Git("checkout", "--quiet", "-b", "other")
		w.Write("repo/work/n", "20\n")
		w.Commit("other")
		w.Git("checkout", "--quiet", "main")
		w.Write("repo/work/n", "dirty\n")
		w.Before = w.Snapshot()
		w.Set(doc{"repo": doc{"base": "other"}}).Run(0)
		require.Equal(t, "21", w.Kept("work/n"))
	})
	t.Run("a link to it", func(t *testing.T) {
		world.Slow(t, "as the other cases")
		w := world.New(t, world.Raises)
		link := filepath.Join(w.Dir, "link")
		require.NoError(t, os.Symlink(w.Repo, link))
		w.Set(doc{"repo": doc{"path": link}}).Run(0)
		require.Equal(t, "11", w.Kept("work/n"))
	})
	t.Run("with hooks and programs of the user's own", func(t *testing.T) {
		w := world.New(t, world.Raises)
		for _, hook := range []string{"post-checkout", "pre-push", "post-index-change", "fsmonitor-watchman", "post-commit"} {
			w.Write("repo/.git/hooks/"+hook, "#!/bin/sh\ntouch '"+w.Dir+"/canary'\n")
			require.NoError(t, os.Chmod(filepath.Join(w.Repo, ".git", "hooks", hook), 0o755))
		}
		w.Write("bin/canary", "#!/bin/sh\ntouch '"+w.Dir+"/canary'\nexec cat\n")
		require.NoError(t, os.Chmod(filepath.Join(w.Dir, "bin", "canary"), 0o755))
		w.Git("config", "core.fsmonitor", filepath.Join(w.Dir, "bin", "canary"))
		w.Git("config", "diff.external", filepath.Join(w.Dir, "bin", "canary"))
		w.Before = w.Snapshot()
		w.Run(0)
		require.False(t, w.Exists("canary"))
		require.Equal(t, "11", w.Kept("work/n"))
	})
	t.Run("a shallow clone", func(t *testing.T) {
		world.Slow(t, "as the other cases")
		w := world.New(t, world.Raises)
		w.Write("repo/README.md", "a higher hill\n")
		w.Commit("more")
		shallow := filepath.Join(w.Dir, "shallow")
		w.Git("clone", "--quiet", "--depth", "1", "file://"+w.Repo, shallow)
		w.Repo = shallow
		w.Before = w.Snapshot()
		w.Set(doc{"repo": doc{"path": shallow}}).Run(0)
		require.Equal(t, "11", w.Kept("work/n"))
	})
	t.Run("a submodule that is not checked out", func(t *testing.T) {
		w := world.New(t, world.Raises)
		w.Git("clone", "--quiet", w.Repo, filepath.Join(w.Dir, "lib"))
		w.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", filepath.Join(w.Dir, "lib"), "lib")
		w.Commit("submodule")
		w.Run(0)
		require.Equal(t, "11", w.Kept("work/n"))
		require.Contains(t, w.OnBranch(), "lib")
	})
}

// A git whose defaults are SHA-256 and reftables, as git 3 has them: pawl names the formats of what it makes, and works in
// a repository of the user's with reftables.
func TestAGitWithOtherDefaults(t *testing.T) {
	world.Slow(t, "needs a git of its own")
	real := filepath.Join(gitWithReftables(t), "git")
	folder := t.TempDir()
	// The defaults are built in, so no cleaned environment or configuration changes them.
	script := fmt.Sprintf(`#!/bin/sh
: "${GIT_DEFAULT_HASH:=sha256}" "${GIT_DEFAULT_REF_FORMAT:=reftable}"
export GIT_DEFAULT_HASH GIT_DEFAULT_REF_FORMAT
exec %s "$@"
`, real)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "git"), []byte(script), 0o755))
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	w := world.Alone(t, world.Raises)
	require.NoError(t, os.RemoveAll(filepath.Join(w.Repo, ".git", "logs"))) // git 2.47 migrates no reflogs
	w.Git("refs", "migrate", "--ref-format=reftable")
	require.Equal(t, 0, w.Pawl("validate", w.SpecFile()).Code)
	r := w.Run(0)
	require.Equal(t, "yes", w.LastRow().Kept())
	w.Done("approve", w.Loop, "--hash", r.Result.Proposal.Hash)
	w.Done("apply", w.Loop)
	require.Equal(t, "reftable", w.Git("rev-parse", "--show-ref-format"))
	require.Equal(t, "11", w.Git("show", "main:work/n"))
	require.Empty(t, w.Git("status", "--porcelain"))
	w.Before = w.Snapshot() // the branches are in tables
}

// gitWithReftables is the folder of a git that can make a repository with reftables: the machine's own, or else the one
// that .ci/git has fetched.
func gitWithReftables(t *testing.T) string {
	t.Helper()
	var folders []string
	if own, err := exec.LookPath("git"); err == nil {
		folders = append(folders, filepath.Dir(own))
	}
	if named := os.Getenv("PAWL_TEST_GIT"); named != "" {
		folders = append(folders, named)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		folders = append(folders, filepath.Join(cache, "pawl-test", "git-trixie", "bin"))
	}
	for _, folder := range folders {
		git := filepath.Join(folder, "git")
		if exec.Command(git, "init", "--quiet", "--ref-format=reftable", t.TempDir()).Run() == nil {
			return folder
		}
	}
	world.Lacks(t, "no git with reftables (2.46 or newer): .ci/git fetches one")
	return ""
}
