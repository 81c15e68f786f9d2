package start_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

func TestP0_RepositoryThatIsNotReady(t *testing.T) {
	for _, c := range world.Sample(3, []struct {
		name   string
		spoil  func(*world.World)
		says   []string
		advice string
	}{
		{"no such folder", func(w *world.World) { w.Set(doc{"repo": doc{"path": filepath.Join(w.Dir, "nowhere")}}) },
			[]string{"there is no folder", "nowhere"}, "give the path of a git repository as repo.path"},
		{"no repository", func(w *world.World) { require.NoError(w.T, os.RemoveAll(filepath.Join(w.Repo, ".git"))) },
			[]string{"is not in a git repository"}, "git init"},
		{"a bare repository", func(w *world.World) {
			w.Git("clone", "--quiet", "--bare", w.Repo, filepath.Join(w.Dir, "bare"))
			w.Set(doc{"repo": doc{"path": filepath.Join(w.Dir, "bare")}})
		}, []string{"is a bare repository"}, "a clone of it as repo.path"},
		{"no commit", func(w *world.World) { w.Git("update-ref", "-d", "HEAD") },
			[]string{"branch main has no commit yet"}, "commit what is there"},
		{"a detached HEAD", func(w *world.World) { w.Git("checkout", "--quiet", "--detach") },
			[]string{"HEAD is detached"}, "make a branch here (`git switch -c NAME`), or name the one to start from as repo.base"},
		{"a base that does not exist", func(w *world.World) { w.Set(doc{"repo": doc{"base": "develop"}}) },
			[]string{"there is no branch develop"}, "name an existing branch as repo.base"},
		{"a changed file", func(w *world.World) { w.Write("repo/work/n", "99\n") },
			[]string{"the working tree is not clean", "work/n"}, "commit or stash what is there (git stash -u)"},
		{"an untracked file", func(w *world.World) { w.Write("repo/new file", "") },
			[]string{"the working tree is not clean", `new file`}, "commit or stash what is there (git stash -u)"},
		{"a staged file", func(w *world.World) { w.Write("repo/work/n", "99\n"); w.Git("add", "work/n") },
			[]string{"the working tree is not clean", "work/n"}, "commit or stash what is there (git stash -u)"},
		{"a merge that is not finished", func(w *world.World) {
			w.Git("checkout", "--quiet", "-b", "other")
			w.Write("repo/work/n", "20\n")
			w.Git("commit", "--quiet", "-am", "other")
			w.Git("checkout", "--quiet", "main")
			w.Write("repo/work/n", "30\n")
			w.Git("commit", "--quiet", "-am", "ours")
			_, err := w.TryGit("merge", "--quiet", "other")
			require.Error(w.T, err)
		}, []string{"a merge is not finished", "work/n"}, "resolve and commit it, or abort it"},
		{"a stale lock", func(w *world.World) { w.Write("repo/loop-results.tsv.lock", "") },
			[]string{"loop-results.tsv.lock exists"}, "make sure that none runs, then remove it"},
		{"a scope that matches nothing", func(w *world.World) { w.Set(doc{"scope": []string{"source/**", "*.c"}}) },
			[]string{"the scope matches no file", "source/**, *.c"}, "globs are relative to the repository's root"},
		{"a scope that is sealed", func(w *world.World) {
			w.Set(doc{"scope": []string{"work/n"}, "guard": doc{"command": "test -e work/n"}})
		},
			[]string{"every file that the scope matches is sealed: work/n"}, "Sealed are"},
		{"an object that is not there", func(w *world.World) {
			blob := w.Git("rev-parse", "HEAD:measure.sh")
			require.NoError(w.T, os.Remove(filepath.Join(w.Repo, ".git", "objects", blob[:2], blob[2:])))
		}, []string{"git can't read", "possible repository corruption"}, "git fsck"},
		{"a configuration that git can't read", func(w *world.World) { w.Write("repo/.git/config", "[core\n") },
			[]string{"git can't read", "bad config line 1"}, "clone it anew"},
		{"a branch pawl in the way", func(w *world.World) { w.Git("branch", "pawl") },
			[]string{"the branch pawl is in the way"}, "git branch -m pawl"},
		{"a ref in the way of ledgers", func(w *world.World) { w.Git("update-ref", "refs/pawl-ledger", "HEAD") },
			[]string{"the ref refs/pawl-ledger is in the way of the loop's ledger"}, "git update-ref -d refs/pawl-ledger"},
		{"a branch below the loop's in the way", func(w *world.World) { w.Git("branch", "pawl/"+w.Loop+"/old") },
			[]string{"is in the way"}, "git branch -m pawl/"},
	}) {
		t.Run(c.name, func(t *testing.T) {
			w := world.New(t, world.Raises)
			c.spoil(w)
			w.Before = w.Snapshot()
			refs, _ := w.TryGit("for-each-ref")
			s := w.Pawl("run", "--yes", w.SpecFile())
			require.Equal(t, 2, s.Code, s.Err)
			for _, text := range append(c.says, c.advice, "(PRECONDITION_FAILED)") {
				require.Contains(t, s.Err, text)
			}
			require.Empty(t, s.Out)
			world.Plain(t, s.Err)
			after, _ := w.TryGit("for-each-ref")
			require.Equal(t, refs, after)
		})
	}
}

func TestP0_CommandThatIsNotReady(t *testing.T) {
	for _, c := range world.Sample(2, []struct {
		name string
		spec doc
		says []string
	}{
		{"verify prints no number", doc{"verify": doc{"command": "echo fine"}}, []string{"no number", `"fine"`}},
		{"verify prints nothing", doc{"verify": doc{"command": "true"}}, []string{"no number", "the output is empty"}},
		{"verify prints NaN", doc{"verify": doc{"command": "echo 3 NaN"}}, []string{"no number", `"NaN"`}},
		{"verify's pattern matches nothing", doc{"verify": doc{"command": "echo 3", "pattern": "score ([0-9]+)"}}, []string{"no number", "matches nothing"}},
		{"verify exits 1", doc{"verify": doc{"command": "echo 3; echo alas >&2; exit 1"}}, []string{"exit 1", "alas"}},
		{"verify does not exist", doc{"verify": doc{"command": "no-such-command"}}, []string{"verify.command needs no-such-command, which is not on the PATH"}},
		{"verify is killed", doc{"verify": doc{"command": "kill -9 $$"}}, []string{"was ended by"}},
		{"verify hangs", doc{"verify": doc{"command": "echo 3; exec tail -f /dev/null", "timeout": "300ms"}}, []string{"took too long"}},
		{"the guard fails", doc{"guard": doc{"command": "echo broken; exit 3"}}, []string{"the guard command fails", "exit 3", "broken"}},
		{"the guard hangs", doc{"guard": doc{"command": "exec tail -f /dev/null", "timeout": "300ms"}}, []string{"the guard command fails", "took too long"}},
		{"the check fails", doc{"check": doc{"command": "echo untidy; exit 4"}}, []string{"the check command fails", "exit 4", "untidy", "leave check.command out"}},
		{"setup fails", doc{"setup": doc{"command": "echo offline; exit 7"}}, []string{"the setup command fails", "exit 7", "offline"}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			w := world.New(t, world.Raises).Set(c.spec)
			s := w.Pawl("run", "--yes", w.SpecFile())
			require.Equal(t, 2, s.Code, s.Err)
			for _, text := range append(c.says, "(PRECONDITION_FAILED)", "on the unchanged code") {
				if (c.name == "setup fails" || c.name == "verify does not exist") && text == "on the unchanged code" {
					continue
				}
				require.Contains(t, s.Err, text)
			}
			world.Plain(t, s.Err)
			st := w.Show()
			require.Equal(t, "failed", st.Status)
			require.Equal(t, "PRECONDITION_FAILED", st.ErrorCode)
			require.Empty(t, w.Subjects())
		})
	}
}
