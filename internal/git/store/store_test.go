package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/home/repairlog"
	"pawl/test/harness/gittest"
)

func TestOpenStoreMakesABareRepositoryOnceForAll(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "with space\n", "store")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := store.Open(ctx, dir)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	assert.Equal(t, "true", gittest.Git(t, dir, "rev-parse", "--is-bare-repository"))
	assert.Empty(t, gittest.Git(t, dir, "for-each-ref"))
	assert.Equal(t, "/loop-results.tsv\n/loop-stop\n/loop-results.tsv.lock\n", gittest.Read(t, filepath.Join(dir, "info", "exclude")))
	fi, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), fi.Mode().Perm())

	gittest.Write(t, filepath.Join(dir, "config"), "[core]\n\tbare = true\n\thooksPath = /evil\n")
	_, err = store.Open(ctx, dir)
	require.NoError(t, err)
	assert.NotContains(t, gittest.Read(t, filepath.Join(dir, "config")), "evil", "its config is pawl's")
	require.Len(t, repairlog.In(dir), 1, "its loops are told")
	assert.Regexp(t, "^config of the store .* was not as pawl writes it", repairlog.In(dir)[0].What)
	_, err = store.Open(ctx, dir)
	require.NoError(t, err)
	assert.Len(t, repairlog.In(dir), 1, "once")
}

func TestOpenStoreClearsAwayAnAttemptThatDied(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	gittest.Write(t, filepath.Join(dir+".new", "junk"), "")
	_, err := store.Open(ctx, dir)
	require.NoError(t, err)
	assert.NoDirExists(t, dir+".new")
	assert.NoFileExists(t, filepath.Join(dir, "junk"))
}

func TestSetRefIsACompareAndSwap(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	other := b.StoreGit("commit-tree", "-m", "other", b.Base+"^{tree}")
	const ref = "refs/heads/pawl/other"
	var fenced *store.Fenced

	require.NoError(t, b.Store.SetRef(ctx, ref, b.Base, ""))
	require.NoError(t, b.Store.SetRef(ctx, ref, b.Base, ""), "already there")
	require.ErrorAs(t, b.Store.SetRef(ctx, ref, other, other), &fenced)
	assert.Equal(t, store.Fenced{Ref: ref, Want: other, Have: b.Base}, *fenced)
	require.ErrorAs(t, b.Store.SetRef(ctx, ref, other, ""), &fenced)
	require.NoError(t, b.Store.SetRef(ctx, ref, other, b.Base))
	got, err := b.Store.Ref(ctx, ref)
	require.NoError(t, err)
	assert.Equal(t, other, got)
	require.NoError(t, b.Store.SetRef(ctx, ref, "", other))
	require.NoError(t, b.Store.SetRef(ctx, ref, "", other), "already gone")
	got, err = b.Store.Ref(ctx, ref)
	require.NoError(t, err)
	assert.Empty(t, got)

	for _, bad := range []string{"HEAD", "refs/heads/..", "refs/heads/a b", "--stdin"} {
		assert.Error(t, b.Store.SetRef(ctx, bad, b.Base, ""), bad)
		_, err := b.Store.Ref(ctx, bad)
		assert.Error(t, err, bad)
	}
	assert.Error(t, b.Store.SetRef(ctx, ref, "main", ""), "only object IDs")
}

func TestRefReadsPackedRefsAndReportsDamage(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	b.StoreGit("pack-refs", "--all")
	require.NoFileExists(t, filepath.Join(b.Store.Dir(), b.Branch))
	got, err := b.Store.Ref(ctx, b.Branch)
	require.NoError(t, err)
	assert.Equal(t, b.Base, got)
	got, err = b.Store.Ref(ctx, "refs/heads/pawl") // a folder, and a prefix of a packed ref
	require.NoError(t, err)
	assert.Empty(t, got)
	got, err = b.Store.Ref(ctx, b.Branch+"/below")
	require.NoError(t, err)
	assert.Empty(t, got)

	gittest.Write(t, filepath.Join(b.Store.Dir(), b.Branch), "")
	_, err = b.Store.Ref(ctx, b.Branch)
	assert.Error(t, err, "what a power cut leaves is not an absent ref")
}

func TestARefIsMadeWhereGitWouldMakeIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(b *gittest.Bed)
		ref    string
		fails  bool
	}{
		"in a new folder": {func(*gittest.Bed) {}, "refs/heads/a/b/c", false},
		"over an empty folder": {func(b *gittest.Bed) {
			require.NoError(b, os.MkdirAll(filepath.Join(b.Store.Dir(), "refs/heads/a/b"), 0o755))
		}, "refs/heads/a", false},
		"below a ref": {func(b *gittest.Bed) { b.StoreGit("update-ref", "refs/heads/a", b.Base) }, "refs/heads/a/b", true},
		"over a ref":  {func(b *gittest.Bed) { b.StoreGit("update-ref", "refs/heads/a/b", b.Base) }, "refs/heads/a", true},
		"below a packed ref": {func(b *gittest.Bed) {
			b.StoreGit("update-ref", "refs/heads/a", b.Base)
			b.StoreGit("pack-refs", "--all")
		}, "refs/heads/a/b", true},
		"beside refs that are packed": {func(b *gittest.Bed) {
			b.StoreGit("update-ref", "refs/heads/a", b.Base)
			b.StoreGit("pack-refs", "--all")
		}, "refs/heads/b", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := gittest.NewBed(t, gittest.SomeFiles)
			c.before(b)
			err := b.Store.SetRef(ctx, c.ref, b.Base, "")
			if at, _ := gittest.TryGit(b.Store.Dir(), "rev-parse", "--verify", "-q", c.ref); c.fails {
				require.Error(t, err)
				assert.Empty(t, at)
			} else {
				require.NoError(t, err)
				assert.Equal(t, b.Base, strings.TrimSpace(at))
			}
		})
	}
	b := gittest.NewBed(t, gittest.SomeFiles)
	require.ErrorIs(t, b.Store.SetRef(ctx, "refs/heads/a", strings.Repeat("12", 20), ""), git.ErrNotFound)
}

// A killed git leaves its lock on the ref.
func TestALeftLockDoesNotStopTheLoop(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	lock := filepath.Join(b.Store.Dir(), b.Branch+".lock")
	gittest.Write(t, lock, "")
	c := b.StoreGit("commit-tree", "-p", b.Base, "-m", "c", b.Base+"^{tree}")
	require.NoError(t, b.Store.SetRef(ctx, b.Branch, c, b.Base))
	gittest.Write(t, lock, "")
	_, err := b.Store.Commit(ctx, b.CommitInput(b.StoreGit("rev-parse", b.Base+"^{tree}"), c))
	require.NoError(t, err)
}
