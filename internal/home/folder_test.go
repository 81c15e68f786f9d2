package home_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/home"
	"pawl/internal/lib/fsutil/dirfd"
)

func TestAnotherFolderInItsPlaceIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.Mkdir(dir, 0o700))
	was, err := home.Identify(dir)
	require.NoError(t, err)
	h := home.Home{Dir: dir}
	require.NoError(t, h.InPlace(), "whom nobody holds")
	require.NoError(t, dirfd.Keep(dir))
	require.NoError(t, h.InPlace())
	require.NoError(t, h.InPlace())

	require.NoError(t, os.Rename(dir, dir+".away"))
	require.ErrorIs(t, h.InPlace(), os.ErrNotExist)
	require.NoError(t, os.CopyFS(dir, os.DirFS(dir+".away")))
	now, err := home.Identify(dir)
	require.NoError(t, err)
	require.False(t, was.Same(now))
	require.ErrorContains(t, h.InPlace(), "is no longer the folder")

	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".away", dir))
	require.NoError(t, h.InPlace(), "it is back")
	require.True(t, home.Folder{}.Same(now), "one that was never looked at")
	later := was
	later.Boot, later.Device = "another", 99
	require.True(t, was.Same(later), "devices are numbered anew when the machine starts")
	later.Boot = was.Boot
	was.System, later.System = 7, 7
	require.True(t, was.Same(later), "the disk was plugged in again")
	later.System = 8
	require.False(t, was.Same(later))
	was.System, later.System = 0, 0
	require.False(t, was.Same(later))
}

func TestTheGitDirectoryOfEveryKindOfRepository(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	git := func(args ...string) {
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	git("init", "-q", "plain")
	git("-C", "plain", "commit", "-q", "--allow-empty", "-m", "x")
	git("-C", "plain", "worktree", "add", "-q", "../linked")
	git("clone", "-q", "--bare", "plain", "bare.git")
	git("clone", "-q", "--separate-git-dir", "apart.git", "plain", "apart")
	for name, want := range map[string]string{"plain": "plain/.git", "linked": "plain/.git", "bare.git": "bare.git", "apart": "apart.git"} {
		got, err := home.GitDir(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, want), filepath.Clean(got))
	}
}
