package worktree_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git/userrepo"
	"pawl/internal/git/worktree"
	"pawl/test/harness/gittest"
	"pawl/test/harness/tier"
)

// An agent's work in its tree changes nothing outside, and pawl runs nothing of it there.

func TestNothingOutsideIsTouched(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]worktree.RestoreOptions{"desk": {}, "judge": judge} {
		t.Run(name, func(t *testing.T) {
			b := gittest.NewBed(t, gittest.SomeFiles)
			outside := filepath.Join(b.Dir, "outside")
			for _, f := range []string{"a.txt", "src/b.txt", "HEAD", "config", "pack/x", "refs/heads/pawl/x", "objects/pack/y"} {
				gittest.Write(t, filepath.Join(outside, f), "precious")
			}
			want := gittest.Listing(t, outside)
			for what, do := range map[string]func(d string){
				"the tree a symlink": func(d string) {
					require.NoError(t, os.RemoveAll(d))
					require.NoError(t, os.Symlink(outside, d))
				},
				"the tree a file": func(d string) {
					require.NoError(t, os.RemoveAll(d))
					gittest.Write(t, d, "x")
				},
				"the tree gone": func(d string) { require.NoError(t, os.RemoveAll(d)) },
				"a folder a symlink": func(d string) {
					require.NoError(t, os.RemoveAll(d+"/src"))
					require.NoError(t, os.Symlink(outside, d+"/src"))
					require.NoError(t, os.Symlink(outside, d+"/new"))
				},
				"a file a symlink": func(d string) {
					require.NoError(t, os.Remove(d+"/a.txt"))
					require.NoError(t, os.Symlink(outside+"/a.txt", d+"/a.txt"))
				},
				"a file a hard link": func(d string) {
					require.NoError(t, os.Remove(d+"/a.txt"))
					require.NoError(t, os.Link(outside+"/a.txt", d+"/a.txt"))
				},
				".git a symlink": func(d string) {
					require.NoError(t, os.RemoveAll(d+"/.git"))
					require.NoError(t, os.Symlink(outside, d+"/.git"))
				},
				".git a file": func(d string) {
					require.NoError(t, os.RemoveAll(d+"/.git"))
					gittest.Write(t, d+"/.git", "gitdir: "+outside)
				},
				".git a FIFO": func(d string) {
					require.NoError(t, os.RemoveAll(d+"/.git"))
					require.NoError(t, syscall.Mkfifo(d+"/.git", 0o644))
				},
				".git gone":                func(d string) { require.NoError(t, os.RemoveAll(d+"/.git")) },
				".git/objects a symlink":   func(d string) { swap(t, outside, d+"/.git/objects") },
				".git/objects/pack one":    func(d string) { swap(t, outside, d+"/.git/objects/pack") },
				".git/refs one":            func(d string) { swap(t, outside, d+"/.git/refs") },
				".git/refs/heads/pawl one": func(d string) { swap(t, outside, d+"/.git/refs/heads/pawl") },
				".git/HEAD a symlink":      func(d string) { swap(t, outside+"/HEAD", d+"/.git/HEAD") },
				".git/index a folder": func(d string) {
					require.NoError(t, os.Remove(d+"/.git/index"))
					gittest.Write(t, d+"/.git/index/x/y", "z")
				},
				".git/HEAD a hard link": func(d string) {
					require.NoError(t, os.Remove(d+"/.git/HEAD"))
					require.NoError(t, os.Link(outside+"/HEAD", d+"/.git/HEAD"))
				},
				"a pack removed": func(d string) {
					for _, p := range gittest.Must(filepath.Glob(d + "/.git/objects/pack/*.pack")) {
						require.NoError(t, os.Remove(p))
					}
				},
				"a pack replaced": func(d string) {
					for _, p := range gittest.Must(filepath.Glob(d + "/.git/objects/pack/*.pack")) {
						require.NoError(t, os.Chmod(p, 0o644))
						gittest.Write(t, p, "junk")
					}
				},
			} {
				tree := worktree.At(b.Store, filepath.Join(b.Dir, "tree"), filepath.Join(b.Dir, "state"), "pawl/x")
				if created, err := tree.Restore(ctx, b.Base, worktree.RestoreOptions{}); created || err != nil {
					require.NoError(t, err)
					require.NoError(t, tree.Pristine(ctx))
				}
				do(tree.Dir)
				again, err := tree.Restore(ctx, b.Base, o)
				require.NoError(t, err, what)
				assert.Equal(t, strings.HasPrefix(what, "the tree"), again, what)
				assert.Equal(t, want, gittest.Listing(t, outside), what)
				assert.Equal(t, gittest.Listing(t, b.Fresh(b.Base).Dir), gittest.Listing(t, tree.Dir), what)
				assert.Empty(t, gittest.Git(t, tree.Dir, "status", "--porcelain"), what)
				gittest.Git(t, tree.Dir, "fsck", "--strict")
				if again {
					require.NoError(t, tree.Pristine(ctx))
				}
			}
		})
	}
}

// swap replaces path by a symlink to target.
func swap(t testing.TB, target, path string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.Symlink(target, path))
}

// The test plants a program wherever git could be told to run one, and then does everything that pawl does with a
// tree.
func TestNoProgramOfTheTreesRuns(t *testing.T) {
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk, jdg := b.Tree("desk", b.Base), b.Tree("judge", b.Base)
	canary := filepath.Join(b.Dir, "canary")
	evil := filepath.Join(b.Dir, "evil")
	gittest.Write(t, evil, "#!/bin/sh\ntouch "+canary+"\ncat\n")
	require.NoError(t, os.Chmod(evil, 0o755))
	config := `[core]
	fsmonitor = ` + evil + `
	hooksPath = ` + b.Dir + `/hooks
	pager = ` + evil + `
	editor = ` + evil + `
	sshCommand = ` + evil + `
	attributesFile = ` + b.Dir + `/attributes
[filter "evil"]
	clean = ` + evil + `
	smudge = ` + evil + `
	process = ` + evil + `
	required = true
[diff "evil"]
	textconv = ` + evil + `
	command = ` + evil + `
[diff]
	external = ` + evil + `
[merge "evil"]
	driver = ` + evil + `
[gpg]
	program = ` + evil + `
[commit]
	gpgSign = true
[log]
	showSignature = true
[pack]
	packObjectsHook = ` + evil + `
[uploadpack]
	packObjectsHook = ` + evil + `
[include]
	path = ` + b.Dir + `/more
`
	plant := func(gitDir string) {
		gittest.Write(t, gitDir+"/config", "[core]\n\trepositoryformatversion = 0\n"+config)
		gittest.Write(t, gitDir+"/HEAD", "ref: refs/heads/main\n")
		for _, d := range []string{"objects", "refs"} {
			require.NoError(t, os.MkdirAll(gitDir+"/"+d, 0o755))
		}
		for _, hook := range []string{"post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-index-change", "fsmonitor-watchman", "pre-push"} {
			for _, dir := range []string{gitDir + "/hooks/", b.Dir + "/hooks/"} {
				gittest.Write(t, dir+hook, "#!/bin/sh\ntouch "+canary+"\n")
				require.NoError(t, os.Chmod(dir+hook, 0o755))
			}
		}
		gittest.Write(t, gitDir+"/info/attributes", "* filter=evil diff=evil merge=evil\n")
	}
	gittest.Write(t, b.Dir+"/attributes", "* filter=evil diff=evil merge=evil\n")
	// The user's own configuration is not the tree's, but it must not affect the store either.
	home := os.Getenv("HOME")
	gittest.Write(t, home+"/.gitconfig", config)
	gittest.Write(t, home+"/git/attributes", "* filter=evil diff=evil merge=evil\n")
	t.Cleanup(func() { _ = os.Remove(home + "/.gitconfig"); _ = os.RemoveAll(home + "/git") })

	for _, hook := range []string{"reference-transaction", "post-index-change", "pre-push"} {
		gittest.Write(t, b.Store.Dir()+"/hooks/"+hook, "#!/bin/sh\ntouch "+canary+"\n")
		require.NoError(t, os.Chmod(b.Store.Dir()+"/hooks/"+hook, 0o755))
	}
	for _, tree := range []*worktree.Tree{desk, jdg} {
		plant(tree.Dir + "/.git")
		plant(tree.Dir + "/build/nested/.git")
		gittest.Write(t, tree.Dir+"/.gitattributes", "* filter=evil diff=evil merge=evil ident\n")
		gittest.Write(t, tree.Dir+"/src/.gitattributes", "* filter=evil diff=evil merge=evil export-subst\n")
		gittest.Write(t, tree.Dir+"/src/b.txt", "changed\n")
		gittest.Write(t, tree.Dir+"/.gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::"+evil+"\n\tupdate = !"+evil+"\n")
	}
	head := b.Commit(desk, b.Base)
	plant(desk.Dir + "/src/sub/.git")
	_, err := desk.Stage(ctx, head)
	require.NoError(t, err)
	b.Restore(jdg, head, judge)
	plant(desk.Dir + "/.git")
	b.Restore(desk, head, worktree.RestoreOptions{})
	plant(desk.Dir + "/.git")
	b.Restore(desk, head, worktree.RestoreOptions{})
	_, err = b.Store.Diff(ctx, b.Base, head, 10000)
	require.NoError(t, err)
	_, err = b.Store.Proposal(ctx, "", b.Base, head)
	require.NoError(t, err)
	_, err = b.Store.Log(ctx, head, 10)
	require.NoError(t, err)
	_, err = b.Store.Transact(ctx, gittest.Settle(b, head, ""))
	require.NoError(t, err)
	assert.NoFileExists(t, canary)

	for _, tree := range []*worktree.Tree{desk, jdg} {
		assert.NotContains(t, gittest.Read(t, tree.Dir+"/.git/config"), "evil")
		assert.NoDirExists(t, tree.Dir+"/.git/hooks")
	}
	plant(desk.Dir + "/.git")
	_, _ = gittest.TryGit(desk.Dir, "status")
	assert.FileExists(t, canary, "the canary sings")
}

// The same tree gives the same change on every host and for every user.
// It is not parallel: the agents of other tests would write files as these attributes say.
func TestTheUsersAttributesAndIgnoresDoNotCount(t *testing.T) {
	home := os.Getenv("HOME")
	gittest.Write(t, home+"/git/attributes", "*.txt text eol=crlf\n")
	gittest.Write(t, home+"/git/ignore", "*.new\n")
	t.Cleanup(func() { _ = os.RemoveAll(home + "/git") })
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	assert.Equal(t, "b\n", gittest.Read(t, desk.Dir+"/src/b.txt"))
	gittest.Write(t, desk.Dir+"/a.new", "x")
	assert.Equal(t, []string{"a.new"}, paths(b.Stage(desk, b.Base).Files))
}

func TestPawlsOwnFilesInTheRoot(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	for what, do := range map[string]func(p string){
		"a file":    func(p string) { gittest.Write(t, p, "results") },
		"a symlink": func(p string) { require.NoError(t, os.Symlink("/nowhere", p)) },
		"a folder":  func(p string) { gittest.Write(t, p+"/x/y", "z") },
		"a FIFO":    func(p string) { require.NoError(t, syscall.Mkfifo(p, 0o600)) },
	} {
		path := desk.Dir + "/loop-results.tsv"
		require.NoError(t, os.RemoveAll(path))
		do(path)
		assert.True(t, b.Stage(desk, b.Base).Empty(), what)
	}
}

// Whatever an agent does to its .git changes only its desk.
func TestP10_WhatAnAgentDoesWithGitChangesNothing(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(t *testing.T, d string){
		"commits": func(t *testing.T, d string) {
			gittest.Git(t, d, "add", "-A")
			gittest.Git(t, d, "commit", "-qm", "mine")
		},
		"commits and goes on": func(t *testing.T, d string) {
			gittest.Git(t, d, "add", "-A")
			gittest.Git(t, d, "commit", "-qm", "mine")
			gittest.Write(t, d+"/a.txt", "even better\n")
		},
		"switches branch":   func(t *testing.T, d string) { gittest.Git(t, d, "checkout", "-q", "-b", "elsewhere") },
		"detaches HEAD":     func(t *testing.T, d string) { gittest.Git(t, d, "checkout", "-q", "--detach") },
		"stages half of it": func(t *testing.T, d string) { gittest.Git(t, d, "add", "a.txt") },
		"deletes the branch": func(t *testing.T, d string) {
			gittest.Git(t, d, "checkout", "-q", "--detach")
			gittest.Git(t, d, "branch", "-D", "pawl/x")
		},
		"makes an orphan": func(t *testing.T, d string) { gittest.Git(t, d, "checkout", "-q", "--orphan", "o") },
		"leaves a conflict": func(t *testing.T, d string) {
			gittest.Git(t, d, "stash", "-q", "-u")
			gittest.Conflict(t, d)
			gittest.Git(t, d, "checkout", "-q", "stash@{0}", "--", "a.txt")
			gittest.Write(t, d+"/new", "new\n")
		},
		"leaves a lock": func(t *testing.T, d string) { gittest.Write(t, d+"/.git/index.lock", "") },
		"runs gc":       func(t *testing.T, d string) { gittest.Git(t, d, "gc", "-q", "--aggressive", "--prune=now") },
		"removes .git":  func(t *testing.T, d string) { require.NoError(t, os.RemoveAll(d+"/.git")) },
		"makes .git anew": func(t *testing.T, d string) {
			require.NoError(t, os.RemoveAll(d+"/.git"))
			gittest.Git(t, d, "init", "-q")
			gittest.Git(t, d, "add", "-A")
			gittest.Git(t, d, "commit", "-qm", "all")
		},
		"wrecks the objects": func(t *testing.T, d string) { require.NoError(t, os.RemoveAll(d+"/.git/objects")) },
		"replaces history": func(t *testing.T, d string) {
			gittest.Git(t, d, "replace", "HEAD", gittest.Git(t, d, "commit-tree", "-m", "x", "HEAD^{tree}"))
		},
		"sets bits": func(t *testing.T, d string) {
			gittest.Git(t, d, "update-index", "--assume-unchanged", "a.txt")
			gittest.Git(t, d, "update-index", "--skip-worktree", "src/b.txt")
			gittest.Git(t, d, "config", "core.bare", "true")
			gittest.Git(t, d, "config", "core.worktree", "/")
		},
		"adds a worktree": func(t *testing.T, d string) { gittest.Git(t, d, "worktree", "add", "-q", t.TempDir()+"/w") },
	} {
		t.Run(name, func(t *testing.T) {
			if !tier.Nightly && !slices.Contains([]string{"commits", "leaves a conflict", "removes .git", "wrecks the objects", "sets bits"}, name) {
				t.Skip("runs with -tags nightly: branches, objects and settings are spoiled in other ways")
			}
			b := gittest.NewBed(t, gittest.SomeFiles)
			desk := b.Tree("desk", b.Base)
			gittest.Write(t, desk.Dir+"/a.txt", "better\n")
			gittest.Write(t, desk.Dir+"/new", "new\n")
			do(t, desk.Dir)
			head := b.Commit(desk, b.Base)
			assert.Equal(t, []string{"a.txt", "new"}, paths(gittest.Must(b.Store.Changes(ctx, b.Base, head))))
			assert.Equal(t, b.Base, b.StoreGit("rev-parse", head+"^"))

			b.Restore(desk, head, worktree.RestoreOptions{})
			clean(t, desk, head)
			gittest.Write(t, desk.Dir+"/a.txt", "best\n")
			do2 := do
			if name == "leaves a conflict" {
				do2 = func(*testing.T, string) {}
			}
			do2(t, desk.Dir)
			b.Restore(desk, b.Base, worktree.RestoreOptions{})
			clean(t, desk, b.Base)
			assert.Equal(t, gittest.Listing(t, b.Fresh(b.Base).Dir), gittest.Listing(t, desk.Dir))
		})
	}
}

// clean checks that the tree's own git is at commit, with nothing to commit and nothing else.
func clean(t testing.TB, tree *worktree.Tree, commit string) {
	t.Helper()
	assert.Equal(t, commit, gittest.Git(t, tree.Dir, "rev-parse", "HEAD"))
	assert.Equal(t, "refs/heads/"+tree.Branch, gittest.Git(t, tree.Dir, "symbolic-ref", "HEAD"))
	assert.Empty(t, gittest.Git(t, tree.Dir, "status", "--porcelain"))
	assert.Equal(t, commit+" commit\trefs/heads/"+tree.Branch, gittest.Git(t, tree.Dir, "for-each-ref"))
	assert.Empty(t, gittest.Git(t, tree.Dir, "remote"))
	gittest.Git(t, tree.Dir, "fsck", "--strict")
	gittest.Git(t, tree.Dir, "log")
}

func TestATreesGitIsMadeAnewBeforeItGrowsWithoutEnd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip()
	}
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	head := b.Base
	most := 0
	for i := range 60 {
		gittest.Write(t, desk.Dir+"/a.txt", strings.Repeat("x", i+1))
		head = b.Commit(desk, head)
		b.Restore(desk, head, worktree.RestoreOptions{})
		most = max(most, len(gittest.Must(filepath.Glob(desk.Dir+"/.git/objects/pack/*.pack"))))
	}
	assert.LessOrEqual(t, most, 52)
	assert.Greater(t, most, 40)
	clean(t, desk, head)
	assert.LessOrEqual(t, len(gittest.Must(filepath.Glob(desk.Dir+"/.git/objects/pack/*.pack"))), 20)
}

func TestATreeShowsTheTagsOfItsHistoryAndItsOrigin(t *testing.T) {
	t.Parallel()
	user, base := gittest.UserRepo(t, gittest.SomeFiles)
	gittest.Git(t, user, "tag", "-a", "-m", "the first", "v1")
	gittest.Git(t, user, "tag", "light")
	gittest.Git(t, user, "checkout", "-q", "-b", "other")
	gittest.Git(t, user, "commit", "-q", "--allow-empty", "-m", "elsewhere")
	gittest.Git(t, user, "tag", "elsewhere")
	gittest.Git(t, user, "checkout", "-q", "main")
	b := gittest.BedFor(t, user, base)
	require.NoError(t, userrepo.FetchTags(ctx, b.Store, userrepo.At(user), "refs/heads/main"))
	require.NoError(t, userrepo.FetchTags(ctx, b.Store, userrepo.At(user), "refs/heads/main"), "once more")
	desk := worktree.At(b.Store, filepath.Join(b.Dir, "desk"), filepath.Join(b.Dir, "desk-state"), "pawl/x")
	desk.Origin = "https://example.com/a.git"
	_, err := desk.Restore(ctx, base, worktree.RestoreOptions{})
	require.NoError(t, errors.Join(err, desk.Pristine(ctx)))
	in := func(args ...string) string { return gittest.Git(t, desk.Dir, args...) }
	assert.Equal(t, "v1", in("describe"))
	gittest.Write(t, desk.Dir+"/a.txt", "better\n")
	head := b.Commit(desk, base)
	gittest.Git(t, desk.Dir, "tag", "the-agents")
	gittest.Git(t, desk.Dir, "tag", "-d", "light")
	b.Restore(desk, head, worktree.RestoreOptions{})
	assert.Equal(t, "v1-1-g"+head[:7], in("describe", "--abbrev=7"))
	assert.Equal(t, "light\nv1", in("tag"), "neither another branch's nor the agent's")
	assert.Equal(t, "https://example.com/a.git", in("remote", "get-url", "origin"))
	_, err = gittest.TryGit(desk.Dir, "push", "origin", "HEAD:main")
	require.Error(t, err)
	assert.Contains(t, in("remote", "get-url", "--push", "origin"), "a loop pushes by itself")
	in("fsck", "--strict")
}

// A repository's tag "latest" moves with each release, and a later loop sees it at its new commit.
func TestATagThatHasMovedIsShownWhereItIsNow(t *testing.T) {
	t.Parallel()
	user, base := gittest.UserRepo(t, gittest.SomeFiles)
	b := gittest.BedFor(t, user, base)
	fetch := func() { require.NoError(t, userrepo.FetchTags(ctx, b.Store, userrepo.At(user), "refs/heads/main")) }
	for _, tag := range []string{"latest", "gone"} {
		gittest.Git(t, user, "tag", "-a", "-m", "first", tag)
	}
	fetch()
	gittest.Git(t, user, "commit", "-q", "--allow-empty", "-m", "another release")
	gittest.Git(t, user, "tag", "-f", "-a", "-m", "second", "latest")
	gittest.Git(t, user, "tag", "-d", "gone")
	fetch()
	require.Equal(t, gittest.Git(t, user, "rev-parse", "main"), b.StoreGit("rev-parse", "latest^{}"))
	require.Equal(t, base, b.StoreGit("rev-parse", "gone^{}"))
}

func TestNobodyReachesTheStoreFromATree(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	b.Append(gittest.Entry("", b.Base, map[string]string{"state.json": "secret plans"}))
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/a.txt", "better\n")
	head := b.Commit(desk, b.Base)
	b.Restore(desk, head, worktree.RestoreOptions{})
	assert.NoFileExists(t, desk.Dir+"/.git/objects/info/alternates")
	require.NoError(t, exec.Command("grep", "-rq", "pawl/x", desk.Dir+"/.git").Run())
	require.Error(t, exec.Command("grep", "-rqF", b.Store.Dir(), desk.Dir+"/.git").Run(), "its path is nowhere")
	_, err := gittest.TryGit(desk.Dir, "cat-file", "-e", b.StoreGit("rev-parse", gittest.LedgerRef))
	require.Error(t, err, "nor is the ledger")
	inodes := map[uint64]bool{}
	for _, dir := range []string{b.Store.Dir(), desk.Dir} {
		for p, is := range gittest.Listing(t, dir) {
			var st syscall.Stat_t
			require.NoError(t, syscall.Stat(filepath.Join(dir, p), &st))
			if is != "dir" {
				assert.False(t, inodes[st.Ino])
				inodes[st.Ino] = true
			}
		}
	}
}
