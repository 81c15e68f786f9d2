package userrepo_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/git/userrepo"
	"pawl/test/harness/gittest"
)

// What is staged stays staged, and is not part of the commit.
func TestOneFileIsCommittedAndWhatIsStagedStays(t *testing.T) {
	dir := t.TempDir()
	gittest.Write(t, dir+"/a", "a\n")
	gittest.Git(t, dir, "init", "-q", "-b", "main")
	gittest.Git(t, dir, "config", "user.name", "ann")
	gittest.Git(t, dir, "config", "user.email", "ann@example.com")
	gittest.Git(t, dir, "add", "-A")
	gittest.Git(t, dir, "commit", "-qm", "base")
	gittest.Write(t, dir+"/a", "staged\n")
	gittest.Git(t, dir, "add", "a")
	gittest.Write(t, dir+"/a", "later\n")
	gittest.Write(t, dir+"/pawl.yaml", "goal: g\n")
	gittest.Write(t, dir+"/other", "o\n")

	u := userrepo.FindUncommitted(t.Context(), dir, "")
	spec := filepath.Join(dir, "pawl.yaml")
	require.True(t, u.Has(spec))
	require.False(t, u.Only(spec))
	require.False(t, u.Has(filepath.Join(t.TempDir(), "pawl.yaml")))
	require.NoError(t, u.CommitFile(t.Context(), spec, "spec"))
	require.Equal(t, "pawl.yaml", gittest.Git(t, dir, "show", "--format=", "--name-only", "HEAD"))
	require.Equal(t, "MM a\n?? other", gittest.Git(t, dir, "status", "--porcelain"))
	require.Equal(t, "staged", gittest.Git(t, dir, "show", ":a"))
}
