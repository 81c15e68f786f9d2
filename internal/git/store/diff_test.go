package store_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/test/harness/gittest"
)

func TestProposalHashIsTheDocumentedCommands(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.VariedFiles)
	desk := b.Tree("desk", b.Base)
	head := gittest.VariedChange(t, b, desk)
	p, err := b.Store.Proposal(ctx, "", b.Base, head)
	require.NoError(t, err)

	require.NoError(t, userrepo.Push(ctx, b.Store, userrepo.At(b.User), b.Branch))
	assert.Equal(t, gittest.Documented(t, b.User, b.Base, head), p.Hash, "in the user's repository")
	stat := gittest.Git(t, b.User, "diff", "--shortstat", b.Base, head)
	assert.Equal(t, stat, fmt.Sprintf(" %d files changed, %d insertions(+), %d deletions(-)", p.Files, p.Insertions, p.Deletions))

	same, err := b.Store.Proposal(ctx, "", head, head)
	require.NoError(t, err)
	assert.Equal(t, store.Proposal{Hash: hex.EncodeToString(sha256.New().Sum(nil))}, same)
	_, err = b.Store.Proposal(ctx, "", "--output=/tmp/x", head)
	require.Error(t, err)
}

func TestChangesDescribeEveryKindOfChange(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.VariedFiles)
	desk := b.Tree("desk", b.Base)
	head := gittest.VariedChange(t, b, desk)
	files, err := b.Store.Changes(ctx, b.Base, head)
	require.NoError(t, err)
	got := map[string]git.FileChange{}
	for _, f := range files {
		got[f.Path] = f
	}
	require.Len(t, got, 9+len(gittest.WeirdNames))

	assert.Equal(t, byte('M'), got["a.txt"].Status)
	assert.Equal(t, []int{2, 1}, []int{got["a.txt"].Insertions, got["a.txt"].Deletions})
	assert.Equal(t, byte('D'), got["src/b.txt"].Status)
	assert.Equal(t, git.NoHash, got["src/b.txt"].NewBlob)
	assert.True(t, got["binary"].Binary)
	assert.Equal(t, byte('A'), got["binary"].Status)
	assert.Equal(t, "000000", got["binary"].OldMode)
	assert.Equal(t, byte('R'), got["src/moved.txt"].Status)
	assert.Equal(t, "long.txt", got["src/moved.txt"].OldPath)
	assert.Equal(t, []string{"100644", "100755"}, []string{got["run.sh"].OldMode, got["run.sh"].NewMode})
	assert.Equal(t, []any{"120000", "a.txt", false}, []any{got["link"].NewMode, got["link"].Target, got["link"].Escapes})
	assert.Equal(t, []any{byte('T'), "../..", true}, []any{got["was-file"].Status, got["was-file"].Target, got["was-file"].Escapes})
	assert.Equal(t, 1, got["no-newline"].Insertions)
	assert.Equal(t, 0, got["empty"].Insertions)
	for _, n := range gittest.WeirdNames {
		assert.Equal(t, byte('A'), got["weird/"+n].Status, "%q", n)
	}

	// Entries returns the same.
	entries, err := b.Store.Entries(ctx, head)
	require.NoError(t, err)
	for _, e := range entries {
		f, changed := got[e.Path]
		if changed {
			assert.Equal(t, store.TreeEntry{Path: f.Path, Mode: f.NewMode, Blob: f.NewBlob}, e)
		}
		blob, err := b.Store.BlobByID(ctx, e.Blob, 10000)
		require.NoError(t, err, "%q", e.Path)
		if n, ok := strings.CutPrefix(e.Path, "weird/"); ok {
			assert.Equal(t, n+"\n", string(blob))
		}
	}
	_, err = b.Store.BlobByID(ctx, got["binary"].NewBlob, 100)
	require.ErrorIs(t, err, git.ErrTooLarge)
	_, err = b.Store.BlobByID(ctx, head, 10000)
	require.ErrorIs(t, err, git.ErrNotFound, "a commit")
}

func TestDiffIsBounded(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.VariedFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/big", strings.Repeat("a line\n", 1<<20))
	head := b.Commit(desk, b.Base)
	text, err := b.Store.Diff(ctx, b.Base, head, 1000)
	require.NoError(t, err)
	assert.Len(t, text, 1000)
	assert.Contains(t, text, "diff --git a/big b/big\n")
	text, err = b.Store.Diff(ctx, head, head, 1000)
	require.NoError(t, err)
	assert.Empty(t, text)
	text, err = b.Store.Diff(ctx, b.Base, head, 100<<20)
	require.NoError(t, err)
	assert.Greater(t, len(text), 7<<20)
}

// An agent must not be able to hide its lines from code that counts them or people who read them.
func TestAttributesHideNothing(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/.gitattributes", "* -diff\n*.txt binary diff=evil\n")
	gittest.Write(t, desk.Dir+"/src/.gitattributes", "* -diff\n")
	gittest.Write(t, desk.Dir+"/src/b.txt", "b\nmore\n")
	c := b.Stage(desk, b.Base)
	require.Len(t, c.Files, 3)
	assert.Equal(t, "src/b.txt", c.Files[2].Path)
	assert.False(t, c.Files[2].Binary)
	assert.Equal(t, 1, c.Files[2].Insertions)
	head := b.Commit(desk, b.Base)
	text, err := b.Store.Diff(ctx, b.Base, head, 10000)
	require.NoError(t, err)
	assert.Contains(t, text, "+more")
	files, err := b.Store.Changes(ctx, b.Base, head)
	require.NoError(t, err)
	for i := range c.Files {
		c.Files[i].Size = 0 // only known for what is staged
	}
	assert.Equal(t, c.Files, files)
}
