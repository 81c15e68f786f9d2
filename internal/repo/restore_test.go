package repo_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/repo"
)

func TestMaterialiseMakesTheCommit(t *testing.T) {
	b := newBed(t, variedFiles)
	head := variedChange(t, b, b.tree("desk", b.base))
	tree := b.store.Tree(filepath.Join(b.dir, "odd \n\xff", "tree"), filepath.Join(b.dir, "odd state"), "pawl/x")
	created, err := tree.Materialise(ctx, head)
	require.NoError(t, err)
	assert.True(t, created)
	created, err = tree.Materialise(ctx, head)
	require.NoError(t, err)
	assert.True(t, created, "setup has not finished")
	require.NoError(t, tree.Pristine(ctx))
	created, err = tree.Materialise(ctx, head)
	require.NoError(t, err)
	assert.False(t, created)

	clone := filepath.Join(b.dir, "clone")
	git(t, b.dir, "clone", "-q", "--branch", "pawl/x", b.store.Dir(), clone)
	assert.Equal(t, listing(t, clone), listing(t, tree.Dir), "as a clone would be")

	require.NoError(t, tree.Remove(ctx))
	assert.NoDirExists(t, tree.Dir)
	require.NoError(t, tree.Remove(ctx), "twice")
	created, err = tree.Materialise(ctx, b.base)
	require.NoError(t, err)
	assert.True(t, created)

	_, err = tree.Materialise(ctx, "HEAD")
	require.Error(t, err)
	require.NoError(t, tree.Pristine(ctx))
	write(t, tree.Dir+"/parked", "work")
	_, err = tree.Materialise(ctx, "0123456789012345678901234567890123456789")
	require.Error(t, err)
	assert.FileExists(t, tree.Dir+"/parked", "a commit that does not exist is no reason to throw a tree away")
}

func TestRestoreRemovesWhatIsNotIgnoredFromADesk(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	fresh := listing(t, desk.Dir)
	d := desk.Dir
	write(t, d+"/x.log", "ignored, stays")
	write(t, d+"/build/out/y", "ignored, stays")
	write(t, d+"/loop-results.tsv", "pawl's, stays")
	write(t, d+"/loop-stop", "pawl's, stays")
	want := listing(t, d)
	write(t, d+"/new", "x")
	write(t, d+"/n/e/w", "x")
	write(t, d+"/src/n/e/w", "x")
	write(t, d+"/mixed/x.log", "ignored, stays")
	write(t, d+"/mixed/new", "x")
	want["mixed"], want["mixed/x.log"] = "dir", "644 ignored, stays"
	require.NoError(t, os.MkdirAll(d+"/empty/er", 0o755))
	require.NoError(t, os.Remove(d+"/a.txt"))
	require.NoError(t, os.Mkdir(d+"/a.txt", 0o755))
	write(t, d+"/a.txt/b", "x")
	require.NoError(t, os.RemoveAll(d+"/src/deep"))
	write(t, d+"/src/deep", "a file")
	require.NoError(t, os.Chmod(d+"/src/b.txt", 0o777))
	// The agent's own idea of what is ignored does not count, however deep it is buried.
	write(t, d+"/.gitignore", "*\n")
	write(t, d+"/hidden/.gitignore", "one\n/two\n")
	write(t, d+"/hidden/one", "x")
	write(t, d+"/hidden/two/.gitignore", "three\n")
	write(t, d+"/hidden/two/three/.gitignore", "f*\n")
	write(t, d+"/hidden/two/three/four", "x")
	b.restore(desk, b.base, repo.RestoreOptions{})
	assert.Equal(t, want, listing(t, d))
	assert.True(t, b.stage(desk, b.base).Empty())

	b.restore(desk, b.base, judge)
	assert.Equal(t, fresh, listing(t, d), "a judge keeps none of that")
}

func TestRestoreAfterStageLeavesNothingOfTheChange(t *testing.T) {
	for name, o := range map[string]repo.RestoreOptions{"desk": {}, "judge": judge} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, variedFiles)
			desk := b.tree("desk", b.base)
			fresh := listing(t, desk.Dir)
			head := variedChange(t, b, desk)
			changed := listing(t, desk.Dir)
			b.restore(desk, b.base, o)
			assert.Equal(t, fresh, listing(t, desk.Dir))
			b.restore(desk, head, o)
			assert.Equal(t, changed, listing(t, desk.Dir))
			write(t, desk.Dir+"/later", "x")
			b.restore(desk, head, o)
			assert.Equal(t, changed, listing(t, desk.Dir))
			b.restore(desk, b.base, o)
			assert.Equal(t, fresh, listing(t, desk.Dir))
		})
	}
}

// Where nothing has changed, no git runs; any doubt, and one does.
func TestTheFastPathSeesEveryChange(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	fresh := listing(t, desk.Dir)
	d := desk.Dir
	for name, change := range map[string]func(){
		"content":          func() { write(t, d+"/a.txt", "ONE\ntwo\nthree\n") },
		"mode":             func() { require.NoError(t, os.Chmod(d+"/a.txt", 0o755)) },
		"removed":          func() { require.NoError(t, os.Remove(d+"/a.txt")) },
		"a folder removed": func() { require.NoError(t, os.RemoveAll(d+"/src")) },
		"replaced": func() {
			require.NoError(t, os.Remove(d+"/a.txt"))
			write(t, d+"/a.txt", someFiles["src/b.txt"])
		},
		"a symlink": func() {
			require.NoError(t, os.Rename(d+"/a.txt", d+"/z.log"))
			require.NoError(t, os.Symlink("z.log", d+"/a.txt"))
		},
		"new": func() { write(t, d+"/new", "x") },
	} {
		b.restore(desk, b.base, repo.RestoreOptions{})
		b.restore(desk, b.base, repo.RestoreOptions{})
		change()
		b.restore(desk, b.base, repo.RestoreOptions{})
		_ = os.Remove(d + "/z.log")
		assert.Equal(t, fresh, listing(t, d), name)
	}
}

// Builds go by mtimes: what a commit does not touch keeps its own.
func TestRestoreRewritesOnlyWhatDiffers(t *testing.T) {
	b := newBed(t, someFiles)
	desk, jdg := b.tree("desk", b.base), b.tree("judge", b.base)
	write(t, desk.Dir+"/a.txt", "better\n")
	head := b.commit(desk, b.base)
	times := func() map[string]string {
		m := bytesOf(t, jdg.Dir)
		maps.DeleteFunc(m, func(p, _ string) bool { return strings.HasPrefix(p, ".git/") || p == "a.txt" })
		return m
	}
	want := times()
	for range 5 {
		b.restore(jdg, head, judge)
		b.restore(jdg, head, judge)
		b.restore(jdg, b.base, judge)
	}
	assert.Equal(t, want, times())
}

// The folder is moved away and a symlink to it put in its place: every file is still there, with
// the inode and the times that the index knows.
func TestAFolderReplacedByASymlinkToItselfIsRestored(t *testing.T) {
	for name, o := range map[string]repo.RestoreOptions{"desk": {}, "judge": judge, "desk, staged": {}} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, someFiles)
			tree := b.tree("tree", b.base)
			fresh := listing(t, tree.Dir)
			outside := filepath.Join(b.dir, "outside")
			require.NoError(t, os.Rename(tree.Dir+"/src", outside))
			require.NoError(t, os.Symlink(outside, tree.Dir+"/src"))
			before := listing(t, outside)

			if strings.Contains(name, "staged") {
				c, err := tree.Stage(ctx, b.base)
				require.NoError(t, err)
				assert.Equal(t, []string{"src", "src/b.txt", "src/deep/c.txt"}, paths(c.Files))
				assert.True(t, c.Files[0].Escapes)
			}

			b.restore(tree, b.base, o)
			assert.Equal(t, fresh, listing(t, tree.Dir))
			assert.Equal(t, before, listing(t, outside), "what it pointed to is as it was")
			write(t, outside+"/b.txt", "changed outside")
			b.restore(tree, b.base, o)
			assert.Equal(t, fresh, listing(t, tree.Dir))
		})
	}
}

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

func TestJudgeKeepsWhatSetupMadeAndNothingElse(t *testing.T) {
	b := newBed(t, someFiles)
	jdg := b.tree("judge", b.base)
	d := jdg.Dir
	setup := func() {
		write(t, d+"/build/dep/lib.js", "lib")
		write(t, d+"/.env", "A=1")
		write(t, d+"/src/gen/g.txt", "generated into a tracked folder")
		require.NoError(t, os.Symlink("../build/dep", d+"/src/dep"))
		require.NoError(t, os.MkdirAll(d+"/build/empty", 0o755))
		write(t, d+"/build/cache/c", "0")
		require.NoError(t, jdg.Pristine(ctx))
	}
	setup()
	want := listing(t, d)
	o := judge
	o.Keep = []string{"build/cache", "**/*.pyc"}
	b.restore(jdg, b.base, o)
	assert.Equal(t, want, listing(t, d))

	// What the tests leave behind goes; caches stay, whatever is done to them.
	write(t, d+"/junk", "x")
	write(t, d+"/build/dep/more.js", "x")
	write(t, d+"/x.log", "x")
	write(t, d+"/src/deep/__pycache__/m.pyc", "kept")
	write(t, d+"/build/cache/c", "1")
	write(t, d+"/build/cache/d/e", "2")
	require.NoError(t, os.Remove(d+"/a.txt"))
	require.NoError(t, syscall.Mkfifo(d+"/build/cache/fifo", 0o644))
	now := maps.Clone(want)
	now["src/deep/__pycache__"], now["src/deep/__pycache__/m.pyc"] = "dir", "644 kept"
	now["build/cache/c"], now["build/cache/d"], now["build/cache/d/e"] = "644 1", "dir", "644 2"
	b.restore(jdg, b.base, o)
	assert.Equal(t, now, listing(t, d))
	require.NoError(t, os.RemoveAll(d+"/build/cache"))
	b.restore(jdg, b.base, o)

	// A commit that tracks what setup had made, and one that removes the folder it was in.
	desk := b.tree("desk", b.base)
	require.NoError(t, os.RemoveAll(desk.Dir+"/src"))
	head := b.commit(desk, b.base)
	b.restore(jdg, head, o)
	assert.FileExists(t, d+"/src/gen/g.txt")
	assert.NoFileExists(t, d+"/src/b.txt")
	b.restore(jdg, b.base, o)

	for name, poison := range map[string]func(){
		"changed": func() { write(t, d+"/build/dep/lib.js", "lob") },
		"changed, with its times put back": func() {
			fi, err := os.Stat(d + "/build/dep/lib.js")
			require.NoError(t, err)
			write(t, d+"/build/dep/lib.js", "lub")
			require.NoError(t, os.Chtimes(d+"/build/dep/lib.js", fi.ModTime(), fi.ModTime()))
		},
		"replaced": func() {
			write(t, d+"/x", "lib")
			require.NoError(t, os.Rename(d+"/x", d+"/build/dep/lib.js"))
		},
		"removed":          func() { require.NoError(t, os.Remove(d+"/.env")) },
		"a folder removed": func() { require.NoError(t, os.RemoveAll(d+"/build")) },
		"an empty one too": func() { require.NoError(t, os.Remove(d+"/build/empty")) },
		"a mode":           func() { require.NoError(t, os.Chmod(d+"/.env", 0o755)) },
		"a symlink":        func() { swap(t, "/etc", d+"/src/dep") },
		"a folder swapped": func() { require.NoError(t, os.Rename(d+"/build/dep", d+"/build/d2")); swap(t, "d2", d+"/build/dep") },
		"made a FIFO":      func() { require.NoError(t, os.Remove(d+"/.env")); require.NoError(t, syscall.Mkfifo(d+"/.env", 0o644)) },
		"the tree replaced": func() {
			require.NoError(t, os.Rename(d, d+".old"))
			require.NoError(t, os.Rename(d+".old", d))
			require.NoError(t, os.RemoveAll(d))
		},
	} {
		poison()
		again, err := jdg.Restore(ctx, b.base, o)
		require.NoError(t, err, name)
		assert.True(t, again, name)
		assert.Regexp(t, "judge.keep|missing or replaced", jdg.Why, name)
		assert.Equal(t, listing(t, must(b.fresh(b.base)).Dir), listing(t, d), name)
		setup()
		b.restore(jdg, b.base, o)
		assert.Equal(t, want, listing(t, d), name)
	}
	_, err := jdg.Restore(ctx, b.base, repo.RestoreOptions{Judge: true, Keep: []string{"[", ""}})
	require.Error(t, err)
}

func TestSealedFilesStandAsTheContractHasThem(t *testing.T) {
	b := newBed(t, someFiles)
	sealed := must(b.store.Entries(ctx, b.base))
	desk, jdg := b.tree("desk", b.base), b.tree("judge", b.base)
	want := listing(t, jdg.Dir)
	write(t, desk.Dir+"/a.txt", "weakened\n")
	require.NoError(t, os.RemoveAll(desk.Dir+"/src/deep"))
	write(t, desk.Dir+"/src/deep", "a file where a sealed one's folder was")
	require.NoError(t, os.Remove(desk.Dir+"/src/b.txt"))
	write(t, desk.Dir+"/src/b.txt/c", "a folder where a sealed file was")
	write(t, desk.Dir+"/free", "free\n")
	head := b.commit(desk, b.base)
	o := judge
	o.Sealed = sealed
	for range 2 {
		b.restore(jdg, head, o)
		want["free"] = "644 free\n"
		assert.Equal(t, want, listing(t, jdg.Dir))
	}
	b.restore(jdg, head, judge)
	assert.Equal(t, listing(t, desk.Dir), listing(t, jdg.Dir))
	b.restore(jdg, b.base, o)
	delete(want, "free")
	assert.Equal(t, want, listing(t, jdg.Dir))
}

func TestWhatPawlRemembersMayBeLost(t *testing.T) {
	for name, do := range map[string]func(state string) error{
		"all of it":           os.RemoveAll,
		"the index":           func(s string) error { return os.Remove(s + "/index") },
		"the index damaged":   func(s string) error { return os.WriteFile(s+"/index", []byte("DIRC junk"), 0o600) },
		"the index torn":      func(s string) error { return os.Truncate(s+"/index", 200) },
		"the index flipped":   func(s string) error { return flip(s + "/index") },
		"the state torn":      func(s string) error { return os.Truncate(s+"/state.json", 20) },
		"the record torn":     func(s string) error { return os.Truncate(s+"/pristine", 5) },
		"a lock on the index": func(s string) error { return os.WriteFile(s+"/index.lock", nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, someFiles)
			desk := b.tree("desk", b.base)
			write(t, desk.Dir+"/a.txt", "changed")
			require.NoError(t, do(filepath.Join(b.dir, "state", "desk")))
			again, err := desk.Restore(ctx, b.base, repo.RestoreOptions{})
			require.NoError(t, err)
			if again {
				require.NoError(t, desk.Pristine(ctx))
			}
			assert.Equal(t, listing(t, must(b.fresh(b.base)).Dir), listing(t, desk.Dir))
			write(t, desk.Dir+"/a.txt", "changed")
			_ = os.Remove(filepath.Join(b.dir, "state", "desk", "index"))
			assert.Equal(t, []string{"a.txt"}, paths(b.stage(desk, b.base).Files))
		})
	}
}

// flip changes a bit in the middle of a file.
func flip(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	raw[len(raw)/2] ^= 1
	return os.WriteFile(path, raw, 0o600)
}

func TestTwoWorkersOnOneTreeWaitForEachOther(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	write(t, desk.Dir+"/a.txt", "better\n")
	head := b.commit(desk, b.base)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			desk := b.store.Tree(desk.Dir, filepath.Join(b.dir, "state", "desk"), "pawl/x")
			commit := []string{b.base, head}[i%2]
			again, err := desk.Restore(ctx, commit, repo.RestoreOptions{Judge: i%3 == 0})
			assert.NoError(t, err)
			assert.False(t, again)
			_, err = desk.Stage(ctx, commit)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	b.restore(desk, head, judge)
	clean(t, desk, head)
}

// As root in a container an agent can do this; as anyone else it cannot.
func TestImmutableFilesAreRemoved(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	write(t, desk.Dir+"/new/x", "x")
	for _, p := range []string{"a.txt", "new/x", "new"} {
		if out, err := exec.Command("chattr", "+i", desk.Dir+"/"+p).CombinedOutput(); err != nil {
			t.Skipf("chattr: %v: %s", err, out)
		}
	}
	again, err := desk.Restore(ctx, b.base, repo.RestoreOptions{})
	require.NoError(t, err)
	if again {
		require.NoError(t, desk.Pristine(ctx))
	}
	assert.Equal(t, listing(t, must(b.fresh(b.base)).Dir), listing(t, desk.Dir))
	out, err := exec.Command("lsattr", desk.Dir+"/a.txt").Output()
	require.NoError(t, err)
	assert.NotContains(t, strings.Fields(string(out))[0], "i")
}

func TestACancelledRestoreDoesNotThrowTheTreeAway(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	write(t, desk.Dir+"/build/x", "ignored")
	write(t, desk.Dir+"/a.txt", "changed")
	done, cancel := contextWithCancel()
	cancel()
	_, err := desk.Restore(done, b.base, repo.RestoreOptions{})
	require.ErrorIs(t, err, done.Err())
	assert.FileExists(t, desk.Dir+"/build/x")
	require.NoError(t, os.RemoveAll(desk.Dir))
	_, err = desk.Restore(done, b.base, repo.RestoreOptions{})
	require.ErrorIs(t, err, done.Err(), "not a success either")
}

// A whole loop, and then the user's repository to the byte.
func TestTheUsersRepositoryIsAsItWas(t *testing.T) {
	b := newBed(t, variedFiles)
	before := bytesOf(t, b.user)
	_, err := repo.Inspect(ctx, b.user, "", "refs/heads/pawl/x")
	require.NoError(t, err)
	desk, jdg := b.tree("desk", b.base), b.tree("judge", b.base)
	head := variedChange(t, b, desk)
	b.restore(jdg, head, judge)
	r, err := b.store.Transact(ctx, b.settle(head, ""))
	require.NoError(t, err)
	b.restore(desk, r.Code, repo.RestoreOptions{})
	require.NoError(t, b.store.Push(ctx, b.user, b.branch, ledgerRef))
	require.NoError(t, desk.Remove(ctx))
	require.NoError(t, jdg.Remove(ctx))
	for path, is := range bytesOf(t, b.user) {
		if !strings.HasPrefix(path, ".git/objects/") && !strings.HasPrefix(path, ".git/refs/heads/pawl/") &&
			!strings.HasPrefix(path, ".git/logs/refs/heads/pawl/") && !strings.HasPrefix(path, ".git/refs/pawl-ledger/") && is != "dir" {
			assert.Equal(t, before[path], is, path)
		}
		delete(before, path)
	}
	assert.Empty(t, before)
}
