package repo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/repo"
)

func TestP4_CommitIsAPureFunctionOfItsInput(t *testing.T) {
	b := newBed(t, someFiles)
	tree := b.storeGit("rev-parse", b.base+"^{tree}:src")
	in := b.commitInput(tree, b.base)
	got, err := b.store.Commit(ctx, in)
	require.NoError(t, err)
	at, err := b.store.Ref(ctx, b.branch)
	require.NoError(t, err)
	assert.Equal(t, got, at)
	assert.Equal(t, "tree "+tree+"\nparent "+b.base+`
author Ada <ada@example.org> 1795172400 +0100
committer Ada <ada@example.org> 1795172400 +0100

loop(iter-1): a change

Pawl-Loop: x
Pawl-Iteration: 1`, b.storeGit("cat-file", "commit", got))

	again, err := b.store.Commit(ctx, in)
	require.NoError(t, err)
	assert.Equal(t, got, again, "a retry finds it")

	fresh, err := repo.OpenStore(ctx, b.store.Dir())
	require.NoError(t, err)
	again, err = fresh.Commit(ctx, in)
	require.NoError(t, err)
	assert.Equal(t, got, again, "in another process too")

	info, err := fresh.ReadCommit(ctx, got)
	require.NoError(t, err)
	assert.Equal(t, repo.CommitInfo{Commit: got, Tree: tree, Parents: []string{b.base}, Author: who, Time: info.Time, Message: info.Message}, info)
	assert.True(t, when.Equal(info.Time))
	assert.Equal(t, "loop(iter-1): a change", info.Subject())

	in.Time = in.Time.Add(time.Second)
	_, err = b.store.Commit(ctx, in)
	var fenced *repo.Fenced
	require.ErrorAs(t, err, &fenced, "another commit on a branch that has moved")
	assert.Equal(t, repo.Fenced{Ref: b.branch, Want: b.base, Have: got}, *fenced)
}

func TestCommitWantsTheBranchWhereItStarts(t *testing.T) {
	b := newBed(t, someFiles)
	tree := b.storeGit("rev-parse", b.base+"^{tree}")
	in := b.commitInput(tree, b.base)
	in.Branch = "refs/heads/pawl/absent"
	_, err := b.store.Commit(ctx, in)
	var fenced *repo.Fenced
	require.ErrorAs(t, err, &fenced)
	assert.Empty(t, fenced.Have)

	for _, bad := range []repo.CommitInput{
		{Tree: "HEAD", Parent: b.base, Branch: b.branch}, {Tree: tree, Parent: "main", Branch: b.branch},
		{Tree: tree, Parent: b.base, Branch: "main"}, {Tree: tree, Parent: b.base, Branch: "refs/heads/x\nreset refs/heads/main"},
	} {
		_, err := b.store.Commit(ctx, bad)
		assert.Error(t, err, "%+v", bad)
	}
	in = b.commitInput("0123456789012345678901234567890123456789", b.base)
	_, err = b.store.Commit(ctx, in)
	var ge *repo.GitError
	require.ErrorAs(t, err, &ge, "a tree that is not in the store")
	at, err := b.store.Ref(ctx, b.branch)
	require.NoError(t, err)
	assert.Equal(t, b.base, at)
}

func TestNothingInAMessageIsAnythingElse(t *testing.T) {
	b := newBed(t, someFiles)
	tree := b.storeGit("rev-parse", b.base+"^{tree}")
	head := b.base
	for _, message := range []string{
		"plain", "", "  \n\n ", "two\nlines", "# not a comment\n\n-- no", "data 3\nabc\ncommit refs/heads/main\n", "done\n", "feature x",
		"spoof\n\nPawl-Iteration: 99\nPawl-Loop: other", "nul\x00byte", "not utf-8 \xff\xfe", "win\r\nlines", "tab\tend\t", "ünï ☃", strings.Repeat("x", 1<<20),
		"\x1b[31mred",
	} {
		in := b.commitInput(tree, head)
		in.Message = message
		in.Author = repo.Identity{Name: "Ev\nil <x@y> 1 +0000\ncommitter\x00 ", Email: "a>b<c"}
		got, err := b.store.Commit(ctx, in)
		require.NoError(t, err, "%q", message)
		head = got
		trailers := b.storeGit("log", "-1", "--format=%(trailers:only,unfold)", got)
		assert.Equal(t, "Pawl-Loop: x\nPawl-Iteration: 1\n", trailers, "%q", message)
		info, err := b.store.ReadCommit(ctx, got)
		require.NoError(t, err)
		assert.Equal(t, []string{"x", "1", ""}, []string{info.Trailer("Pawl-Loop"), info.Trailer("Pawl-Iteration"), info.Trailer("Pawl")})
		assert.Equal(t, "Evil x@y 1 +0000committer <abc>", b.storeGit("log", "-1", "--format=%an <%ae>", got))
	}
	b.storeGit("fsck", "--strict")
	lines, err := b.store.Log(ctx, head, 3)
	require.NoError(t, err)
	require.Len(t, lines, 3)
	assert.Equal(t, head[:7]+` \033[31mred`, lines[0])
}

func TestTrailersAreOneLineEach(t *testing.T) {
	b := newBed(t, someFiles)
	in := b.commitInput(b.storeGit("rev-parse", b.base+"^{tree}"), b.base)
	in.Trailers = []repo.Trailer{{Key: "Pawl-Note", Value: "a\n\nPawl-Loop: forged\x00"}}
	got, err := b.store.Commit(ctx, in)
	require.NoError(t, err)
	assert.Equal(t, "Pawl-Note: a Pawl-Loop: forged\n", b.storeGit("log", "-1", "--format=%(trailers)", got))
}

func TestP6_RevertIsWhatGitRevertMakes(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	write(t, desk.Dir+"/a.txt", "worse\n")
	write(t, desk.Dir+"/new", "new\n")
	c := b.stage(desk, b.base)
	in := b.commitInput(c.Tree, b.base)
	in.Message = "loop(iter-1): make \"it\" \\worse %s\n\nmore"
	bad, err := b.store.Commit(ctx, in)
	require.NoError(t, err)

	clone := b.dir + "/clone"
	git(t, b.dir, "clone", "-q", "--branch", "pawl/x", b.store.Dir(), clone)
	git(t, clone, "revert", "--no-edit", "HEAD")

	rv := repo.RevertInput{Commit: bad, Branch: b.branch, Author: who, Time: when}
	got, err := b.store.Revert(ctx, rv)
	require.NoError(t, err)
	assert.Equal(t, git(t, clone, "log", "-1", "--format=%T %P%n%B"), b.storeGit("log", "-1", "--format=%T %P%n%B", got))

	fresh, err := repo.OpenStore(ctx, b.store.Dir())
	require.NoError(t, err)
	again, err := fresh.Revert(ctx, rv)
	require.NoError(t, err)
	assert.Equal(t, got, again, "a retry finds it")

	rv.Trailers = []repo.Trailer{{Key: "Pawl-Iteration", Value: "1"}}
	_, err = b.store.Revert(ctx, rv)
	var fenced *repo.Fenced
	require.ErrorAs(t, err, &fenced)

	rv.Commit = got
	second, err := b.store.Revert(ctx, rv)
	require.NoError(t, err, "a revert can be reverted")
	assert.Equal(t, b.storeGit("rev-parse", bad+"^{tree}"), b.storeGit("rev-parse", second+"^{tree}"))
	_, err = b.store.Revert(ctx, repo.RevertInput{Commit: b.base, Branch: b.branch, Author: who, Time: when})
	require.Error(t, err, "a commit without a parent")
	_, err = b.store.ReadCommit(ctx, zeros)
	require.ErrorIs(t, err, repo.ErrNotFound)
}

func TestTheEmptyTreeCanBeCommitted(t *testing.T) {
	b := newBed(t, map[string]string{"only": "x"})
	desk := b.tree("desk", b.base)
	require.NoError(t, removeAll(desk.Dir+"/only"))
	head := b.commit(desk, b.base)
	files, err := b.store.Files(ctx, head)
	require.NoError(t, err)
	assert.Empty(t, files)
	b.restore(desk, b.base, repo.RestoreOptions{})
	b.restore(desk, head, judge)
}

// TestTheLogThatIsRememberedIsGits asks for the log after every commit, as a loop does, and
// compares it with that of a store that has made none of them.
func TestTheLogThatIsRememberedIsGits(t *testing.T) {
	b := newBed(t, someFiles)
	desk, head := b.tree("desk", b.base), b.base
	for i := range 6 {
		write(t, desk.Dir+"/a.txt", fmt.Sprintf("%d\n", i))
		in := b.commitInput(b.stage(desk, head).Tree, head)
		in.Message = fmt.Sprintf("loop(iter-%d): änder\x1b it\nstill the subject\n\nmore", i)
		commit, err := b.store.Commit(ctx, in)
		require.NoError(t, err)
		if head = commit; i%2 == 1 {
			head, err = b.store.Revert(ctx, repo.RevertInput{Commit: commit, Branch: b.branch, Author: who, Time: when})
			require.NoError(t, err)
			b.restore(desk, head, repo.RestoreOptions{})
		}
		fresh, err := repo.OpenStore(ctx, b.store.Dir())
		require.NoError(t, err)
		want, err := fresh.Log(ctx, head, 4)
		require.NoError(t, err)
		for range 2 {
			got, err := b.store.Log(ctx, head, 4)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		}
	}
}
