// Package gittest has what the tests of the packages that run git share: repositories to work on (Bed), the system's
// git as a user would run it, unusual names.
package gittest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/git/worktree"
)

// Main runs the tests with their own home, and with an environment that would mislead any git that obeys it.
func Main(m *testing.M) {
	home, err := os.MkdirTemp("", "git-home-")
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
	ctx = context.Background()
	// When and Who are the time and author of every commit that a Bed makes.
	When = time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("", 3600))
	Who  = git.Identity{Name: "Ada", Email: "ada@example.org"}
)

// WeirdNames are unusual but valid names of files, branches and loops.
var WeirdNames = []string{
	"plain", "with space", " leading and trailing ", "tab\there", "line\nfeed", `quote"d`, `back\slash`, "-option", "--all", ":(exclude)x",
	"*", "[a]", "ümläut", "\xff\xfe not utf-8", "\x01\x1b[31mred\x7f", "'single'", "$(touch x)", "#hash", "!bang", "trailing.", "~", "a:b", "@", "{}", "\u202eevil",
}

// Git runs the system's git as a user would.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := TryGit(dir, args...)
	require.NoError(t, err, "git %q: %s", args, out)
	return out
}

// TryGit is Git for a command that may fail. Its output then includes git's error.
func TryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") }),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_DEFAULT_HASH=sha1", "GIT_DEFAULT_REF_FORMAT=files", "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@u", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@u",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out) + stderr.String(), err
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// Write writes a file and makes the folders above it.
func Write(t testing.TB, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// Read returns a file's content.
func Read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// SomeFiles are enough files for most tests.
var SomeFiles = map[string]string{
	"a.txt": "one\ntwo\nthree\n", "src/b.txt": "b\n", "src/deep/c.txt": "c\n", ".gitignore": "*.log\nbuild/\n",
}

// UserRepo returns a user's repository with these files committed on branch main.
func UserRepo(t testing.TB, files map[string]string) (dir, head string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "user")
	require.NoError(t, os.Mkdir(dir, 0o755))
	Git(t, dir, "init", "-q", "-b", "main")
	for name, content := range files {
		Write(t, filepath.Join(dir, name), content)
	}
	Git(t, dir, "add", "-A")
	Git(t, dir, "commit", "-q", "--allow-empty", "-m", "base")
	return dir, Git(t, dir, "rev-parse", "HEAD")
}

// Bed is a store with a loop's branch, and the user's repository from which it came.
type Bed struct {
	testing.TB
	User, Base string
	Store      *store.Store
	Branch     string
	Dir        string
}

// NewBed makes a Bed from a repository with these files.
func NewBed(t testing.TB, files map[string]string) *Bed {
	t.Helper()
	user, base := UserRepo(t, files)
	return BedFor(t, user, base)
}

// BedFor makes a Bed from a repository whose branch main is at base.
func BedFor(t testing.TB, user, base string) *Bed {
	t.Helper()
	b := &Bed{TB: t, User: user, Base: base, Branch: "refs/heads/pawl/x", Dir: t.TempDir()}
	var err error
	b.Store, err = store.Open(ctx, filepath.Join(b.Dir, "stores", "s"))
	require.NoError(t, err)
	got, err := userrepo.Fetch(ctx, b.Store, userrepo.At(user), "main")
	require.NoError(t, err)
	require.Equal(t, base, got)
	require.NoError(t, b.Store.SetRef(ctx, b.Branch, base, ""))
	return b
}

// StoreGit runs the system's git in the store.
func (b *Bed) StoreGit(args ...string) string { return Git(b, b.Store.Dir(), args...) }

// Tree returns a complete tree at commit.
func (b *Bed) Tree(name, commit string) *worktree.Tree {
	b.Helper()
	t := worktree.At(b.Store, filepath.Join(b.Dir, "trees", name), filepath.Join(b.Dir, "state", name), "pawl/x")
	created, err := t.Restore(ctx, commit, worktree.RestoreOptions{})
	require.NoError(b, err)
	require.True(b, created)
	require.NoError(b, t.Pristine(ctx))
	return t
}

// Fresh returns a new desk at commit.
func (b *Bed) Fresh(commit string) *worktree.Tree {
	b.Helper()
	dir := b.TempDir()
	t := worktree.At(b.Store, filepath.Join(dir, "t"), filepath.Join(dir, "s"), "pawl/x")
	_, err := t.Restore(ctx, commit, worktree.RestoreOptions{})
	require.NoError(b, err)
	return t
}

// Stage stages a change, which must have no violations.
func (b *Bed) Stage(t *worktree.Tree, head string) worktree.Change {
	b.Helper()
	c, err := t.Stage(ctx, head)
	require.NoError(b, err)
	require.Empty(b, c.Violations)
	return c
}

// CommitInput returns the input for a commit of a tree on the loop's branch.
func (b *Bed) CommitInput(tree, parent string) store.CommitInput {
	return store.CommitInput{Tree: tree, Parent: parent, Message: "loop(iter-1): a change", Author: Who, Time: When, Branch: b.Branch,
		Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: "x"}, {Key: "Pawl-Iteration", Value: "1"}}}
}

// Commit stages and commits what is in the tree.
func (b *Bed) Commit(t *worktree.Tree, head string) string {
	b.Helper()
	c := b.Stage(t, head)
	require.NotEmpty(b, c.Files)
	id, err := b.Store.Commit(ctx, b.CommitInput(c.Tree, head))
	require.NoError(b, err)
	return id
}

// Restore restores a tree, which must be repaired in place.
func (b *Bed) Restore(t *worktree.Tree, commit string, o worktree.RestoreOptions) {
	b.Helper()
	again, err := t.Restore(ctx, commit, o)
	require.NoError(b, err)
	require.False(b, again, "was made anew")
}

// Listing returns every path below dir except .git, with kind, mode and content.
func Listing(t testing.TB, dir string) map[string]string {
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
			m[rel] = fmt.Sprintf("%o %s", fi.Mode().Perm(), Read(t, p))
		default:
			m[rel] = fi.Mode().Type().String()
		}
		return nil
	}))
	return m
}

// BytesOf returns every file of a repository with its content and times, including .git.
func BytesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	m := Listing(t, dir)
	for k, v := range Listing(t, filepath.Join(dir, ".git")) {
		m[".git/"+k] = v
	}
	for k := range m {
		fi, err := os.Lstat(filepath.Join(dir, k))
		require.NoError(t, err)
		if !fi.IsDir() || strings.HasPrefix(k, "src") {
			m[k] += fi.ModTime().String()
		}
	}
	return m
}

// Entry returns an entry of the Bed's ledger.
func Entry(prev, code string, files map[string]string) store.Entry {
	e := store.Entry{Ref: LedgerRef, Prev: prev, Code: code, Message: "iteration", Time: When, Author: Who, Files: map[string][]byte{}}
	for name, content := range files {
		e.Files[name] = []byte(content)
	}
	return e
}

// LedgerRef is the ref of the Bed's ledger.
const LedgerRef = "refs/pawl-ledger/x"

// Append appends an entry to a ledger.
func Append(s *store.Store, e store.Entry) (string, error) {
	r, err := s.Transact(ctx, store.Tx{Entry: func(string) (store.Entry, error) { return e, nil }})
	return r.Entry, err
}

// Append appends an entry, which must succeed.
func (b *Bed) Append(e store.Entry) string {
	b.Helper()
	id, err := Append(b.Store, e)
	require.NoError(b, err)
	return id
}

// Must returns the value, and panics if there is an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Documented runs the command that the contract documents, and returns a hash of its output.
func Documented(t testing.TB, dir, base, head string) string {
	t.Helper()
	out := Git(t, dir, "diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", base, head) + "\n"
	return fmt.Sprintf("%x", sha256.Sum256([]byte(out)))
}

// VariedChange changes a desk in every way that a diff can show, and returns the commit.
func VariedChange(t testing.TB, b *Bed, desk *worktree.Tree) string {
	t.Helper()
	d := desk.Dir
	Write(t, d+"/a.txt", "one\n2\nthree\nfour\n")
	require.NoError(t, os.Remove(d+"/src/b.txt"))
	Write(t, d+"/binary", "\x00\x01\x02\xff"+strings.Repeat("\x00x", 1000))
	require.NoError(t, os.Rename(d+"/long.txt", d+"/src/moved.txt"))
	require.NoError(t, os.Chmod(d+"/run.sh", 0o755))
	require.NoError(t, os.Symlink("a.txt", d+"/link"))
	require.NoError(t, os.Remove(d+"/was-file"))
	require.NoError(t, os.Symlink("../..", d+"/was-file"))
	Write(t, d+"/no-newline", "x")
	Write(t, d+"/empty", "")
	for _, n := range WeirdNames {
		Write(t, filepath.Join(d, "weird", n), n+"\n")
	}
	return b.Commit(desk, b.Base)
}

// VariedFiles are the files that VariedChange changes.
var VariedFiles = map[string]string{
	"a.txt": "one\ntwo\nthree\n", "src/b.txt": "b\n", "long.txt": strings.Repeat("a line of it\n", 40), "run.sh": "#!/bin/sh\n", "was-file": "x\n",
}

// Settle returns the transaction at the end of an iteration: a revert and its entry.
func Settle(b *Bed, bad, prev string) store.Tx {
	return store.Tx{Revert: &store.RevertInput{Commit: bad, Branch: b.Branch, Author: Who, Time: When},
		Entry: func(code string) (store.Entry, error) {
			return Entry(prev, "", map[string]string{"state.json": "head " + code}), nil
		}}
}

// Revert undoes a commit.
func Revert(s *store.Store, in store.RevertInput) (string, error) {
	r, err := s.Transact(ctx, store.Tx{Revert: &in})
	return r.Code, err
}

// Conflict leaves a merge of two changes to a.txt unfinished.
func Conflict(t testing.TB, dir string) {
	t.Helper()
	Git(t, dir, "checkout", "-q", "-b", "other")
	Write(t, dir+"/a.txt", "theirs\n")
	Git(t, dir, "commit", "-qam", "theirs")
	Git(t, dir, "checkout", "-q", "-b", "ours", "HEAD~1")
	Write(t, dir+"/a.txt", "ours\n")
	Git(t, dir, "commit", "-qam", "ours")
	_, err := TryGit(dir, "merge", "other")
	require.Error(t, err)
}

// Forge renames the folder above a repository and puts a copy in its place that runs a program wherever a repository
// can make git run one. It returns the new path of the repository.
func Forge(t testing.TB, repo, canary string) string {
	t.Helper()
	above := filepath.Dir(repo)
	require.NoError(t, os.Rename(above, above+".away"))
	require.NoError(t, os.CopyFS(above, os.DirFS(above+".away")))
	evil := filepath.Join(above, "evil")
	Write(t, evil, "#!/bin/sh\necho \"$0 $*\" >>'"+canary+"'\nexit 0\n")
	require.NoError(t, os.Chmod(evil, 0o755))
	git := repo
	if _, err := os.Stat(filepath.Join(repo, ".git")); err == nil {
		git = filepath.Join(repo, ".git")
	}
	for _, hook := range []string{"pre-receive", "update", "post-receive", "post-update", "reference-transaction", "post-merge", "post-checkout", "pre-push"} {
		require.NoError(t, os.MkdirAll(filepath.Join(git, "hooks"), 0o755))
		_ = os.Remove(filepath.Join(git, "hooks", hook))
		require.NoError(t, os.Symlink(evil, filepath.Join(git, "hooks", hook)))
	}
	Write(t, filepath.Join(git, "config"), "[core]\n\tbare = false\n\tfsmonitor = "+evil+"\n\tsshCommand = "+evil+"\n[filter \"x\"]\n\tclean = "+evil+"\n\tsmudge = "+evil+"\n\trequired = true\n[uploadpack]\n\tpackObjectsHook = "+evil+"\n")
	Write(t, filepath.Join(git, "info", "attributes"), "* filter=x\n")
	return above + ".away/" + filepath.Base(repo)
}
