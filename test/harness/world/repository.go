package world

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// Git runs git as the user and returns what it prints.
func (w *World) Git(args ...string) string {
	w.T.Helper()
	out, err := w.TryGit(args...)
	require.NoError(w.T, err, "git %s", strings.Join(args, " "))
	return out
}

// TryGit runs git as the user, and may fail.
func (w *World) TryGit(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = w.Dir
	if _, err := os.Stat(w.Repo); err == nil {
		cmd.Dir = w.Repo
	}
	cmd.Env = append(append(Environ(w.Home, w.Dir), "GIT_OPTIONAL_LOCKS=0"), w.GitEnv...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// Init makes the user's repository, in which nothing is committed.
func (w *World) Init() {
	w.T.Helper()
	w.Git("init", "--quiet", "--initial-branch=main", w.Repo)
	config, err := os.OpenFile(filepath.Join(w.Repo, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(w.T, err)
	defer config.Close()
	_, err = config.WriteString("[user]\n\tname = Ann\n\temail = ann@example.com\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n")
	require.NoError(w.T, err)
}

// Commit commits what the user has in the tree. From then on the repository must not change.
func (w *World) Commit(message string) {
	w.T.Helper()
	w.Git("add", "--all")
	w.Git("commit", "--quiet", "--message", message)
	w.Before = w.Snapshot()
}

// Snapshot returns the content of the user's repository: the tree and all of .git except the objects, the loops'
// branches and their ledgers.
func (w *World) Snapshot() map[string]string {
	files := map[string]string{}
	filepath.WalkDir(w.Repo, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(path, w.Repo), "/")
		switch {
		case err != nil:
			files[name] = err.Error()
			return nil
		case slices.Contains([]string{".git/objects", ".git/refs/heads/pawl", ".git/refs/pawl-ledger", ".git/logs/refs/heads/pawl"}, name):
			if d.IsDir() {
				return filepath.SkipDir
			}
		case d.IsDir():
			return nil
		}
		info, _ := d.Info()
		content := []byte{}
		switch {
		case info.Size() > large:
			content = fmt.Appendf(nil, "%d bytes of %s", info.Size(), info.ModTime())
		case d.Type().IsRegular():
			content, _ = os.ReadFile(path)
		case d.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(path)
			content = []byte(target)
		}
		files[name] = info.Mode().String() + "\n" + string(content)
		return nil
	})
	return files
}

// large is the size in bytes from which a snapshot has only a file's size and time.
const large = 32 << 20

// Row is a line of loop-results.tsv without its time: iteration, metric, delta, kept, description.
type Row [5]string

// Kept returns "yes" or "no".
func (r Row) Kept() string { return r[3] }

// Description returns the agent's description, after the reason if the change was not kept.
func (r Row) Description() string { return r[4] }

// Results returns the rows of a ledger that was pushed to the user's repository.
func (w *World) Results(loop string) (rows []Row) {
	w.T.Helper()
	for _, line := range strings.Split(w.Git("show", "refs/pawl-ledger/"+loop+":loop-results.tsv"), "\n") {
		f := strings.Split(line, "\t")
		require.Contains(w.T, []int{6, 10, 11}, len(f), line) // the source's columns, and those that follow them
		_, err := time.Parse("2006-01-02T15:04:05Z", f[1])
		require.NoError(w.T, err)
		rows = append(rows, Row{f[0], f[2], f[3], f[4], f[5]})
	}
	return rows
}

// LastRow returns the last line of the loop's results.
func (w *World) LastRow() Row {
	w.T.Helper()
	rows := w.Results(w.Loop)
	return rows[len(rows)-1]
}

// Kept returns the content of a file on the loop's branch in the user's repository.
func (w *World) Kept(name string) string {
	w.T.Helper()
	return w.Git("show", "refs/heads/pawl/"+w.Loop+":"+name)
}

// OnBranch returns the names of the files on the loop's branch, as bytes.
func (w *World) OnBranch() []string {
	w.T.Helper()
	out := w.Git("ls-tree", "-r", "-z", "--name-only", "refs/heads/pawl/"+w.Loop)
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(s string) bool { return s == "" })
}

// Subjects returns the subjects of the loop's commits on its branch, the newest first.
func (w *World) Subjects() []string {
	w.T.Helper()
	branch := "refs/heads/pawl/" + w.Loop
	if none, err := w.TryGit("for-each-ref", branch); err == nil && none == "" { // a start that is refused makes none
		return nil
	}
	out := w.Git("log", "--format=%s", "main.."+branch)
	if out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

// PawlRefs returns the branches and ledgers that loops left in the user's repository.
func (w *World) PawlRefs() string {
	w.T.Helper()
	return w.Git("for-each-ref", "--format=%(refname)", "refs/heads/pawl", "refs/pawl-ledger")
}
