package repo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/repo"
)

// What an agent does in its tree changes nothing outside of it, and runs nothing of its own when pawl works there.

func TestNothingOutsideIsTouched(t *testing.T) {
	for name, o := range map[string]repo.RestoreOptions{"desk": {}, "judge": judge} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, someFiles)
			outside := filepath.Join(b.dir, "outside")
			for _, f := range []string{"a.txt", "src/b.txt", "HEAD", "config", "pack/x", "refs/heads/pawl/x", "objects/pack/y"} {
				write(t, filepath.Join(outside, f), "precious")
			}
			want := listing(t, outside)
			for what, do := range map[string]func(d string){
				"the tree a symlink": func(d string) {
					require.NoError(t, os.RemoveAll(d))
					require.NoError(t, os.Symlink(outside, d))
				},
				"the tree a file": func(d string) {
					require.NoError(t, os.RemoveAll(d))
					write(t, d, "x")
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
					write(t, d+"/.git", "gitdir: "+outside)
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
				".git/index a folder":      func(d string) { require.NoError(t, os.Remove(d+"/.git/index")); write(t, d+"/.git/index/x/y", "z") },
				".git/HEAD a hard link": func(d string) {
					require.NoError(t, os.Remove(d+"/.git/HEAD"))
					require.NoError(t, os.Link(outside+"/HEAD", d+"/.git/HEAD"))
				},
				"a pack removed": func(d string) {
					for _, p := range must(filepath.Glob(d + "/.git/objects/pack/*.pack")) {
						require.NoError(t, os.Remove(p))
					}
				},
				"a pack replaced": func(d string) {
					for _, p := range must(filepath.Glob(d + "/.git/objects/pack/*.pack")) {
						require.NoError(t, os.Chmod(p, 0o644))
						write(t, p, "junk")
					}
				},
			} {
				tree := b.store.Tree(filepath.Join(b.dir, "tree"), filepath.Join(b.dir, "state"), "pawl/x")
				if created, err := tree.Materialise(ctx, b.base); created || err != nil {
					require.NoError(t, err)
					require.NoError(t, tree.Pristine(ctx))
				}
				do(tree.Dir)
				again, err := tree.Restore(ctx, b.base, o)
				require.NoError(t, err, what)
				assert.Equal(t, strings.HasPrefix(what, "the tree"), again, what)
				assert.Equal(t, want, listing(t, outside), what)
				assert.Equal(t, listing(t, must(b.fresh(b.base)).Dir), listing(t, tree.Dir), what)
				assert.Empty(t, git(t, tree.Dir, "status", "--porcelain"), what)
				git(t, tree.Dir, "fsck", "--strict")
				if again {
					require.NoError(t, tree.Pristine(ctx))
				}
			}
		})
	}
}

// swap puts a symlink to target where path is.
func swap(t testing.TB, target, path string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.Symlink(target, path))
}

// TestNoProgramOfTheTreesRuns plants a program wherever git could be told to run one and then
// does everything that pawl does with a tree.
func TestNoProgramOfTheTreesRuns(t *testing.T) {
	b := newBed(t, someFiles)
	desk, jdg := b.tree("desk", b.base), b.tree("judge", b.base)
	canary := filepath.Join(b.dir, "canary")
	evil := filepath.Join(b.dir, "evil")
	write(t, evil, "#!/bin/sh\ntouch "+canary+"\ncat\n")
	require.NoError(t, os.Chmod(evil, 0o755))
	config := `[core]
	fsmonitor = ` + evil + `
	hooksPath = ` + b.dir + `/hooks
	pager = ` + evil + `
	editor = ` + evil + `
	sshCommand = ` + evil + `
	attributesFile = ` + b.dir + `/attributes
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
	path = ` + b.dir + `/more
`
	plant := func(gitDir string) {
		write(t, gitDir+"/config", "[core]\n\trepositoryformatversion = 0\n"+config)
		write(t, gitDir+"/HEAD", "ref: refs/heads/main\n")
		for _, d := range []string{"objects", "refs"} {
			require.NoError(t, os.MkdirAll(gitDir+"/"+d, 0o755))
		}
		for _, hook := range []string{"post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-index-change", "fsmonitor-watchman", "pre-push"} {
			for _, dir := range []string{gitDir + "/hooks/", b.dir + "/hooks/"} {
				write(t, dir+hook, "#!/bin/sh\ntouch "+canary+"\n")
				require.NoError(t, os.Chmod(dir+hook, 0o755))
			}
		}
		write(t, gitDir+"/info/attributes", "* filter=evil diff=evil merge=evil\n")
	}
	write(t, b.dir+"/attributes", "* filter=evil diff=evil merge=evil\n")
	// The user's own configuration is not the tree's, but it is not for the store either.
	home := os.Getenv("HOME")
	write(t, home+"/.gitconfig", config)
	write(t, home+"/git/attributes", "* filter=evil diff=evil merge=evil\n")
	t.Cleanup(func() { _ = os.Remove(home + "/.gitconfig"); _ = os.RemoveAll(home + "/git") })

	for _, hook := range []string{"reference-transaction", "post-index-change", "pre-push"} {
		write(t, b.store.Dir()+"/hooks/"+hook, "#!/bin/sh\ntouch "+canary+"\n")
		require.NoError(t, os.Chmod(b.store.Dir()+"/hooks/"+hook, 0o755))
	}
	for _, tree := range []*repo.Tree{desk, jdg} {
		plant(tree.Dir + "/.git")
		plant(tree.Dir + "/build/nested/.git")
		write(t, tree.Dir+"/.gitattributes", "* filter=evil diff=evil merge=evil ident\n")
		write(t, tree.Dir+"/src/.gitattributes", "* filter=evil diff=evil merge=evil export-subst\n")
		write(t, tree.Dir+"/src/b.txt", "changed\n")
		write(t, tree.Dir+"/.gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::"+evil+"\n\tupdate = !"+evil+"\n")
	}
	head := b.commit(desk, b.base)
	plant(desk.Dir + "/src/sub/.git")
	_, err := desk.Stage(ctx, head)
	require.NoError(t, err)
	b.restore(jdg, head, judge)
	plant(desk.Dir + "/.git")
	require.NoError(t, desk.Refresh(ctx, head))
	plant(desk.Dir + "/.git")
	b.restore(desk, head, repo.RestoreOptions{})
	_, _, err = b.store.Diff(ctx, b.base, head, 10000)
	require.NoError(t, err)
	_, err = b.store.Proposal(ctx, b.base, head)
	require.NoError(t, err)
	_, err = b.store.Log(ctx, head, 10)
	require.NoError(t, err)
	_, err = b.store.Transact(ctx, b.settle(head, ""))
	require.NoError(t, err)
	require.NoError(t, b.store.Maintain(ctx))
	assert.NoFileExists(t, canary)

	for _, tree := range []*repo.Tree{desk, jdg} {
		assert.NotContains(t, read(t, tree.Dir+"/.git/config"), "evil")
		assert.NoDirExists(t, tree.Dir+"/.git/hooks")
	}
	plant(desk.Dir + "/.git")
	_, _ = tryGit(desk.Dir, "status")
	assert.FileExists(t, canary, "the canary sings")
}

// The same tree gives the same change on every host and for every user.
func TestTheUsersAttributesAndIgnoresDoNotCount(t *testing.T) {
	home := os.Getenv("HOME")
	write(t, home+"/git/attributes", "*.txt text eol=crlf\n")
	write(t, home+"/git/ignore", "*.new\n")
	t.Cleanup(func() { _ = os.RemoveAll(home + "/git") })
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	assert.Equal(t, "b\n", read(t, desk.Dir+"/src/b.txt"))
	write(t, desk.Dir+"/a.new", "x")
	assert.Equal(t, []string{"a.new"}, paths(b.stage(desk, b.base).Files))
}

func TestPawlsOwnFilesInTheRoot(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	precious := filepath.Join(b.dir, "precious")
	write(t, precious, "precious")
	for what, do := range map[string]func(p string){
		"nothing":     func(string) {},
		"a symlink":   func(p string) { require.NoError(t, os.Symlink(precious, p)) },
		"a hard link": func(p string) { require.NoError(t, os.Link(precious, p)) },
		"a folder":    func(p string) { write(t, p+"/x/y", "z") },
		"a FIFO":      func(p string) { require.NoError(t, syscall.Mkfifo(p, 0o600)) },
	} {
		path := desk.Dir + "/loop-results.tsv"
		require.NoError(t, os.RemoveAll(path))
		do(path)
		require.NoError(t, desk.Put("loop-results.tsv", []byte("results")), what)
		assert.Equal(t, "results", read(t, path), what)
		assert.Equal(t, "precious", read(t, precious), what)
		assert.True(t, b.stage(desk, b.base).Empty(), what)
	}
	assert.False(t, must(desk.Has("loop-stop")))
	require.NoError(t, os.Symlink("/nowhere", desk.Dir+"/loop-stop"))
	assert.True(t, must(desk.Has("loop-stop")))
	require.Error(t, desk.Put("a.txt", nil))
	_, err := desk.Has("../x")
	require.Error(t, err)
	require.NoError(t, os.RemoveAll(desk.Dir))
	assert.False(t, must(desk.Has("loop-stop")))
	require.Error(t, desk.Put("loop-results.tsv", nil))
}

// What agents do to the .git that they find changes nothing but their desk.
func TestP10_WhatAnAgentDoesWithGitChangesNothing(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, d string){
		"commits": func(t *testing.T, d string) { git(t, d, "add", "-A"); git(t, d, "commit", "-qm", "mine") },
		"commits and goes on": func(t *testing.T, d string) {
			git(t, d, "add", "-A")
			git(t, d, "commit", "-qm", "mine")
			write(t, d+"/a.txt", "even better\n")
		},
		"switches branch":   func(t *testing.T, d string) { git(t, d, "checkout", "-q", "-b", "elsewhere") },
		"detaches HEAD":     func(t *testing.T, d string) { git(t, d, "checkout", "-q", "--detach") },
		"stages half of it": func(t *testing.T, d string) { git(t, d, "add", "a.txt") },
		"deletes the branch": func(t *testing.T, d string) {
			git(t, d, "checkout", "-q", "--detach")
			git(t, d, "branch", "-D", "pawl/x")
		},
		"makes an orphan": func(t *testing.T, d string) { git(t, d, "checkout", "-q", "--orphan", "o") },
		"leaves a conflict": func(t *testing.T, d string) {
			git(t, d, "stash", "-q", "-u")
			conflict(t, d)
			git(t, d, "checkout", "-q", "stash@{0}", "--", "a.txt")
			write(t, d+"/new", "new\n")
		},
		"leaves a lock": func(t *testing.T, d string) { write(t, d+"/.git/index.lock", "") },
		"runs gc":       func(t *testing.T, d string) { git(t, d, "gc", "-q", "--aggressive", "--prune=now") },
		"removes .git":  func(t *testing.T, d string) { require.NoError(t, os.RemoveAll(d+"/.git")) },
		"makes .git anew": func(t *testing.T, d string) {
			require.NoError(t, os.RemoveAll(d+"/.git"))
			git(t, d, "init", "-q")
			git(t, d, "add", "-A")
			git(t, d, "commit", "-qm", "all")
		},
		"wrecks the objects": func(t *testing.T, d string) { require.NoError(t, os.RemoveAll(d+"/.git/objects")) },
		"replaces history": func(t *testing.T, d string) {
			git(t, d, "replace", "HEAD", git(t, d, "commit-tree", "-m", "x", "HEAD^{tree}"))
		},
		"sets bits": func(t *testing.T, d string) {
			git(t, d, "update-index", "--assume-unchanged", "a.txt")
			git(t, d, "update-index", "--skip-worktree", "src/b.txt")
			git(t, d, "config", "core.bare", "true")
			git(t, d, "config", "core.worktree", "/")
		},
		"adds a worktree": func(t *testing.T, d string) { git(t, d, "worktree", "add", "-q", t.TempDir()+"/w") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, someFiles)
			desk := b.tree("desk", b.base)
			write(t, desk.Dir+"/a.txt", "better\n")
			write(t, desk.Dir+"/new", "new\n")
			do(t, desk.Dir)
			head := b.commit(desk, b.base)
			assert.Equal(t, []string{"a.txt", "new"}, paths(must(b.store.Changes(ctx, b.base, head))))
			assert.Equal(t, b.base, b.storeGit("rev-parse", head+"^"))

			require.NoError(t, desk.Refresh(ctx, head))
			clean(t, desk, head)
			write(t, desk.Dir+"/a.txt", "best\n")
			do2 := do
			if name == "leaves a conflict" {
				do2 = func(*testing.T, string) {}
			}
			do2(t, desk.Dir)
			b.restore(desk, b.base, repo.RestoreOptions{})
			clean(t, desk, b.base)
			assert.Equal(t, listing(t, must(b.fresh(b.base)).Dir), listing(t, desk.Dir))
		})
	}
}

// clean checks that a tree's own git shows it at commit, with nothing to commit and nothing else.
func clean(t testing.TB, tree *repo.Tree, commit string) {
	t.Helper()
	assert.Equal(t, commit, git(t, tree.Dir, "rev-parse", "HEAD"))
	assert.Equal(t, "refs/heads/"+tree.Branch, git(t, tree.Dir, "symbolic-ref", "HEAD"))
	assert.Empty(t, git(t, tree.Dir, "status", "--porcelain"))
	assert.Equal(t, commit+" commit\trefs/heads/"+tree.Branch, git(t, tree.Dir, "for-each-ref"))
	assert.Empty(t, git(t, tree.Dir, "remote"))
	git(t, tree.Dir, "fsck", "--strict")
	git(t, tree.Dir, "log")
}

func TestATreesGitIsMadeAnewBeforeItGrowsWithoutEnd(t *testing.T) {
	if testing.Short() {
		t.Skip()
	}
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	head := b.base
	most := 0
	for i := range 60 {
		write(t, desk.Dir+"/a.txt", strings.Repeat("x", i+1))
		head = b.commit(desk, head)
		require.NoError(t, desk.Refresh(ctx, head))
		most = max(most, len(must(filepath.Glob(desk.Dir+"/.git/objects/pack/*.pack"))))
	}
	assert.LessOrEqual(t, most, 52)
	assert.Greater(t, most, 40)
	clean(t, desk, head)
	assert.LessOrEqual(t, len(must(filepath.Glob(desk.Dir+"/.git/objects/pack/*.pack"))), 20)
}

func TestNobodyReachesTheStoreFromATree(t *testing.T) {
	b := newBed(t, someFiles)
	b.append(entry("", b.base, map[string]string{"state.json": "secret plans"}))
	desk := b.tree("desk", b.base)
	write(t, desk.Dir+"/a.txt", "better\n")
	head := b.commit(desk, b.base)
	require.NoError(t, desk.Refresh(ctx, head))
	assert.NoFileExists(t, desk.Dir+"/.git/objects/info/alternates")
	require.NoError(t, exec.Command("grep", "-rq", "pawl/x", desk.Dir+"/.git").Run())
	require.Error(t, exec.Command("grep", "-rqF", b.store.Dir(), desk.Dir+"/.git").Run(), "its path is nowhere")
	_, err := tryGit(desk.Dir, "cat-file", "-e", b.storeGit("rev-parse", ledgerRef))
	require.Error(t, err, "nor is the ledger")
	inodes := map[uint64]bool{}
	for _, dir := range []string{b.store.Dir(), desk.Dir} {
		for p, is := range listing(t, dir) {
			var st syscall.Stat_t
			require.NoError(t, syscall.Stat(filepath.Join(dir, p), &st))
			if is != "dir" {
				assert.False(t, inodes[st.Ino])
				inodes[st.Ino] = true
			}
		}
	}
}
