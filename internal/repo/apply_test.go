package repo_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/repo"
)

// landBed is a loop with a kept change, which its user's repository does not have yet.
func landBed(t *testing.T) (*bed, repo.Landing) {
	t.Helper()
	b := newBed(t, variedFiles)
	desk := b.tree("desk", b.base)
	head := variedChange(t, b, desk)
	return b, repo.Landing{Repo: b.user, Branch: "main", From: b.base, To: head, Reason: "pawl apply x (ff)"}
}

func (b *bed) tip(branch string) string { return git(b, b.user, "rev-parse", "refs/heads/"+branch) }

func TestA7_LandingMovesTheBranchAndItsTree(t *testing.T) {
	for name, checkedOut := range map[string]bool{"checked out": true, "not checked out": false} {
		t.Run(name, func(t *testing.T) {
			b, l := landBed(t)
			if !checkedOut {
				git(t, b.user, "checkout", "-q", "-b", "other")
				write(t, b.user+"/a.txt", "in the middle of something\n")
			}
			for range 2 { // the second time there is nothing to do
				require.NoError(t, b.store.Land(ctx, l))
				require.Equal(t, l.To, b.tip("main"))
			}
			if checkedOut {
				assert.Empty(t, git(t, b.user, "status", "--porcelain"))
				assert.Equal(t, listing(t, must(b.fresh(l.To)).Dir), listing(t, b.user))
				assert.Equal(t, "ref: refs/heads/main", strings.TrimSpace(read(t, b.user+"/.git/HEAD")))
				assert.Contains(t, git(t, b.user, "reflog", "-1", "HEAD"), "pawl apply x (ff)")
			} else {
				assert.Equal(t, b.base, b.tip("other"))
				assert.Equal(t, "in the middle of something\n", read(t, b.user+"/a.txt"))
			}
			assert.Contains(t, git(t, b.user, "reflog", "-1", "main"), "pawl apply x (ff)")
			assert.Equal(t, documented(t, b.user, b.base, "main"), must(b.store.Proposal(ctx, b.base, l.To)).Hash, "in the user's repository")
			assert.Empty(t, b.storeGit("for-each-ref", "refs/pawl-apply"))
			assert.Equal(t, "main", strings.Split(git(t, b.user, "for-each-ref", "--format=%(refname:short)"), "\n")[0])
			git(t, b.user, "fsck", "--strict")
		})
	}
}

// Nothing is changed where anything is in the way, and it is said what.
func TestA7_LandingIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, code, says string
		do               func(b *bed)
	}{
		{"on changes that are not committed", repo.DirtyTree, "a.txt", func(b *bed) { write(b, b.user+"/a.txt", "mine\n") }},
		{"on staged changes", repo.DirtyTree, "a.txt", func(b *bed) { write(b, b.user+"/a.txt", "mine\n"); git(b, b.user, "add", "a.txt") }},
		{"on new files", repo.DirtyTree, "mine", func(b *bed) { write(b, b.user+"/mine", "x") }},
		{"on ignored files that it adds", repo.FileInTheWay, "link", func(b *bed) {
			write(b, b.user+"/.git/info/exclude", "link\n")
			write(b, b.user+"/link", "mine\n")
		}},
		{"on a branch that is checked out elsewhere", repo.CheckedOutThere, "elsewhere", func(b *bed) {
			git(b, b.user, "checkout", "-q", "--detach")
			git(b, b.user, "worktree", "add", "-q", b.dir+"/elsewhere", "main")
		}},
		{"on a branch that is gone", repo.NoSuchBranch, "main", func(b *bed) {
			git(b, b.user, "checkout", "-q", "--detach")
			git(b, b.user, "branch", "-D", "main")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, l := landBed(t)
			c.do(b)
			before, files := git(t, b.user, "for-each-ref"), listing(t, b.user)
			err := b.store.Land(ctx, l)
			var pre *repo.Precondition
			require.ErrorAs(t, err, &pre)
			assert.Equal(t, c.code, pre.Code)
			assert.Contains(t, pre.What, c.says)
			assert.NotEmpty(t, pre.Do)
			assert.Equal(t, before, git(t, b.user, "for-each-ref"))
			assert.Equal(t, files, listing(t, b.user))
			if c.code != repo.FileInTheWay {
				_, err = repo.Tip(ctx, b.user, "main")
				require.ErrorAs(t, err, &pre)
			}
		})
	}
}

func TestA7_LandingIsACompareAndSwap(t *testing.T) {
	for _, checkedOut := range []bool{true, false} {
		b, l := landBed(t)
		git(t, b.user, "commit", "-q", "--allow-empty", "-m", "somebody else's")
		tip := b.tip("main")
		if !checkedOut {
			git(t, b.user, "checkout", "-q", "--detach", b.base)
		}
		var fenced *repo.Fenced
		require.ErrorAs(t, b.store.Land(ctx, l), &fenced)
		require.Equal(t, tip, fenced.Have)
		require.Equal(t, tip, b.tip("main"))
		require.Empty(t, git(t, b.user, "status", "--porcelain"))
	}
}

// A landing that was cut after the files and before the branch is completed by the next.
func TestALandingThatWasCutIsCompleted(t *testing.T) {
	b, l := landBed(t)
	git(t, b.user, "fetch", "-q", b.store.Dir(), b.branch)
	git(t, b.user, "read-tree", "-m", "-u", l.From, l.To)
	require.NotEmpty(t, git(t, b.user, "status", "--porcelain"))
	require.NoError(t, b.store.Land(ctx, l))
	require.Equal(t, l.To, b.tip("main"))
	require.Empty(t, git(t, b.user, "status", "--porcelain"))
}

func TestALandingRunsNoHook(t *testing.T) {
	b, l := landBed(t)
	canary := filepath.Join(b.dir, "canary")
	require.NoError(t, os.MkdirAll(b.user+"/.git/hooks", 0o755))
	for _, hook := range []string{"pre-commit", "post-checkout", "post-merge", "pre-merge-commit", "reference-transaction", "post-index-change", "update", "post-update", "pre-receive"} {
		require.NoError(t, os.WriteFile(b.user+"/.git/hooks/"+hook, []byte("#!/bin/sh\ntouch "+canary+"\n"), 0o755))
	}
	git(t, b.user, "config", "core.fsmonitor", b.user+"/.git/hooks/post-merge")
	require.NoError(t, b.store.Land(ctx, l))
	require.Equal(t, l.To, b.tip("main"))
	require.NoFileExists(t, canary)
}

func TestMergeTellsAConflictFromATree(t *testing.T) {
	b, l := landBed(t)
	b.storeGit("update-ref", "refs/heads/theirs", b.base)
	theirs := func(name, content string) string {
		write(t, b.user+"/"+name, content)
		git(t, b.user, "add", "-A")
		git(t, b.user, "commit", "-qm", name)
		return must(b.store.Fetch(ctx, b.user, "main"))
	}
	tip := theirs("unrelated", "x\n")
	tree, err := b.store.Merge(ctx, l.To, tip)
	require.NoError(t, err)
	made, err := b.store.Make(ctx, repo.NewCommit{Tree: tree, Parents: []string{l.To, tip}, Message: "m", Author: who, Time: when})
	require.NoError(t, err)
	again, err := b.store.Make(ctx, repo.NewCommit{Tree: made, Parents: []string{l.To, tip}, Message: "m", Author: who, Time: when})
	require.NoError(t, err)
	require.Equal(t, made, again, "by its tree or by a commit that has it")
	for commit, in := range map[string]bool{l.To: true, tip: true, b.base: true} {
		got, err := b.store.Contains(ctx, made, commit)
		require.NoError(t, err)
		require.Equal(t, in, got)
	}
	no, err := b.store.Contains(ctx, b.base, made)
	require.NoError(t, err)
	require.False(t, no)

	var conflict *repo.Conflict
	_, err = b.store.Merge(ctx, l.To, theirs("a.txt", "another\n"))
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, []string{"a.txt"}, conflict.Paths)

	var patch bytes.Buffer
	require.NoError(t, b.store.WriteProposal(ctx, b.base, l.To, &patch))
	git(t, b.user, "checkout", "-q", "--detach", b.base)
	write(t, b.dir+"/p.patch", patch.String())
	git(t, b.user, "apply", "--index", b.dir+"/p.patch")
	require.Equal(t, git(t, b.store.Dir(), "rev-parse", l.To+"^{tree}"), git(t, b.user, "write-tree"))
}
