package userrepo_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/test/harness/gittest"
)

// landBed is a loop with a kept change that its user's repository does not have yet.
func landBed(t *testing.T) (*gittest.Bed, userrepo.Landing) {
	t.Helper()
	b := gittest.NewBed(t, gittest.VariedFiles)
	desk := b.Tree("desk", b.Base)
	head := gittest.VariedChange(t, b, desk)
	return b, userrepo.Landing{Repo: userrepo.At(b.User), Branch: "main", From: b.Base, To: head, Reason: "pawl apply x (ff)"}
}

func tip(b *gittest.Bed, branch string) string {
	return gittest.Git(b, b.User, "rev-parse", "refs/heads/"+branch)
}

func TestA7_LandingMovesTheBranchAndItsTree(t *testing.T) {
	t.Parallel()
	for name, checkedOut := range map[string]bool{"checked out": true, "not checked out": false} {
		t.Run(name, func(t *testing.T) {
			b, l := landBed(t)
			if !checkedOut {
				gittest.Git(t, b.User, "checkout", "-q", "-b", "other")
				gittest.Write(t, b.User+"/a.txt", "in the middle of something\n")
			}
			for range 2 { // the second time there is nothing to do
				require.NoError(t, userrepo.Land(ctx, b.Store, l))
				require.Equal(t, l.To, tip(b, "main"))
			}
			if checkedOut {
				assert.Empty(t, gittest.Git(t, b.User, "status", "--porcelain"))
				assert.Equal(t, gittest.Listing(t, b.Fresh(l.To).Dir), gittest.Listing(t, b.User))
				assert.Equal(t, "ref: refs/heads/main", strings.TrimSpace(gittest.Read(t, b.User+"/.git/HEAD")))
				assert.Contains(t, gittest.Git(t, b.User, "reflog", "-1", "HEAD"), "pawl apply x (ff)")
			} else {
				assert.Equal(t, b.Base, tip(b, "other"))
				assert.Equal(t, "in the middle of something\n", gittest.Read(t, b.User+"/a.txt"))
			}
			assert.Contains(t, gittest.Git(t, b.User, "reflog", "-1", "main"), "pawl apply x (ff)")
			assert.Equal(t, gittest.Documented(t, b.User, b.Base, "main"), gittest.Must(b.Store.Proposal(ctx, "", b.Base, l.To)).Hash, "in the user's repository")
			assert.Empty(t, b.StoreGit("for-each-ref", "refs/pawl-apply"))
			assert.Equal(t, "main", strings.Split(gittest.Git(t, b.User, "for-each-ref", "--format=%(refname:short)"), "\n")[0])
			gittest.Git(t, b.User, "fsck", "--strict")
		})
	}
}

// If anything is in the way, nothing is changed and the error says what.
func TestA7_LandingIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, code, says string
		do               func(b *gittest.Bed)
	}{
		{"on changes that are not committed", userrepo.DirtyTree, "a.txt", func(b *gittest.Bed) { gittest.Write(b, b.User+"/a.txt", "mine\n") }},
		{"on staged changes", userrepo.DirtyTree, "a.txt", func(b *gittest.Bed) {
			gittest.Write(b, b.User+"/a.txt", "mine\n")
			gittest.Git(b, b.User, "add", "a.txt")
		}},
		{"on new files", userrepo.DirtyTree, "mine", func(b *gittest.Bed) { gittest.Write(b, b.User+"/mine", "x") }},
		{"on ignored files that it adds", userrepo.FileInTheWay, "link", func(b *gittest.Bed) {
			gittest.Write(b, b.User+"/.git/info/exclude", "link\n")
			gittest.Write(b, b.User+"/link", "mine\n")
		}},
		{"on a branch that is checked out elsewhere", userrepo.CheckedOutThere, "elsewhere", func(b *gittest.Bed) {
			gittest.Git(b, b.User, "checkout", "-q", "--detach")
			gittest.Git(b, b.User, "worktree", "add", "-q", b.Dir+"/elsewhere", "main")
		}},
		{"on a branch that is gone", userrepo.NoSuchBranch, "main", func(b *gittest.Bed) {
			gittest.Git(b, b.User, "checkout", "-q", "--detach")
			gittest.Git(b, b.User, "branch", "-D", "main")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, l := landBed(t)
			c.do(b)
			before, files := gittest.Git(t, b.User, "for-each-ref"), gittest.Listing(t, b.User)
			err := userrepo.Land(ctx, b.Store, l)
			var pre *userrepo.Precondition
			require.ErrorAs(t, err, &pre)
			assert.Equal(t, c.code, pre.Code)
			assert.Contains(t, pre.What, c.says)
			assert.NotEmpty(t, pre.Do)
			assert.Equal(t, before, gittest.Git(t, b.User, "for-each-ref"))
			assert.Equal(t, files, gittest.Listing(t, b.User))
			if c.code != userrepo.FileInTheWay {
				_, err = userrepo.Tip(ctx, userrepo.At(b.User), "main")
				require.ErrorAs(t, err, &pre)
			}
		})
	}
}

func TestA7_LandingIsACompareAndSwap(t *testing.T) {
	t.Parallel()
	for _, checkedOut := range []bool{true, false} {
		b, l := landBed(t)
		gittest.Git(t, b.User, "commit", "-q", "--allow-empty", "-m", "somebody else's")
		moved := tip(b, "main")
		if !checkedOut {
			gittest.Git(t, b.User, "checkout", "-q", "--detach", b.Base)
		}
		var fenced *store.Fenced
		require.ErrorAs(t, userrepo.Land(ctx, b.Store, l), &fenced)
		require.Equal(t, moved, fenced.Have)
		require.Equal(t, moved, tip(b, "main"))
		require.Empty(t, gittest.Git(t, b.User, "status", "--porcelain"))
	}
}

// The next landing completes one that was interrupted after the files and before the branch.
func TestALandingThatWasCutIsCompleted(t *testing.T) {
	t.Parallel()
	b, l := landBed(t)
	gittest.Git(t, b.User, "fetch", "-q", b.Store.Dir(), b.Branch)
	gittest.Git(t, b.User, "read-tree", "-m", "-u", l.From, l.To)
	require.NotEmpty(t, gittest.Git(t, b.User, "status", "--porcelain"))
	require.NoError(t, userrepo.Land(ctx, b.Store, l))
	require.Equal(t, l.To, tip(b, "main"))
	require.Empty(t, gittest.Git(t, b.User, "status", "--porcelain"))
}

func TestALandingRunsNoHook(t *testing.T) {
	t.Parallel()
	b, l := landBed(t)
	canary := filepath.Join(b.Dir, "canary")
	require.NoError(t, os.MkdirAll(b.User+"/.git/hooks", 0o755))
	for _, hook := range []string{"pre-commit", "post-checkout", "post-merge", "pre-merge-commit", "reference-transaction", "post-index-change", "update", "post-update", "pre-receive"} {
		require.NoError(t, os.WriteFile(b.User+"/.git/hooks/"+hook, []byte("#!/bin/sh\ntouch "+canary+"\n"), 0o755))
	}
	gittest.Git(t, b.User, "config", "core.fsmonitor", b.User+"/.git/hooks/post-merge")
	require.NoError(t, userrepo.Land(ctx, b.Store, l))
	require.Equal(t, l.To, tip(b, "main"))
	require.NoFileExists(t, canary)
}

func TestMergeTellsAConflictFromATree(t *testing.T) {
	t.Parallel()
	b, l := landBed(t)
	b.StoreGit("update-ref", "refs/heads/theirs", b.Base)
	theirs := func(name, content string) string {
		gittest.Write(t, b.User+"/"+name, content)
		gittest.Git(t, b.User, "add", "-A")
		gittest.Git(t, b.User, "commit", "-qm", name)
		return gittest.Must(userrepo.Fetch(ctx, b.Store, userrepo.At(b.User), "main"))
	}
	tip := theirs("unrelated", "x\n")
	tree, err := b.Store.Merge(ctx, l.To, tip)
	require.NoError(t, err)
	made, err := b.Store.Make(ctx, store.NewCommit{Tree: tree, Parents: []string{l.To, tip}, Message: "m", Author: gittest.Who, Time: gittest.When})
	require.NoError(t, err)
	again, err := b.Store.Make(ctx, store.NewCommit{Tree: made, Parents: []string{l.To, tip}, Message: "m", Author: gittest.Who, Time: gittest.When})
	require.NoError(t, err)
	require.Equal(t, made, again, "by its tree or by a commit that has it")
	for commit, in := range map[string]bool{l.To: true, tip: true, b.Base: true} {
		got, err := b.Store.Contains(ctx, made, commit)
		require.NoError(t, err)
		require.Equal(t, in, got)
	}
	no, err := b.Store.Contains(ctx, b.Base, made)
	require.NoError(t, err)
	require.False(t, no)

	var conflict *store.Conflict
	_, err = b.Store.Merge(ctx, l.To, theirs("a.txt", "another\n"))
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, []string{"a.txt"}, conflict.Paths)

	var patch bytes.Buffer
	require.NoError(t, b.Store.WriteProposal(ctx, "", b.Base, l.To, &patch))
	gittest.Git(t, b.User, "checkout", "-q", "--detach", b.Base)
	gittest.Write(t, b.Dir+"/p.patch", patch.String())
	gittest.Git(t, b.User, "apply", "--index", b.Dir+"/p.patch")
	require.Equal(t, gittest.Git(t, b.Store.Dir(), "rev-parse", l.To+"^{tree}"), gittest.Git(t, b.User, "write-tree"))
}

// TestE6_NamesThatOtherSystemsTakeForGitAreNotWritten: the user's own settings may allow them.
func TestE6_NamesThatOtherSystemsTakeForGitAreNotWritten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"git~1", ".g\u200cit"} {
		b, l := landBed(t)
		gittest.Git(t, b.User, "config", "core.protectNTFS", "false")
		gittest.Git(t, b.User, "config", "core.protectHFS", "false")
		store := b.Store.Dir()
		gittest.Write(t, filepath.Join(b.Dir, "hook"), "evil\n")
		blob := gittest.Git(t, store, "hash-object", "-w", filepath.Join(b.Dir, "hook"))
		tree, err := b.Store.Git().Command("mktree").Input("100644 blob " + blob + "\t" + name + "\n").Run(ctx)
		require.NoError(t, err)
		l.To = gittest.Git(t, store, "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-p", l.From, "-m", "x", strings.TrimSpace(string(tree)))
		require.Error(t, userrepo.Land(ctx, b.Store, l), name)
		require.NoFileExists(t, filepath.Join(b.User, name))
	}
}

// A git process that died has left its lock. git itself says what to do about that, so its words are kept.
func TestLandingNamesALockInItsWay(t *testing.T) {
	t.Parallel()
	b, l := landBed(t)
	lock := b.User + "/.git/index.lock"
	gittest.Write(b, lock, "")
	require.ErrorContains(t, userrepo.Land(ctx, b.Store, l), lock)
	require.NoError(t, os.Remove(lock))
	require.NoError(t, userrepo.Land(ctx, b.Store, l))
	require.Equal(t, l.To, tip(b, "main"))
}

// Where the git directory is elsewhere, as that of a submodule is, git names the main working tree by it.
func TestA7_LandingInATreeWhoseGitDirIsElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := func(b *gittest.Bed, settings ...string) {
		require.NoError(b, os.Rename(b.User+"/.git", b.Dir+"/elsewhere.git"))
		relative, err := filepath.Rel(b.User, b.Dir+"/elsewhere.git")
		require.NoError(b, err)
		gittest.Write(b, b.User+"/.git", "gitdir: "+relative+"\n")
		if len(settings) > 0 {
			gittest.Git(b, b.User, append([]string{"config"}, settings...)...)
		}
	}
	link := func(b *gittest.Bed) string {
		gittest.Git(b, b.User, "checkout", "-q", "-b", "elsewhere")
		gittest.Git(b, b.User, "worktree", "add", "-q", b.User+"-linked", "main")
		gittest.Write(b, b.User+"-linked/.git", "gitdir: ../"+filepath.Base(b.User)+"/.git/worktrees/"+filepath.Base(b.User)+"-linked\n")
		b.User += "-linked"
		return b.User
	}
	for name, move := range map[string]func(b *gittest.Bed){
		"a separate git dir": func(b *gittest.Bed) { elsewhere(b) },
		"a submodule":        func(b *gittest.Bed) { elsewhere(b, "core.worktree", b.User) },
		"a linked working tree with a relative path to its git dir": func(b *gittest.Bed) { link(b) },
		"a linked working tree with relative paths to and fro": func(b *gittest.Bed) {
			name := filepath.Base(link(b))
			gittest.Write(b, b.User+"/../"+strings.TrimSuffix(name, "-linked")+"/.git/worktrees/"+name+"/gitdir", "../../../../"+name+"/.git\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, l := landBed(t)
			move(b)
			l.Repo = userrepo.At(b.User)
			record := hostrecord.Record{Repo: b.User}
			require.NoError(t, record.Locate(nil), "as a loop finds it")
			_, err := userrepo.Inspect(ctx, l.Repo, "", "refs/heads/pawl/x")
			require.NoError(t, err)
			require.NoError(t, userrepo.Land(ctx, b.Store, l))
			require.Equal(t, l.To, tip(b, "main"))
			require.Empty(t, gittest.Git(t, b.User, "status", "--porcelain"))
		})
	}
}

func TestA7_ABranchOfTheMainTreeIsNotLandedFromALinkedOne(t *testing.T) {
	t.Parallel()
	b, l := landBed(t)
	gittest.Git(t, b.User, "worktree", "add", "-q", "-b", "other", b.User+"-linked")
	l.Repo = userrepo.At(b.User + "-linked")
	refused, ok := errors.AsType[*userrepo.Precondition](userrepo.Land(ctx, b.Store, l))
	require.True(t, ok)
	require.Equal(t, userrepo.CheckedOutThere, refused.Code)
	require.Contains(t, refused.What, b.User)
}

// A filter that fails leaves half of a change in the tree, and git can't put that back while it fails.
func TestA7_ALandingThatFailsHalfWayIsPutBack(t *testing.T) {
	t.Parallel()
	b, l := landBed(t)
	var last string
	for _, f := range gittest.Must(b.Store.Changes(ctx, l.From, l.To)) {
		if f.Status == 'M' {
			last = f.Path
		}
	}
	gittest.Write(t, b.User+"/.git/info/attributes", "\""+last+"\" filter=x\n")
	gittest.Git(t, b.User, "config", "filter.x.clean", "cat")
	gittest.Git(t, b.User, "config", "filter.x.smudge", "false")
	gittest.Git(t, b.User, "config", "filter.x.required", "true")
	listing := gittest.Listing(t, b.User)

	err := userrepo.Land(ctx, b.Store, l)
	pre, ok := errors.AsType[*userrepo.Precondition](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, userrepo.TreeRefused, pre.Code)
	require.Contains(t, pre.What, "put back")
	require.Equal(t, l.From, tip(b, "main"))
	require.Equal(t, listing, gittest.Listing(t, b.User))

	require.Empty(t, gittest.Git(t, b.User, "status", "--porcelain"))

	gittest.Git(t, b.User, "config", "filter.x.smudge", "cat")
	require.NoError(t, userrepo.Land(ctx, b.Store, l))
	require.Empty(t, gittest.Git(t, b.User, "status", "--porcelain"))
}

// git status does not show a change of a file that git update-index hides.
func TestA7_AHiddenChangeInTheWayIsNamedAndKept(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--skip-worktree", "--assume-unchanged"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			b, l := landBed(t)
			var path string
			for _, f := range gittest.Must(b.Store.Changes(ctx, l.From, l.To)) {
				if f.Status == 'M' {
					path = f.Path
				}
			}
			gittest.Git(t, b.User, "update-index", flag, "--", path)
			gittest.Write(t, b.User+"/"+path, "my own\n")
			listing := gittest.Listing(t, b.User)

			pre, ok := errors.AsType[*userrepo.Precondition](userrepo.Land(ctx, b.Store, l))
			require.True(t, ok)
			require.Equal(t, userrepo.TreeRefused, pre.Code)
			require.Contains(t, pre.What, path)
			require.Contains(t, pre.What, "Cannot merge. Your files")
			require.Contains(t, pre.Do, "git update-index")
			require.Equal(t, l.From, tip(b, "main"))
			require.Equal(t, listing, gittest.Listing(t, b.User))
		})
	}
}

func TestA7_ALockOnTheBranchIsNamedAndNothingChanges(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"HEAD.lock", "refs/heads/main.lock"} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			b, l := landBed(t)
			listing := gittest.Listing(t, b.User)
			gittest.Write(t, b.User+"/.git/"+lock, "")

			pre, ok := errors.AsType[*userrepo.Precondition](userrepo.Land(ctx, b.Store, l))
			require.True(t, ok)
			require.Equal(t, userrepo.BranchRefused, pre.Code)
			require.Contains(t, pre.What, lock)
			require.Contains(t, pre.What, "put back")
			require.Equal(t, l.From, tip(b, "main"))
			require.Equal(t, listing, gittest.Listing(t, b.User))

			require.NoError(t, os.Remove(b.User+"/.git/"+lock))
			require.NoError(t, userrepo.Land(ctx, b.Store, l))
		})
	}
}
