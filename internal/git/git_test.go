package git_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/gittest"
)

func TestMain(m *testing.M) { gittest.Main(m) }

var ctx = context.Background()

func TestVersion(t *testing.T) {
	v, err := git.Version(ctx)
	require.NoError(t, err)
	assert.Regexp(t, `^\d+\.\d+`, v)
	program := filepath.Join(t.TempDir(), "git")
	gittest.Write(t, program, "#!/bin/sh\necho git version 2.20.1\n")
	require.NoError(t, os.Chmod(program, 0o755))
	t.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
	_, err = git.Version(ctx)
	require.ErrorContains(t, err, "git 2.20.1 is too old; install 2.34 or later")
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
