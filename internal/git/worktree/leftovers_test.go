package worktree_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/git/worktree"
	"pawl/test/harness/gittest"
)

// A repository that does not ignore its node_modules has them on the desk, iteration after iteration, and they never
// count as the agent's change.
func TestWhatSetupMadeIsNoPartOfAChange(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Fresh(b.Base)
	d := desk.Dir
	gittest.Write(t, d+"/node_modules/dep/lib.js", "lib")
	gittest.Write(t, d+"/src/made.js", "beside what is tracked")
	require.NoError(t, desk.Pristine(ctx))
	want := gittest.Listing(t, d)
	b.Restore(desk, b.Base, worktree.RestoreOptions{})
	require.Equal(t, want, gittest.Listing(t, d))
	require.True(t, b.Stage(desk, b.Base).Empty())

	gittest.Write(t, d+"/node_modules/.cache/x", "as the agent's tests leave it")
	gittest.Write(t, d+"/node_modules/dep/.git/HEAD", "no repository of anybody's concern")
	gittest.Write(t, d+"/src/own.js", "the agent's")
	require.Equal(t, []string{"src/own.js"}, paths(b.Stage(desk, b.Base).Files))
	left, err := desk.Leftovers(ctx, b.Base)
	require.NoError(t, err)
	require.Equal(t, []string{"src/own.js"}, left)
	b.Restore(desk, b.Base, worktree.RestoreOptions{})
	require.FileExists(t, d+"/node_modules/.cache/x")
	require.NoFileExists(t, d+"/src/own.js")

	// Once a commit has the file, it is like any other file.
	other := b.Tree("other", b.Base)
	gittest.Write(t, other.Dir+"/src/made.js", "tracked")
	head := b.Commit(other, b.Base)
	b.Restore(desk, head, worktree.RestoreOptions{})
	gittest.Write(t, d+"/src/made.js", "changed")
	require.Equal(t, []string{"src/made.js"}, paths(b.Stage(desk, head).Files))
}

// A folder without tracked files is named as a whole.
func TestWhatCommandsLeaveIsNamedAndCountsToNoChange(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	left := func(tree *worktree.Tree) []string {
		names, err := tree.Leftovers(ctx, b.Base)
		require.NoError(t, err)
		return names
	}
	in := b.Tree("judge", b.Base)
	require.Empty(t, left(in))
	gittest.Write(t, in.Dir+"/x.log", "ignored")
	gittest.Write(t, in.Dir+"/report.xml", "x")
	gittest.Write(t, in.Dir+"/out/deep/er", "x")
	gittest.Write(t, in.Dir+"/src/b.pyc", "x")
	names := left(in)
	require.Equal(t, []string{"out", "report.xml", "src/b.pyc"}, names)

	desk := b.Tree("desk", b.Base)
	for _, name := range []string{"report.xml", "out/other", "out/n/.git/HEAD", "src/b.pyc", "src/b.js", "a.txt"} {
		gittest.Write(t, desk.Dir+"/"+name, "y")
	}
	c, err := desk.StageRead(ctx, b.Base, worktree.StageOptions{Largest: 1 << 20, Leftovers: append(names, "a.txt", "src", "")})
	require.NoError(t, err)
	require.Empty(t, c.Violations)
	require.Equal(t, []string{"a.txt", "src/b.js"}, paths(c.Files), "what is tracked is no leftover, whoever says so")
}
