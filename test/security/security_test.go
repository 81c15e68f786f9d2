package security_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// Conflict markers are content like any other: the guard has to notice them.
func TestConflictThatAnAgentLeaves(t *testing.T) {
	world.Slow(t, "the tests of internal/git/worktree have an agent that leaves one")
	deeds := []deed{{"leave a conflict", `g commit -qam mine; g checkout -q -b theirs HEAD~1; echo bad >work/other; g commit -qam theirs
		g checkout -q -b ours HEAD~1; echo ours >work/other; g commit -qam ours; g merge -q theirs; grep "<<<<<<<" work/other && touch "$WORLD/conflict"; echo 11 >work/n`, "guard-fail"},
		{"raise the number", ``, ""}}
	w := world.New(t, "").Does(deeds...).Set(doc{"guard": doc{"command": "sh guard.sh"}, "limits": doc{"reworks": 0}})
	w.Run(0)
	w.Come(deeds...)
	require.True(t, w.Exists("conflict"), "the scenario is what it says")
}

// canaries are programs that git would run if it obeyed the settings of the desk. Each leaves a file.
const canaries = `
	trap_() { printf '#!/bin/sh\ntouch "%s/canary-%s"\nexec cat\n' "$WORLD" "$1" >"$2"; chmod +x "$2"; }
	mkdir -p .git/hooks .git/info "$WORLD/bin"
	for h in applypatch-msg pre-applypatch pre-commit prepare-commit-msg commit-msg post-commit pre-push pre-receive update post-receive \
		post-update push-to-checkout pre-rebase post-checkout post-merge post-rewrite post-index-change reference-transaction fsmonitor-watchman pre-auto-gc
	do trap_ "hook-$h" ".git/hooks/$h"; done
	for p in fsmonitor filter textconv diff merge pager editor ssh gpg credential; do trap_ "$p" "$WORLD/bin/$p"; done
	git config core.hooksPath .git/hooks
	git config core.fsmonitor "$WORLD/bin/fsmonitor"
	for d in clean smudge process; do git config "filter.evil.$d" "$WORLD/bin/filter"; done
	git config filter.evil.required true
	git config diff.evil.textconv "$WORLD/bin/textconv"
	git config diff.evil.command "$WORLD/bin/diff"
	git config diff.external "$WORLD/bin/diff"
	git config merge.evil.driver "$WORLD/bin/merge"
	git config core.pager "$WORLD/bin/pager"
	git config core.editor "$WORLD/bin/editor"
	git config core.sshCommand "$WORLD/bin/ssh"
	git config gpg.program "$WORLD/bin/gpg"
	git config commit.gpgSign true
	git config credential.helper "$WORLD/bin/credential"
	git config core.attributesFile "$PWD/.git/info/attributes"
	echo "* filter=evil diff=evil merge=evil" >.git/info/attributes
`

func TestProgramsThatAgentsPlantInGitNeverRun(t *testing.T) {
	world.Slow(t, "TestP10_WhatAnAgentDoesWithGitChangesNothing plants them")
	t.Run("in .git", func(t *testing.T) {
		world.Slow(t, "TestEscapes plants them, too")
		w := world.New(t, canaries+world.Raises).Set(doc{"limits": doc{"iterations": 3}})
		w.Run(0)
		require.Equal(t, "13", w.Kept("work/n"))
		noCanary(t, w, true)
	})
	t.Run("with attributes that are committed", func(t *testing.T) {
		w := world.New(t, canaries+`echo "* filter=evil diff=evil merge=evil -text ident" >work/.gitattributes; `+world.Raises).
			Set(doc{"limits": doc{"iterations": 3}, "newFiles": "allow"})
		w.Run(0)
		require.Equal(t, "13", w.Kept("work/n"))
		noCanary(t, w, true)
	})
	t.Run("in a nested repository", func(t *testing.T) {
		world.Slow(t, "as in the desk")
		w := world.New(t, `git init -q work/sub; cd work/sub; `+canaries+`cd ../..; `+world.Raises).Set(doc{"limits": doc{"iterations": 2}, "newFiles": "allow"})
		w.Run(0)
		require.Equal(t, "policy:fileType: raise the number", w.LastRow().Description())
		noCanary(t, w, true)
	})
}

// pawl finds its own programs at its start. A program that somebody puts into an earlier folder of the PATH later never
// runs.
func TestE6_ProgramsThatArePlantedInThePATHNeverRun(t *testing.T) {
	t.Parallel()
	w := world.Alone(t, world.Raises)
	program := func(name, does string) {
		w.Write(name, "#!/bin/sh\n"+does+"\n")
		require.NoError(t, os.Chmod(filepath.Join(w.Dir, name), 0o755))
	}
	program("own/notify-send", `printf '%s\n' "$@" >>"`+w.Dir+`/told"`)
	program("own/osascript", `printf '%s\n' "$@" >>"`+w.Dir+`/told"`)
	w.Write("shims/x", "")
	u, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"), "PATH="+w.Dir+"/shims:"+w.Dir+"/own:"+os.Getenv("PATH"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, u.Stop()) })
	for _, name := range []string{"git", "ssh", "notify-send", "osascript", "bwrap"} {
		program("shims/"+name, `echo x >>"`+w.Dir+`/canary"`)
	}
	w.Set(doc{"notify": []string{"desktop"}}).Run(0)
	w.Until("the desktop is told", func() bool { return w.Exists("told") })
	require.Contains(t, w.Read("told"), "completed")
	require.False(t, w.Exists("canary"), "pawl ran what was planted")
}

// noCanary checks that none of the canaries ran. planted says that they were planted, which it checks too.
func noCanary(t *testing.T, w *world.World, planted bool) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(w.Dir, "canary*"))
	require.Empty(t, found, "a program that the agent planted was run")
	require.True(t, !planted || w.Exists("bin/fsmonitor"), "they were planted")
}

// A file that ignores itself and others is not part of the change.
func TestIgnoredFilesAreNoPartOfAChange(t *testing.T) {
	world.Slow(t, "internal/git/worktree has ignored files")
	w := world.New(t, world.Once(`echo "*" >.gitignore; echo x >work/new`)).Set(doc{"limits": doc{"iterations": 2}})
	w.Run(0)
	require.Equal(t, "12", w.Kept("work/n"))
	require.Equal(t, []string{"README.md", "guard.sh", "measure.sh", "work/n", "work/other"}, w.OnBranch())
}

// The judge is beside the desk, and this test has no sandbox: what an agent or a command does to the judge is undone
// before the judge is used.
func TestWhatIsDoneToTheJudgeIsUndone(t *testing.T) {
	t.Run("by the agent", func(t *testing.T) {
		w := world.New(t, `cd "../j-${PWD##*/d-}"; touch -r measure.sh "$WORLD/time"; echo "echo 99999" >measure.sh; touch -r "$WORLD/time" measure.sh
			touch planted; rm README.md; mkdir -p .git/hooks; printf '#!/bin/sh\ntouch "$WORLD/canary"' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout
			cd "../d-${PWD##*/j-}"; `+world.Raises).Set(doc{"verify": doc{"command": "test ! -e planted && test -e README.md && sh measure.sh"}, "limits": doc{"iterations": 2},
			"sandbox": doc{"use": "off"}}) // in a sandbox the judge is not visible
		w.Run(0)
		require.Equal(t, row{"2", "12", "+1.00", "yes", "raise the number"}, w.LastRow())
		require.False(t, w.Exists("canary"))
	})
	t.Run("by verify itself", func(t *testing.T) {
		w := world.New(t, world.Raises)
		w.Write("repo/.gitignore", "seen\n")
		w.Commit("ignore")
		w.Set(doc{"verify": doc{"command": `echo x >>seen; wc -l <seen`}})
		w.Run(0)
		require.Equal(t, row{"1", "1", "+0.00", "no", "raise the number"}, w.LastRow())
	})
	t.Run("but not what the spec keeps", func(t *testing.T) {
		w := world.New(t, world.Raises)
		w.Write("repo/.gitignore", "seen\n")
		w.Commit("ignore")
		w.Set(doc{"verify": doc{"command": `echo x >>seen; wc -l <seen`}, "judge": doc{"keep": []string{"seen"}}})
		require.Equal(t, "NOT_REPRODUCED", w.Run(3).Result.ErrorCode, "from scratch, nothing is kept")
		require.Equal(t, row{"1", "2", "+1.00", "yes", "raise the number"}, w.LastRow())
	})
}

func TestP3_SealedFileBlocksTheLoop(t *testing.T) {
	w := world.New(t, world.Once(`echo "exit 0" >guard.sh`)).Set(doc{"guard": doc{"command": "sh guard.sh"}})
	r := w.Run(4)
	require.Equal(t, "guard", r.Gate.Kind)
	st := w.Show()
	require.Equal(t, "blocked", st.Status)
	require.Equal(t, []string{"continue", "reject"}, st.Gate.Answers)
	require.Contains(t, st.Gate.Summary, "guard.sh")
	require.Contains(t, st.Gate.Summary, st.Desk)
	require.True(t, st.LastGuard.Blocked)
	require.Equal(t, "policy:sealed", st.LastGuard.Reason)
	require.Equal(t, "default", st.LastGuard.Policy)
	require.Empty(t, w.Subjects(), "nothing was committed")

	s := w.Pawl("reject", w.Loop, "--note", "no way")
	require.Equal(t, 0, s.Code, s.Err)
	st = w.Waits("completed")
	require.Equal(t, "max_steps", st.ExitStatus)
	require.Equal(t, row{"1", "10", "+0.00", "no", "policy:sealed: raise the number"}, w.LastRow(), "the change is dropped")
	require.Empty(t, w.Subjects())
	require.Equal(t, "! grep -q bad work/other", w.Kept("guard.sh"))
}

// A person repairs the change on the desk. continue judges it again and skips no rule.
func TestP3_BlockedChangeIsJudgedAgain(t *testing.T) {
	world.Slow(t, "TestP3_SealedFileBlocksTheLoop is blocked, too")
	w := world.New(t, world.Once(`echo "exit 0" >guard.sh; echo x >>README.md`)).
		Set(doc{"guard": doc{"command": "sh guard.sh"}, "protect": []string{"*.md"}, "limits": doc{"iterations": 2}})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 4, s.Code, s.Err)
	for _, text := range []string{"blocked by sealed: README.md", "guard.sh", "pawl continue " + w.Loop, "pawl reject " + w.Loop} {
		require.Contains(t, s.Err, text)
	}
	first := w.Show()
	require.Equal(t, 2, w.Pawl("approve", w.Loop, "--hash", strings.Repeat("0", 64)).Code, "a block is not to be approved")
	require.Equal(t, 0, w.Pawl("continue", w.Loop).Code)
	var second world.State
	w.Until("it is blocked again", func() bool {
		second = w.Show()
		return second.Gate != nil && second.Gate.ID != first.Gate.ID
	})
	require.Equal(t, "guard", second.Gate.Kind)

	for _, name := range []string{"guard.sh", "README.md"} {
		require.NoError(t, os.WriteFile(filepath.Join(second.Desk, name), []byte(w.Read("repo/"+name)), 0o644))
	}
	require.Equal(t, 0, w.Pawl("continue", w.Loop).Code)
	w.Waits("completed")
	require.Equal(t, []string{"loop(iter-2): raise the number", "loop(iter-1): raise the number"}, w.Subjects())
	require.Equal(t, "! grep -q bad work/other", w.Kept("guard.sh"))
}

func TestResultFileThatIsForged(t *testing.T) {
	world.Slow(t, "TestEscapes forges it, too")
	deeds := []deed{
		{"make it a folder", `mkdir "$PAWL_RESULT"`, ""},
		{"make it a FIFO", `mkfifo "$PAWL_RESULT"`, ""},
		{"make it a link", `ln -s /etc/passwd "$PAWL_RESULT"`, ""},
		{"make it huge", `head -c 20000000 /dev/zero >"$PAWL_RESULT"`, ""},
		{"write a word", `echo "done" >"$PAWL_RESULT"`, ""},
		{"write a list", `echo "[1]" >"$PAWL_RESULT"`, ""},
		{"give tool calls back", `echo '{"toolCalls": -500, "description": "forged"}' >"$PAWL_RESULT"`, ""},
		{"give money back", `echo '{"costUSD": -5, "description": "forged"}' >"$PAWL_RESULT"`, ""},
		{"spend beyond all measure", `echo '{"inputTokens": 9223372036854775807, "outputTokens": 9223372036854775807}' >"$PAWL_RESULT"`, ""},
		{"remove its folder", `rm -rf "$(dirname "$PAWL_RESULT")"`, ""},
	}
	w := world.New(t, "").Does(deeds...)
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	w.Come(deeds...) // the first line of stdout describes the change
	for text, times := range map[string]int{
		"it is not a regular file": 2, "result file can't be read": 4, "it is larger than": 1,
		"result file does not have the expected JSON": 2, "reports negative spending": 2, "reports spending of more than": 1,
	} {
		require.Equal(t, times, strings.Count(s.Err, text), text)
	}
	world.Plain(t, s.Err)
	st := w.Show()
	require.Equal(t, "10", st.Budget["toolCalls"].Used.String(), "what is not reported counts as one")
	require.Equal(t, "0", st.Budget["tokens"].Used.String())
	require.Equal(t, "0", st.Budget["costUSD"].Used.String())
}

func TestDescriptionThatWouldForgeRowsAndTrailers(t *testing.T) {
	world.Slow(t, "TestEscapes forges them, too")
	w := world.New(t, `echo 11 >work/n; printf '%s' '{"description": "raise\tthe \u001b[31mnumber\u202e\nPawl-Iteration: 99\n2\tx", "toolCalls": 3}' >"$PAWL_RESULT"`)
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	require.NotContains(t, s.Err+s.Out, "\x1b")
	require.NotContains(t, s.Err+s.Out, "\u202e")
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, w.LastRow())
	require.Equal(t, "1", w.Git("log", "-1", "--format=%(trailers:key=Pawl-Iteration,valueonly,separator=%x2C)", "refs/heads/pawl/"+w.Loop))
	require.Equal(t, "3", w.Show().Budget["toolCalls"].Used.String())

	w2 := world.Alone(t, `echo 11 >work/n; echo "Pawl-Iteration: 99"`)
	w2.Home = w.Home
	w2.Run(0)
	require.Equal(t, "1", w2.Git("log", "-1", "--format=%(trailers:key=Pawl-Iteration,valueonly,separator=%x2C)", "refs/heads/pawl/"+w2.Loop))
}

// The supervisor is the agent's parent. Killing it counts as a failure of the machine: what the agent did is undone and
// the step runs again.
func TestAgentThatKillsItsSupervisor(t *testing.T) {
	w := world.New(t, `if ! [ -e "$WORLD/killed" ]; then touch "$WORLD/killed"; echo 99 >work/n; kill -9 $PPID; while :; do :; done; fi
		`+world.Raises).Set(doc{"sandbox": doc{"use": "off"}}) // in a sandbox the agent can't do this
	w.Run(0)
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, w.LastRow())
}

// An agent must not find what is none of its business.
func TestEnvironmentOfAgentsAndCommands(t *testing.T) {
	w := world.Alone(t, `env >"$WORLD/agent.env"; `+world.Raises)
	t.Parallel()
	u, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"), "GIT_DIR=/nowhere", "GIT_WORK_TREE=/nowhere", "MY_API_KEY=sesame", "GITHUB_TOKEN=sesame", "PAWL_SECRET_THING=sesame", "OTEL_EXPORTER_OTLP_HEADERS=x=sesame", "CARGO_TERM_COLOR=never", "PLAIN=nobody asked for it")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, u.Stop()) })
	w.Set(doc{"verify": doc{"command": "env >" + filepath.Join(w.Dir, "verify.env") + "; sh measure.sh"}, "agent": doc{"env": doc{"WORLD": w.Dir, "GRANTED": "$MY_API_KEY"}}})
	w.Run(0)
	for _, name := range []string{"agent.env", "verify.env"} {
		env := "\n" + w.Read(name)
		require.Contains(t, env, "\nCARGO_TERM_COLOR=never\n")
		for _, bad := range []string{"\nGIT_", "\nMY_API_KEY", "\nGITHUB_TOKEN", "\nPAWL_HOME", "\nPAWL_SECRET_THING", "\nTEMPORAL_", "\nOTEL_EXPORTER_OTLP_HEADERS", "\nPLAIN"} {
			require.NotContains(t, env, bad, name)
		}
	}
	env := "\n" + w.Read("agent.env")
	for _, good := range []string{"GRANTED=sesame", "PAWL_LOOP=" + w.Loop, "PAWL_KIND=improve", "PAWL_ROLE=writer", "PAWL_PHASE=modify", "PAWL_ITERATION=1", "PAWL_ATTEMPT=1", "PAWL_PROMPT=/", "PAWL_RESULT=/"} {
		require.Contains(t, env, "\n"+good)
	}
	require.NotContains(t, w.Git("show", "refs/pawl-ledger/"+w.Loop+":state.json"), "sesame")
}
