package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What fails for a reason that is not the loop's is tried again until somebody mends it, who has
// to be told.
func TestMachineThatFailsIsToldAndTriedAgain(t *testing.T) {
	w := newWorldOfItsOwn(t, raises)
	t.Parallel()
	w.write("home/stores", "this is no folder\n")
	c := w.start("run", "--yes", w.specFile())
	w.until("it is told", func() bool { return strings.Contains(readFile(c.err), "Open fails and is tried again: ") })
	require.Contains(t, readFile(c.err), "stores")
	require.NoError(t, os.Remove(filepath.Join(w.home, "stores")))
	s := c.wait()
	require.Equal(t, 0, s.code, s.err)
	plain(t, s.err)
	require.Equal(t, "11", w.kept("work/n"))
}

func TestP0_NoGit(t *testing.T) {
	w := newWorldOfItsOwn(t, raises)
	t.Parallel()
	c := w.prepare("run", "--yes", w.specFile())
	c.cmd.Env = append(c.cmd.Env, "PATH=/nonexistent")
	s := c.begin().wait()
	require.Equal(t, 2, s.code, s.err)
	require.Contains(t, s.err, "finds no git on its PATH (PRECONDITION_FAILED)")
	c = w.prepare("init", w.repo)
	c.cmd.Env = append(c.cmd.Env, "PATH=/nonexistent")
	s = c.begin().wait()
	require.Equal(t, 2, s.code, s.err)
	require.Contains(t, s.err, "there is no git on the PATH (PRECONDITION_FAILED)")
}

func TestP0_GitThatIsTooOld(t *testing.T) {
	w := newWorldOfItsOwn(t, raises)
	t.Parallel()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\necho git version 2.20.1\n"), 0o755))
	w.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	for _, command := range []string{"run", "validate"} {
		s := w.pawl(command, w.specFile())
		require.Equal(t, 2, s.code, s.err)
		require.Contains(t, s.err, "git 2.20.1 is too old")
		require.Contains(t, s.err, "install 2.34 or later")
		plain(t, s.err)
	}
}
