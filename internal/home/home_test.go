package home_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/home"
)

func TestAHostHasOneId(t *testing.T) {
	h := home.Home{Dir: t.TempDir()}
	first, err := h.HostID()
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{12}$`, first)
	again, err := h.HostID()
	require.NoError(t, err)
	require.Equal(t, first, again)
}

func TestAnIdThatAPowerCutDamagedIsMadeAgain(t *testing.T) {
	for name, torn := range map[string]string{"empty": "", "zeroes": "\x00\x00\x00\x00\x00\x00\n"} {
		t.Run(name, func(t *testing.T) {
			h := home.Home{Dir: t.TempDir()}
			require.NoError(t, os.WriteFile(filepath.Join(h.Dir, "host-id"), []byte(torn), 0o600))
			id, err := h.HostID()
			require.NoError(t, err)
			require.Regexp(t, `^[0-9a-f]{12}$`, id)
			files, err := os.ReadDir(h.Dir)
			require.NoError(t, err)
			require.Len(t, files, 1, "nothing is left beside it")
		})
	}
}

// A link into a disk that is not mounted: with a new ID, everything of the old one would belong to another host.
func TestAnIdBehindALinkThatLeadsNowhereIsAnError(t *testing.T) {
	h := home.Home{Dir: t.TempDir()}
	require.NoError(t, os.Symlink("/nowhere/host-id", filepath.Join(h.Dir, "host-id")))
	_, err := h.HostID()
	require.ErrorContains(t, err, "host-id is a link to /nowhere/host-id, where nothing is")
}

func TestAllWhoAskForAnIdAtOnceGetTheSame(t *testing.T) {
	h := home.Home{Dir: t.TempDir()}
	ids := make(chan string, 20)
	for range cap(ids) {
		go func() {
			id, err := h.HostID()
			assert.NoError(t, err)
			ids <- id
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		require.Equal(t, first, <-ids)
	}
}

func TestAFolderThatCannotBeUsedIsAPrecondition(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		t.Setenv("PAWL_HOME", dir)
		_, err := home.Open()
		require.Equal(t, fault.PreconditionFailed, fault.CodeOf(err))
		require.ErrorContains(t, err, "Set PAWL_HOME to a folder that you can write.")
	}
	t.Setenv("PAWL_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	_, err := home.Open()
	require.Equal(t, fault.PreconditionFailed, fault.CodeOf(err))

	full := home.Unusable("making it", fmt.Errorf("mkdir: %w", syscall.ENOSPC))
	require.Empty(t, fault.CodeOf(full), "a full disk is the machine's")
	require.True(t, errors.Is(full, syscall.ENOSPC))
}

func TestAFolderThatCannotBeWrittenIsToldWithTheReason(t *testing.T) {
	t.Setenv("PAWL_HOME", t.TempDir())
	h, err := home.Open()
	require.NoError(t, err)
	require.Empty(t, h.Unwritable())
	left, err := os.ReadDir(h.Dir)
	require.NoError(t, err)
	require.Empty(t, left, "what was tried is gone")

	require.NoError(t, os.Mkdir(h.Engine(), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(h.Engine(), "temporal.db-wal"), nil, 0o600))
	require.NoError(t, os.Truncate(filepath.Join(h.Engine(), "temporal.db-wal"), 3<<20))
	var most syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &most))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 7 << 19, Max: most.Max}))
	why := h.Unwritable()
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &most))
	require.Contains(t, why, "a file may have at most 3584 KB here (ulimit -f)")
	require.Empty(t, h.Unwritable())
	require.NoError(t, os.RemoveAll(h.Engine()))
	require.NoError(t, os.Remove(h.Dir))
	require.Equal(t, "nothing can be written to "+h.Dir+": no such file or directory", h.Unwritable())
}

func TestAFileSystemWithoutLinksOrLocksIsNamed(t *testing.T) {
	for _, err := range []error{
		&os.LinkError{Op: "link", Old: "a", New: "b", Err: syscall.EPERM},
		&fs.PathError{Op: "lock", Path: "a", Err: syscall.ENOLCK}, &fs.PathError{Op: "lock", Path: "a", Err: syscall.EOPNOTSUPP},
	} {
		require.ErrorContains(t, home.Unusable("trying", err), "a file system with hard links and locks")
	}
	require.NotContains(t, home.Unusable("trying", &os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EACCES}).Error(), "hard links")
}

// A folder of pawl's in the repository would keep the tree from ever being clean, and "git add" would take it.
func TestAHomeInAWorkingTreeIsUnseenByGit(t *testing.T) {
	repo := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(repo, ".git"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(repo, "src"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(repo, "src", "x"), nil, 0o600))
	t.Chdir(repo)
	t.Setenv("PAWL_HOME", "deep/.pawl")
	for range 2 {
		_, err := home.Open()
		require.NoError(t, err)
	}
	content, err := os.ReadFile(filepath.Join(repo, "deep", ".pawl", ".gitignore"))
	require.NoError(t, err)
	require.Equal(t, "*\n", string(content))
	for _, other := range []string{repo, filepath.Join(repo, "src"), t.TempDir()} {
		_, err := home.At(other)
		require.NoError(t, err)
		require.NoFileExists(t, filepath.Join(other, ".gitignore"))
	}
}
