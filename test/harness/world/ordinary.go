package world

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stretchr/testify/require"
)

// Ordinary makes the world's programs run as a user without rights, if the test runs as root. Call it when everything
// that they need is in the world's folder.
func (w *World) Ordinary() { w.As(nobody) }

const nobody = 65534

// As is Ordinary for the user of that number, whom the machine need not know.
func (w *World) As(uid int) {
	w.T.Helper()
	if os.Getuid() != 0 {
		return
	}
	w.User = &syscall.Credential{Uid: uint32(uid), Gid: nobody}
	w.GitEnv = append(w.GitEnv, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	for dir := Scratch; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(w.T, os.Chmod(dir, 0o755))
	}
	require.NoError(w.T, os.Chmod(w.Dir, 0o700))
	require.NoError(w.T, filepath.WalkDir(w.Dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, nobody)
	}))
}
