package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestP0_RepositoryThatIsNotReady(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*world)
		says   []string
		advice string
	}{
		{"no such folder", func(w *world) { w.set(doc{"repo": doc{"path": filepath.Join(w.dir, "nowhere")}}) },
			[]string{"there is no folder", "nowhere"}, "give the path of a git repository as repo.path"},
		{"no repository", func(w *world) { require.NoError(w.t, os.RemoveAll(filepath.Join(w.repo, ".git"))) },
			[]string{"is not in a git repository"}, "git init"},
		{"a bare repository", func(w *world) {
			w.git("clone", "--quiet", "--bare", w.repo, filepath.Join(w.dir, "bare"))
			w.set(doc{"repo": doc{"path": filepath.Join(w.dir, "bare")}})
		}, []string{"is a bare repository"}, "a clone of it as repo.path"},
		{"no commit", func(w *world) { w.git("update-ref", "-d", "HEAD") },
			[]string{"branch main has no commit yet"}, "commit what is there"},
		{"a detached HEAD", func(w *world) { w.git("checkout", "--quiet", "--detach") },
			[]string{"HEAD is detached"}, "check out the branch to start from, or name it as repo.base"},
		{"a base that does not exist", func(w *world) { w.set(doc{"repo": doc{"base": "develop"}}) },
			[]string{"there is no branch develop"}, "name an existing branch as repo.base"},
		{"a changed file", func(w *world) { w.write("repo/work/n", "99\n") },
			[]string{"the working tree is not clean", "work/n"}, "commit or stash what is there (git stash -u)"},
		{"an untracked file", func(w *world) { w.write("repo/new file", "") },
			[]string{"the working tree is not clean", `new file`}, "commit or stash what is there (git stash -u)"},
		{"a staged file", func(w *world) { w.write("repo/work/n", "99\n"); w.git("add", "work/n") },
			[]string{"the working tree is not clean", "work/n"}, "commit or stash what is there (git stash -u)"},
		{"a merge that is not finished", func(w *world) {
			w.git("checkout", "--quiet", "-b", "other")
			w.write("repo/work/n", "20\n")
			w.git("commit", "--quiet", "-am", "other")
			w.git("checkout", "--quiet", "main")
			w.write("repo/work/n", "30\n")
			w.git("commit", "--quiet", "-am", "ours")
			_, err := w.tryGit("merge", "--quiet", "other")
			require.Error(w.t, err)
		}, []string{"a merge is not finished", "work/n"}, "resolve and commit it, or abort it"},
		{"a stale lock", func(w *world) { w.write("repo/loop-results.tsv.lock", "") },
			[]string{"loop-results.tsv.lock exists"}, "make sure that none runs, then remove it"},
		{"a scope that matches nothing", func(w *world) { w.set(doc{"scope": []string{"source/**", "*.c"}}) },
			[]string{"the scope matches no file", "source/**, *.c"}, "globs are relative to the repository's root"},
		{"a scope that is sealed", func(w *world) { w.set(doc{"scope": []string{"work/n"}, "guard": doc{"command": "test -e work/n"}}) },
			[]string{"every file that the scope matches is sealed: work/n"}, "may not change"},
		{"an object that is not there", func(w *world) {
			blob := w.git("rev-parse", "HEAD:measure.sh")
			require.NoError(w.t, os.Remove(filepath.Join(w.repo, ".git", "objects", blob[:2], blob[2:])))
		}, []string{"git can't read", "possible repository corruption"}, "git fsck"},
		{"a configuration that git can't read", func(w *world) { w.write("repo/.git/config", "[core\n") },
			[]string{"git can't read", "bad config line 1"}, "clone it anew"},
		{"a branch pawl in the way", func(w *world) { w.git("branch", "pawl") },
			[]string{"the branch pawl is in the way"}, "git branch -m pawl"},
		{"a ref in the way of ledgers", func(w *world) { w.git("update-ref", "refs/pawl-ledger", "HEAD") },
			[]string{"the ref refs/pawl-ledger is in the way of the loop's ledger"}, "git update-ref -d refs/pawl-ledger"},
		{"a branch below the loop's in the way", func(w *world) { w.git("branch", "pawl/"+w.loop+"/old") },
			[]string{"is in the way"}, "git branch -m pawl/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, raises)
			c.spoil(w)
			w.before = w.snapshot()
			refs, _ := w.tryGit("for-each-ref")
			s := w.pawl("run", "--yes", w.specFile())
			require.Equal(t, 2, s.code, s.err)
			for _, text := range append(c.says, c.advice, "(PRECONDITION_FAILED)") {
				require.Contains(t, s.err, text)
			}
			require.Empty(t, s.out)
			plain(t, s.err)
			after, _ := w.tryGit("for-each-ref")
			require.Equal(t, refs, after)
		})
	}
}

func TestP0_CommandThatIsNotReady(t *testing.T) {
	for _, c := range []struct {
		name string
		spec doc
		says []string
	}{
		{"verify prints no number", doc{"verify": doc{"command": "echo fine"}}, []string{"no number", `"fine"`}},
		{"verify prints nothing", doc{"verify": doc{"command": "true"}}, []string{"no number", "the output is empty"}},
		{"verify prints NaN", doc{"verify": doc{"command": "echo 3 NaN"}}, []string{"no number", `"NaN"`}},
		{"verify's pattern matches nothing", doc{"verify": doc{"command": "echo 3", "pattern": "score ([0-9]+)"}}, []string{"no number", "matches nothing"}},
		{"verify exits 1", doc{"verify": doc{"command": "echo 3; echo alas >&2; exit 1"}}, []string{"exit 1", "alas"}},
		{"verify does not exist", doc{"verify": doc{"command": "no-such-command"}}, []string{"exit 127", "not found"}},
		{"verify is killed", doc{"verify": doc{"command": "kill -9 $$"}}, []string{"was ended by"}},
		{"verify hangs", doc{"verify": doc{"command": "echo 3; exec tail -f /dev/null", "timeout": "300ms"}}, []string{"took longer than it may"}},
		{"the guard fails", doc{"guard": doc{"command": "echo broken; exit 3"}}, []string{"the guard command fails", "exit 3", "broken"}},
		{"the guard hangs", doc{"guard": doc{"command": "exec tail -f /dev/null", "timeout": "300ms"}}, []string{"the guard command fails", "took longer than it may"}},
		{"setup fails", doc{"setup": doc{"command": "echo offline; exit 7"}}, []string{"the setup command fails", "exit 7", "offline"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, raises).set(c.spec)
			s := w.pawl("run", "--yes", w.specFile())
			require.Equal(t, 2, s.code, s.err)
			for _, text := range append(c.says, "(PRECONDITION_FAILED)", "on the unchanged code") {
				if c.name == "setup fails" && text == "on the unchanged code" {
					continue
				}
				require.Contains(t, s.err, text)
			}
			plain(t, s.err)
			st := w.show()
			require.Equal(t, "failed", st.Status)
			require.Equal(t, "PRECONDITION_FAILED", st.ErrorCode)
			require.Empty(t, w.subjects())
		})
	}
}

// plain asserts that a message for people has neither a stack nor a type of Go in it.
func plain(t *testing.T, text string) {
	t.Helper()
	for _, bad := range []string{"goroutine ", ".go:", "*fault", "*repo.", "%!", "<nil>", "context canceled", "type:", "panic", "strconv"} {
		assert.NotContains(t, text, bad)
	}
}

func TestP5_SeveralNumbersAreAWarningAndTheLastCounts(t *testing.T) {
	w := newWorld(t, raises).set(doc{"verify": doc{"command": "echo 3 of 99; cat work/n"}})
	s := w.pawl("run", "--yes", w.specFile())
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, s.err, "3 numbers in the output, the last one, 10, was taken")
	require.Contains(t, s.err, "METRIC <name>=<number>")
	require.Equal(t, "11", w.lastRow().metric)
}

func TestP5_VerifyThatFailsLater(t *testing.T) {
	deeds := []deed{
		{"fail", `echo crash >work/n`, "error:verify-crash"},
		{"say nothing", `echo none >work/n`, "error:no-number"},
		{"raise the number", ``, ""},
		{"say what is no number", `echo 12 NaN >work/n`, "error:no-number"},
	}
	w := newWorld(t, "").does(deeds...).set(doc{"verify": doc{"command": "! grep crash work/n && sed s/none// work/n"}})
	r := w.run(0)
	require.Equal(t, 3, r.Result.Discarded)
	w.come(deeds...)
	require.Equal(t, "11", w.kept("work/n"))
	require.Len(t, w.subjects(), 7, "four changes, three reverts")
}

func TestP5_VerifyThatHangsLaterEndsTheLoop(t *testing.T) {
	w := newWorld(t, raises).set(doc{
		"verify": doc{"command": "! grep 11 work/n || { tail -f /dev/null; }; cat work/n", "timeout": "1s"}, "limits": doc{"iterations": 5},
	})
	s := w.pawl("run", "--yes", w.specFile())
	require.Equal(t, 3, s.code, s.err)
	require.Contains(t, s.out, "ALO_PHASE_TIMEOUT")
	require.Contains(t, s.out, "verify took longer than 1s")
	require.Contains(t, s.out, "verify.timeout")
	w.nothingRuns()
	require.Equal(t, row{"1", "10", "+0.00", "no", "error:timeout: raise the number"}, w.lastRow())
	require.Equal(t, "10", w.kept("work/n"))
	st := w.show()
	require.Equal(t, []string{"failed", "timeout", "ALO_PHASE_TIMEOUT"}, []string{st.Status, st.ExitStatus, st.ErrorCode})
}

// A command that prints no number is asked about and not punished twice.
func TestP5_NoNumberTwiceInARowIsAQuestion(t *testing.T) {
	w := newWorld(t, `echo "$PAWL_ITERATION" >>work/other; echo "change something"`).
		set(doc{"verify": doc{"command": "test $(wc -l <work/other) -gt 1 || cat work/n"}, "limits": doc{"iterations": 5}})
	s := w.pawl("run", "--yes", w.specFile())
	require.Equal(t, 4, s.code, s.err)
	require.Contains(t, s.err, "verify printed no number twice in a row")
	st := w.show()
	require.Equal(t, "waiting", st.Status)
	require.Equal(t, "question", st.Gate.Kind)
	require.Equal(t, []string{"retry", "halt"}, st.Gate.Choices)
	require.Equal(t, 2, w.pawl("answer", w.loop, "perhaps").code)
	require.Equal(t, 0, w.pawl("answer", w.loop, "halt").code)
	require.Equal(t, "ALO_CANCELLED", w.waits("halted").ErrorCode)
}

func TestP8_LoopStopFile(t *testing.T) {
	t.Run("in the repository's root, before the start", func(t *testing.T) {
		w := newWorld(t, raises)
		w.write("repo/loop-stop", "")
		w.before = w.snapshot()
		r := w.run(5)
		require.Equal(t, "ALO_CANCELLED", r.Result.ErrorCode)
		require.Contains(t, r.Result.Reason, filepath.Join(w.repo, "loop-stop"))
	})
	for where, stop := range map[string]string{
		"in the repository's root": `touch "$WORLD/repo/loop-stop"`,
		"in the desk":              `touch loop-stop`,
	} {
		t.Run(where, func(t *testing.T) {
			w := newWorld(t, raises+`; [ "$PAWL_ITERATION" != 2 ] || `+stop).set(doc{"limits": doc{"iterations": 5}})
			s := w.pawl("run", "--yes", w.specFile())
			require.Equal(t, 5, s.code, s.err)
			require.Contains(t, s.out, "loop-stop asks the loop to stop")
			require.Contains(t, s.out, "ALO_CANCELLED")
			require.Contains(t, s.out, "Loop complete: 2 iterations, 2 kept, best metric: 12 (baseline: 10, delta: +2)")
			require.Len(t, w.results(w.loop), 3, "the iteration is finished first")
			require.NotContains(t, w.onBranch(), "loop-stop")
			os.Remove(filepath.Join(w.repo, "loop-stop"))
		})
	}
}

// The loop starts from where repo.path leads to, however that looks.
func TestRepositoryThatIsUnusual(t *testing.T) {
	t.Run("a folder in it", func(t *testing.T) {
		w := newWorld(t, raises)
		w.set(doc{"repo": doc{"path": filepath.Join(w.repo, "work")}}).run(0)
		require.Equal(t, "11", w.kept("work/n"))
	})
	t.Run("a linked worktree", func(t *testing.T) {
		w := newWorld(t, raises)
		tree := filepath.Join(w.dir, "tree")
		w.git("worktree", "add", "-q", "-b", "side", tree)
		w.before = w.snapshot()
		w.set(doc{"repo": doc{"path": tree}}).run(0)
		require.Equal(t, "11", w.kept("work/n"))
		require.Empty(t, w.git("-C", tree, "status", "--porcelain"))
	})
	t.Run("another branch than the one that is checked out", func(t *testing.T) {
		w := newWorld(t, raises)
		w.git("checkout", "--quiet", "-b", "other")
		w.write("repo/work/n", "20\n")
		w.commit("other")
		w.git("checkout", "--quiet", "main")
		w.write("repo/work/n", "dirty\n")
		w.before = w.snapshot()
		w.set(doc{"repo": doc{"base": "other"}}).run(0)
		require.Equal(t, "21", w.kept("work/n"))
	})
	t.Run("a link to it", func(t *testing.T) {
		w := newWorld(t, raises)
		link := filepath.Join(w.dir, "link")
		require.NoError(t, os.Symlink(w.repo, link))
		w.set(doc{"repo": doc{"path": link}}).run(0)
		require.Equal(t, "11", w.kept("work/n"))
	})
	t.Run("with hooks and programs of the user's own", func(t *testing.T) {
		w := newWorld(t, raises)
		for _, hook := range []string{"post-checkout", "pre-push", "post-index-change", "fsmonitor-watchman", "post-commit"} {
			w.write("repo/.git/hooks/"+hook, "#!/bin/sh\ntouch '"+w.dir+"/canary'\n")
			require.NoError(t, os.Chmod(filepath.Join(w.repo, ".git", "hooks", hook), 0o755))
		}
		w.write("bin/canary", "#!/bin/sh\ntouch '"+w.dir+"/canary'\nexec cat\n")
		require.NoError(t, os.Chmod(filepath.Join(w.dir, "bin", "canary"), 0o755))
		w.git("config", "core.fsmonitor", filepath.Join(w.dir, "bin", "canary"))
		w.git("config", "diff.external", filepath.Join(w.dir, "bin", "canary"))
		w.before = w.snapshot()
		w.run(0)
		require.False(t, w.exists("canary"))
		require.Equal(t, "11", w.kept("work/n"))
	})
	t.Run("a shallow clone", func(t *testing.T) {
		w := newWorld(t, raises)
		w.write("repo/README.md", "a higher hill\n")
		w.commit("more")
		shallow := filepath.Join(w.dir, "shallow")
		w.git("clone", "--quiet", "--depth", "1", "file://"+w.repo, shallow)
		w.repo = shallow
		w.before = w.snapshot()
		w.set(doc{"repo": doc{"path": shallow}}).run(0)
		require.Equal(t, "11", w.kept("work/n"))
	})
	t.Run("a submodule that is not checked out", func(t *testing.T) {
		w := newWorld(t, raises)
		w.git("clone", "--quiet", w.repo, filepath.Join(w.dir, "lib"))
		w.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", filepath.Join(w.dir, "lib"), "lib")
		w.commit("submodule")
		w.run(0)
		require.Equal(t, "11", w.kept("work/n"))
		require.Contains(t, w.onBranch(), "lib")
	})
}

// Verify's output may be long and come in any form.
func TestP5_NumberAtTheEndOfMuch(t *testing.T) {
	w := newWorld(t, raises).set(doc{"verify": doc{"command": `yes 12345 | head -c 60000000; printf '\377\033[31m\n'; printf 'METRIC height=%s\n' "$(cat work/n)"`}})
	w.run(0)
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, w.lastRow())
}
