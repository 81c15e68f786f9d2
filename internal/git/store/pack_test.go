package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/test/harness/gittest"
)

func TestAnEntrysFilesAreSortedAndStoredAsGitWants(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	files := map[string]string{"a": "", "a-b/x": "1", "a.b": "2", "a0": "3", "b/c/d": "4", "b/c.d": "5", "b/c-d/e": "6", "z": strings.Repeat("long ", 1<<18)}
	want := func() (list []string) {
		for name, content := range files {
			list = append(list, git.ObjectID("blob", []byte(content))+" "+name)
		}
		slices.Sort(list)
		return list
	}
	have := func(entry string) []string {
		list := strings.Split(b.StoreGit("ls-tree", "-r", "--format=%(objectname) %(path)", entry), "\n")
		slices.Sort(list)
		return list
	}
	at := b.Append(gittest.Entry("", b.Base, files))
	require.Equal(t, want(), have(at))
	change := func(s *store.Store, name string, content []byte) {
		e := gittest.Entry(at, b.Base, nil)
		e.Files[name] = content
		if files[name] = string(content); content == nil {
			delete(files, name)
		}
		var err error
		at, err = gittest.Append(s, e)
		require.NoError(t, err)
		require.Equal(t, want(), have(at), name)
	}
	for i, name := range []string{"b/c/d", "a0", "b/new", "a-b/x", "b/c-d/e", "never", "never/either"} {
		content := []byte(fmt.Sprint("changed ", i))
		fresh, err := store.Open(ctx, b.Store.Dir()) // it has to read the last entry
		require.NoError(t, err)
		change(fresh, name, content)
		change(b.Store, name, append(content, '!')) // somebody else wrote the last entry
		change(b.Store, name, content)
		change(b.Store, name, nil)
	}
	b.StoreGit("fsck", "--strict", "--full")
	left, err := filepath.Glob(filepath.Join(b.Store.Dir(), "objects", "pack", "tmp_*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestNothingIsBuiltOnWhatIsGone(t *testing.T) {
	t.Parallel()
	for what, gone := range map[string]func(b *gittest.Bed, pack string) error{
		"a pack is missing":   func(_ *gittest.Bed, pack string) error { return os.Remove(pack) },
		"a pack is cut off":   func(_ *gittest.Bed, pack string) error { return os.Truncate(pack, 20) },
		"the objects are new": func(b *gittest.Bed, _ string) error { return os.RemoveAll(filepath.Join(b.Store.Dir(), "objects")) },
	} {
		t.Run(what, func(t *testing.T) {
			b := gittest.NewBed(t, gittest.SomeFiles)
			first := b.Append(gittest.Entry("", b.Base, map[string]string{"state.json": "1"}))
			before, err := filepath.Glob(filepath.Join(b.Store.Dir(), "objects", "pack", "*.pack"))
			require.NoError(t, err)
			second := b.Append(gittest.Entry(first, b.Base, map[string]string{"state.json": "2"}))
			packs, err := filepath.Glob(filepath.Join(b.Store.Dir(), "objects", "pack", "*.pack"))
			require.NoError(t, err)
			packs = slices.DeleteFunc(packs, func(p string) bool { return slices.Contains(before, p) })
			require.Len(t, packs, 1)
			require.NoError(t, os.Chmod(packs[0], 0o600))
			require.NoError(t, gone(b, packs[0]))
			_, err = gittest.Append(b.Store, gittest.Entry(second, b.Base, map[string]string{"state.json": "3"}))
			require.Error(t, err)
			at, err := b.Store.Ref(ctx, gittest.LedgerRef)
			require.NoError(t, err)
			assert.Equal(t, second, at)
		})
	}
}

func TestAnEntryNamesOnlyCommitsThatAreThere(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	first := b.Append(gittest.Entry("", b.Base, map[string]string{"state.json": "1"}))
	gone := strings.Repeat("12", 20)
	for what, e := range map[string]store.Entry{
		"its code": gittest.Entry(first, gone, map[string]string{"state.json": "2"}),
		"what it keeps": func() store.Entry {
			e := gittest.Entry(first, b.Base, map[string]string{"state.json": "2"})
			e.Keeps = []string{gone}
			return e
		}(),
	} {
		_, err := gittest.Append(b.Store, e)
		require.ErrorIs(t, err, git.ErrNotFound, what)
		at, err := b.Store.Ref(ctx, gittest.LedgerRef)
		require.NoError(t, err)
		assert.Equal(t, first, at, what)
	}
}
