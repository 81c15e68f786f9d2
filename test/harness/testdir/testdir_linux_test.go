package testdir_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/testdir"
	"pawl/test/harness/tier"
)

func TestMain(m *testing.M) {
	testdir.InMemory()
	os.Exit(m.Run())
}

// inMemory reports whether a folder is in a tmpfs.
func inMemory(t *testing.T, dir string) bool {
	t.Helper()
	var at syscall.Statfs_t
	require.NoError(t, syscall.Statfs(dir, &at))
	return at.Type == 0x01021994
}

func TestTheTemporaryFolderIsInMemory(t *testing.T) {
	if os.Getuid() != 0 || exec.Command("unshare", "-m", "true").Run() != nil {
		t.Skip("this user may not mount")
	}
	if tier.Nightly {
		require.NotEqual(t, "pawl-test", filepath.Base(os.TempDir()), "the tests work on the disk")
		return
	}
	require.True(t, inMemory(t, t.TempDir()))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	require.NoError(t, exec.Command("test", "-s", file).Run(), "a child sees it")
	require.Error(t, exec.Command("nsenter", "-t", "1", "-m", "test", "-s", file).Run(), "nobody else does")
}
