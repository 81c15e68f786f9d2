package worktree_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git/worktree"
	"pawl/test/harness/gittest"
)

// If evaluations must start alike, setup runs once more for what they change below judge.keep, and not each time.
func TestWhatEvaluationsChangeIsBroughtBackWithoutSetup(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	jdg := b.Tree("judge", b.Base)
	d := jdg.Dir
	o := worktree.RestoreOptions{Judge: true, Keep: []string{"node_modules/**"}, Clean: true}
	setups := 0
	setup := func() {
		setups++
		gittest.Write(t, d+"/node_modules/.cache/when", "made")
		gittest.Write(t, d+"/node_modules/.cache/also", "made too")
		require.NoError(t, os.Chmod(d+"/node_modules/.cache/also", 0o755))
		gittest.Write(t, d+"/node_modules/a/index.js", "a")
		require.NoError(t, jdg.Pristine(ctx))
	}
	setup()
	want := gittest.Listing(t, d)
	restore := func() {
		t.Helper()
		again, err := jdg.Restore(ctx, b.Base, o)
		require.NoError(t, err)
		if again {
			assert.Contains(t, jdg.Why, "node_modules/.cache/also, which setup made")
			setup()
			b.Restore(jdg, b.Base, o)
		}
		assert.Equal(t, want, gittest.Listing(t, d))
	}
	for range 5 {
		gittest.Write(t, d+"/node_modules/.cache/when", "changed")
		require.NoError(t, os.Remove(d+"/node_modules/.cache/also"))
		gittest.Write(t, d+"/node_modules/.cache/new", "x")
		restore()
	}
	assert.Equal(t, 2, setups)
	o.Clean = false
	gittest.Write(t, d+"/node_modules/.cache/when", "stays")
	b.Restore(jdg, b.Base, o)
	assert.Equal(t, "stays", string(gittest.Must(os.ReadFile(d+"/node_modules/.cache/when"))))
}

// pnpm and uv link a tree's files to their caches. Another tree's setup then adds or removes a name of the file.
func TestAnotherNameOfAFileIsNoChangeOfIt(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	jdg := b.Tree("judge", b.Base)
	cache := b.Dir + "/cache-of-pnpm"
	gittest.Write(t, cache, "lib")
	require.NoError(t, os.Mkdir(jdg.Dir+"/node_modules", 0o755))
	require.NoError(t, os.Link(cache, jdg.Dir+"/node_modules/lib.js"))
	require.NoError(t, jdg.Pristine(ctx))
	for _, name := range []string{"1", "2"} {
		require.NoError(t, os.Link(cache, cache+name))
		b.Restore(jdg, b.Base, judge)
		b.Restore(jdg, b.Base, judge)
	}
	is, err := os.Stat(cache)
	require.NoError(t, err)
	gittest.Write(t, cache, "lob")
	require.NoError(t, os.Chtimes(cache, is.ModTime(), is.ModTime()))
	again, err := jdg.Restore(ctx, b.Base, judge)
	require.NoError(t, err)
	assert.True(t, again, "it was written to by its other name")
}
