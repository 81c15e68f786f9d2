package git_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/lib/toolpath"
	"pawl/test/harness/gittest"
	"pawl/test/harness/testdir"
)

func TestMain(m *testing.M) {
	testdir.InMemory()
	gittest.Main(m)
}

var ctx = context.Background()

func TestVersion(t *testing.T) {
	v, err := git.Version(ctx)
	require.NoError(t, err)
	assert.Regexp(t, `^\d+\.\d+`, v)
	program := filepath.Join(t.TempDir(), "git")
	gittest.Write(t, program, "#!/bin/sh\necho git version 2.37.7\n")
	require.NoError(t, os.Chmod(program, 0o755))
	t.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
	_, err = git.Version(ctx)
	require.ErrorContains(t, err, "git 2.37.7 is too old; install 2.38 or later")
	var unusable *git.Unusable
	require.ErrorAs(t, err, &unusable)
	t.Setenv("PATH", t.TempDir())
	_, err = git.Version(ctx)
	require.ErrorContains(t, err, "install")
}

func TestEscapes(t *testing.T) {
	for _, c := range []struct {
		path, target string
		want         bool
	}{
		{"l", "a", false}, {"l", "./a/b", false}, {"l", "..", true}, {"l", "../x", true}, {"l", "/etc/passwd", true}, {"l", "", true},
		{"d/l", "../a", false}, {"d/l", "../../a", true}, {"d/e/l", "../../a", false}, {"d/e/l", ".././../a", false}, {"d/e/l", "../../../a", true},
		{"d/l", "x/..", true}, {"d/l", "x/../../..", true}, {"l", ".git/config", true}, {"d/l", "../.GIT", true}, {"l", "a//b/", false}, {"l", "..a", false},
	} {
		assert.Equal(t, c.want, git.Escapes(c.path, c.target), "%s -> %s", c.path, c.target)
	}
}

// A program called git is placed in the PATH before the one with which the worker has begun.
func TestAPlantedGitIsNotRun(t *testing.T) {
	if os.Getenv("PIN") == "" { // in its own process, because nothing undoes Pin
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), "PIN=1")
		out, err := again.CombinedOutput()
		require.NoError(t, err, string(out))
		return
	}
	had, open := os.Getenv("PATH"), t.TempDir()
	plant := func(dir string) {
		gittest.Write(t, filepath.Join(dir, "git"), "#!/bin/sh\necho git version 1.0 planted\n")
		require.NoError(t, os.Chmod(filepath.Join(dir, "git"), 0o755))
	}
	plant(open)
	require.NoError(t, os.Chmod(open, 0o777))
	folder := t.TempDir()
	t.Setenv("PATH", ".:"+open+":"+folder+":"+had)
	toolpath.Down("git")
	require.True(t, filepath.IsAbs(git.Program()), "found, and not in a folder that everybody can write")
	plant(folder)
	v, err := git.Version(ctx)
	require.NoError(t, err)
	require.NotContains(t, v, "1.0")
	toolpath.Down("git")
	v, err = git.Version(ctx)
	require.NoError(t, err, "once")
	require.NotContains(t, v, "1.0")
}

// TestE6_NamesThatOtherSystemsTakeForGitGetIntoNoIndex: whatever the repository's own settings allow.
func TestE6_NamesThatOtherSystemsTakeForGitGetIntoNoIndex(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	for _, args := range [][]string{{"init", "-q", "--bare", dir}, {"config", "core.protectHFS", "false"}, {"config", "core.protectNTFS", "false"}} {
		_, err := git.Hardened(dir).Run(ctx, args...)
		require.NoError(t, err)
	}
	blob, err := git.Hardened(dir).Command("hash-object", "-w", "--stdin").Input("x").Run(ctx)
	require.NoError(t, err)
	add := func(name string) error {
		_, err := git.Hardened(dir).Run(ctx, "update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(string(blob))+","+name)
		return err
	}
	require.NoError(t, add("git/config"))
	for _, name := range []string{"git~1/config", ".g\u200cit/config"} {
		require.Error(t, add(name), name)
	}
}
