package worktree_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/worktree"
	"pawl/test/harness/gittest"
	"pawl/test/harness/tier"
)

func TestBadThingsInAChangeAreViolations(t *testing.T) {
	levels := 1100 // in one of the cases, more than a process may have files open
	if tier.Nightly {
		levels = 6000
	}
	gitlink := func(b *gittest.Bed, dir string) {
		gittest.Git(b, b.Dir, "init", "-q", dir)
		gittest.Write(b, dir+"/f", "f")
		gittest.Git(b, dir, "add", "-A")
		gittest.Git(b, dir, "commit", "-qm", "x")
	}
	for name, c := range map[string]struct {
		path, why string
		do        func(b *gittest.Bed, dir string)
	}{
		"a nested repository":                   {"sub", "nested", func(b *gittest.Bed, dir string) { gitlink(b, dir+"/sub") }},
		"a nested repository of a strange name": {"s\nu\xff", "nested", func(b *gittest.Bed, dir string) { gitlink(b, dir+"/s\nu\xff") }},
		"a nested repository without a commit":  {"sub", "nested", func(b *gittest.Bed, dir string) { gittest.Git(b, b.Dir, "init", "-q", dir+"/sub") }},
		"a repository around tracked files":     {"src", "nested", func(b *gittest.Bed, dir string) { gittest.Git(b, b.Dir, "init", "-q", dir+"/src") }},
		"a .git that is no repository": {"src/deep", "nested", func(b *gittest.Bed, dir string) {
			gittest.Write(b, dir+"/src/deep/.git/config", "[core]\nfsmonitor = x")
		}},
		"a .git file": {"src", "nested", func(b *gittest.Bed, dir string) { gittest.Write(b, dir+"/src/.git", "gitdir: ../.git") }},
		"a FIFO":      {"fifo", "neither", func(b *gittest.Bed, dir string) { require.NoError(b, syscall.Mkfifo(dir+"/fifo", 0o644)) }},
		"a FIFO in place of a file": {"a.txt", "neither", func(b *gittest.Bed, dir string) {
			require.NoError(b, os.Remove(dir+"/a.txt"))
			require.NoError(b, syscall.Mkfifo(dir+"/a.txt", 0o644))
		}},
		"a socket": {"s", "neither", func(b *gittest.Bed, dir string) {
			wd := gittest.Must(os.Getwd())
			require.NoError(b, os.Chdir(dir)) // socket addresses are short
			l, err := net.Listen("unix", "s")
			require.NoError(b, err)
			require.NoError(b, os.Chdir(wd))
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			_ = l.Close()
		}},
		"a name that git refuses":          {"src/.GIT/x", "refuses", func(b *gittest.Bed, dir string) { gittest.Write(b, dir+"/src/.GIT/x", "x") }},
		"a name that macOS takes for .git": {"src/.g\u200cit/x", "refuses", func(b *gittest.Bed, dir string) { gittest.Write(b, dir+"/src/.g\u200cit/x", "x") }},
		"a short name that git refuses":    {"git~1", "refuses", func(b *gittest.Bed, dir string) { gittest.Write(b, dir+"/git~1", "x") }},
		"an encoding that it is not in": {"u.txt", "encoding", func(b *gittest.Bed, dir string) {
			gittest.Write(b, dir+"/.gitattributes", "u.txt working-tree-encoding=UTF-16")
			gittest.Write(b, dir+"/u.txt", "x")
		}},
		"folders without end": {deep(401), "deep", func(b *gittest.Bed, dir string) { nest(b, dir, levels/2) }},
		"more folders than files can be open": {deep(401), "deep", func(b *gittest.Bed, dir string) {
			nest(b, dir, levels)
			var was syscall.Rlimit
			require.NoError(b, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
			require.NoError(b, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1000, Max: was.Max}))
			b.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) })
		}},
		"no tree": {".", "removed", func(b *gittest.Bed, dir string) { require.NoError(b, os.RemoveAll(dir)) }},
		"another tree": {".", "removed", func(b *gittest.Bed, dir string) {
			require.NoError(b, os.Rename(dir, dir+".moved"))
			require.NoError(b, os.Mkdir(dir, 0o755))
		}},
		"a symlink for a tree": {".", "removed", func(b *gittest.Bed, dir string) {
			require.NoError(b, os.Rename(dir, dir+".moved"))
			require.NoError(b, os.Symlink(dir+".moved", dir))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := gittest.NewBed(t, gittest.SomeFiles)
			desk := b.Tree("desk", b.Base)
			gittest.Write(t, desk.Dir+"/other", "the rest of the change")
			c.do(b, desk.Dir)
			for range 2 {
				got, err := desk.Stage(ctx, b.Base)
				require.NoError(t, err)
				require.Len(t, got.Violations, 1, "%+v", got)
				assert.Equal(t, c.path, got.Violations[0].Path)
				assert.Contains(t, got.Violations[0].Why, c.why)
				assert.False(t, got.Empty())
				if c.path != "." && c.why != "encoding" {
					assert.Contains(t, paths(got.Files), "other", "the rest is seen")
				}
			}
			again, err := desk.Restore(ctx, b.Base, worktree.RestoreOptions{})
			require.NoError(t, err)
			assert.Equal(t, c.path == ".", again)
			assert.Equal(t, gittest.Listing(t, b.Fresh(b.Base).Dir), gittest.Listing(t, desk.Dir))
			if !again {
				assert.True(t, b.Stage(desk, b.Base).Empty())
			}
		})
	}
}

// Of very many bad things the first ones are the whole result: git would compare each file with each of them.
func TestManyViolationsAreTheWholeResult(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(path string) error{
		"FIFOs": func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"sparse files": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 2<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := gittest.NewBed(t, gittest.SomeFiles)
			desk := b.Tree("desk", b.Base)
			gittest.Write(t, desk.Dir+"/other", "the rest of the change")
			require.NoError(t, os.Mkdir(desk.Dir+"/many", 0o755))
			for i := range 1500 {
				require.NoError(t, bad(fmt.Sprintf("%s/many/%d", desk.Dir, i)))
			}
			got, err := desk.Stage(ctx, b.Base)
			require.NoError(t, err)
			require.Len(t, got.Violations, 1000)
			require.Empty(t, got.Files)
			b.Restore(desk, b.Base, worktree.RestoreOptions{})
			require.True(t, b.Stage(desk, b.Base).Empty())
		})
	}
}

// The same things in ignored folders are no violation.
func TestWhatIsIgnoredIsNoViolation(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Git(t, b.Dir, "init", "-q", desk.Dir+"/build/dep")
	gittest.Write(t, desk.Dir+"/build/dep/f", "f")
	require.NoError(t, syscall.Mkfifo(desk.Dir+"/build/fifo", 0o644))
	nest(t, gittest.Must(os.MkdirTemp(desk.Dir+"/build", "deep")), 500)
	assert.True(t, b.Stage(desk, b.Base).Empty())
	b.Restore(desk, b.Base, worktree.RestoreOptions{})
	assert.FileExists(t, desk.Dir+"/build/dep/.git/HEAD", "ignored files stay on the desk")
}

func TestUnreadableThingsAreViolations(t *testing.T) {
	t.Parallel()
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
			b := gittest.NewBed(t, gittest.SomeFiles)
			desk := b.Tree("desk", b.Base)
			gittest.Write(t, desk.Dir+"/other", "x")
			c.do(desk.Dir)
			got, err := desk.Stage(ctx, b.Base)
			require.NoError(t, err)
			require.Len(t, got.Violations, 1, "%+v", got)
			assert.Equal(t, c.path, got.Violations[0].Path)

			again, err := desk.Restore(ctx, b.Base, worktree.RestoreOptions{})
			require.NoError(t, err)
			assert.Equal(t, c.path == ".", again)
			if again {
				require.NoError(t, desk.Pristine(ctx))
			}
			assert.Equal(t, gittest.Listing(t, b.Fresh(b.Base).Dir), gittest.Listing(t, desk.Dir))
			assert.True(t, b.Stage(desk, b.Base).Empty())
		})
	}
}

func TestSymlinksOutOfTheTreeAreFlagged(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	require.NoError(t, os.Symlink("/etc/passwd", desk.Dir+"/abs"))
	require.NoError(t, os.Symlink("../../../outside", desk.Dir+"/src/rel"))
	require.NoError(t, os.Symlink("../a.txt", desk.Dir+"/src/fine"))
	require.NoError(t, os.Symlink(".git/hooks", desk.Dir+"/hooks"))
	got := map[string]bool{}
	for _, f := range b.Stage(desk, b.Base).Files {
		got[f.Path] = f.Escapes
	}
	assert.Equal(t, map[string]bool{"abs": true, "src/rel": true, "src/fine": false, "hooks": true}, got)
}

// Git LFS keeps contents out of git. pawl runs no filter, so the contents would get into git.
func TestContentInThePlaceOfAPointerIsAViolation(t *testing.T) {
	t.Parallel()
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:"
	b := gittest.NewBed(t, map[string]string{".gitattributes": "*.bin filter=lfs -text\nplain.bin filter=other\n", "old.bin": pointer + "0\n", "plain.bin": "x", "gone.bin": pointer + "1\n", "a.txt": "a\n"})
	desk := b.Tree("desk", b.Base)
	for name, content := range map[string]string{"old.bin": pointer + "2\n", "plain.bin": "y", "a.txt": "b\n"} {
		gittest.Write(t, desk.Dir+"/"+name, content)
	}
	require.NoError(t, os.Remove(desk.Dir+"/gone.bin"))
	c := b.Stage(desk, b.Base)
	assert.Empty(t, c.Violations, "a pointer is what belongs there, and nothing may be there")
	assert.Len(t, c.Files, 4)

	gittest.Write(t, desk.Dir+"/old.bin", strings.Repeat("content", 1000))
	gittest.Write(t, desk.Dir+"/new\n.bin", "content")
	c = gittest.Must(desk.Stage(ctx, b.Base))
	var bad []string
	for _, v := range c.Violations {
		assert.Contains(t, v.Why, "no pointer")
		bad = append(bad, v.Path)
	}
	assert.ElementsMatch(t, []string{"old.bin", "new\n.bin"}, bad)
}

func TestAFullStoreIsAnErrorAndNoVerdict(t *testing.T) {
	t.Parallel()
	if asNobody(t) {
		return
	}
	b := gittest.NewBed(t, gittest.SomeFiles)
	desk := b.Tree("desk", b.Base)
	gittest.Write(t, desk.Dir+"/new", "x")
	require.NoError(t, os.Chmod(filepath.Join(b.Store.Dir(), "objects"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(b.Store.Dir(), "objects"), 0o755) })
	_, err := desk.Stage(ctx, b.Base)
	var ge *git.Error
	require.ErrorAs(t, err, &ge)
}

// Sparse files: they cost an agent nothing, and git would need hours to read them.
func TestE4_FilesThatAreTooLargeAreNotRead(t *testing.T) {
	t.Parallel()
	b := gittest.NewBed(t, map[string]string{"a.txt": "a\n", "was.bin": strings.Repeat("x", 2<<20), ".gitignore": "*.iso\n"})
	hole := func(path string, size int64) {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		require.NoError(t, os.Truncate(path, size))
	}
	stage := func(desk *worktree.Tree) worktree.Change {
		c, err := desk.StageRead(ctx, b.Base, worktree.StageOptions{Largest: 1 << 20})
		require.NoError(t, err)
		return c
	}
	desk := b.Tree("desk", b.Base)
	hole(desk.Dir+"/a.txt", 1<<40)
	hole(desk.Dir+"/-new", 1<<41)
	hole(desk.Dir+"/ignored.iso", 1<<40)
	require.NoError(t, os.Chtimes(desk.Dir+"/was.bin", gittest.When, gittest.When))
	c := stage(desk)
	assert.ElementsMatch(t, []worktree.Unaddable{
		{Path: "-new", Why: "larger than a file may be", Size: 1 << 41, New: true},
		{Path: "a.txt", Why: "larger than a file may be", Size: 1 << 40},
	}, c.Violations)
	assert.Empty(t, c.Files, "a large file that is as it was is no change")

	t.Run("nor one of the same size that is another", func(t *testing.T) {
		desk := b.Tree("desk3", b.Base)
		f, err := os.OpenFile(desk.Dir+"/was.bin", os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("y"), 1000)
		require.NoError(t, errors.Join(err, f.Close()))
		c := stage(desk)
		assert.Equal(t, []worktree.Unaddable{{Path: "was.bin", Why: "larger than a file may be", Size: 2 << 20}}, c.Violations)
		assert.Empty(t, c.Files)
	})

	t.Run("nor many that are not", func(t *testing.T) {
		desk := b.Tree("desk2", b.Base)
		for _, name := range []string{"1", "2", "3"} {
			hole(desk.Dir+"/"+name, (1<<30)-1)
		}
		c, err := desk.StageRead(ctx, b.Base, worktree.StageOptions{Largest: 1 << 30})
		require.NoError(t, err)
		require.Len(t, c.Violations, 3)
		assert.Contains(t, c.Violations, worktree.Unaddable{Path: "1", Why: "part of a change of more than 1073741824 bytes", New: true})
	})
}
