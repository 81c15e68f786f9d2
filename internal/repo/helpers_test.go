package repo_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/repo"
)

// TestMain gives every test a home of its own and an environment that would lead any git astray
// that believed it.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "repo-home-")
	if err != nil {
		panic(err)
	}
	_ = os.Chmod(home, 0o755)
	for k, v := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home,
		"GIT_DIR": "/nonexistent", "GIT_WORK_TREE": "/nonexistent", "GIT_INDEX_FILE": "/nonexistent",
		"GIT_OBJECT_DIRECTORY": "/nonexistent", "GIT_CEILING_DIRECTORIES": "/", "GIT_AUTHOR_DATE": "nonsense",
		"GIT_EXTERNAL_DIFF": "false", "GIT_LITERAL_PATHSPECS": "1", "GIT_DEFAULT_HASH": "sha256",
	} {
		os.Setenv(k, v)
	}
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

var (
	ctx  = context.Background()
	when = time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("", 3600))
	who  = repo.Identity{Name: "Ada", Email: "ada@example.org"}
)

const zeros = "0000000000000000000000000000000000000000"

// git runs the system's git as a user would.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, args...)
	require.NoError(t, err, "git %q: %s", args, out)
	return out
}

func tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@u", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@u")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out) + stderr.String(), err
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

func write(t testing.TB, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// userRepo is a user's repository on branch main with these files committed.
func userRepo(t testing.TB, files map[string]string) (dir, head string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "user")
	require.NoError(t, os.Mkdir(dir, 0o755))
	git(t, dir, "init", "-q", "-b", "main")
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "base")
	return dir, git(t, dir, "rev-parse", "HEAD")
}

// bed is a store with a loop's branch, and the user's repository it came from.
type bed struct {
	testing.TB
	user, base string
	store      *repo.Store
	branch     string
	dir        string
}

var someFiles = map[string]string{
	"a.txt": "one\ntwo\nthree\n", "src/b.txt": "b\n", "src/deep/c.txt": "c\n", ".gitignore": "*.log\nbuild/\n",
}

func newBed(t testing.TB, files map[string]string) *bed {
	t.Helper()
	user, base := userRepo(t, files)
	return bedFor(t, user, base)
}

func bedFor(t testing.TB, user, base string) *bed {
	t.Helper()
	b := &bed{TB: t, user: user, base: base, branch: "refs/heads/pawl/x", dir: t.TempDir()}
	var err error
	b.store, err = repo.OpenStore(ctx, filepath.Join(b.dir, "stores", "s"))
	require.NoError(t, err)
	got, err := b.store.Fetch(ctx, user, "main")
	require.NoError(t, err)
	require.Equal(t, base, got)
	require.NoError(t, b.store.SetRef(ctx, b.branch, base, ""))
	return b
}

func (b *bed) storeGit(args ...string) string { return git(b, b.store.Dir(), args...) }

// tree is a finished tree at commit.
func (b *bed) tree(name, commit string) *repo.Tree {
	b.Helper()
	t := b.store.Tree(filepath.Join(b.dir, "trees", name), filepath.Join(b.dir, "state", name), "pawl/x")
	created, err := t.Materialise(ctx, commit)
	require.NoError(b, err)
	require.True(b, created)
	require.NoError(b, t.Pristine(ctx))
	return t
}

// stage wants a change without violations.
func (b *bed) stage(t *repo.Tree, head string) repo.Change {
	b.Helper()
	c, err := t.Stage(ctx, head)
	require.NoError(b, err)
	require.Empty(b, c.Violations)
	return c
}

func (b *bed) commitInput(tree, parent string) repo.CommitInput {
	return repo.CommitInput{Tree: tree, Parent: parent, Message: "loop(iter-1): a change", Author: who, Time: when, Branch: b.branch,
		Trailers: []repo.Trailer{{Key: "Pawl-Loop", Value: "x"}, {Key: "Pawl-Iteration", Value: "1"}}}
}

// commit stages and commits what is in the tree.
func (b *bed) commit(t *repo.Tree, head string) string {
	b.Helper()
	c := b.stage(t, head)
	require.NotEmpty(b, c.Files)
	id, err := b.store.Commit(ctx, b.commitInput(c.Tree, head))
	require.NoError(b, err)
	return id
}

func (b *bed) restore(t *repo.Tree, commit string, o repo.RestoreOptions) {
	b.Helper()
	again, err := t.Restore(ctx, commit, o)
	require.NoError(b, err)
	require.False(b, again, "was made anew")
}

var judge = repo.RestoreOptions{Judge: true}

// listing is every path below dir but .git, with kind, mode and content.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if rel == ".git" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			m[rel] = "dir"
		case fi.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			m[rel] = "-> " + target
		case fi.Mode().IsRegular():
			m[rel] = fmt.Sprintf("%o %s", fi.Mode().Perm(), read(t, p))
		default:
			m[rel] = fi.Mode().Type().String()
		}
		return nil
	}))
	return m
}

// asNobody runs the calling test once more as a user without privileges, in a process of its own,
// and reports whether it did: nothing is unreadable to root.
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
	bin, err := os.ReadFile(self)
	require.NoError(t, err)
	exe := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(exe, bin, 0o755))
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

func contextWithCancel() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }

func removeAll(path string) error { return os.RemoveAll(path) }
