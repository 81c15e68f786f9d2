package worktree_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/git/worktree"
	"pawl/test/harness/gittest"
)

// A command that judges a commit must leave the commit's files as they are, else it has judged other code.
func TestAlteredFilesAreThoseThatDifferFromTheCommit(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"src/a.txt": "aaaa", "src/b.txt": "bbbb", "run.sh": "#!/bin/sh\n",
		".gitattributes": "*.bat eol=crlf\n", "win.bat": "echo\n", ".gitignore": "*.log\n",
	}
	b := gittest.NewBed(t, files)
	for name, tc := range map[string]struct {
		do   func(dir string) error
		want []string
	}{
		"nothing":   {func(string) error { return nil }, nil},
		"untracked": {func(dir string) error { return os.WriteFile(dir+"/src/new.txt", nil, 0o644) }, nil},
		"ignored":   {func(dir string) error { return os.WriteFile(dir+"/x.log", nil, 0o644) }, nil},
		"touched": {func(dir string) error {
			return os.Chtimes(dir+"/src/a.txt", time.Now(), time.Now().Add(-time.Hour))
		}, nil},
		"converted by git": {func(dir string) error { return os.WriteFile(dir+"/win.bat", []byte("echo\r\n"), 0o644) }, nil},
		"rewritten with the same content": {func(dir string) error {
			return os.WriteFile(dir+"/src/a.txt", []byte("aaaa"), 0o644)
		}, nil},
		"rewritten": {func(dir string) error { return os.WriteFile(dir+"/src/a.txt", []byte("AAAA"), 0o644) }, []string{"src/a.txt"}},
		"rewritten with its old times": {func(dir string) error {
			was, err := os.Stat(dir + "/src/a.txt")
			if err != nil {
				return err
			}
			if err := os.WriteFile(dir+"/src/a.txt", []byte("AAAA"), 0o644); err != nil {
				return err
			}
			return os.Chtimes(dir+"/src/a.txt", was.ModTime(), was.ModTime())
		}, []string{"src/a.txt"}},
		"deleted":         {func(dir string) error { return os.Remove(dir + "/src/a.txt") }, []string{"src/a.txt"}},
		"folder deleted":  {func(dir string) error { return os.RemoveAll(dir + "/src") }, []string{"src/a.txt", "src/b.txt"}},
		"made executable": {func(dir string) error { return os.Chmod(dir+"/run.sh", 0o755) }, []string{"run.sh"}},
		"made a link": {func(dir string) error {
			if err := os.Remove(dir + "/src/a.txt"); err != nil {
				return err
			}
			return os.Symlink("b.txt", dir+"/src/a.txt")
		}, []string{"src/a.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := b.Tree(t.Name(), b.Base)
			b.Restore(tree, b.Base, worktree.RestoreOptions{Judge: true})
			require.NoError(t, tc.do(tree.Dir))
			altered, err := tree.Altered(ctx, b.Base)
			require.NoError(t, err)
			require.Equal(t, tc.want, altered)
			b.Restore(tree, b.Base, worktree.RestoreOptions{Judge: true})
			altered, err = tree.Altered(ctx, b.Base)
			require.NoError(t, err)
			require.Empty(t, altered, "after a restore")
		})
	}
}
