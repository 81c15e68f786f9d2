package repo_test

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

	"pawl/internal/repo"
)

const ledgerRef = "refs/pawl-ledger/x"

func entry(prev, code string, files map[string]string) repo.Entry {
	e := repo.Entry{Ref: ledgerRef, Prev: prev, Code: code, Message: "iteration", Time: when, Author: who, Files: map[string][]byte{}}
	for name, content := range files {
		e.Files[name] = []byte(content)
	}
	return e
}

func (b *bed) append(e repo.Entry) string {
	b.Helper()
	id, err := b.store.Append(ctx, e)
	require.NoError(b, err)
	return id
}

func TestL8_TheLedgerIsAChainOfCommits(t *testing.T) {
	b := newBed(t, someFiles)
	code := b.storeGit("commit-tree", "-p", b.base, "-m", "c", b.base+"^{tree}")
	first := b.append(entry("", b.base, map[string]string{"state.json": "1", "iterations/0.json": "zero", "gone": "x"}))
	e := entry(first, code, map[string]string{"state.json": "2\x00\xff", "events.jsonl": ""})
	e.Files["gone"] = nil
	second := b.append(e)
	third := b.append(entry(second, code, nil))

	assert.Equal(t, b.base, b.storeGit("log", "-1", "--format=%P", first))
	assert.Equal(t, first+" "+code, b.storeGit("log", "-1", "--format=%P", second))
	files, err := b.store.Files(ctx, second)
	require.NoError(t, err)
	assert.Equal(t, []string{"events.jsonl", "iterations/0.json", "state.json"}, files)
	got, err := b.store.ReadLedger(ctx, second, "state.json", "iterations/0.json", "events.jsonl", "gone", "never")
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"state.json": []byte("2\x00\xff"), "iterations/0.json": []byte("zero"), "events.jsonl": {}}, got)

	history, err := b.store.LedgerHistory(ctx, third, "state.json")
	require.NoError(t, err)
	require.Len(t, history, 3)
	for i, want := range []repo.LedgerCommit{
		{Commit: first, Code: b.base, Files: map[string][]byte{"state.json": []byte("1")}},
		{Commit: second, Prev: first, Code: code, Files: map[string][]byte{"state.json": []byte("2\x00\xff")}},
		{Commit: third, Prev: second, Code: code, Files: map[string][]byte{"state.json": []byte("2\x00\xff")}},
	} {
		assert.True(t, when.Equal(history[i].Time))
		want.Time, want.Message = history[i].Time, "iteration\n"
		assert.Equal(t, want, history[i])
	}
	_, err = b.store.LedgerHistory(ctx, zeros)
	require.ErrorIs(t, err, repo.ErrNotFound)
	_, err = b.store.ReadLedger(ctx, zeros, "state.json")
	require.ErrorIs(t, err, repo.ErrNotFound)
	b.storeGit("fsck", "--strict")
}

func TestAppendRefusesWhatIsNoEntry(t *testing.T) {
	b := newBed(t, someFiles)
	for name, e := range map[string]repo.Entry{
		"no code":       entry("", "", nil),
		"a ref":         {Ref: "refs/heads/../x", Code: b.base},
		"prev":          entry("HEAD", b.base, nil),
		"up":            entry("", b.base, map[string]string{"../x": ""}),
		"absolute":      entry("", b.base, map[string]string{"/x": ""}),
		"a line":        entry("", b.base, map[string]string{"x\nreset refs/heads/main": ""}),
		"an empty name": entry("", b.base, map[string]string{"": ""}),
		"a quote":       entry("", b.base, map[string]string{`"x"`: ""}),
	} {
		_, err := b.store.Append(ctx, e)
		assert.Error(t, err, name)
	}
	ref, err := b.store.Ref(ctx, ledgerRef)
	require.NoError(t, err)
	assert.Empty(t, ref)
}

func TestAppendTwiceIsAppendOnce(t *testing.T) {
	b := newBed(t, someFiles)
	e1 := entry("", b.base, map[string]string{"state.json": "1"})
	first := b.append(e1)
	assert.Equal(t, first, b.append(e1))
	e2 := entry(first, b.base, map[string]string{"state.json": "2"})
	second := b.append(e2)
	fresh, err := repo.OpenStore(ctx, b.store.Dir())
	require.NoError(t, err)
	again, err := fresh.Append(ctx, e2)
	require.NoError(t, err)
	assert.Equal(t, second, again)
	assert.Equal(t, "2", b.storeGit("rev-list", "--count", "--first-parent", second, "^"+b.base))
	assert.NotContains(t, b.storeGit("for-each-ref"), "scratch", "looking leaves no ref")
}

func TestAMovedLedgerFencesTheWriter(t *testing.T) {
	for name, c := range map[string]struct {
		move func(b *bed, first, second string) (have string)
	}{
		"advanced by another host": {func(b *bed, _, second string) string {
			return b.append(entry(second, b.base, map[string]string{"state.json": "theirs"}))
		}},
		"diverged": {func(b *bed, first, second string) string {
			require.NoError(b, b.store.SetRef(ctx, ledgerRef, first, second))
			return b.append(entry(first, b.base, map[string]string{"state.json": "theirs"}))
		}},
		"cut back": {func(b *bed, first, second string) string {
			require.NoError(b, b.store.SetRef(ctx, ledgerRef, first, second))
			return first
		}},
		"deleted": {func(b *bed, _, second string) string {
			require.NoError(b, b.store.SetRef(ctx, ledgerRef, "", second))
			return ""
		}},
		"deleted, and its objects too": {func(b *bed, _, second string) string {
			require.NoError(b, b.store.SetRef(ctx, ledgerRef, "", second))
			b.storeGit("-c", "gc.pruneExpire=now", "repack", "-a", "-d")
			b.storeGit("prune", "--expire=now")
			_, err := tryGit(b.store.Dir(), "cat-file", "-e", second)
			require.Error(b, err)
			return ""
		}},
		"damaged": {func(b *bed, _, _ string) string {
			write(b, filepath.Join(b.store.Dir(), ledgerRef), "")
			return "damaged"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, someFiles)
			desk := b.tree("desk", b.base)
			write(t, desk.Dir+"/a.txt", "worse\n")
			code := b.commit(desk, b.base)
			first := b.append(entry("", b.base, map[string]string{"state.json": "1"}))
			second := b.append(entry(first, code, map[string]string{"state.json": "2"}))
			have := c.move(b, first, second)

			var fenced *repo.Fenced
			_, err := b.store.Append(ctx, entry(second, code, map[string]string{"state.json": "3"}))
			require.ErrorAs(t, err, &fenced)
			assert.Equal(t, repo.Fenced{Ref: ledgerRef, Want: second, Have: have}, *fenced)

			fenced = nil
			_, err = b.store.Transact(ctx, repo.Tx{Revert: &repo.RevertInput{Commit: code, Branch: b.branch, Author: who, Time: when},
				Entry: func(code string) (repo.Entry, error) { return entry(second, code, nil), nil }})
			require.ErrorAs(t, err, &fenced)
			at, err := b.store.Ref(ctx, b.branch)
			require.NoError(t, err)
			assert.Equal(t, code, at, "the branch has not moved either")
		})
	}
	b := newBed(t, someFiles)
	b.append(entry("", b.base, map[string]string{"state.json": "theirs"}))
	_, err := b.store.Append(ctx, entry("", b.base, map[string]string{"state.json": "ours"}))
	var fenced *repo.Fenced
	require.ErrorAs(t, err, &fenced, "two loops of one name")
}

func TestOfManyAppendsAtOnceOneWins(t *testing.T) {
	b := newBed(t, someFiles)
	first := b.append(entry("", b.base, nil))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var won []string
	for i := range 8 {
		wg.Go(func() {
			store, err := repo.OpenStore(ctx, b.store.Dir())
			assert.NoError(t, err)
			id, err := store.Append(ctx, entry(first, b.base, map[string]string{"state.json": fmt.Sprint(i)}))
			var fenced *repo.Fenced
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
	at, err := b.store.Ref(ctx, ledgerRef)
	require.NoError(t, err)
	assert.Equal(t, won[0], at)
}

// settle is what an iteration ends with: a revert and the entry for it.
func (b *bed) settle(bad, prev string) repo.Tx {
	return repo.Tx{Revert: &repo.RevertInput{Commit: bad, Branch: b.branch, Author: who, Time: when},
		Entry: func(code string) (repo.Entry, error) {
			return entry(prev, "", map[string]string{"state.json": "head " + code}), nil
		}}
}

func TestTransactDoesCodeAndLedgerTogether(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	write(t, desk.Dir+"/a.txt", "worse\n")
	c := b.stage(desk, b.base)
	in := b.commitInput(c.Tree, b.base)
	r, err := b.store.Transact(ctx, repo.Tx{Commit: &in, Entry: func(code string) (repo.Entry, error) { return entry("", "", nil), nil }})
	require.NoError(t, err)
	assert.Equal(t, r.Code, b.storeGit("rev-parse", b.branch))
	assert.Equal(t, r.Entry, b.storeGit("rev-parse", ledgerRef))
	assert.Equal(t, r.Code, b.storeGit("log", "-1", "--format=%P", r.Entry))

	tx := b.settle(r.Code, r.Entry)
	done, err := b.store.Transact(ctx, tx)
	require.NoError(t, err)
	assert.Equal(t, r.Entry+" "+done.Code, b.storeGit("log", "-1", "--format=%P", done.Entry))
	assert.Equal(t, "head "+done.Code, b.storeGit("cat-file", "blob", done.Entry+":state.json"), "the entry knows its head")
	assert.Equal(t, b.storeGit("rev-parse", b.base+"^{tree}"), b.storeGit("rev-parse", done.Code+"^{tree}"))

	for range 2 {
		fresh, err := repo.OpenStore(ctx, b.store.Dir())
		require.NoError(t, err)
		again, err := fresh.Transact(ctx, tx)
		require.NoError(t, err)
		assert.Equal(t, done, again, "a retry finds both")
	}
	in = b.commitInput(c.Tree, done.Code)
	_, err = b.store.Transact(ctx, repo.Tx{Commit: &in, Revert: tx.Revert})
	require.Error(t, err, "not both")
	boom := errors.New("boom")
	_, err = b.store.Transact(ctx, repo.Tx{Commit: &in, Entry: func(string) (repo.Entry, error) { return repo.Entry{}, boom }})
	require.ErrorIs(t, err, boom)
	assert.Equal(t, done.Code, b.storeGit("rev-parse", b.branch), "nothing was done")
}

// fast-import moves one ref after the other: a crash can come between them, in either order.
func TestATransactionCutBetweenItsRefsIsCompletedByItsRetry(t *testing.T) {
	for _, lost := range []string{"the ledger", "the branch"} {
		t.Run(lost, func(t *testing.T) {
			b := newBed(t, someFiles)
			desk := b.tree("desk", b.base)
			write(t, desk.Dir+"/a.txt", "worse\n")
			bad := b.commit(desk, b.base)
			first := b.append(entry("", bad, nil))
			tx := b.settle(bad, first)
			whole, err := b.store.Transact(ctx, tx)
			require.NoError(t, err)
			if lost == "the ledger" {
				require.NoError(t, b.store.SetRef(ctx, ledgerRef, first, whole.Entry))
			} else {
				require.NoError(t, b.store.SetRef(ctx, b.branch, bad, whole.Code))
			}
			again, err := b.store.Transact(ctx, tx)
			require.NoError(t, err)
			assert.Equal(t, whole, again)
			assert.Equal(t, whole.Entry, b.storeGit("rev-parse", ledgerRef))
			assert.Equal(t, whole.Code, b.storeGit("rev-parse", b.branch))
			assert.NotContains(t, b.storeGit("for-each-ref"), "scratch")
		})
	}
}

func TestALongLedgerStaysSmallAndFast(t *testing.T) {
	if testing.Short() {
		t.Skip()
	}
	b := newBed(t, someFiles)
	prev, tsv := "", ""
	const n = 150
	for i := range n {
		tsv += fmt.Sprintf("%d\t2026-11-20T12:00:00Z\t84.%d\t+0.10\tyes\tmake it better in this way\n", i, i)
		prev = b.append(entry(prev, b.base, map[string]string{
			"state.json": strings.Repeat(fmt.Sprintf("%d,", i), 1000), "events.jsonl": fmt.Sprintf("{\"seq\":%d}\n", i), "loop-results.tsv": tsv,
		}))
	}
	packs, err := filepath.Glob(filepath.Join(b.store.Dir(), "objects", "pack", "*.pack"))
	require.NoError(t, err)
	assert.LessOrEqual(t, len(packs), 41, "packs are folded together on the way")
	require.NoError(t, b.store.Maintain(ctx))
	require.NoError(t, b.store.Maintain(ctx), "with nothing to do")
	var size int64
	packs, err = filepath.Glob(filepath.Join(b.store.Dir(), "objects", "pack", "*"))
	require.NoError(t, err)
	assert.LessOrEqual(t, len(packs), 6)
	for _, p := range packs {
		fi, err := os.Stat(p)
		require.NoError(t, err)
		size += fi.Size()
	}
	t.Logf("%d entries: %d bytes each after Maintain", n, size/n)
	assert.Less(t, size/n, int64(2000))
	history, err := b.store.LedgerHistory(ctx, prev, "events.jsonl")
	require.NoError(t, err)
	require.Len(t, history, n)
	assert.Equal(t, "{\"seq\":7}\n", string(history[7].Files["events.jsonl"]))
	b.storeGit("fsck", "--strict")
}
