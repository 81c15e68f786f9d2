package remove_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/fsutil/remove"
)

const nobody = 65534

// Root may remove anything. So if the tests run as root, an ordinary user removes.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PAWL_TEST_REMOVE"); dir != "" {
		if err := remove.All(dir); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockedFoldersGo(t *testing.T) {
	dir := t.TempDir()
	top := filepath.Join(dir, "top")
	outside := filepath.Join(dir, "outside", "file")
	for _, name := range []string{"a/shut/in", "a/readonly/in", "a/deep/" + strings.Repeat("d/", 1500)} {
		require.NoError(t, os.MkdirAll(filepath.Join(top, name), 0o755))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(outside), 0o755))
	require.NoError(t, os.WriteFile(outside, nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(top, "a/readonly/file"), nil, 0o400))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(top, "a/link")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(top, "a/readonly/fifo"), 0))
	require.NoError(t, os.Chmod(filepath.Join(top, "a/shut"), 0))
	require.NoError(t, os.Chmod(filepath.Join(top, "a/readonly"), 0o555))

	if os.Geteuid() != 0 {
		require.NoError(t, remove.All(top))
	} else {
		out, err := exec.Command("chown", "-R", "nobody", dir).CombinedOutput()
		require.NoError(t, err, string(out))
		for up := filepath.Dir(dir); up != os.TempDir(); up = filepath.Dir(up) {
			require.NoError(t, os.Chmod(up, 0o755))
		}
		program := filepath.Join(filepath.Dir(dir), "remove.test")
		out, err = exec.Command("install", "-m", "755", os.Args[0], program).CombinedOutput()
		require.NoError(t, err, string(out))
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "PAWL_TEST_REMOVE="+top)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err = cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	require.NoDirExists(t, top)
	require.FileExists(t, outside)
	require.NoError(t, remove.All(top), "what is not there")
	require.NoError(t, remove.All(filepath.Join(top, "nor/that")))
}
