package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/proc"
	"pawl/internal/sandbox"
)

// TestE6_WhatOnlyRootMayReadIsReadByNoCommandOfRoots has the machine replace a secret of the system's and make a new one while
// a command runs, as passwd does.
func TestE6_WhatOnlyRootMayReadIsReadByNoCommandOfRoots(t *testing.T) {
	m := sandbox.Probe()
	if os.Geteuid() != 0 || m.Files != sandbox.ByNamespace {
		lacking(t, "these are root's commands in namespaces")
	}
	p := newPlace(t, m)
	etc, err := os.MkdirTemp("/etc", "pawl-test-*")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(etc)) })
	require.NoError(t, os.Chmod(etc, 0o755))
	put := func(name string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(filepath.Join(etc, "."+name), []byte("text\n"), mode))
		require.NoError(t, os.Rename(filepath.Join(etc, "."+name), filepath.Join(etc, name)))
	}
	put("old", 0o600)
	for _, pipe := range []string{"began", "go"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(p.desk, pipe), 0o666))
	}
	policy := sandbox.Make(p.request)
	s, err := proc.Start(t.Name(), m.Files)
	require.NoError(t, err)
	defer s.Close()
	out := filepath.Join(p.dir, "out")
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(context.Background(), proc.Command{
			Argv: []string{"bash", "-c", "echo >began; read <go; cd " + etc + "; for f in old new public; do cat $f >/dev/null 2>&1 && echo $f; done"},
			Dir:  p.desk, Env: os.Environ(), Stdout: out, Sandbox: &policy,
		})
		ended <- err
	}()
	_, err = os.ReadFile(filepath.Join(p.desk, "began"))
	require.NoError(t, err)
	put("old", 0o600)
	put("new", 0o600)
	put("public", 0o644)
	require.NoError(t, os.WriteFile(filepath.Join(p.desk, "go"), []byte("\n"), 0o600))
	require.NoError(t, <-ended)
	read, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "public\n", string(read))
}
