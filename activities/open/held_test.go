package open_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities"
	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// swap puts a git into the PATH that, once, before it runs a command with this word, renames the folder above a repository and
// puts a forged copy in its place. The forged copy names a program wherever a repository can; it would make canary. untouched
// checks that nothing was done to the copy.
func swap(t *testing.T, repo, word, canary string) (untouched func()) {
	t.Helper()
	above := filepath.Dir(repo)
	gittest.Forge(t, repo, canary)
	all := gittest.BytesOf
	if _, err := os.Stat(filepath.Join(repo, ".git")); err != nil { // it is bare
		all = gittest.Listing
	}
	was := all(t, repo)
	require.NoError(t, os.Rename(above, above+".forged"))
	require.NoError(t, os.Rename(above+".away", above))
	git, err := exec.LookPath("git")
	require.NoError(t, err)
	bin := t.TempDir()
	gittest.Write(t, filepath.Join(bin, "git"), `#!/bin/sh
case "$*" in
*`+word+`*) if mkdir '`+bin+`/done' 2>&-; then mv '`+above+`' '`+above+`.away' && mv '`+above+`.forged' '`+above+`' || exit 1; fi ;;
esac
exec '`+git+`' "$@"
`)
	require.NoError(t, os.Chmod(filepath.Join(bin, "git"), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return func() {
		require.DirExists(t, filepath.Join(bin, "done"), "the swap has happened")
		require.Equal(t, was, all(t, repo), "nothing is done to the copy")
	}
}

// TestE6_AStartAndAnAdoptionStayAtTheRepositoryThatTheyFound puts another repository in the place of the one that a loop starts
// from, or that a ledger is taken from, right after it was found. A loop does not start on it, and nothing of it is run, read
// or written.
func TestE6_AStartAndAnAdoptionStayAtTheRepositoryThatTheyFound(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("paths are not held here")
	}
	for _, c := range []struct{ by, word string }{{"path", "show-object-format"}, {"url", "ls-remote"}} {
		t.Run(c.by, func(t *testing.T) {
			repo := filepath.Join(t.TempDir(), "above", "repo")
			require.NoError(t, os.Mkdir(filepath.Dir(repo), 0o700))
			l := actest.BeginWith(t, spec.Deny, func(user string, doc map[string]any) {
				if c.by == "url" {
					gittest.Git(t, user, "clone", "-q", "--bare", user, repo)
					doc["repo"] = map[string]any{"url": "file://" + repo}
					return
				}
				require.NoError(t, os.Rename(user, repo))
				doc["repo"] = map[string]any{"path": repo}
			})
			canary := filepath.Join(t.TempDir(), "canary")

			t.Run("start", func(t *testing.T) {
				defer restored(t, repo)()
				untouched := swap(t, repo, c.word, canary)
				s := l.Spec
				s.Name = "y"
				_, err := l.Open(t.Context(), api.Open{Loop: "y", FirstRun: "second", Spec: s})
				require.True(t, wire.Is(err, fault.PreconditionFailed), "%v", err)
				require.ErrorContains(t, err, "is not the repository that the loop started with")
				untouched()
			})
			t.Run("adoption", func(t *testing.T) {
				defer restored(t, repo)()
				h := home.Home{Dir: filepath.Join(t.TempDir(), "home2")}
				require.NoError(t, os.Mkdir(h.Dir, 0o700))
				other := activities.New(h, "host2", "pawl", "default", false)
				t.Cleanup(other.Stop)
				untouched := swap(t, repo, "ls-remote", canary)
				o, err := other.Open(t.Context(), api.Open{Loop: "x", FirstRun: "second", Spec: l.Spec, Ledger: l.Ledger})
				require.NoError(t, err)
				untouched()
				record, err := hostrecord.Read(h, o.Ref)
				require.NoError(t, err)
				_, err = workspace.RepositoryOf(record)
				require.ErrorContains(t, err, "is not the repository that the loop started with")
			})
			require.NoFileExists(t, canary)
		})
	}
}

// restored puts the true repository back.
func restored(t *testing.T, repo string) func() {
	above := filepath.Dir(repo)
	return func() {
		if _, err := os.Stat(above + ".away"); err == nil {
			require.NoError(t, os.RemoveAll(above))
			require.NoError(t, os.Rename(above+".away", above))
		}
	}
}

// TestE6_AForgedRepositoryNeitherStopsALoopNorTakesInItsCommands: a file loop-stop counts, and commands of `notify` run, in the
// repository that the loop began with alone.
func TestE6_AForgedRepositoryNeitherStopsALoopNorTakesInItsCommands(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	ws, err := l.Workspace(t.Context(), l.Opened.Ref)
	require.NoError(t, err)
	tell := func() {
		require.NoError(t, l.Notify(t.Context(), api.Notify{Ref: l.Opened.Ref, To: "touch told"}))
	}
	tell()
	require.FileExists(t, l.User+"/told")
	gittest.Write(t, l.User+"/loop-stop", "")
	require.Contains(t, ws.LoopStop(), l.User+"/loop-stop")

	require.NoError(t, os.Rename(l.User, l.User+".away"))
	require.NoError(t, os.CopyFS(l.User, os.DirFS(l.User+".away")))
	require.NoError(t, os.Remove(l.User+"/told"))
	require.Empty(t, ws.LoopStop())
	tell()
	require.NoFileExists(t, l.User+"/told")
	gittest.Write(t, filepath.Join(l.Home.Loop(l.Opened.Ref), "loop-stop"), "")
	require.Contains(t, ws.LoopStop(), l.Home.Loop(l.Opened.Ref))
}
