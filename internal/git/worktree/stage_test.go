package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/worktree"
	"pawl/test/harness/gittest"
)

func TestNoChangeIsNoChange(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.VariedFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/loop-results.tsv", "x")
	gittest.Write(t, desk.Dir+"/loop-stop", "x")
	require.NoError(t, os.Chtimes(desk.Dir+"/a.txt", gittest.When, gittest.When))
	require.NoError(t, os.Chmod(desk.Dir+"/a.txt", 0o600))
	require.NoError(t, os.Mkdir(desk.Dir+"/emptyfolder", 0o755))
	c := b.Stage(desk, b.Base)
	assert.True(t, c.Empty())
	assert.Equal(t, b.StoreGit("rev-parse", b.Base+"^{tree}"), c.Tree)
}

func TestStageTakesWhatGitAddWould(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/x.log", "ignored")
	gittest.Write(t, desk.Dir+"/build/out", "ignored")
	gittest.Write(t, desk.Dir+"/src/loop-stop", "only pawl's own in the root are")
	gittest.Write(t, desk.Dir+"/new/file", "new")
	c := b.Stage(desk, b.Base)
	assert.Equal(t, []string{"new/file", "src/loop-stop"}, paths(c.Files))
	assert.Equal(t, []string{"new/file", "src/loop-stop"}, paths(gittest.Must(b.Store.Changes(ctx, b.Base, c.Tree))), "the tree is in the store")

	// .gitignore is a file like any other.
	gittest.Write(t, desk.Dir+"/.gitignore", "new/\n")
	c = b.Stage(desk, b.Base)
	assert.Equal(t, []string{".gitignore", "build/out", "src/loop-stop", "x.log"}, paths(c.Files))
}

// Another tool ran before, and somebody committed its results.
func TestATrackedResultsFileIsNoPartOfAChange(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, map[string]string{"loop-results.tsv": "old\n", "a.txt": "a\n"})
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/loop-results.tsv", "new\n")
	assert.True(t, b.Stage(desk, b.Base).Empty())
	gittest.Write(t, desk.Dir+"/a.txt", "b\n")
	assert.Equal(t, []string{"a.txt"}, paths(b.Stage(desk, b.Base).Files))
	b.Restore(desk, b.Base, worktree.RestoreOptions{})
	assert.Equal(t, "old\n", gittest.Read(t, desk.Dir+"/loop-results.tsv"))
}

func paths(files []git.FileChange) []string {
	var p []string
	for _, f := range files {
		p = append(p, f.Path)
	}
	return p
}

func TestWeirdNamesSurviveTheWholeWay(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk, jdg := b.Tree("desk", b.Base), b.Tree("judge", b.Base)
	for _, n := range gittest.WeirdNames {
		gittest.Write(t, filepath.Join(desk.Dir, n), n)
		gittest.Write(t, filepath.Join(desk.Dir, "in", n, n), n)
	}
	head := b.Commit(desk, b.Base)
	b.Restore(jdg, head, judge)
	assert.Equal(t, gittest.Listing(t, desk.Dir), gittest.Listing(t, jdg.Dir))
	for _, n := range gittest.WeirdNames {
		assert.Equal(t, n, gittest.Read(t, filepath.Join(desk.Dir, n)), "%q", n)
		gittest.Write(t, filepath.Join(desk.Dir, "in", n, n), "changed")
		gittest.Write(t, filepath.Join(jdg.Dir, "junk", n, n), "junk")
		require.NoError(t, os.Remove(filepath.Join(desk.Dir, n)))
		require.NoError(t, os.Mkdir(filepath.Join(desk.Dir, n), 0o755))
		gittest.Write(t, filepath.Join(desk.Dir, n, n), "other")
	}
	assert.Len(t, b.Stage(desk, head).Files, 3*len(gittest.WeirdNames))
	b.Restore(desk, head, worktree.RestoreOptions{})
	b.Restore(jdg, head, judge)
	assert.Equal(t, gittest.Listing(t, desk.Dir), gittest.Listing(t, jdg.Dir))
	assert.True(t, b.Stage(desk, head).Empty())
	b.Restore(jdg, b.Base, judge)
	b.Restore(desk, b.Base, worktree.RestoreOptions{})
	assert.Equal(t, gittest.Listing(t, desk.Dir), gittest.Listing(t, jdg.Dir))
}

// The file has the same size and its old mtime again. Only the ctime differs, by less than the second that git
// compares.
func TestARewriteWithItsTimesRestoredIsSeen(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	rewrite := func(content string) {
		gittest.Write(t, desk.Dir+"/a.txt", content)
		require.NoError(t, os.Chtimes(desk.Dir+"/a.txt", gittest.When, gittest.When))
	}
	for range 20 {
		b.Restore(desk, b.Base, worktree.RestoreOptions{})
		rewrite("ONE\ntwo\nthree\n")
		first := b.Stage(desk, b.Base)
		assert.Equal(t, []string{"a.txt"}, paths(first.Files))
		rewrite("one\nTWO\nthree\n")
		second := b.Stage(desk, b.Base)
		assert.Equal(t, []string{"a.txt"}, paths(second.Files))
		assert.NotEqual(t, first.Tree, second.Tree)
		rewrite("one\ntwo\nTHREE\n")
		b.Restore(desk, b.Base, worktree.RestoreOptions{})
		assert.Equal(t, gittest.SomeFiles["a.txt"], gittest.Read(t, desk.Dir+"/a.txt"))
		rewrite(gittest.SomeFiles["a.txt"])
		b.Stage(desk, b.Base)
		rewrite("oNE\ntwo\nthree\n")
		assert.Equal(t, []string{"a.txt"}, paths(b.Stage(desk, b.Base).Files), "where the index stands at the commit")
		b.Restore(desk, b.Base, worktree.RestoreOptions{})
		rewrite(gittest.SomeFiles["a.txt"])
		b.Stage(desk, b.Base)
		rewrite("ONE\ntwo\nthree\n")
		b.Restore(desk, b.Base, worktree.RestoreOptions{})
		assert.Equal(t, gittest.SomeFiles["a.txt"], gittest.Read(t, desk.Dir+"/a.txt"))
	}
}

func TestWhatTimesCanTell(t *testing.T) {
	t.Parallel()
	const s = int64(1e9)
	for name, c := range map[string]struct {
		ctime, mtime, size, nowCtime, nowMtime, nowSize, written int64
		unchanged, deceives                                      bool
	}{
		"untouched":                         {5 * s, 5 * s, 1, 5 * s, 5 * s, 1, 7 * s, true, false},
		"rewritten later":                   {5 * s, 5 * s, 1, 9 * s, 9 * s, 1, 7 * s, false, false},
		"rewritten, mtime set back":         {5 * s, 5 * s, 1, 9 * s, 5 * s, 1, 7 * s, false, false},
		"within the second, mtime set back": {5*s + 1, 2 * s, 1, 5*s + 2, 2 * s, 1, 5*s + 1, false, true},
		"and another size":                  {5*s + 1, 2 * s, 1, 5*s + 2, 2 * s, 2, 5*s + 1, false, false},
		"within the tick, mtime set back":   {5 * s, 2 * s, 1, 5 * s, 2 * s, 1, 5 * s, false, true},
		"within the second, mtime too":      {5*s + 1, 5*s + 1, 1, 5*s + 2, 5*s + 2, 1, 5*s + 1, false, false}, // git reads it
		"in the tick of the index":          {5 * s, 5 * s, 1, 5 * s, 5 * s, 1, 5 * s, false, false},           // git reads it
	} {
		unchanged, deceives := worktree.IndexRules(c.ctime, c.mtime, c.size, c.nowCtime, c.nowMtime, c.nowSize, c.written)
		assert.Equal(t, c.unchanged, unchanged, name)
		assert.Equal(t, c.deceives, deceives, name)
	}
}

// A folder can be replaced by another one although the files in both stay untouched.
func TestAFolderSwappedForAnotherIsSeen(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	fresh := gittest.Listing(t, desk.Dir)
	gittest.Write(t, desk.Dir+"/build/src/b.txt", "B\n")
	gittest.Write(t, desk.Dir+"/build/src/deep/c.txt", "C\n")
	b.Restore(desk, b.Base, worktree.RestoreOptions{})
	gittest.Write(t, desk.Dir+"/a.txt", "better\n")
	head := b.Commit(desk, b.Base)
	b.Restore(desk, head, worktree.RestoreOptions{})
	swapFolders := func() {
		require.NoError(t, os.Rename(desk.Dir+"/src", desk.Dir+"/build/x"))
		require.NoError(t, os.Rename(desk.Dir+"/build/src", desk.Dir+"/src"))
		require.NoError(t, os.Rename(desk.Dir+"/build/x", desk.Dir+"/build/src"))
	}
	swapFolders()
	assert.Equal(t, []string{"src/b.txt", "src/deep/c.txt"}, paths(b.Stage(desk, head).Files))
	swapFolders()
	assert.True(t, b.Stage(desk, head).Empty())
	b.Restore(desk, head, worktree.RestoreOptions{})
	swapFolders()
	b.Restore(desk, head, worktree.RestoreOptions{})
	fresh["a.txt"] = "644 better\n"
	require.NoError(t, os.RemoveAll(desk.Dir+"/build"))
	assert.Equal(t, fresh, gittest.Listing(t, desk.Dir))
}

func deep(n int) string { return strings.TrimSuffix(strings.Repeat("d/", n), "/") }

// nest makes nested folders, deeper than a path can name.
func nest(t testing.TB, dir string, n int) {
	wd := gittest.Must(os.Getwd())
	require.NoError(t, os.Chdir(dir))
	defer func() { require.NoError(t, os.Chdir(wd)) }()
	for range n {
		require.NoError(t, os.Mkdir("d", 0o755))
		require.NoError(t, syscall.Chdir("d")) // os.Chdir would look up the whole path each time
	}
	require.NoError(t, os.WriteFile("f", []byte("deep down"), 0o644))
}

// Read-only tracked files in read-only folders are restored.
func TestReadOnlyTreesAreRestored(t *testing.T) {
	t.Parallel()
	if asNobody(t) {
		return
	}
	b := gittest.NewBed(t, gittest.SomeFiles)
	for _, o := range []worktree.RestoreOptions{{}, judge} {
		tree := b.Tree(map[bool]string{false: "desk", true: "judge"}[o.Judge], b.Base)
		gittest.Write(t, tree.Dir+"/src/deep/c.txt", "changed")
		gittest.Write(t, tree.Dir+"/src/deep/new/new/new", "new")
		gittest.Write(t, tree.Dir+"/build/x/y", "ignored")
		for _, d := range []string{"src/deep/new/new", "src/deep/new", "src/deep", "src", "build/x", ".git/objects", ".git", "."} {
			require.NoError(t, os.Chmod(filepath.Join(tree.Dir, d), 0o555))
		}
		b.Restore(tree, b.Base, o)
		want := gittest.Listing(t, b.Fresh(b.Base).Dir)
		if !o.Judge {
			want["build"], want["build/x"], want["build/x/y"] = "dir", "dir", "644 ignored"
		}
		assert.Equal(t, want, gittest.Listing(t, tree.Dir))
		gittest.Git(t, tree.Dir, "status")
	}
}

func TestAReadOnlyTreeCanBeRemoved(t *testing.T) {
	t.Parallel()
	if asNobody(t) {
		return
	}
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	for _, d := range []string{"src/deep", "src", ".git/objects/pack", ".git/objects", "."} {
		require.NoError(t, os.Chmod(filepath.Join(desk.Dir, d), 0o500))
	}
	require.NoError(t, os.Chmod(filepath.Join(desk.Dir, "src"), 0))
	require.NoError(t, desk.Remove(ctx))
	assert.NoDirExists(t, desk.Dir)
}

func TestSubmodulesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	user, _ := gittest.UserRepo(t, gittest.SomeFiles)
	lib, libHead := gittest.UserRepo(t, map[string]string{"lib.txt": "lib\n"})
	gittest.Git(t, user, "update-index", "--add", "--cacheinfo", "160000,"+libHead+",vendor/lib")
	gittest.Write(t, user+"/.gitmodules", "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../lib\n")
	gittest.Git(t, user, "add", ".gitmodules")
	gittest.Git(t, user, "commit", "-qm", "submodule")
	base := gittest.Git(t, user, "rev-parse", "HEAD")
	b := gittest.BedFor(t, user, base)
	desk, jdg := b.Tree("desk", base), b.Tree("judge", base)
	assert.DirExists(t, desk.Dir+"/vendor/lib")
	assert.True(t, b.Stage(desk, base).Empty())

	// Setup has checked it out: its commit counts, its content does not.
	canary := filepath.Join(b.Dir, "canary")
	sub := desk.Dir + "/vendor/lib"
	require.NoError(t, os.Remove(sub))
	gittest.Git(t, b.Dir, "clone", "-q", lib, sub)
	gittest.Git(t, sub, "config", "core.fsmonitor", "touch "+canary)
	gittest.Git(t, sub, "config", "filter.evil.clean", "touch "+canary+";cat")
	gittest.Write(t, sub+"/.git/info/attributes", "* filter=evil\n")
	require.NoError(t, desk.Pristine(ctx))
	gittest.Write(t, sub+"/lib.txt", "LIB\n")
	gittest.Write(t, desk.Dir+"/a.txt", "changed")
	c := b.Stage(desk, base)
	assert.Equal(t, []string{"a.txt"}, paths(c.Files))
	assert.Equal(t, []string{"vendor/lib/lib.txt"}, c.LeftOut)
	gittest.Write(t, sub+"/lib.txt", "lib\n")
	require.NoError(t, desk.Pristine(ctx))
	b.Restore(desk, base, worktree.RestoreOptions{})
	assert.FileExists(t, sub+"/.git/HEAD", "what setup made stays")
	gittest.Write(t, sub+"/lib.txt", "LIB\n")
	gittest.Git(t, sub, "-c", "core.fsmonitor=false", "-c", "filter.evil.clean=cat", "commit", "-qam", "moved")
	c, err := desk.Stage(ctx, base)
	require.NoError(t, err)
	assert.Equal(t, []worktree.Unaddable{{Path: "vendor/lib", Why: "a submodule was added, removed or moved"}}, c.Violations)
	assert.NoFileExists(t, canary)
	gittest.Write(t, sub+"/lib.txt", "lib\n")
	_, _ = gittest.TryGit(sub, "status")
	assert.FileExists(t, canary, "the canary sings")

	// It is removed, replaced, or contains junk.
	require.NoError(t, os.Remove(jdg.Dir+"/vendor/lib"))
	c, err = jdg.Stage(ctx, base)
	require.NoError(t, err)
	require.Len(t, c.Violations, 1)
	gittest.Write(t, jdg.Dir+"/vendor/lib", "a file")
	c, err = jdg.Stage(ctx, base)
	require.NoError(t, err)
	require.Len(t, c.Violations, 1)
	b.Restore(jdg, base, judge)
	gittest.Write(t, jdg.Dir+"/vendor/lib/junk", "x")
	assert.True(t, b.Stage(jdg, base).Empty())
	b.Restore(jdg, base, worktree.RestoreOptions{})
	assert.NoFileExists(t, jdg.Dir+"/vendor/lib/junk")
	assert.DirExists(t, jdg.Dir+"/vendor/lib")
}

// With `git submodule update` as setup, the files stay, and the tree's own git still works.
func TestASubmoduleThatSetupUpdatesKeepsItsFiles(t *testing.T) {
	t.Parallel()
	user, _ := gittest.UserRepo(t, gittest.SomeFiles)
	lib, _ := gittest.UserRepo(t, map[string]string{"lib.txt": "lib\n"})
	gittest.Git(t, user, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "vendor/lib")
	gittest.Git(t, user, "commit", "-qm", "submodule")
	base := gittest.Git(t, user, "rev-parse", "HEAD")
	b := gittest.BedFor(t, user, base)
	jdg := worktree.At(b.Store, filepath.Join(b.Dir, "judge"), filepath.Join(b.Dir, "state", "judge"), "pawl/x")
	_, err := jdg.Restore(ctx, base, worktree.RestoreOptions{})
	require.NoError(t, err)
	gittest.Git(t, jdg.Dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
	require.NoError(t, jdg.Pristine(ctx))
	for _, o := range []worktree.RestoreOptions{judge, {}} {
		b.Restore(jdg, base, o)
		assert.Equal(t, "lib\n", gittest.Read(t, jdg.Dir+"/vendor/lib/lib.txt"))
		assert.Empty(t, gittest.Git(t, jdg.Dir, "status", "--porcelain"))
		assert.True(t, b.Stage(jdg, base).Empty())
	}
	gittest.Write(t, jdg.Dir+"/vendor/lib/lib.txt", "poison")
	again, err := jdg.Restore(ctx, base, judge)
	require.NoError(t, err)
	assert.True(t, again)
}

// Nothing that an agent does in a submodule is dropped in silence, except what the submodule itself ignores, and the
// next change begins from what setup made.
func TestChangesInSubmodulesAreNamed(t *testing.T) {
	t.Parallel()
	user, _ := gittest.UserRepo(t, gittest.SomeFiles)
	lib, _ := gittest.UserRepo(t, map[string]string{"lib.txt": "lib\n", "gone.txt": "x\n", "in/deep.txt": "y\n", ".gitignore": "build/\n*.o\n"})
	gittest.Git(t, user, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "vendor/lib")
	gittest.Git(t, user, "commit", "-qm", "submodule")
	base := gittest.Git(t, user, "rev-parse", "HEAD")
	b := gittest.BedFor(t, user, base)
	desk := worktree.At(b.Store, filepath.Join(b.Dir, "desk"), filepath.Join(b.Dir, "state", "desk"), "pawl/x")
	setUp := func() {
		gittest.Git(t, desk.Dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
		gittest.Write(t, desk.Dir+"/vendor/lib/build/made.txt", "by setup\n")
		require.NoError(t, desk.Pristine(ctx))
	}
	restored := func() bool {
		again, err := desk.Restore(ctx, base, worktree.RestoreOptions{})
		require.NoError(t, err)
		if again {
			setUp()
		}
		return again
	}
	_, err := desk.Restore(ctx, base, worktree.RestoreOptions{})
	require.NoError(t, err)
	empty, err := desk.EmptySubmodules()
	require.NoError(t, err)
	assert.Equal(t, []string{"vendor/lib"}, empty)
	require.True(t, restored())
	empty, err = desk.EmptySubmodules()
	require.NoError(t, err)
	assert.Empty(t, empty)
	sub := desk.Dir + "/vendor/lib/"
	assert.Empty(t, b.Stage(desk, base).LeftOut)

	for name, c := range map[string]struct {
		do      func()
		leftOut []string
		remade  bool
	}{
		"only builds": {func() {
			gittest.Write(t, sub+"a.o", "o")
			gittest.Write(t, sub+"build/made.txt", "again")
		}, nil, false},
		"a change": {func() {
			gittest.Write(t, sub+"lib.txt", "LIB\n")
			gittest.Write(t, sub+"a.o", "o")
		}, []string{"vendor/lib/lib.txt"}, true},
		"a new file":       {func() { gittest.Write(t, sub+"new.txt", "n") }, []string{"vendor/lib/new.txt"}, false},
		"a removed file":   {func() { require.NoError(t, os.Remove(sub+"gone.txt")) }, []string{"vendor/lib/gone.txt"}, true},
		"a removed folder": {func() { require.NoError(t, os.RemoveAll(sub+"in")) }, []string{"vendor/lib/in/deep.txt"}, true},
		"nothing at all": {func() { require.NoError(t, os.RemoveAll(sub)); require.NoError(t, os.Mkdir(sub, 0o755)) },
			[]string{"vendor/lib/.gitignore", "vendor/lib/build/made.txt", "vendor/lib/gone.txt", "vendor/lib/in/deep.txt", "vendor/lib/lib.txt"}, true},
		"a nested repository": {func() {
			gittest.Git(t, desk.Dir, "init", "-q", sub+"in")
			gittest.Write(t, sub+"in/deep.txt", "z")
		}, []string{"vendor/lib/in/deep.txt"}, true},
		"a FIFO for its rules": {func() {
			require.NoError(t, os.Remove(sub+".gitignore"))
			require.NoError(t, syscall.Mkfifo(sub+".gitignore", 0o600))
		}, []string{"vendor/lib/.gitignore"}, true},
		"a link elsewhere": {func() {
			require.NoError(t, os.RemoveAll(sub+"in"))
			require.NoError(t, os.Symlink("/etc", sub+"in"))
		}, []string{"vendor/lib/in", "vendor/lib/in/deep.txt"}, true},
		"rules of its own": {func() {
			gittest.Write(t, sub+"in/.gitignore", "*\n")
			gittest.Write(t, sub+"in/new.txt", "n")
		}, []string{"vendor/lib/in/.gitignore", "vendor/lib/in/new.txt"}, false},
	} {
		c.do()
		change := b.Stage(desk, base)
		assert.Equal(t, c.leftOut, change.LeftOut, name)
		assert.Empty(t, change.Files, name)
		assert.Equal(t, c.remade, restored(), name)
		require.False(t, desk.Lost, "the change was named, and nothing is damaged")
		assert.NoFileExists(t, sub+"new.txt", name)
		assert.Equal(t, "lib\n", gittest.Read(t, sub+"lib.txt"), name)
		assert.FileExists(t, sub+"gone.txt", name)
	}
}

// Files that were committed without the conversions in .gitattributes.
func TestConversionsMakeNoChange(t *testing.T) {
	t.Parallel()
	user, _ := gittest.UserRepo(t, map[string]string{"crlf.txt": "a\r\nb\r\n", "lf.txt": "a\nb\n", "mixed.txt": "a\nb\r\n", "id.txt": "$Id$\n", "w.bat": "x\n"})
	gittest.Write(t, user+"/.gitattributes", "*.txt text\n*.bat text eol=crlf\nid.txt ident\n")
	gittest.Git(t, user, "add", ".gitattributes")
	gittest.Git(t, user, "commit", "-qm", "attributes later")
	b := gittest.BedFor(t, user, gittest.Git(t, user, "rev-parse", "HEAD"))
	desk := b.Tree("desk", b.Base)
	assert.Equal(t, "x\r\n", gittest.Read(t, desk.Dir+"/w.bat"), "as a clone would have it")
	assert.True(t, b.Stage(desk, b.Base).Empty())
	for _, f := range []string{"crlf.txt", "lf.txt", "mixed.txt", "id.txt", "w.bat"} {
		require.NoError(t, os.Chtimes(desk.Dir+"/"+f, gittest.When, time.Now()))
	}
	c := b.Stage(desk, b.Base)
	assert.True(t, c.Empty(), "%+v", c)
	assert.Equal(t, b.StoreGit("rev-parse", b.Base+"^{tree}"), c.Tree)

	gittest.Write(t, desk.Dir+"/lf.txt", "a\r\nb\r\n") // converts back to what it was
	gittest.Write(t, desk.Dir+"/w.bat", "y\r\n")
	head := b.Commit(desk, b.Base)
	assert.Equal(t, []string{"w.bat"}, paths(gittest.Must(b.Store.Changes(ctx, b.Base, head))))
	b.Restore(desk, head, worktree.RestoreOptions{})
	assert.True(t, b.Stage(desk, head).Empty())
	jdg := b.Tree("judge", b.Base)
	b.Restore(jdg, head, judge)
	assert.Equal(t, "y\r\n", gittest.Read(t, jdg.Dir+"/w.bat"))
	assert.True(t, b.Stage(jdg, head).Empty())
}

// asNobody runs the calling test again in another process, as a user without privileges, because root can read
// everything. It reports whether it did.
func asNobody(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "repo-nobody-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	self, err := os.Executable()
	require.NoError(t, err)
	exe := filepath.Join(dir, "test")
	// Another process copies it: a program that this one has open for writing can't run, and a child of another test may hold it open.
	require.NoError(t, exec.Command("cp", self, exe).Run())
	tmp := filepath.Join(dir, "tmp")
	require.NoError(t, os.Mkdir(tmp, 0o777))
	require.NoError(t, os.Chmod(tmp, 0o777))
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return true
}
