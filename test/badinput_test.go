package test

import (
	"os"
	"path/filepath"
	"strings"
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
		{"a branch pawl in the way", func(w *world) { w.git("branch", "pawl") },
			[]string{"the branch pawl is in the way"}, "git branch -m pawl"},
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
	for _, bad := range []string{"goroutine ", ".go:", "*fault", "*repo.", "%!", "<nil>", "context canceled", "type:", "panic"} {
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

func TestAgentThatDoesNotExistFailsTheLoopAfterThree(t *testing.T) {
	for _, c := range []struct {
		name    string
		command any
		says    string
	}{
		{"as a program", []string{"/no/such/agent"}, "can't be started"},
		{"for the shell", "no-such-agent --quiet", "exit 127"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "").set(doc{"agent": doc{"command": c.command}, "limits": doc{"iterations": 5}})
			s := w.pawl("run", "--yes", w.specFile())
			require.Equal(t, 3, s.code, s.err)
			require.Contains(t, s.out, "ALO_AGENT_FAILED")
			require.Contains(t, s.out, "agent.command")
			require.Contains(t, s.err, c.says)
			rows := w.results(w.loop)
			require.Len(t, rows, 4)
			for _, r := range rows[1:] {
				require.True(t, strings.HasPrefix(r.description, "error:agent: "), r.description)
			}
			require.Empty(t, w.subjects())
		})
	}
}

func TestAgentThatWrites100MB(t *testing.T) {
	w := newWorld(t, `echo "raise the number"; yes 0123456789012345678901234567890123456789 | head -c 104857600; echo 11 >work/n`)
	w.run(0)
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, w.lastRow())
	require.Less(t, len(w.stepLog("0001.1-modify", "stdout")), 32<<20, "what is kept of it is bounded")
}

func TestAgentThatHangs(t *testing.T) {
	w := newWorld(t, `echo 11 >work/n; trap "" INT TERM; echo "hang"; tail -f /dev/null & wait; wait`).
		set(doc{"limits": doc{"phaseTimeout": "1s"}})
	w.run(0)
	w.nothingRuns()
	require.Equal(t, row{"1", "10", "+0.00", "no", "error:agent: hang"}, w.lastRow())
	require.Empty(t, w.subjects())
}

// What an agent leaves in the background ends with its step, also where it hides.
func TestAgentThatDaemonises(t *testing.T) {
	w := newWorld(t, `echo 11 >work/n; echo "raise the number"
		nohup tail -f "$WORLD/one" >/dev/null 2>&1 &
		(setsid tail -f "$WORLD/two" >/dev/null 2>&1 &)
		env -i "$(command -v setsid)" "$(command -v sh)" -c "trap '' HUP INT TERM; while :; do tail -f $WORLD/three; done" >/dev/null 2>&1 &
		while ! [ -e "$WORLD/seen" ]; do :; done`).
		set(doc{"verify": doc{"command": "! pgrep -f $PWD >/dev/null; cat work/n"}})
	for _, name := range []string{"one", "two", "three"} {
		w.write(name, "")
	}
	c := w.start("run", "--json", "--yes", w.specFile())
	w.until("all of them run", func() bool {
		return len(survivors(filepath.Join(w.dir, "one"))) > 0 && len(survivors(filepath.Join(w.dir, "two"))) > 0 && len(survivors(filepath.Join(w.dir, "three"))) > 0
	})
	w.write("seen", "")
	require.Equal(t, 0, c.wait().code)
	require.Equal(t, "yes", w.lastRow().kept)
	w.nothingRuns()
}

func TestAgentThatChangesNothing(t *testing.T) {
	w := newWorld(t, `echo "think about it"`)
	w.run(0)
	require.Equal(t, row{"1", "10", "+0.00", "no", "no-change: think about it"}, w.lastRow())
	require.Empty(t, w.subjects())
}

func TestAgentThatDeletesItsTree(t *testing.T) {
	deeds := []deed{
		{"remove the files", `rm -rf ./* ./.git`, "policy:scope"},
		{"raise the number", ``, ""},
		{"remove the desk", `rm -rf "$PWD"`, "policy:fileType"},
		{"raise it again", ``, ""},
		{"make the desk a link", `d=$PWD; cd /; rm -rf "$d"; ln -s "$WORLD/repo" "$d"`, "policy:fileType"},
		{"make the desk a file", `d=$PWD; cd /; rm -rf "$d"; echo 11 >"$d"`, "policy:fileType"},
		{"move the desk away", `d=$PWD; cd /; mv "$d" "$WORLD/desk"; mkdir "$d"; cp -r "$WORLD/desk/." "$d"`, "policy:fileType"},
		{"raise it in the end", ``, ""},
	}
	// In a sandbox the desk is a mount point: it can be emptied, and neither moved nor made a link.
	w := newWorld(t, "").does(deeds...).set(doc{"verify": doc{"command": "cat work/n"}, "sandbox": doc{"use": "off"}})
	w.run(0)
	w.come(deeds...)
}

func TestTwoLoopsOfOneName(t *testing.T) {
	w := newWorld(t, `while ! [ -e "$WORLD/go" ]; do :; done; `+raises)
	first := w.start("run", "--json", "--yes", w.specFile())
	w.waits("running")
	s := w.pawl("run", "--json", "--yes", w.specFile())
	require.Equal(t, 2, s.code, s.err)
	require.Contains(t, s.err, "ALO_LOOP_ALREADY_RUNNING")
	require.Contains(t, s.err, "pawl halt "+w.loop)
	w.write("go", "")
	require.Equal(t, 0, first.wait().code)

	r := w.run(0)
	require.Equal(t, "pawl/"+w.loop+".2", r.Result.Branch)
	require.Equal(t, 0, w.pawl("run", "--yes", w.specFile()).code)
	require.Equal(t, []string{
		"refs/heads/pawl/" + w.loop, "refs/heads/pawl/" + w.loop + ".2", "refs/heads/pawl/" + w.loop + ".3",
		"refs/pawl-ledger/" + w.loop, "refs/pawl-ledger/" + w.loop + ".2", "refs/pawl-ledger/" + w.loop + ".3",
	}, strings.Fields(w.pawlRefs()))
	require.Equal(t, w.results(w.loop), w.results(w.loop+".3"))
}

// odd are names that a repository may well have.
var odd = []string{"a b", " lead", `q"uote`, "it's", "new\nline", "tab\there", "-dash", "\xff\xfe latin \xe9", "ünïcode", `back\slash`, "$(touch canary)", "*", "[a]", "a:b"}

func TestOddFileNamesAreKept(t *testing.T) {
	w := newWorld(t, "")
	for _, name := range odd {
		w.write("repo/work/"+name, "old\n")
	}
	w.commit("odd names")
	w.script(`for f in work/* work/" lead"; do echo new >>"$f"; done
		mkdir "work/d
ir"; cp work/n "work/d
ir/$(printf '\377')"
		echo 11 >work/n; echo "touch all"`)
	w.set(doc{"newFiles": "allow"})
	w.run(0)
	require.Equal(t, "yes", w.lastRow().kept)
	names := w.onBranch()
	require.Contains(t, names, "work/d\nir/\xff")
	for _, name := range odd {
		require.Contains(t, names, "work/"+name)
		require.Contains(t, w.kept("work/"+name), "old\nnew", "%q", name)
	}
	require.Contains(t, w.show().ChangedFiles, `"work/\377\376 latin \351"`, "names are git-quoted")
	require.Contains(t, w.show().ChangedFiles, `"work/new\nline"`)
}

func TestChangeThatGitCannotOrMustNotTake(t *testing.T) {
	deeds := []deed{
		{"nest a repository", `git init -q work/nested; touch work/nested/file`, "policy:fileType"},
		{"nest a repository with a commit", `git init -q work/nested; cd work/nested; g commit -q --allow-empty -m x`, "policy:fileType"},
		{"make a FIFO", `mkfifo work/pipe`, "policy:fileType"},
		{"make a file a FIFO", `rm work/n; mkfifo work/n`, "policy:fileType"},
		{"raise the number", ``, ""},
		{"link out of the tree", `ln -s /etc/passwd work/link`, "policy:symlink"},
		{"link up out of the tree", `ln -s ../../../repo/README.md work/link`, "policy:symlink"},
		{"make a file a link", `ln -sf "$WORLD/repo/work/n" work/n`, "policy:symlink"},
		{"raise it again", ``, ""},
	}
	w := newWorld(t, "").does(deeds...).set(doc{"newFiles": "allow"})
	w.run(0)
	w.come(deeds...)
	require.Equal(t, []string{"README.md", "guard.sh", "measure.sh", "work/n", "work/other"}, w.onBranch())
}

// A link that stays in the tree is nothing special.
func TestLinkWithinTheTreeIsKept(t *testing.T) {
	w := newWorld(t, `echo 11 >work/m; ln -sf m work/n; echo "keep the number elsewhere"`).set(doc{"newFiles": "allow"})
	w.run(0)
	require.Equal(t, "m", w.kept("work/n"))
}

func TestP3_PolicyViolationsAreDiscardedUnrun(t *testing.T) {
	deeds := []deed{
		{"change a file outside of the scope", `echo x >>README.md`, "policy:scope"},
		{"add a file", `echo x >work/new`, "policy:newFiles"},
		{"move a file out of the scope", `git mv work/other other`, "policy:scope"},
		{"move a file into the scope", `git mv README.md work/README.md`, "policy:newFiles"},
		{"change a mode outside of the scope", `chmod +x README.md`, "policy:scope"},
		{"remove a file outside of the scope", `rm README.md`, "policy:scope"},
	}
	w := newWorld(t, "").does(deeds...)
	w.set(doc{"verify": doc{"command": "echo run >>" + filepath.Join(w.dir, "runs") + "; cat work/n"}})
	w.run(0)
	w.come(deeds...)
	require.Equal(t, "run\n", w.read("runs"), "verify ran for the baseline only")
	require.Empty(t, w.subjects())
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

func TestSpecFileThatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name, file, content string
		says                []string
	}{
		{"missing", "", "", []string{"there is no spec file", "INVALID_SPEC", "pawl run FILE"}},
		{"a folder", "repo", "", []string{"INVALID_SPEC"}},
		{"empty", "spec.yaml", "", []string{"INVALID_SPEC"}},
		{"not YAML", "spec.yaml", "goal: [climb\nscope: {", []string{"INVALID_SPEC", "spec.yaml"}},
		{"a list", "spec.yaml", "- goal\n- scope\n", []string{"INVALID_SPEC", "spec.yaml"}},
		{"not TOML", "spec.toml", "goal = climb", []string{"INVALID_SPEC", "spec.toml"}},
		{"not JSON", "spec.json", `{"goal": "climb",}`, []string{"INVALID_SPEC", "spec.json"}},
		{"binary", "spec.yaml", "\x00\xff\x7fELF", []string{"INVALID_SPEC"}},
		{"wrong in many ways at once", "spec.yaml", `
name: "-x"
goal: ""
scop: ["work/**"]
scope: ["/work/**"]
verify: {command: "", timeout: soon, direction: sideways, minDelta: -1}
limits: {iterations: 0, toolCalls: many, phaseTimeout: -1s}
agent: {use: magic}
approvals: {plan: maybe}
policies: {default: {maxFiles: none}}
breakpoints: [lunch]
repo: {path: /x, url: "https://example.com/x"}
`, []string{
			"INVALID_SPEC", "spec.yaml:2", "name", "goal", `scop`, "scope[0]", "verify.command", "verify.timeout", "verify.direction", "verify.minDelta",
			"limits.iterations", "limits.toolCalls", "limits.phaseTimeout", "agent.use", "approvals.plan", "approvals.tools", "policies.default.maxFiles", "breakpoints[0]", "repo: has both",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, raises)
			file := filepath.Join(w.dir, c.file)
			if c.content != "" || c.name == "empty" {
				w.write(c.file, c.content)
			} else if c.file == "" {
				file = filepath.Join(w.dir, "missing.yaml")
			}
			s := w.pawl("run", "--yes", file)
			require.Equal(t, 2, s.code, s.err)
			require.Empty(t, s.out)
			for _, text := range c.says {
				require.Contains(t, s.err, text)
			}
			plain(t, s.err)
			require.Empty(t, w.pawlRefs())
		})
	}
}

func TestWrongUsage(t *testing.T) {
	w := newWorld(t, raises)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"rnu"}, "rnu"},
		{[]string{"run", "--fast"}, "--fast"},
		{[]string{"run", "a", "b"}, ""},
		{[]string{"show"}, "pawl list"},
		{[]string{"approve", "x"}, "--hash"},
		{[]string{"steer", "x"}, ""},
		{[]string{"run", w.specFile(), "--set", "limits.iterations"}, "--set"},
		{[]string{"run", w.specFile(), "--set", "limits.iteration=5"}, "limits.iteration"},
		{[]string{"run", w.specFile(), "--id", "other"}, w.loop},
	} {
		s := w.pawl(c.args...)
		require.Equal(t, 2, s.code, "%v: %s", c.args, s.err)
		require.Contains(t, s.err, c.says)
		require.Empty(t, s.out)
		plain(t, s.err)
	}
}

// pawl.yaml in the repository itself is the usual case: repo.path is "." there.
func TestSpecInTheRepository(t *testing.T) {
	w := newWorld(t, raises)
	w.write("repo/pawl.yaml", `# comment
goal: climb
name: `+w.loop+`
scope: ["work/**"]
verify: {command: sh measure.sh}
guard: {command: sh guard.sh}
agent: {command: sh `+filepath.Join(w.dir, "agent.sh")+`}
limits: {iterations: 7}
approvals: {diff: auto, tools: ["*"]}
`)
	w.commit("spec")
	c := w.prepare("run", "--yes")
	c.cmd.Dir = filepath.Join(w.repo, "work")
	s := c.begin().wait()
	require.Equal(t, 2, s.code)
	require.Contains(t, s.err, "there is no spec file pawl.yaml")
	c = w.prepare("run", "--yes", "--set", "limits.iterations=2")
	c.cmd.Dir = w.repo
	s = c.begin().wait()
	require.Equal(t, 0, s.code, s.err)
	require.Contains(t, s.out, "Loop complete: 2 iterations, 2 kept, best metric: 12 (baseline: 10, delta: +2)")
	require.Equal(t, "12", w.kept("work/n"))
}

func TestAgentThatFails(t *testing.T) {
	w := newWorld(t, `echo 11 >work/n; case $PAWL_ITERATION in
		1) echo "raise the number"; exit 3;;
		2) exit 3;;
		3|6) git checkout -q work/n; echo "think";;
		4) kill -9 $$;;
		5) echo '{"giveUp": "too steep"}' >"$PAWL_RESULT";;
		7) echo '{"giveUp": true}' >"$PAWL_RESULT";;
		esac`).set(doc{"limits": doc{"iterations": 7}})
	s := w.pawl("run", "--yes", w.specFile())
	require.Equal(t, 0, s.code, s.err)
	var got []string
	for _, r := range w.results(w.loop)[1:] {
		require.Equal(t, []string{"10", "+0.00", "no"}, []string{r.metric, r.delta, r.kept})
		got = append(got, r.description)
	}
	require.Equal(t, []string{
		"error:agent: raise the number",
		"error:agent: the agent failed (exit 3)",
		"no-change: think",
		"error:agent: the agent failed (was ended by SIGKILL)",
		"error:agent: the agent gave up: too steep",
		"no-change: think",
		"error:agent: the agent gave up: no reason given",
	}, got)
	for _, text := range []string{"the agent failed (exit 3)", "SIGKILL", "too steep"} {
		require.Contains(t, s.err, text)
	}
	require.Empty(t, w.subjects())
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

// approvals.plan: auto is an approval that is given at the start.
func TestA1_ContractApprovedBySpec(t *testing.T) {
	w := newWorld(t, raises).set(doc{"approvals": doc{"plan": "auto"}})
	s := w.pawl("run", w.specFile())
	require.Equal(t, 0, s.code, s.err)
	require.Equal(t, "spec (approvals.plan: auto)", w.show().Contract.ApprovedBy)
}

// Verify's output may be long and come in any form.
func TestP5_NumberAtTheEndOfMuch(t *testing.T) {
	w := newWorld(t, raises).set(doc{"verify": doc{"command": `yes 12345 | head -c 60000000; printf '\377\033[31m\n'; printf 'METRIC height=%s\n' "$(cat work/n)"`}})
	w.run(0)
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, w.lastRow())
}

// What fails for a reason that is not the loop's is tried again until somebody mends it, who has
// to be told.
func TestMachineThatFailsIsToldAndTriedAgain(t *testing.T) {
	w := newWorldOfItsOwn(t, raises)
	t.Parallel()
	w.write("home/stores", "this is no folder\n")
	c := w.start("run", "--yes", w.specFile())
	w.until("it is told", func() bool { return strings.Contains(readFile(c.err), "Open fails and is tried again: ") })
	require.Contains(t, readFile(c.err), "stores")
	require.NoError(t, os.Remove(filepath.Join(w.home, "stores")))
	s := c.wait()
	require.Equal(t, 0, s.code, s.err)
	plain(t, s.err)
	require.Equal(t, "11", w.kept("work/n"))
}

func TestP0_NoGit(t *testing.T) {
	w := newWorldOfItsOwn(t, raises)
	t.Parallel()
	c := w.prepare("run", "--yes", w.specFile())
	c.cmd.Env = append(c.cmd.Env, "PATH=/nonexistent")
	s := c.begin().wait()
	require.Equal(t, 2, s.code, s.err)
	require.Contains(t, s.err, "finds no git on its PATH (PRECONDITION_FAILED)")
}

// A loop's ID can be nearly anything; what it is in git and on disk is safe.
func TestOddLoopIDs(t *testing.T) {
	w := newWorld(t, raises).set(doc{"verify": doc{"target": 10}})
	delete(w.spec, "name")
	file := w.specFile()
	for id, branch := range map[string]string{
		"../../" + w.loop: "-.--.-" + w.loop, w.loop + "/a.lock": w.loop + "-a-lock", w.loop + " ~^:?*[\\@{x}": "",
		w.loop + strings.Repeat("n", 190): w.loop + strings.Repeat("n", 190),
	} {
		s := w.pawl("run", "--json", "--yes", "--id", id, file)
		require.Equal(t, 0, s.code, "%s: %s", id, s.err)
		var r report
		decode(t, s.out, &r)
		require.Equal(t, id, r.Loop)
		if branch != "" {
			require.Equal(t, "pawl/"+branch, r.Result.Branch)
		}
		require.Equal(t, 0, w.pawl("show", id).code)
	}
	for _, id := range []string{"-x", "größe", "a\nb", strings.Repeat("n", 201)} {
		s := w.pawl("run", "--yes", "--id="+id, file)
		require.Equal(t, 2, s.code, s.err)
		require.Contains(t, s.err, "--id ")
		plain(t, s.err)
	}
}

// Without a name the loop is called after the repository's folder.
func TestLoopIsNamedAfterItsFolder(t *testing.T) {
	w := newWorld(t, raises).set(doc{"verify": doc{"target": 10}})
	old := w.repo
	w.repo = filepath.Join(w.dir, "größte Höhe")
	require.NoError(t, os.Rename(old, w.repo))
	w.set(doc{"repo": doc{"path": w.repo}})
	delete(w.spec, "name")
	require.Regexp(t, `^gr--te H-he-[0-9a-f]{4}$`, w.run(0).Loop)
}
