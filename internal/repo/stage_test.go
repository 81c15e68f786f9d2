package repo_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/repo"
)

func TestNoChangeIsNoChange(t *testing.T) {
	b := newBed(t, variedFiles)
	desk := b.tree("desk", b.base)
	write(t, desk.Dir+"/loop-results.tsv", "x")
	write(t, desk.Dir+"/loop-stop", "x")
	require.NoError(t, os.Chtimes(desk.Dir+"/a.txt", when, when))
	require.NoError(t, os.Chmod(desk.Dir+"/a.txt", 0o600))
	require.NoError(t, os.Mkdir(desk.Dir+"/emptyfolder", 0o755))
	c := b.stage(desk, b.base)
	assert.True(t, c.Empty())
	assert.Equal(t, b.storeGit("rev-parse", b.base+"^{tree}"), c.Tree)
}

func TestStageTakesWhatGitAddWould(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	write(t, desk.Dir+"/x.log", "ignored")
	write(t, desk.Dir+"/build/out", "ignored")
	write(t, desk.Dir+"/src/loop-stop", "only pawl's own in the root are")
	write(t, desk.Dir+"/new/file", "new")
	c := b.stage(desk, b.base)
	assert.Equal(t, []string{"new/file", "src/loop-stop"}, paths(c.Files))
	assert.Equal(t, []string{"new/file", "src/loop-stop"}, paths(must(b.store.Changes(ctx, b.base, c.Tree))), "the tree is in the store")

	// .gitignore is a file like any other.
	write(t, desk.Dir+"/.gitignore", "new/\n")
	c = b.stage(desk, b.base)
	assert.Equal(t, []string{".gitignore", "build/out", "src/loop-stop", "x.log"}, paths(c.Files))
}

// Someone ran another tool before and committed its results.
func TestATrackedResultsFileIsNoPartOfAChange(t *testing.T) {
	b := newBed(t, map[string]string{"loop-results.tsv": "old\n", "a.txt": "a\n"})
	desk := b.tree("desk", b.base)
	require.NoError(t, desk.Put("loop-results.tsv", []byte("new\n")))
	assert.True(t, b.stage(desk, b.base).Empty())
	write(t, desk.Dir+"/a.txt", "b\n")
	assert.Equal(t, []string{"a.txt"}, paths(b.stage(desk, b.base).Files))
	b.restore(desk, b.base, repo.RestoreOptions{})
	assert.Equal(t, "old\n", read(t, desk.Dir+"/loop-results.tsv"))
}

func paths(files []repo.FileChange) []string {
	var p []string
	for _, f := range files {
		p = append(p, f.Path)
	}
	return p
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestWeirdNamesSurviveTheWholeWay(t *testing.T) {
	b := newBed(t, someFiles)
	desk, jdg := b.tree("desk", b.base), b.tree("judge", b.base)
	for _, n := range weirdNames {
		write(t, filepath.Join(desk.Dir, n), n)
		write(t, filepath.Join(desk.Dir, "in", n, n), n)
	}
	head := b.commit(desk, b.base)
	b.restore(jdg, head, judge)
	assert.Equal(t, listing(t, desk.Dir), listing(t, jdg.Dir))
	for _, n := range weirdNames {
		assert.Equal(t, n, string(must(b.store.Blob(ctx, head, n, 100))), "%q", n)
		write(t, filepath.Join(desk.Dir, "in", n, n), "changed")
		write(t, filepath.Join(jdg.Dir, "junk", n, n), "junk")
		require.NoError(t, os.Remove(filepath.Join(desk.Dir, n)))
		require.NoError(t, os.Mkdir(filepath.Join(desk.Dir, n), 0o755))
		write(t, filepath.Join(desk.Dir, n, n), "other")
	}
	assert.Len(t, b.stage(desk, head).Files, 3*len(weirdNames))
	b.restore(desk, head, repo.RestoreOptions{})
	b.restore(jdg, head, judge)
	assert.Equal(t, listing(t, desk.Dir), listing(t, jdg.Dir))
	assert.True(t, b.stage(desk, head).Empty())
	b.restore(jdg, b.base, judge)
	b.restore(desk, b.base, repo.RestoreOptions{})
	assert.Equal(t, listing(t, desk.Dir), listing(t, jdg.Dir))
}

// The same size and the old mtime put back: only the ctime tells, and that by less than the
// second that git looks at.
func TestARewriteWithItsTimesRestoredIsSeen(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	rewrite := func(content string) {
		write(t, desk.Dir+"/a.txt", content)
		require.NoError(t, os.Chtimes(desk.Dir+"/a.txt", when, when))
	}
	for range 20 {
		b.restore(desk, b.base, repo.RestoreOptions{})
		rewrite("ONE\ntwo\nthree\n")
		first := b.stage(desk, b.base)
		assert.Equal(t, []string{"a.txt"}, paths(first.Files))
		rewrite("one\nTWO\nthree\n")
		second := b.stage(desk, b.base)
		assert.Equal(t, []string{"a.txt"}, paths(second.Files))
		assert.NotEqual(t, first.Tree, second.Tree)
		rewrite("one\ntwo\nTHREE\n")
		b.restore(desk, b.base, repo.RestoreOptions{})
		assert.Equal(t, someFiles["a.txt"], read(t, desk.Dir+"/a.txt"))
		rewrite(someFiles["a.txt"])
		b.stage(desk, b.base)
		rewrite("oNE\ntwo\nthree\n")
		assert.Equal(t, []string{"a.txt"}, paths(b.stage(desk, b.base).Files), "where the index stands at the commit")
		b.restore(desk, b.base, repo.RestoreOptions{})
		rewrite(someFiles["a.txt"])
		b.stage(desk, b.base)
		rewrite("ONE\ntwo\nthree\n")
		b.restore(desk, b.base, repo.RestoreOptions{})
		assert.Equal(t, someFiles["a.txt"], read(t, desk.Dir+"/a.txt"))
	}
}

func TestWhatTimesCanTell(t *testing.T) {
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
		unchanged, deceives := repo.IndexRules(c.ctime, c.mtime, c.size, c.nowCtime, c.nowMtime, c.nowSize, c.written)
		assert.Equal(t, c.unchanged, unchanged, name)
		assert.Equal(t, c.deceives, deceives, name)
	}
}

// A folder can be swapped for another without touching the files in either.
func TestAFolderSwappedForAnotherIsSeen(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	fresh := listing(t, desk.Dir)
	write(t, desk.Dir+"/build/src/b.txt", "B\n")
	write(t, desk.Dir+"/build/src/deep/c.txt", "C\n")
	b.restore(desk, b.base, repo.RestoreOptions{})
	write(t, desk.Dir+"/a.txt", "better\n")
	head := b.commit(desk, b.base)
	require.NoError(t, desk.Refresh(ctx, head))
	swapFolders := func() {
		require.NoError(t, os.Rename(desk.Dir+"/src", desk.Dir+"/build/x"))
		require.NoError(t, os.Rename(desk.Dir+"/build/src", desk.Dir+"/src"))
		require.NoError(t, os.Rename(desk.Dir+"/build/x", desk.Dir+"/build/src"))
	}
	swapFolders()
	assert.Equal(t, []string{"src/b.txt", "src/deep/c.txt"}, paths(b.stage(desk, head).Files))
	swapFolders()
	assert.True(t, b.stage(desk, head).Empty())
	b.restore(desk, head, repo.RestoreOptions{})
	swapFolders()
	b.restore(desk, head, repo.RestoreOptions{})
	fresh["a.txt"] = "644 better\n"
	require.NoError(t, os.RemoveAll(desk.Dir+"/build"))
	assert.Equal(t, fresh, listing(t, desk.Dir))
}

func TestBadThingsInAChangeAreViolations(t *testing.T) {
	gitlink := func(b *bed, dir string) {
		git(b, b.dir, "init", "-q", dir)
		write(b, dir+"/f", "f")
		git(b, dir, "add", "-A")
		git(b, dir, "commit", "-qm", "x")
	}
	for name, c := range map[string]struct {
		path, why string
		do        func(b *bed, dir string)
	}{
		"a nested repository":                   {"sub", "nested", func(b *bed, dir string) { gitlink(b, dir+"/sub") }},
		"a nested repository of a strange name": {"s\nu\xff", "nested", func(b *bed, dir string) { gitlink(b, dir+"/s\nu\xff") }},
		"a nested repository without a commit":  {"sub", "nested", func(b *bed, dir string) { git(b, b.dir, "init", "-q", dir+"/sub") }},
		"a repository around tracked files":     {"src", "nested", func(b *bed, dir string) { git(b, b.dir, "init", "-q", dir+"/src") }},
		"a .git that is no repository":          {"src/deep", "nested", func(b *bed, dir string) { write(b, dir+"/src/deep/.git/config", "[core]\nfsmonitor = x") }},
		"a .git file":                           {"src", "nested", func(b *bed, dir string) { write(b, dir+"/src/.git", "gitdir: ../.git") }},
		"a FIFO":                                {"fifo", "neither", func(b *bed, dir string) { require.NoError(b, syscall.Mkfifo(dir+"/fifo", 0o644)) }},
		"a FIFO in place of a file": {"a.txt", "neither", func(b *bed, dir string) {
			require.NoError(b, os.Remove(dir+"/a.txt"))
			require.NoError(b, syscall.Mkfifo(dir+"/a.txt", 0o644))
		}},
		"a socket": {"s", "neither", func(b *bed, dir string) {
			wd := must(os.Getwd())
			require.NoError(b, os.Chdir(dir)) // socket addresses are short
			l, err := net.Listen("unix", "s")
			require.NoError(b, err)
			require.NoError(b, os.Chdir(wd))
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			_ = l.Close()
		}},
		"a name that git refuses":       {"src/.GIT/x", "refuses", func(b *bed, dir string) { write(b, dir+"/src/.GIT/x", "x") }},
		"a short name that git refuses": {"git~1", "refuses", func(b *bed, dir string) { write(b, dir+"/git~1", "x") }},
		"an encoding that it is not in": {"u.txt", "encoding", func(b *bed, dir string) {
			write(b, dir+"/.gitattributes", "u.txt working-tree-encoding=UTF-16")
			write(b, dir+"/u.txt", "x")
		}},
		"folders without end": {deep(401), "deep", func(b *bed, dir string) { nest(b, dir, 3000) }},
		"more folders than files can be open": {deep(401), "deep", func(b *bed, dir string) {
			nest(b, dir, 3000)
			var was syscall.Rlimit
			require.NoError(b, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
			require.NoError(b, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1000, Max: was.Max}))
			b.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) })
		}},
		"no tree": {".", "removed", func(b *bed, dir string) { require.NoError(b, os.RemoveAll(dir)) }},
		"another tree": {".", "removed", func(b *bed, dir string) {
			require.NoError(b, os.Rename(dir, dir+".moved"))
			require.NoError(b, os.Mkdir(dir, 0o755))
		}},
		"a symlink for a tree": {".", "removed", func(b *bed, dir string) {
			require.NoError(b, os.Rename(dir, dir+".moved"))
			require.NoError(b, os.Symlink(dir+".moved", dir))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, someFiles)
			desk := b.tree("desk", b.base)
			write(t, desk.Dir+"/other", "the rest of the change")
			c.do(b, desk.Dir)
			for range 2 {
				got, err := desk.Stage(ctx, b.base)
				require.NoError(t, err)
				require.Len(t, got.Violations, 1, "%+v", got)
				assert.Equal(t, c.path, got.Violations[0].Path)
				assert.Contains(t, got.Violations[0].Why, c.why)
				assert.False(t, got.Empty())
				if c.path != "." && c.why != "encoding" {
					assert.Contains(t, paths(got.Files), "other", "the rest is seen")
				}
			}
			again, err := desk.Restore(ctx, b.base, repo.RestoreOptions{})
			require.NoError(t, err)
			assert.Equal(t, c.path == ".", again)
			assert.Equal(t, listing(t, must(b.fresh(b.base)).Dir), listing(t, desk.Dir))
			if !again {
				assert.True(t, b.stage(desk, b.base).Empty())
			}
		})
	}
}

// fresh is a tree made anew, to compare with.
func (b *bed) fresh(commit string) (*repo.Tree, error) {
	b.Helper()
	dir := b.TB.(*testing.T).TempDir()
	t := b.store.Tree(filepath.Join(dir, "t"), filepath.Join(dir, "s"), "pawl/x")
	_, err := t.Materialise(ctx, commit)
	return t, err
}

func deep(n int) string { return strings.TrimSuffix(strings.Repeat("d/", n), "/") }

// nest makes folders in folders beyond what a path can name.
func nest(t testing.TB, dir string, n int) {
	wd := must(os.Getwd())
	require.NoError(t, os.Chdir(dir))
	defer func() { require.NoError(t, os.Chdir(wd)) }()
	for range n {
		require.NoError(t, os.Mkdir("d", 0o755))
		require.NoError(t, os.Chdir("d"))
	}
	require.NoError(t, os.WriteFile("f", []byte("deep down"), 0o644))
}

// The same things where git does not look are nobody's business.
func TestWhatIsIgnoredIsNoViolation(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	git(t, b.dir, "init", "-q", desk.Dir+"/build/dep")
	write(t, desk.Dir+"/build/dep/f", "f")
	require.NoError(t, syscall.Mkfifo(desk.Dir+"/build/fifo", 0o644))
	nest(t, must(os.MkdirTemp(desk.Dir+"/build", "deep")), 500)
	assert.True(t, b.stage(desk, b.base).Empty())
	b.restore(desk, b.base, repo.RestoreOptions{})
	assert.FileExists(t, desk.Dir+"/build/dep/.git/HEAD", "ignored files stay on the desk")
}

func TestUnreadableThingsAreViolations(t *testing.T) {
	if asNobody(t) {
		return
	}
	for name, c := range map[string]struct {
		path string
		do   func(dir string)
	}{
		"a tracked file":   {"a.txt", func(dir string) { _ = os.Chmod(dir+"/a.txt", 0) }},
		"a new file":       {"new", func(dir string) { _ = os.WriteFile(dir+"/new", []byte("x"), 0) }},
		"a tracked folder": {"src", func(dir string) { _ = os.Chmod(dir+"/src", 0) }},
		"a new folder": {"d", func(dir string) {
			_ = os.MkdirAll(dir+"/d/e", 0o755)
			_ = os.WriteFile(dir+"/d/e/f", nil, 0o444)
			_ = os.Chmod(dir+"/d/e", 0o500)
			_ = os.Chmod(dir+"/d", 0)
		}},
		"the tree itself": {".", func(dir string) { _ = os.Chmod(dir, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, someFiles)
			desk := b.tree("desk", b.base)
			write(t, desk.Dir+"/other", "x")
			c.do(desk.Dir)
			got, err := desk.Stage(ctx, b.base)
			require.NoError(t, err)
			require.Len(t, got.Violations, 1, "%+v", got)
			assert.Equal(t, c.path, got.Violations[0].Path)

			again, err := desk.Restore(ctx, b.base, repo.RestoreOptions{})
			require.NoError(t, err)
			assert.Equal(t, c.path == ".", again)
			if again {
				require.NoError(t, desk.Pristine(ctx))
			}
			assert.Equal(t, listing(t, must(b.fresh(b.base)).Dir), listing(t, desk.Dir))
			assert.True(t, b.stage(desk, b.base).Empty())
		})
	}
}

// A tracked file that is only read-only, in a folder that is only read-only, is no obstacle.
func TestReadOnlyTreesAreRestored(t *testing.T) {
	if asNobody(t) {
		return
	}
	b := newBed(t, someFiles)
	for _, o := range []repo.RestoreOptions{{}, judge} {
		tree := b.tree(map[bool]string{false: "desk", true: "judge"}[o.Judge], b.base)
		write(t, tree.Dir+"/src/deep/c.txt", "changed")
		write(t, tree.Dir+"/src/deep/new/new/new", "new")
		write(t, tree.Dir+"/build/x/y", "ignored")
		for _, d := range []string{"src/deep/new/new", "src/deep/new", "src/deep", "src", "build/x", ".git/objects", ".git", "."} {
			require.NoError(t, os.Chmod(filepath.Join(tree.Dir, d), 0o555))
		}
		b.restore(tree, b.base, o)
		want := listing(t, must(b.fresh(b.base)).Dir)
		if !o.Judge {
			want["build"], want["build/x"], want["build/x/y"] = "dir", "dir", "644 ignored"
		}
		assert.Equal(t, want, listing(t, tree.Dir))
		git(t, tree.Dir, "status")
	}
}

func TestAReadOnlyTreeCanBeRemoved(t *testing.T) {
	if asNobody(t) {
		return
	}
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	for _, d := range []string{"src/deep", "src", ".git/objects/pack", ".git/objects", "."} {
		require.NoError(t, os.Chmod(filepath.Join(desk.Dir, d), 0o500))
	}
	require.NoError(t, os.Chmod(filepath.Join(desk.Dir, "src"), 0))
	require.NoError(t, desk.Remove(ctx))
	assert.NoDirExists(t, desk.Dir)
}

func TestSymlinksOutOfTheTreeAreFlagged(t *testing.T) {
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	require.NoError(t, os.Symlink("/etc/passwd", desk.Dir+"/abs"))
	require.NoError(t, os.Symlink("../../../outside", desk.Dir+"/src/rel"))
	require.NoError(t, os.Symlink("../a.txt", desk.Dir+"/src/fine"))
	require.NoError(t, os.Symlink(".git/hooks", desk.Dir+"/hooks"))
	got := map[string]bool{}
	for _, f := range b.stage(desk, b.base).Files {
		got[f.Path] = f.Escapes
	}
	assert.Equal(t, map[string]bool{"abs": true, "src/rel": true, "src/fine": false, "hooks": true}, got)
}

func TestSubmodulesStayAsTheyAre(t *testing.T) {
	user, _ := userRepo(t, someFiles)
	lib, libHead := userRepo(t, map[string]string{"lib.txt": "lib\n"})
	git(t, user, "update-index", "--add", "--cacheinfo", "160000,"+libHead+",vendor/lib")
	write(t, user+"/.gitmodules", "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../lib\n")
	git(t, user, "add", ".gitmodules")
	git(t, user, "commit", "-qm", "submodule")
	base := git(t, user, "rev-parse", "HEAD")
	b := bedFor(t, user, base)
	desk, jdg := b.tree("desk", base), b.tree("judge", base)
	assert.DirExists(t, desk.Dir+"/vendor/lib")
	assert.True(t, b.stage(desk, base).Empty())

	// Checked out by setup: its content is not looked at, its commit is.
	canary := filepath.Join(b.dir, "canary")
	sub := desk.Dir + "/vendor/lib"
	require.NoError(t, os.Remove(sub))
	git(t, b.dir, "clone", "-q", lib, sub)
	git(t, sub, "config", "core.fsmonitor", "touch "+canary)
	git(t, sub, "config", "filter.evil.clean", "touch "+canary+";cat")
	write(t, sub+"/.git/info/attributes", "* filter=evil\n")
	require.NoError(t, desk.Pristine(ctx))
	write(t, sub+"/lib.txt", "LIB\n")
	write(t, desk.Dir+"/a.txt", "changed")
	assert.Equal(t, []string{"a.txt"}, paths(b.stage(desk, base).Files))
	b.restore(desk, base, repo.RestoreOptions{})
	assert.FileExists(t, sub+"/.git/HEAD", "what setup made stays")
	git(t, sub, "-c", "core.fsmonitor=false", "-c", "filter.evil.clean=cat", "commit", "-qam", "moved")
	c, err := desk.Stage(ctx, base)
	require.NoError(t, err)
	assert.Equal(t, []repo.Unaddable{{Path: "vendor/lib", Why: "a submodule was added, removed or moved"}}, c.Violations)
	assert.NoFileExists(t, canary)
	write(t, sub+"/lib.txt", "lib\n")
	_, _ = tryGit(sub, "status")
	assert.FileExists(t, canary, "the canary sings")

	// Removed, replaced, junk put in.
	require.NoError(t, os.Remove(jdg.Dir+"/vendor/lib"))
	c, err = jdg.Stage(ctx, base)
	require.NoError(t, err)
	require.Len(t, c.Violations, 1)
	write(t, jdg.Dir+"/vendor/lib", "a file")
	c, err = jdg.Stage(ctx, base)
	require.NoError(t, err)
	require.Len(t, c.Violations, 1)
	b.restore(jdg, base, judge)
	write(t, jdg.Dir+"/vendor/lib/junk", "x")
	assert.True(t, b.stage(jdg, base).Empty())
	b.restore(jdg, base, repo.RestoreOptions{})
	assert.NoFileExists(t, jdg.Dir+"/vendor/lib/junk")
	assert.DirExists(t, jdg.Dir+"/vendor/lib")
}

// `git submodule update` as setup: the files stay, and the tree's own git goes on working.
func TestASubmoduleThatSetupUpdatesKeepsItsFiles(t *testing.T) {
	user, _ := userRepo(t, someFiles)
	lib, _ := userRepo(t, map[string]string{"lib.txt": "lib\n"})
	git(t, user, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "vendor/lib")
	git(t, user, "commit", "-qm", "submodule")
	base := git(t, user, "rev-parse", "HEAD")
	b := bedFor(t, user, base)
	jdg := b.store.Tree(filepath.Join(b.dir, "judge"), filepath.Join(b.dir, "state", "judge"), "pawl/x")
	_, err := jdg.Materialise(ctx, base)
	require.NoError(t, err)
	git(t, jdg.Dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
	require.NoError(t, jdg.Pristine(ctx))
	for _, o := range []repo.RestoreOptions{judge, {}} {
		b.restore(jdg, base, o)
		assert.Equal(t, "lib\n", read(t, jdg.Dir+"/vendor/lib/lib.txt"))
		assert.Empty(t, git(t, jdg.Dir, "status", "--porcelain"))
		assert.True(t, b.stage(jdg, base).Empty())
	}
	write(t, jdg.Dir+"/vendor/lib/lib.txt", "poison")
	again, err := jdg.Restore(ctx, base, judge)
	require.NoError(t, err)
	assert.True(t, again)
}

// Files that were committed without the conversions that .gitattributes asks for.
func TestConversionsMakeNoChange(t *testing.T) {
	user, _ := userRepo(t, map[string]string{"crlf.txt": "a\r\nb\r\n", "lf.txt": "a\nb\n", "mixed.txt": "a\nb\r\n", "id.txt": "$Id$\n", "w.bat": "x\n"})
	write(t, user+"/.gitattributes", "*.txt text\n*.bat text eol=crlf\nid.txt ident\n")
	git(t, user, "add", ".gitattributes")
	git(t, user, "commit", "-qm", "attributes later")
	b := bedFor(t, user, git(t, user, "rev-parse", "HEAD"))
	desk := b.tree("desk", b.base)
	assert.Equal(t, "x\r\n", read(t, desk.Dir+"/w.bat"), "as a clone would have it")
	assert.True(t, b.stage(desk, b.base).Empty())
	for _, f := range []string{"crlf.txt", "lf.txt", "mixed.txt", "id.txt", "w.bat"} {
		require.NoError(t, os.Chtimes(desk.Dir+"/"+f, when, time.Now()))
	}
	c := b.stage(desk, b.base)
	assert.True(t, c.Empty(), "%+v", c)
	assert.Equal(t, b.storeGit("rev-parse", b.base+"^{tree}"), c.Tree)

	write(t, desk.Dir+"/lf.txt", "a\r\nb\r\n") // converts back to what it was
	write(t, desk.Dir+"/w.bat", "y\r\n")
	head := b.commit(desk, b.base)
	assert.Equal(t, []string{"w.bat"}, paths(must(b.store.Changes(ctx, b.base, head))))
	b.restore(desk, head, repo.RestoreOptions{})
	assert.True(t, b.stage(desk, head).Empty())
	jdg := b.tree("judge", b.base)
	b.restore(jdg, head, judge)
	assert.Equal(t, "y\r\n", read(t, jdg.Dir+"/w.bat"))
	assert.True(t, b.stage(jdg, head).Empty())
}

// Git LFS keeps contents out of git. pawl runs no filter, so that it would put them in.
func TestContentInThePlaceOfAPointerIsAViolation(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:"
	b := newBed(t, map[string]string{".gitattributes": "*.bin filter=lfs -text\nplain.bin filter=other\n", "old.bin": pointer + "0\n", "plain.bin": "x", "gone.bin": pointer + "1\n", "a.txt": "a\n"})
	desk := b.tree("desk", b.base)
	for name, content := range map[string]string{"old.bin": pointer + "2\n", "plain.bin": "y", "a.txt": "b\n"} {
		write(t, desk.Dir+"/"+name, content)
	}
	require.NoError(t, os.Remove(desk.Dir+"/gone.bin"))
	c := b.stage(desk, b.base)
	assert.Empty(t, c.Violations, "a pointer is what belongs there, and nothing may be there")
	assert.Len(t, c.Files, 4)

	write(t, desk.Dir+"/old.bin", strings.Repeat("content", 1000))
	write(t, desk.Dir+"/new\n.bin", "content")
	c = must(desk.Stage(ctx, b.base))
	var bad []string
	for _, v := range c.Violations {
		assert.Contains(t, v.Why, "no pointer")
		bad = append(bad, v.Path)
	}
	assert.ElementsMatch(t, []string{"old.bin", "new\n.bin"}, bad)
}

func TestAFullStoreIsAnErrorAndNoVerdict(t *testing.T) {
	if asNobody(t) {
		return
	}
	b := newBed(t, someFiles)
	desk := b.tree("desk", b.base)
	write(t, desk.Dir+"/new", "x")
	require.NoError(t, os.Chmod(filepath.Join(b.store.Dir(), "objects"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(b.store.Dir(), "objects"), 0o755) })
	_, err := desk.Stage(ctx, b.base)
	var ge *repo.GitError
	require.ErrorAs(t, err, &ge)
}

// TestE4_FilesThatAreTooLargeAreNotRead has files that are all hole: to make one costs an agent
// nothing, and to read it would cost git hours.
func TestE4_FilesThatAreTooLargeAreNotRead(t *testing.T) {
	b := newBed(t, map[string]string{"a.txt": "a\n", "was.bin": strings.Repeat("x", 2<<20), ".gitignore": "*.iso\n"})
	hole := func(path string, size int64) {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		require.NoError(t, os.Truncate(path, size))
	}
	stage := func(desk *repo.Tree) repo.Change {
		c, err := desk.StageRead(ctx, b.base, 1<<20, nil)
		require.NoError(t, err)
		return c
	}
	desk := b.tree("desk", b.base)
	hole(desk.Dir+"/a.txt", 1<<40)
	hole(desk.Dir+"/-new", 1<<41)
	hole(desk.Dir+"/ignored.iso", 1<<40)
	require.NoError(t, os.Chtimes(desk.Dir+"/was.bin", when, when))
	c := stage(desk)
	assert.ElementsMatch(t, []repo.Unaddable{
		{Path: "-new", Why: "larger than a file may be", Size: 1 << 41, New: true},
		{Path: "a.txt", Why: "larger than a file may be", Size: 1 << 40},
	}, c.Violations)
	assert.Empty(t, c.Files, "a large file that is as it was is no change")

	t.Run("nor one of the same size that is another", func(t *testing.T) {
		desk := b.tree("desk3", b.base)
		f, err := os.OpenFile(desk.Dir+"/was.bin", os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("y"), 1000)
		require.NoError(t, errors.Join(err, f.Close()))
		c := stage(desk)
		assert.Equal(t, []repo.Unaddable{{Path: "was.bin", Why: "larger than a file may be", Size: 2 << 20}}, c.Violations)
		assert.Empty(t, c.Files)
	})

	t.Run("nor many that are not", func(t *testing.T) {
		desk := b.tree("desk2", b.base)
		for _, name := range []string{"1", "2", "3"} {
			hole(desk.Dir+"/"+name, (1<<30)-1)
		}
		c, err := desk.StageRead(ctx, b.base, 1<<30, nil)
		require.NoError(t, err)
		require.Len(t, c.Violations, 3)
		assert.Contains(t, c.Violations, repo.Unaddable{Path: "1", Why: "part of a change of more than 1073741824 bytes", New: true})
	})
}
