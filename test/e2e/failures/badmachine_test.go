package failures_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// pawl repeats what fails because of the machine until somebody repairs the machine, and tells people about it.
func TestMachineThatFailsIsToldAndTriedAgain(t *testing.T) {
	world.Slow(t, "activities has failures that are told and tried again")
	w := world.Alone(t, world.Raises)
	t.Parallel()
	w.Write("home/stores", "this is no folder\n")
	c := w.Start("run", "--yes", w.SpecFile())
	w.Until("it is told", func() bool { return strings.Contains(world.ReadFile(c.Err), "Open fails and is tried again: ") })
	require.Contains(t, world.ReadFile(c.Err), "stores")
	for _, command := range [][]string{{"show", w.Loop}, {"list"}} {
		s := w.Pawl(command...)
		require.Contains(t, s.Out, "trouble  "+w.Loop+": Open fails and is tried again: ", s.Err)
	}
	doctor := w.Pawl("doctor")
	require.Equal(t, 1, doctor.Code)
	require.NoError(t, os.Remove(filepath.Join(w.Home, "stores")))
	s := c.Wait()
	require.Equal(t, 0, s.Code, s.Err)
	world.Plain(t, s.Err)
	require.Equal(t, "11", w.Kept("work/n"))
}

func TestP0_NoGit(t *testing.T) {
	w := world.Alone(t, world.Raises)
	t.Parallel()
	c := w.Prepare("run", "--yes", w.SpecFile())
	c.Cmd.Env = append(c.Cmd.Env, "PATH=/nonexistent")
	s := c.Begin().Wait()
	require.Equal(t, 2, s.Code, s.Err)
	require.Contains(t, s.Err, "finds no git on its PATH (PRECONDITION_FAILED)")
	c = w.Prepare("init", w.Repo)
	c.Cmd.Env = append(c.Cmd.Env, "PATH=/nonexistent")
	s = c.Begin().Wait()
	require.Equal(t, 2, s.Code, s.Err)
	require.Contains(t, s.Err, "git is not on the PATH (PRECONDITION_FAILED)")
}

func TestP0_GitThatIsTooOld(t *testing.T) {
	world.Slow(t, "TestP0_NoGit has the same check")
	w := world.Alone(t, world.Raises)
	t.Parallel()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\necho git version 2.37.7\n"), 0o755))
	w.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	for _, command := range []string{"run", "validate"} {
		s := w.Pawl(command, w.SpecFile())
		require.Equal(t, 2, s.Code, s.Err)
		require.Contains(t, s.Err, "git 2.37.7 is too old")
		require.Contains(t, s.Err, "install 2.38 or later")
		world.Plain(t, s.Err)
	}
}
