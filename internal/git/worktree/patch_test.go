package worktree_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/worktree"
	"pawl/test/harness/gittest"
)

// readAll stages and returns the lines of the change by file, as "+3 text" and "-3 text".
func readAll(b *gittest.Bed, t *worktree.Tree, head string) (worktree.Change, map[string][]string) {
	b.Helper()
	lines := map[string][]string{}
	c, err := t.StageRead(ctx, head, worktree.StageOptions{Largest: 1 << 30, Begin: func() git.Reader {
		clear(lines)
		return func(l git.DiffLine) {
			sign := "-"
			if l.Added {
				sign = "+"
			}
			lines[l.Path] = append(lines[l.Path], fmt.Sprintf("%s%d %s", sign, l.N, l.Text))
		}
	}})
	require.NoError(b, err)
	return c, lines
}

// Every line of every kind of change is read, with its own number.
func TestEveryLineOfAChangeIsRead(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.VariedFiles)
	desk := b.Tree("desk", b.Base)
	gittest.VariedChange(t, b, desk)
	want := b.Stage(desk, b.Base)
	got, lines := readAll(b, desk, b.Base)
	for i := range got.Files {
		f := got.Files[i]
		assert.Equal(t, want.Files[i], f)
		if !f.Binary && f.Status != 'T' {
			assert.Len(t, lines[f.Path], f.Insertions+f.Deletions, "%q", f.Path)
		}
		if f.NewMode == "000000" {
			continue
		}
		blob, err := b.Store.BlobByID(ctx, f.NewBlob, -1)
		require.NoError(t, err)
		if f.NewMode != "120000" {
			assert.Equal(t, int64(len(blob)), f.Size, "%q", f.Path)
		}
		text := strings.Split(string(blob), "\n")
		for _, l := range lines[f.Path] {
			if rest, added := strings.CutPrefix(l, "+"); added {
				var n int
				_, err := fmt.Sscanf(rest, "%d ", &n)
				require.NoError(t, err)
				assert.Equal(t, fmt.Sprintf("%d %s", n, text[n-1]), rest, "%q", f.Path)
			}
		}
	}
	assert.Equal(t, want.Tree, got.Tree)
	assert.Len(t, lines["was-file"], 2, "a link takes the file's place")
	assert.NotEmpty(t, lines["binary"], "a binary file is read too")
}

func TestContentIsNeverTakenForAHeaderOfThePatch(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, map[string]string{"a": "-- a/x\n+ b\n@@ -1 +1 @@\ndiff --git a/x b/x\n\\ No newline at end of file\nend"})
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/a", "++ b/x\n@@ -9 +9 @@\ndiff --git a/a b/a\n\\ No newline at end of file\n\nlast")
	_, lines := readAll(b, desk, b.Base)
	assert.Equal(t, []string{"-1 -- a/x", "-2 + b", "-3 @@ -1 +1 @@", "-4 diff --git a/x b/x", "+1 ++ b/x", "+2 @@ -9 +9 @@", "+3 diff --git a/a b/a",
		"-6 end", "+5 ", "+6 last"}, lines["a"])
}

// Neither a NUL at the beginning nor an attribute hides the rest of a file, and a long line comes in pieces that
// overlap.
func TestNothingHidesFromTheReader(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/.gitattributes", "* -diff -text\n")
	gittest.Write(t, desk.Dir+"/a.txt", "\x00\none\nhidden\n")
	long := strings.Repeat("x", 64<<10-10) + "a needle in the hay" + strings.Repeat("y", 100<<10)
	gittest.Write(t, desk.Dir+"/long", long+"\nnext")
	c, lines := readAll(b, desk, b.Base)
	assert.Contains(t, lines["a.txt"], "+3 hidden")
	found := 0
	for _, l := range lines["long"] {
		if strings.Contains(l, "a needle in the hay") {
			found++
		}
	}
	assert.Positive(t, found)
	assert.Equal(t, "+2 next", lines["long"][len(lines["long"])-1])
	assert.False(t, c.Unread)
}

func TestNoChangeIsNotRead(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	require.NoError(t, os.Chtimes(desk.Dir+"/a.txt", gittest.When, gittest.When))
	c, lines := readAll(b, desk, b.Base)
	assert.True(t, c.Empty())
	assert.Empty(t, lines)
}

func TestAChangeWithoutEndIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/big", strings.Repeat(strings.Repeat("x", 1023)+"\n", 65<<10))
	read := 0
	c, err := desk.StageRead(ctx, b.Base, worktree.StageOptions{Largest: 1 << 30, Begin: func() git.Reader { return func(l git.DiffLine) { read += len(l.Text) } }})
	require.NoError(t, err)
	assert.True(t, c.Unread)
	assert.Less(t, read, 65<<20)
	assert.Equal(t, []string{"big"}, paths(c.Files))
	assert.Equal(t, int64(65<<20), c.Files[0].Size)
}

// git's diff accepts no file of more than 1023 MB, and dies of one.
func TestAFileThatGitCannotCompareIsNotRead(t *testing.T) {
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/a.txt", "new\n")
	git, err := exec.LookPath("git")
	require.NoError(t, err)
	shim := filepath.Join(t.TempDir(), "git")
	gittest.Write(t, shim, "#!/bin/sh\n"+git+` "$@" || exit
case " $* " in *" --patch "*) echo "fatal: unable to generate diff for a.txt" >&2; exit 128;; esac
`)
	require.NoError(t, os.Chmod(shim, 0o755))
	t.Setenv("PATH", filepath.Dir(shim)+":"+os.Getenv("PATH"))
	c, _ := readAll(b, desk, b.Base)
	assert.True(t, c.Unread)
	assert.Equal(t, []string{"a.txt"}, paths(c.Files))
}

// Undone changes are included.
func TestL5_WhatTheLoopTouchedIsInItsHistory(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	none, err := b.Store.Touched(ctx, b.Base, b.Base, b.Base)
	require.NoError(t, err)
	require.Empty(t, none)
	gittest.Write(t, desk.Dir+"/a.txt", "x")
	first := b.Commit(desk, b.Base)
	undone, err := gittest.Revert(b.Store, store.RevertInput{Commit: first, Branch: b.Branch, Author: gittest.Who, Time: gittest.When})
	require.NoError(t, err)
	b.Restore(desk, undone, worktree.RestoreOptions{})
	require.NoError(t, os.Rename(desk.Dir+"/src/b.txt", desk.Dir+"/src/\nn\xff"))
	second := b.Commit(desk, undone)
	touched, err := b.Store.Touched(ctx, b.Base, b.Base, second)
	require.NoError(t, err)
	require.Equal(t, []string{"a.txt", "src/\nn\xff", "src/b.txt"}, touched)
}
