package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
)

// TestE6_WhatOnlyRootMayReadIsReadByNoCommandOfRoots: while a command runs, the machine replaces a secret file of the
// system and makes a new one, as passwd does.
func TestE6_WhatOnlyRootMayReadIsReadByNoCommandOfRoots(t *testing.T) {
	m := sandbox.Probe()
	if os.Geteuid() != 0 {
		t.Skip("these are root's commands")
	}
	if m.Files != sandbox.ByNamespace {
		lacking(t, "root can make no namespaces here")
	}
	p := newPlace(t, m)
	var dirs []string
	for _, of := range []string{"/etc", "/opt", "/usr/local"} {
		if _, err := os.Stat(of); err != nil {
			continue
		}
		dir, err := os.MkdirTemp(of, "pawl-test-*")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		require.NoError(t, os.Chmod(dir, 0o755))
		dirs = append(dirs, dir)
	}
	put := func(name string, mode os.FileMode) {
		for _, dir := range dirs {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name+"~"), []byte("text\n"), mode))
			require.NoError(t, os.Rename(filepath.Join(dir, name+"~"), filepath.Join(dir, name)))
		}
	}
	put("old", 0o600)
	put("named", 0o600)
	for _, pipe := range []string{"began", "go"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(p.desk, pipe), 0o666))
	}
	for _, dir := range dirs {
		p.request.Named = append(p.request.Named, filepath.Join(dir, "named"), filepath.Join(dir, "closed/within"))
		require.NoError(t, os.Mkdir(filepath.Join(dir, "closed"), 0o700))
	}
	put("closed/within", 0o600)
	put("closed/beside", 0o644)
	policy := sandbox.Make(p.request)
	s, err := supervisor.Start(t.Name(), m.Files)
	require.NoError(t, err)
	defer s.Close()
	out := filepath.Join(p.dir, "out")
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(context.Background(), supervisor.Command{
			Argv: []string{"bash", "-c", "echo >began; read <go; for f in old new public named closed/within closed/beside; do for d in " + strings.Join(dirs, " ") + "; do cat $d/$f >/dev/null 2>&1 && echo $f; done; done"},
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
	require.Equal(t, strings.Repeat("public\n", len(dirs))+strings.Repeat("named\n", len(dirs))+strings.Repeat("closed/within\n", len(dirs)), string(read))
}

// TestE6_AWorkerMakesWhatHidesRootsFilesOnce: a supervisor that makes it itself needs half as long again to start.
func TestE6_AWorkerMakesWhatHidesRootsFilesOnce(t *testing.T) {
	m := sandbox.Probe()
	if os.Geteuid() != 0 {
		t.Skip("these are root's commands")
	}
	if m.Files != sandbox.ByNamespace {
		lacking(t, "root can make no namespaces here")
	}
	own, err := os.Readlink("/proc/self/ns/user")
	require.NoError(t, err)
	var handed []string
	for range 2 {
		s, err := supervisor.Start(t.Name(), m.Files)
		require.NoError(t, err)
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", supervisorOf(t)))
		require.NoError(t, err)
		for _, file := range files {
			if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, "user:[") && to != own {
				handed = append(handed, to)
			}
		}
		s.Close()
	}
	require.Len(t, handed, 2, "each supervisor has it before it makes a room")
	require.Equal(t, handed[0], handed[1])
}
