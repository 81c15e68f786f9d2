package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/test/harness/gittest"
)

func TestL8_TheLedgerIsAChainOfCommits(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	code := b.StoreGit("commit-tree", "-p", b.Base, "-m", "c", b.Base+"^{tree}")
	first := b.Append(gittest.Entry("", b.Base, map[string]string{"state.json": "1", "iterations/0.json": "zero", "gone": "x"}))
	e := gittest.Entry(first, code, map[string]string{"state.json": "2\x00\xff", "events.jsonl": ""})
	e.Files["gone"] = nil
	second := b.Append(e)
	third := b.Append(gittest.Entry(second, code, nil))

	assert.Equal(t, b.Base, b.StoreGit("log", "-1", "--format=%P", first))
	assert.Equal(t, first+" "+code, b.StoreGit("log", "-1", "--format=%P", second))
	assert.Equal(t, "iteration", b.StoreGit("log", "-1", "--format=%s", second))
	assert.Equal(t, "events.jsonl\niterations/0.json\nstate.json", b.StoreGit("ls-tree", "-r", "--name-only", second))
	got, err := b.Store.ReadLedger(ctx, second, "state.json", "iterations/0.json", "events.jsonl", "gone", "never")
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"state.json": []byte("2\x00\xff"), "iterations/0.json": []byte("zero"), "events.jsonl": {}}, got)

	history, err := b.Store.LedgerHistory(ctx, third, "state.json")
	require.NoError(t, err)
	require.Len(t, history, 3)
	for i, want := range []store.LedgerCommit{
		{Commit: first, Code: b.Base, Files: map[string][]byte{"state.json": []byte("1")}},
		{Commit: second, Prev: first, Code: code, Files: map[string][]byte{"state.json": []byte("2\x00\xff")}},
		{Commit: third, Prev: second, Code: code, Files: map[string][]byte{"state.json": []byte("2\x00\xff")}},
	} {
		assert.True(t, gittest.When.Equal(history[i].Time))
		want.Time = history[i].Time
		assert.Equal(t, want, history[i])
	}

	aside := gittest.Entry(third, code, nil)
	aside.Keeps = []string{b.StoreGit("commit-tree", "-p", b.Base, "-m", "a candidate", b.Base+"^{tree}")}
	fourth := b.Append(aside)
	assert.Equal(t, third+" "+code+" "+aside.Keeps[0], b.StoreGit("log", "-1", "--format=%P", fourth))
	assert.Equal(t, fourth, b.Append(aside), "an attempt that died is found")
	history, err = b.Store.LedgerHistory(ctx, fourth)
	require.NoError(t, err)
	require.Equal(t, aside.Keeps, history[3].Keeps)
	require.Equal(t, third, history[3].Prev)

	_, err = b.Store.LedgerHistory(ctx, git.NoHash)
	require.ErrorIs(t, err, git.ErrNotFound)
	_, err = b.Store.ReadLedger(ctx, git.NoHash, "state.json")
	require.ErrorIs(t, err, git.ErrNotFound)
	b.StoreGit("fsck", "--strict")
}

func TestAppendRefusesWhatIsNoEntry(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	for name, e := range map[string]store.Entry{
		"no code":       gittest.Entry("", "", nil),
		"a ref":         {Ref: "refs/heads/../x", Code: b.Base},
		"prev":          gittest.Entry("HEAD", b.Base, nil),
		"up":            gittest.Entry("", b.Base, map[string]string{"../x": ""}),
		"absolute":      gittest.Entry("", b.Base, map[string]string{"/x": ""}),
		"a line":        gittest.Entry("", b.Base, map[string]string{"x\nreset refs/heads/main": ""}),
		"an empty name": gittest.Entry("", b.Base, map[string]string{"": ""}),
		"a quote":       gittest.Entry("", b.Base, map[string]string{`"x"`: ""}),
	} {
		_, err := gittest.Append(b.Store, e)
		assert.Error(t, err, name)
	}
	ref, err := b.Store.Ref(ctx, gittest.LedgerRef)
	require.NoError(t, err)
	assert.Empty(t, ref)
}

func TestAppendTwiceIsAppendOnce(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	e1 := gittest.Entry("", b.Base, map[string]string{"state.json": "1"})
	first := b.Append(e1)
	assert.Equal(t, first, b.Append(e1))
	e2 := gittest.Entry(first, b.Base, map[string]string{"state.json": "2"})
	second := b.Append(e2)
	fresh, err := store.Open(ctx, b.Store.Dir())
	require.NoError(t, err)
	again, err := gittest.Append(fresh, e2)
	require.NoError(t, err)
	assert.Equal(t, second, again)
	assert.Equal(t, "2", b.StoreGit("rev-list", "--count", "--first-parent", second, "^"+b.Base))
	assert.NotContains(t, b.StoreGit("for-each-ref"), "scratch", "looking leaves no ref")
}

func TestAMovedLedgerFencesTheWriter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		move func(b *gittest.Bed, first, second string) (have string)
	}{
		"advanced by another host": {func(b *gittest.Bed, _, second string) string {
			return b.Append(gittest.Entry(second, b.Base, map[string]string{"state.json": "theirs"}))
		}},
		"diverged": {func(b *gittest.Bed, first, second string) string {
			require.NoError(b, b.Store.SetRef(ctx, gittest.LedgerRef, first, second))
			return b.Append(gittest.Entry(first, b.Base, map[string]string{"state.json": "theirs"}))
		}},
		"cut back": {func(b *gittest.Bed, first, second string) string {
			require.NoError(b, b.Store.SetRef(ctx, gittest.LedgerRef, first, second))
			return first
		}},
		"deleted": {func(b *gittest.Bed, _, second string) string {
			require.NoError(b, b.Store.SetRef(ctx, gittest.LedgerRef, "", second))
			return ""
		}},
		"deleted, and its objects too": {func(b *gittest.Bed, _, second string) string {
			require.NoError(b, b.Store.SetRef(ctx, gittest.LedgerRef, "", second))
			b.StoreGit("-c", "gc.pruneExpire=now", "repack", "-a", "-d")
			b.StoreGit("prune", "--expire=now")
			_, err := gittest.TryGit(b.Store.Dir(), "cat-file", "-e", second)
			require.Error(b, err)
			return ""
		}},
		"damaged": {func(b *gittest.Bed, _, _ string) string {
			gittest.Write(b, filepath.Join(b.Store.Dir(), gittest.LedgerRef), "")
			return "damaged"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := gittest.NewBed(t, gittest.SomeFiles)
			desk := b.Tree("desk", b.Base)
			gittest.Write(t, desk.Dir+"/a.txt", "worse\n")
			code := b.Commit(desk, b.Base)
			first := b.Append(gittest.Entry("", b.Base, map[string]string{"state.json": "1"}))
			second := b.Append(gittest.Entry(first, code, map[string]string{"state.json": "2"}))
			have := c.move(b, first, second)

			var fenced *store.Fenced
			_, err := gittest.Append(b.Store, gittest.Entry(second, code, map[string]string{"state.json": "3"}))
			require.ErrorAs(t, err, &fenced)
			assert.Equal(t, store.Fenced{Ref: gittest.LedgerRef, Want: second, Have: have}, *fenced)

			fenced = nil
			_, err = b.Store.Transact(ctx, store.Tx{Revert: &store.RevertInput{Commit: code, Branch: b.Branch, Author: gittest.Who, Time: gittest.When},
				Entry: func(code string) (store.Entry, error) { return gittest.Entry(second, code, nil), nil }})
			require.ErrorAs(t, err, &fenced)
			at, err := b.Store.Ref(ctx, b.Branch)
			require.NoError(t, err)
			assert.Equal(t, code, at, "the branch has not moved either")
		})
	}
	b := gittest.NewBed(t, gittest.SomeFiles)
	b.Append(gittest.Entry("", b.Base, map[string]string{"state.json": "theirs"}))
	_, err := gittest.Append(b.Store, gittest.Entry("", b.Base, map[string]string{"state.json": "ours"}))
	var fenced *store.Fenced
	require.ErrorAs(t, err, &fenced, "two loops of one name")
}

func TestOfManyAppendsAtOnceOneWins(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	first := b.Append(gittest.Entry("", b.Base, nil))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var won []string
	for i := range 8 {
		wg.Go(func() {
			fresh, err := store.Open(ctx, b.Store.Dir())
			assert.NoError(t, err)
			id, err := gittest.Append(fresh, gittest.Entry(first, b.Base, map[string]string{"state.json": fmt.Sprint(i)}))
			var fenced *store.Fenced
			if err == nil {
				mu.Lock()
				won = append(won, id)
				mu.Unlock()
			} else {
				assert.ErrorAs(t, err, &fenced)
			}
		})
	}
	wg.Wait()
	require.Len(t, won, 1)
	at, err := b.Store.Ref(ctx, gittest.LedgerRef)
	require.NoError(t, err)
	assert.Equal(t, won[0], at)
}

func TestTransactDoesCodeAndLedgerTogether(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/a.txt", "worse\n")
	c := b.Stage(desk, b.Base)
	in := b.CommitInput(c.Tree, b.Base)
	r, err := b.Store.Transact(ctx, store.Tx{Commit: &in, Entry: func(code string) (store.Entry, error) { return gittest.Entry("", "", nil), nil }})
	require.NoError(t, err)
	assert.Equal(t, r.Code, b.StoreGit("rev-parse", b.Branch))
	assert.Equal(t, r.Entry, b.StoreGit("rev-parse", gittest.LedgerRef))
	assert.Equal(t, r.Code, b.StoreGit("log", "-1", "--format=%P", r.Entry))

	tx := gittest.Settle(b, r.Code, r.Entry)
	done, err := b.Store.Transact(ctx, tx)
	require.NoError(t, err)
	assert.Equal(t, r.Entry+" "+done.Code, b.StoreGit("log", "-1", "--format=%P", done.Entry))
	assert.Equal(t, "head "+done.Code, b.StoreGit("cat-file", "blob", done.Entry+":state.json"), "the entry knows its head")
	assert.Equal(t, b.StoreGit("rev-parse", b.Base+"^{tree}"), b.StoreGit("rev-parse", done.Code+"^{tree}"))

	for range 2 {
		fresh, err := store.Open(ctx, b.Store.Dir())
		require.NoError(t, err)
		again, err := fresh.Transact(ctx, tx)
		require.NoError(t, err)
		assert.Equal(t, done, again, "a retry finds both")
	}
	in = b.CommitInput(c.Tree, done.Code)
	_, err = b.Store.Transact(ctx, store.Tx{Commit: &in, Revert: tx.Revert})
	require.Error(t, err, "not both")
	boom := errors.New("boom")
	_, err = b.Store.Transact(ctx, store.Tx{Commit: &in, Entry: func(string) (store.Entry, error) { return store.Entry{}, boom }})
	require.ErrorIs(t, err, boom)
	assert.Equal(t, done.Code, b.StoreGit("rev-parse", b.Branch), "nothing was done")
}

// One ref is moved after the other: a crash can come between them. Earlier versions of pawl moved them in either order.
func TestATransactionCutBetweenItsRefsIsCompletedByItsRetry(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"the ledger", "the branch"} {
		t.Run(lost, func(t *testing.T) {
			b := gittest.NewBed(t, gittest.SomeFiles)
			desk := b.Tree("desk", b.Base)
			gittest.Write(t, desk.Dir+"/a.txt", "worse\n")
			bad := b.Commit(desk, b.Base)
			first := b.Append(gittest.Entry("", bad, nil))
			tx := gittest.Settle(b, bad, first)
			whole, err := b.Store.Transact(ctx, tx)
			require.NoError(t, err)
			if lost == "the ledger" {
				require.NoError(t, b.Store.SetRef(ctx, gittest.LedgerRef, first, whole.Entry))
			} else {
				require.NoError(t, b.Store.SetRef(ctx, b.Branch, bad, whole.Code))
			}
			again, err := b.Store.Transact(ctx, tx)
			require.NoError(t, err)
			assert.Equal(t, whole, again)
			assert.Equal(t, whole.Entry, b.StoreGit("rev-parse", gittest.LedgerRef))
			assert.Equal(t, whole.Code, b.StoreGit("rev-parse", b.Branch))
			assert.NotContains(t, b.StoreGit("for-each-ref"), "scratch")
		})
	}
}

func TestALongLedgerStaysSmallAndFast(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip()
	}
	b := gittest.NewBed(t, gittest.SomeFiles)
	prev, tsv := "", ""
	const n = 150
	for i := range n {
		tsv += fmt.Sprintf("%d\t2026-11-20T12:00:00Z\t84.%d\t+0.10\tyes\tmake it better in this way\n", i, i)
		prev = b.Append(gittest.Entry(prev, b.Base, map[string]string{
			"state.json": strings.Repeat(fmt.Sprintf("%d,", i), 1000), "events.jsonl": fmt.Sprintf("{\"seq\":%d}\n", i), "loop-results.tsv": tsv,
		}))
	}
	packs, err := filepath.Glob(filepath.Join(b.Store.Dir(), "objects", "pack", "*.pack"))
	require.NoError(t, err)
	assert.LessOrEqual(t, len(packs), 41, "packs are folded together on the way")
	var size int64
	packs, err = filepath.Glob(filepath.Join(b.Store.Dir(), "objects", "pack", "*"))
	require.NoError(t, err)
	for _, p := range packs {
		fi, err := os.Stat(p)
		require.NoError(t, err)
		size += fi.Size()
	}
	t.Logf("%d entries: %d bytes each", n, size/n)
	assert.Less(t, size/n, int64(2000))
	history, err := b.Store.LedgerHistory(ctx, prev, "events.jsonl")
	require.NoError(t, err)
	require.Len(t, history, n)
	assert.Equal(t, "{\"seq\":7}\n", string(history[7].Files["events.jsonl"]))
	b.StoreGit("fsck", "--strict")
}
