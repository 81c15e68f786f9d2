package worktree_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git/userrepo"
	"pawl/internal/git/worktree"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/test/harness/gittest"
)

func TestRestoreMakesTheCommit(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.VariedFiles)
	head := gittest.VariedChange(t, b, b.Tree("desk", b.Base))
	tree := worktree.At(b.Store, filepath.Join(b.Dir, "odd \n\xff", "tree"), filepath.Join(b.Dir, "odd state"), "pawl/x")
	created, err := tree.Restore(ctx, head, worktree.RestoreOptions{})
	require.NoError(t, err)
	assert.True(t, created)
	created, err = tree.Restore(ctx, head, worktree.RestoreOptions{})
	require.NoError(t, err)
	assert.True(t, created, "setup has not finished")
	require.NoError(t, tree.Pristine(ctx))
	created, err = tree.Restore(ctx, head, worktree.RestoreOptions{})
	require.NoError(t, err)
	assert.False(t, created)

	clone := filepath.Join(b.Dir, "clone")
	gittest.Git(t, b.Dir, "clone", "-q", "--branch", "pawl/x", b.Store.Dir(), clone)
	assert.Equal(t, gittest.Listing(t, clone), gittest.Listing(t, tree.Dir), "as a clone would be")

	// NFS and FUSE can't remove a folder in which a file is open, as the lock is.
	assert.NoFileExists(t, filepath.Join(b.Dir, "odd state", "lock"))
	assert.FileExists(t, filepath.Join(b.Dir, "odd state.lock"))
	require.NoError(t, tree.Remove(ctx))
	assert.NoDirExists(t, tree.Dir)
	require.NoError(t, tree.Remove(ctx), "twice")
	created, err = tree.Restore(ctx, b.Base, worktree.RestoreOptions{})
	require.NoError(t, err)
	assert.True(t, created)

	_, err = tree.Restore(ctx, "HEAD", worktree.RestoreOptions{})
	require.Error(t, err)
	require.NoError(t, tree.Pristine(ctx))
	gittest.Write(t, tree.Dir+"/parked", "work")
	_, err = tree.Restore(ctx, "0123456789012345678901234567890123456789", worktree.RestoreOptions{})
	require.Error(t, err)
	assert.FileExists(t, tree.Dir+"/parked", "a commit that does not exist is no reason to throw a tree away")
}

func TestRestoreRemovesWhatIsNotIgnoredFromADesk(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	fresh := gittest.Listing(t, desk.Dir)
	d := desk.Dir
	gittest.Write(t, d+"/x.log", "ignored, stays")
	gittest.Write(t, d+"/build/out/y", "ignored, stays")
	gittest.Write(t, d+"/loop-results.tsv", "pawl's, stays")
	gittest.Write(t, d+"/loop-stop", "pawl's, stays")
	want := gittest.Listing(t, d)
	gittest.Write(t, d+"/new", "x")
	gittest.Write(t, d+"/n/e/w", "x")
	gittest.Write(t, d+"/src/n/e/w", "x")
	gittest.Write(t, d+"/mixed/x.log", "ignored, stays")
	gittest.Write(t, d+"/mixed/new", "x")
	want["mixed"], want["mixed/x.log"] = "dir", "644 ignored, stays"
	require.NoError(t, os.MkdirAll(d+"/empty/er", 0o755))
	require.NoError(t, os.Remove(d+"/a.txt"))
	require.NoError(t, os.Mkdir(d+"/a.txt", 0o755))
	gittest.Write(t, d+"/a.txt/b", "x")
	require.NoError(t, os.RemoveAll(d+"/src/deep"))
	gittest.Write(t, d+"/src/deep", "a file")
	require.NoError(t, os.Chmod(d+"/src/b.txt", 0o777))
	// A .gitignore of the agent does not count, however deep it is.
	gittest.Write(t, d+"/.gitignore", "*\n")
	gittest.Write(t, d+"/hidden/.gitignore", "one\n/two\n")
	gittest.Write(t, d+"/hidden/one", "x")
	gittest.Write(t, d+"/hidden/two/.gitignore", "three\n")
	gittest.Write(t, d+"/hidden/two/three/.gitignore", "f*\n")
	gittest.Write(t, d+"/hidden/two/three/four", "x")
	b.Restore(desk, b.Base, worktree.RestoreOptions{})
	assert.Equal(t, want, gittest.Listing(t, d))
	assert.True(t, b.Stage(desk, b.Base).Empty())

	b.Restore(desk, b.Base, judge)
	assert.Equal(t, fresh, gittest.Listing(t, d), "a judge keeps none of that")
}

func TestRestoreAfterStageLeavesNothingOfTheChange(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]worktree.RestoreOptions{"desk": {}, "judge": judge} {
		t.Run(name, func(t *testing.T) {
			b := gittest.NewBed(t, gittest.VariedFiles)
			desk := b.Tree("desk", b.Base)
			fresh := gittest.Listing(t, desk.Dir)
			head := gittest.VariedChange(t, b, desk)
			changed := gittest.Listing(t, desk.Dir)
			b.Restore(desk, b.Base, o)
			assert.Equal(t, fresh, gittest.Listing(t, desk.Dir))
			b.Restore(desk, head, o)
			assert.Equal(t, changed, gittest.Listing(t, desk.Dir))
			gittest.Write(t, desk.Dir+"/later", "x")
			b.Restore(desk, head, o)
			assert.Equal(t, changed, gittest.Listing(t, desk.Dir))
			b.Restore(desk, b.Base, o)
			assert.Equal(t, fresh, gittest.Listing(t, desk.Dir))
		})
	}
}

// If nothing has changed, no git runs. If there is any doubt, one does.
func TestTheFastPathSeesEveryChange(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	fresh := gittest.Listing(t, desk.Dir)
	d := desk.Dir
	for name, change := range map[string]func(){
		"content":          func() { gittest.Write(t, d+"/a.txt", "ONE\ntwo\nthree\n") },
		"mode":             func() { require.NoError(t, os.Chmod(d+"/a.txt", 0o755)) },
		"removed":          func() { require.NoError(t, os.Remove(d+"/a.txt")) },
		"a folder removed": func() { require.NoError(t, os.RemoveAll(d+"/src")) },
		"replaced": func() {
			require.NoError(t, os.Remove(d+"/a.txt"))
			gittest.Write(t, d+"/a.txt", gittest.SomeFiles["src/b.txt"])
		},
		"a symlink": func() {
			require.NoError(t, os.Rename(d+"/a.txt", d+"/z.log"))
			require.NoError(t, os.Symlink("z.log", d+"/a.txt"))
		},
		"new": func() { gittest.Write(t, d+"/new", "x") },
	} {
		b.Restore(desk, b.Base, worktree.RestoreOptions{})
		b.Restore(desk, b.Base, worktree.RestoreOptions{})
		change()
		b.Restore(desk, b.Base, worktree.RestoreOptions{})
		_ = os.Remove(d + "/z.log")
		assert.Equal(t, fresh, gittest.Listing(t, d), name)
	}
}

// Builds use mtimes: a file that a commit does not touch keeps its own.
func TestRestoreRewritesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk, jdg := b.Tree("desk", b.Base), b.Tree("judge", b.Base)
	gittest.Write(t, desk.Dir+"/a.txt", "better\n")
	head := b.Commit(desk, b.Base)
	times := func() map[string]string {
		m := gittest.BytesOf(t, jdg.Dir)
		maps.DeleteFunc(m, func(p, _ string) bool { return strings.HasPrefix(p, ".git/") || p == "a.txt" })
		return m
	}
	want := times()
	for range 5 {
		b.Restore(jdg, head, judge)
		b.Restore(jdg, head, judge)
		b.Restore(jdg, b.Base, judge)
	}
	assert.Equal(t, want, times())
}

// The folder is moved away and replaced by a symlink to it. Every file is still there, with the inode and the times
// in the index.
func TestAFolderReplacedByASymlinkToItselfIsRestored(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]worktree.RestoreOptions{"desk": {}, "judge": judge, "desk, staged": {}} {
		t.Run(name, func(t *testing.T) {
			b := gittest.NewBed(t, gittest.SomeFiles)
			tree := b.Tree("tree", b.Base)
			fresh := gittest.Listing(t, tree.Dir)
			outside := filepath.Join(b.Dir, "outside")
			require.NoError(t, os.Rename(tree.Dir+"/src", outside))
			require.NoError(t, os.Symlink(outside, tree.Dir+"/src"))
			before := gittest.Listing(t, outside)

			if strings.Contains(name, "staged") {
				c, err := tree.Stage(ctx, b.Base)
				require.NoError(t, err)
				assert.Equal(t, []string{"src", "src/b.txt", "src/deep/c.txt"}, paths(c.Files))
				assert.True(t, c.Files[0].Escapes)
			}

			b.Restore(tree, b.Base, o)
			assert.Equal(t, fresh, gittest.Listing(t, tree.Dir))
			assert.Equal(t, before, gittest.Listing(t, outside), "what it pointed to is as it was")
			gittest.Write(t, outside+"/b.txt", "changed outside")
			b.Restore(tree, b.Base, o)
			assert.Equal(t, fresh, gittest.Listing(t, tree.Dir))
		})
	}
}

func TestJudgeKeepsWhatSetupMadeAndNothingElse(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	jdg := b.Tree("judge", b.Base)
	d := jdg.Dir
	setup := func() {
		gittest.Write(t, d+"/build/dep/lib.js", "lib")
		gittest.Write(t, d+"/.env", "A=1")
		gittest.Write(t, d+"/src/gen/g.txt", "generated into a tracked folder")
		require.NoError(t, os.Symlink("../build/dep", d+"/src/dep"))
		require.NoError(t, os.MkdirAll(d+"/build/empty", 0o755))
		gittest.Write(t, d+"/build/cache/c", "0")
		require.NoError(t, jdg.Pristine(ctx))
	}
	setup()
	want := gittest.Listing(t, d)
	o := judge
	o.Keep = []string{"build/cache", "**/*.pyc"}
	b.Restore(jdg, b.Base, o)
	assert.Equal(t, want, gittest.Listing(t, d))

	// What the tests leave behind is removed. Caches stay, whatever happens to them.
	gittest.Write(t, d+"/junk", "x")
	gittest.Write(t, d+"/build/dep/more.js", "x")
	gittest.Write(t, d+"/x.log", "x")
	gittest.Write(t, d+"/src/deep/__pycache__/m.pyc", "kept")
	gittest.Write(t, d+"/build/cache/c", "1")
	gittest.Write(t, d+"/build/cache/d/e", "2")
	require.NoError(t, os.Remove(d+"/a.txt"))
	require.NoError(t, syscall.Mkfifo(d+"/build/cache/fifo", 0o644))
	now := maps.Clone(want)
	now["src/deep/__pycache__"], now["src/deep/__pycache__/m.pyc"] = "dir", "644 kept"
	now["build/cache/c"], now["build/cache/d"], now["build/cache/d/e"] = "644 1", "dir", "644 2"
	b.Restore(jdg, b.Base, o)
	assert.Equal(t, now, gittest.Listing(t, d))
	require.NoError(t, os.RemoveAll(d+"/build/cache"))
	b.Restore(jdg, b.Base, o)

	// One commit tracks what setup had made, and another one removes its folder.
	desk := b.Tree("desk", b.Base)
	require.NoError(t, os.RemoveAll(desk.Dir+"/src"))
	head := b.Commit(desk, b.Base)
	b.Restore(jdg, head, o)
	assert.FileExists(t, d+"/src/gen/g.txt")
	assert.NoFileExists(t, d+"/src/b.txt")
	b.Restore(jdg, b.Base, o)

	for name, poison := range map[string]func(){
		"changed": func() { gittest.Write(t, d+"/build/dep/lib.js", "lob") },
		"changed, with its times put back": func() {
			fi, err := os.Stat(d + "/build/dep/lib.js")
			require.NoError(t, err)
			gittest.Write(t, d+"/build/dep/lib.js", "lub")
			require.NoError(t, os.Chtimes(d+"/build/dep/lib.js", fi.ModTime(), fi.ModTime()))
		},
		"replaced": func() {
			gittest.Write(t, d+"/x", "lib")
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
		again, err := jdg.Restore(ctx, b.Base, o)
		require.NoError(t, err, name)
		assert.True(t, again, name)
		assert.Regexp(t, "judge.keep|missing or replaced", jdg.Why, name)
		assert.Equal(t, gittest.Listing(t, b.Fresh(b.Base).Dir), gittest.Listing(t, d), name)
		setup()
		b.Restore(jdg, b.Base, o)
		assert.Equal(t, want, gittest.Listing(t, d), name)
	}
	_, err := jdg.Restore(ctx, b.Base, worktree.RestoreOptions{Judge: true, Keep: []string{"[", ""}})
	require.Error(t, err)
}

func TestWhatPawlRemembersMayBeLost(t *testing.T) {
	t.Parallel()
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
			b := gittest.NewBed(t, gittest.SomeFiles)
			desk := b.Tree("desk", b.Base)
			gittest.Write(t, desk.Dir+"/a.txt", "changed")
			require.NoError(t, do(filepath.Join(b.Dir, "state", "desk")))
			again, err := desk.Restore(ctx, b.Base, worktree.RestoreOptions{})
			require.NoError(t, err)
			if again {
				require.NoError(t, desk.Pristine(ctx))
			}
			assert.Equal(t, gittest.Listing(t, b.Fresh(b.Base).Dir), gittest.Listing(t, desk.Dir))
			gittest.Write(t, desk.Dir+"/a.txt", "changed")
			_ = os.Remove(filepath.Join(b.Dir, "state", "desk", "index"))
			assert.Equal(t, []string{"a.txt"}, paths(b.Stage(desk, b.Base).Files))
		})
	}
}

// Whatever happens to the index while an agent works on the desk, its change is staged, and the damage is named.
func TestADamagedIndexLosesNoChange(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	index := filepath.Join(b.Dir, "state", "desk", "index")
	for name, do := range map[string]func() error{
		"gone": func() error { return os.Remove(index) }, "emptied": func() error { return os.Truncate(index, 0) },
		"torn": func() error { return os.Truncate(index, 200) }, "flipped": func() error { return flip(index) },
	} {
		gittest.Write(t, desk.Dir+"/a.txt", "changed: "+name)
		require.NoError(t, do())
		assert.Equal(t, []string{"a.txt"}, paths(b.Stage(desk, b.Base).Files), name)
		assert.Equal(t, "the index", desk.Torn, name)
		desk.Torn = ""
		assert.Equal(t, []string{"a.txt"}, paths(b.Stage(desk, b.Base).Files), name)
		assert.Empty(t, desk.Torn, name)
	}
}

// A change that was made before the power cut is not a violation after it.
func TestATornStateLosesNoChange(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	state := filepath.Join(b.Dir, "state", "desk", "state.json")
	for _, size := range []int64{0, 20} {
		gittest.Write(t, desk.Dir+"/a.txt", fmt.Sprint("changed ", size))
		require.NoError(t, os.Truncate(state, size))
		assert.Equal(t, []string{"a.txt"}, paths(b.Stage(desk, b.Base).Files))
		assert.Equal(t, "pawl's own record", desk.Torn)
		assert.Greater(t, len(gittest.Read(t, state)), 20, "it is written again")
	}
	require.NoError(t, os.Truncate(state, 0))
	b.Restore(desk, b.Base, worktree.RestoreOptions{})
	assert.Equal(t, gittest.Listing(t, b.Fresh(b.Base).Dir), gittest.Listing(t, desk.Dir))
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
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/a.txt", "better\n")
	head := b.Commit(desk, b.Base)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			desk := worktree.At(b.Store, desk.Dir, filepath.Join(b.Dir, "state", "desk"), "pawl/x")
			commit := []string{b.Base, head}[i%2]
			again, err := desk.Restore(ctx, commit, worktree.RestoreOptions{Judge: i%3 == 0})
			assert.NoError(t, err)
			assert.False(t, again)
			_, err = desk.Stage(ctx, commit)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	b.Restore(desk, head, judge)
	clean(t, desk, head)
}

// An agent can do this only as root in a container.
func TestImmutableFilesAreRemoved(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/new/x", "x")
	for _, p := range []string{"a.txt", "new/x", "new"} {
		if out, err := exec.Command("chattr", "+i", desk.Dir+"/"+p).CombinedOutput(); err != nil {
			t.Skipf("chattr: %v: %s", err, out)
		}
	}
	again, err := desk.Restore(ctx, b.Base, worktree.RestoreOptions{})
	require.NoError(t, err)
	if again {
		require.NoError(t, desk.Pristine(ctx))
	}
	assert.Equal(t, gittest.Listing(t, b.Fresh(b.Base).Dir), gittest.Listing(t, desk.Dir))
	out, err := exec.Command("lsattr", desk.Dir+"/a.txt").Output()
	require.NoError(t, err)
	assert.NotContains(t, strings.Fields(string(out))[0], "i")
}

func TestACancelledRestoreDoesNotThrowTheTreeAway(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/build/x", "ignored")
	gittest.Write(t, desk.Dir+"/a.txt", "changed")
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err := desk.Restore(done, b.Base, worktree.RestoreOptions{})
	require.ErrorIs(t, err, done.Err())
	assert.FileExists(t, desk.Dir+"/build/x")
	require.NoError(t, os.RemoveAll(desk.Dir))
	_, err = desk.Restore(done, b.Base, worktree.RestoreOptions{})
	require.ErrorIs(t, err, done.Err(), "not a success either")
}

// After a whole loop, the user's repository is the same to the byte.
func TestTheUsersRepositoryIsAsItWas(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.VariedFiles)
	before := gittest.BytesOf(t, b.User)
	_, err := userrepo.Inspect(ctx, userrepo.At(b.User), "", "refs/heads/pawl/x")
	require.NoError(t, err)
	desk, jdg := b.Tree("desk", b.Base), b.Tree("judge", b.Base)
	head := gittest.VariedChange(t, b, desk)
	b.Restore(jdg, head, judge)
	r, err := b.Store.Transact(ctx, gittest.Settle(b, head, ""))
	require.NoError(t, err)
	b.Restore(desk, r.Code, worktree.RestoreOptions{})
	require.NoError(t, userrepo.Push(ctx, b.Store, userrepo.At(b.User), b.Branch, gittest.LedgerRef))
	require.NoError(t, desk.Remove(ctx))
	require.NoError(t, jdg.Remove(ctx))
	for path, is := range gittest.BytesOf(t, b.User) {
		if !strings.HasPrefix(path, ".git/objects/") && !strings.HasPrefix(path, ".git/refs/heads/pawl/") &&
			!strings.HasPrefix(path, ".git/logs/refs/heads/pawl/") && !strings.HasPrefix(path, ".git/refs/pawl-ledger/") && is != "dir" {
			assert.Equal(t, before[path], is, path)
		}
		delete(before, path)
	}
	assert.Empty(t, before)
}

// The folder that pawl keeps open is renamed and replaced by a forged copy.
func TestE6_ATreeIsTakenAwayWhereItWas(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("paths are not held here")
	}
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk, jdg := b.Tree("desk", b.Base), b.Tree("judge", b.Base)
	require.NoError(t, dirfd.Keep(b.Dir))
	away := filepath.Join(t.TempDir(), "away")
	out, err := exec.Command("sh", "-c", `cp -a "$1" "$2.copy" && mv "$1" "$2" && mv "$2.copy" "$1"`, "sh", b.Dir, away).CombinedOutput()
	require.NoError(t, err, string(out))
	forged := gittest.Listing(t, b.Dir)

	require.NoError(t, desk.Remove(ctx))
	require.NoDirExists(t, filepath.Join(away, "trees", "desk"))
	_, err = jdg.Restore(ctx, b.Base, judge)
	require.NoError(t, err)
	_, err = desk.Restore(ctx, b.Base, worktree.RestoreOptions{})
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(away, "trees", "desk", "src"))
	require.NoError(t, desk.Remove(ctx))
	require.NoError(t, jdg.Remove(ctx))
	require.True(t, maps.Equal(forged, gittest.Listing(t, b.Dir)), "nothing is done to the copy")
}
