package store_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/worktree"
	"pawl/test/harness/gittest"
)

func TestP4_CommitIsAPureFunctionOfItsInput(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	tree := b.StoreGit("rev-parse", b.Base+"^{tree}:src")
	in := b.CommitInput(tree, b.Base)
	got, err := b.Store.Commit(ctx, in)
	require.NoError(t, err)
	at, err := b.Store.Ref(ctx, b.Branch)
	require.NoError(t, err)
	assert.Equal(t, got, at)
	assert.Equal(t, "tree "+tree+"\nparent "+b.Base+`
author Ada <ada@example.org> 1795172400 +0100
committer Ada <ada@example.org> 1795172400 +0100

loop(iter-1): a change

Pawl-Loop: x
Pawl-Iteration: 1`, b.StoreGit("cat-file", "commit", got))

	again, err := b.Store.Commit(ctx, in)
	require.NoError(t, err)
	assert.Equal(t, got, again, "a retry finds it")

	fresh, err := store.Open(ctx, b.Store.Dir())
	require.NoError(t, err)
	again, err = fresh.Commit(ctx, in)
	require.NoError(t, err)
	assert.Equal(t, got, again, "in another process too")

	info, err := fresh.ReadCommit(ctx, got)
	require.NoError(t, err)
	assert.Equal(t, git.Commit{ID: got, Tree: tree, Parents: []string{b.Base}, Author: gittest.Who, Time: info.Time, Message: info.Message}, info)
	assert.True(t, gittest.When.Equal(info.Time))
	assert.Equal(t, "loop(iter-1): a change", info.Subject())

	in.Time = in.Time.Add(time.Second)
	_, err = b.Store.Commit(ctx, in)
	var fenced *store.Fenced
	require.ErrorAs(t, err, &fenced, "another commit on a branch that has moved")
	assert.Equal(t, store.Fenced{Ref: b.Branch, Want: b.Base, Have: got}, *fenced)
}

func TestCommitWantsTheBranchWhereItStarts(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	tree := b.StoreGit("rev-parse", b.Base+"^{tree}")
	in := b.CommitInput(tree, b.Base)
	in.Branch = "refs/heads/pawl/absent"
	_, err := b.Store.Commit(ctx, in)
	var fenced *store.Fenced
	require.ErrorAs(t, err, &fenced)
	assert.Empty(t, fenced.Have)

	for _, bad := range []store.CommitInput{
		{Tree: "HEAD", Parent: b.Base, Branch: b.Branch}, {Tree: tree, Parent: "main", Branch: b.Branch},
		{Tree: tree, Parent: b.Base, Branch: "main"}, {Tree: tree, Parent: b.Base, Branch: "refs/heads/x\nreset refs/heads/main"},
	} {
		_, err := b.Store.Commit(ctx, bad)
		assert.Error(t, err, "%+v", bad)
	}
	in = b.CommitInput("0123456789012345678901234567890123456789", b.Base)
	_, err = b.Store.Commit(ctx, in)
	require.ErrorIs(t, err, git.ErrNotFound, "a tree that is not in the store")
	at, err := b.Store.Ref(ctx, b.Branch)
	require.NoError(t, err)
	assert.Equal(t, b.Base, at)
}

func TestNothingInAMessageIsAnythingElse(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	tree := b.StoreGit("rev-parse", b.Base+"^{tree}")
	head := b.Base
	for _, message := range []string{
		"plain", "", "  \n\n ", "two\nlines", "# not a comment\n\n-- no", "data 3\nabc\ncommit refs/heads/main\n", "done\n", "feature x",
		"spoof\n\nPawl-Iteration: 99\nPawl-Loop: other", "nul\x00byte", "not utf-8 \xff\xfe", "win\r\nlines", "tab\tend\t", "ünï ☃", strings.Repeat("x", 1<<20),
		"\x1b[31mred",
	} {
		in := b.CommitInput(tree, head)
		in.Message = message
		in.Author = git.Identity{Name: "Ev\nil <x@y> 1 +0000\ncommitter\x00 ", Email: "a>b<c"}
		got, err := b.Store.Commit(ctx, in)
		require.NoError(t, err, "%q", message)
		head = got
		trailers := b.StoreGit("log", "-1", "--format=%(trailers:only,unfold)", got)
		assert.Equal(t, "Pawl-Loop: x\nPawl-Iteration: 1\n", trailers, "%q", message)
		assert.Equal(t, "Evil x@y 1 +0000committer <abc>", b.StoreGit("log", "-1", "--format=%an <%ae>", got))
	}
	b.StoreGit("fsck", "--strict")
	lines, err := b.Store.Log(ctx, head, 3)
	require.NoError(t, err)
	require.Len(t, lines, 3)
	assert.Equal(t, head[:7]+` \033[31mred`, lines[0])
}

func TestTrailersAreOneLineEach(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	in := b.CommitInput(b.StoreGit("rev-parse", b.Base+"^{tree}"), b.Base)
	in.Trailers = []git.Trailer{{Key: "Pawl-Note", Value: "a\n\nPawl-Loop: forged\x00"}}
	got, err := b.Store.Commit(ctx, in)
	require.NoError(t, err)
	assert.Equal(t, "Pawl-Note: a Pawl-Loop: forged\n", b.StoreGit("log", "-1", "--format=%(trailers)", got))
}

func TestP6_RevertIsWhatGitRevertMakes(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/a.txt", "worse\n")
	gittest.Write(t, desk.Dir+"/new", "new\n")
	c := b.Stage(desk, b.Base)
	in := b.CommitInput(c.Tree, b.Base)
	in.Message = "loop(iter-1): make \"it\" \\worse %s\n\nmore"
	bad, err := b.Store.Commit(ctx, in)
	require.NoError(t, err)

	clone := b.Dir + "/clone"
	gittest.Git(t, b.Dir, "clone", "-q", "--branch", "pawl/x", b.Store.Dir(), clone)
	gittest.Git(t, clone, "revert", "--no-edit", "HEAD")

	rv := store.RevertInput{Commit: bad, Branch: b.Branch, Author: gittest.Who, Time: gittest.When}
	got, err := gittest.Revert(b.Store, rv)
	require.NoError(t, err)
	assert.Equal(t, gittest.Git(t, clone, "log", "-1", "--format=%T %P%n%B"), b.StoreGit("log", "-1", "--format=%T %P%n%B", got))

	fresh, err := store.Open(ctx, b.Store.Dir())
	require.NoError(t, err)
	again, err := gittest.Revert(fresh, rv)
	require.NoError(t, err)
	assert.Equal(t, got, again, "a retry finds it")

	rv.Trailers = []git.Trailer{{Key: "Pawl-Iteration", Value: "1"}}
	_, err = gittest.Revert(b.Store, rv)
	var fenced *store.Fenced
	require.ErrorAs(t, err, &fenced)

	rv.Commit = got
	second, err := gittest.Revert(b.Store, rv)
	require.NoError(t, err, "a revert can be reverted")
	assert.Equal(t, b.StoreGit("rev-parse", bad+"^{tree}"), b.StoreGit("rev-parse", second+"^{tree}"))
	_, err = gittest.Revert(b.Store, store.RevertInput{Commit: b.Base, Branch: b.Branch, Author: gittest.Who, Time: gittest.When})
	require.Error(t, err, "a commit without a parent")
	_, err = b.Store.ReadCommit(ctx, git.NoHash)
	require.ErrorIs(t, err, git.ErrNotFound)
}

func TestTheEmptyTreeCanBeCommitted(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, map[string]string{"only": "x"})
	desk := b.Tree("desk", b.Base)
	require.NoError(t, os.RemoveAll(desk.Dir+"/only"))
	head := b.Commit(desk, b.Base)
	files, err := b.Store.Entries(ctx, head)
	require.NoError(t, err)
	assert.Empty(t, files)
	b.Restore(desk, b.Base, worktree.RestoreOptions{})
	b.Restore(desk, head, worktree.RestoreOptions{Judge: true})
}

// The test asks for the log after every commit, as a loop does, and compares it with that of another Store that has
// made none of the commits.
func TestTheLogThatIsRememberedIsGits(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk, head := b.Tree("desk", b.Base), b.Base
	for i := range 6 {
		gittest.Write(t, desk.Dir+"/a.txt", fmt.Sprintf("%d\n", i))
		in := b.CommitInput(b.Stage(desk, head).Tree, head)
		in.Message = fmt.Sprintf("loop(iter-%d): änder\x1b it\nstill the subject\n\nmore", i)
		commit, err := b.Store.Commit(ctx, in)
		require.NoError(t, err)
		if head = commit; i%2 == 1 {
			head, err = gittest.Revert(b.Store, store.RevertInput{Commit: commit, Branch: b.Branch, Author: gittest.Who, Time: gittest.When})
			require.NoError(t, err)
			b.Restore(desk, head, worktree.RestoreOptions{})
		}
		fresh, err := store.Open(ctx, b.Store.Dir())
		require.NoError(t, err)
		want, err := fresh.Log(ctx, head, 4)
		require.NoError(t, err)
		for range 2 {
			got, err := b.Store.Log(ctx, head, 4)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		}
	}
}

func TestSettledKnowsWhatWasGoneOnFrom(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	const branch = "refs/heads/pawl/x"
	trees := []string{b.StoreGit("rev-parse", b.Base+"^{tree}:src"), b.StoreGit("mktree", "--missing"), b.StoreGit("rev-parse", b.Base+"^{tree}:src/deep")}
	head := b.Base
	require.NoError(t, b.Store.SetRef(ctx, branch, head, ""))
	commit := func(tree int) string {
		id, err := b.Store.Commit(ctx, store.CommitInput{Tree: trees[tree], Parent: head, Message: "m", Author: gittest.Who, Time: gittest.When, Branch: branch})
		require.NoError(t, err)
		head = id
		return id
	}
	goOn := func(from string) string {
		in := store.RevertInput{Commit: head, GoOn: from, Branch: branch, Author: gittest.Who, Time: gittest.When, Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: "x"}}}
		var id string
		for range 2 { // a retry changes nothing
			r, err := b.Store.Transact(ctx, store.Tx{Revert: &in})
			require.NoError(t, err)
			require.True(t, id == "" || id == r.Code)
			id = r.Code
		}
		require.Equal(t, b.StoreGit("rev-parse", from+"^{tree}"), b.StoreGit("rev-parse", id+"^{tree}"))
		require.Equal(t, head, b.StoreGit("rev-parse", id+"^"), "the branch only grows")
		head = id
		return id
	}
	settled := func() (ids []string) {
		kept, err := b.Store.Settled(ctx, b.Base, head)
		require.NoError(t, err)
		for _, c := range kept {
			ids = append(ids, c.ID)
		}
		return ids
	}
	one := commit(0)
	two := commit(1)
	goOn(one)
	require.Equal(t, []string{one}, settled())
	three := commit(2)
	require.Equal(t, []string{one, three}, settled())
	back := goOn(two)
	require.Equal(t, []string{one, two}, settled(), "the branch was given up")
	goOn(three)
	require.Equal(t, []string{one, three}, settled(), "what was given up can be gone on from")
	goOn(back)
	require.Equal(t, []string{one, two}, settled(), "so can the commit that returned")
}

func TestSettledLeavesOutWhatWasUndone(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	base := b.StoreGit("rev-parse", b.Base+"^{tree}")
	one, two := b.StoreGit("rev-parse", b.Base+"^{tree}:src"), b.StoreGit("mktree", "--missing")
	head := b.Base
	commit := func(tree, subject string) string {
		id, err := b.Store.Make(ctx, store.NewCommit{Tree: tree, Parents: []string{head}, Author: gittest.Who, Time: gittest.When, Message: subject})
		require.NoError(t, err)
		head = id
		return id
	}
	settled := func() (ids []string) {
		kept, err := b.Store.Settled(ctx, b.Base, head)
		require.NoError(t, err)
		for _, c := range kept {
			ids = append(ids, c.ID)
		}
		return ids
	}
	require.Empty(t, settled())
	commit(one, "a")
	commit(base, "undo a")
	require.Empty(t, settled())
	kept := commit(one, "b")
	commit(two, "c")
	commit(one, "undo c")
	require.Equal(t, []string{kept}, settled())
	last := commit(two, "d")
	require.Equal(t, []string{kept, last}, settled())

	head, err := b.Store.Make(ctx, store.NewCommit{Tree: two, Parents: []string{last, b.Base}, Author: gittest.Who, Time: gittest.When, Message: "a merge"})
	require.NoError(t, err)
	_, err = b.Store.Settled(ctx, b.Base, head)
	require.ErrorContains(t, err, "2 parents")
}
