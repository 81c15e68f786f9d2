package preflight_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/activities/preflight"
	"pawl/activities/workspace"
	"pawl/internal/exec/sandbox"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// TestValidateUsesTheEnvironmentOfTheWorkerThatRuns: a loop gets its worker's environment. So the commands are tried
// in that, and a note lists the differences to this shell.
func TestValidateUsesTheEnvironmentOfTheWorkerThatRuns(t *testing.T) {
	l := actest.Begin(t, spec.Deny)
	bin := filepath.Join(t.TempDir(), "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "measure-it"), []byte("#!/bin/sh\necho 7\n"), 0o755))
	s := l.Spec
	s.Verify.Command = "measure-it"
	s.Sandbox.Allow = []string{bin}
	off := false
	s.Validation.Canary = &off
	missing := func(f preflight.Findings) (all []string) {
		for _, p := range f.Problems {
			if strings.Contains(p.What, "not on the PATH") {
				all = append(all, p.What)
			}
		}
		return all
	}
	try := func() preflight.Findings {
		t.Helper()
		f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
		require.NoError(t, err)
		return f
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", bin+":"+path)
	require.NoError(t, workspace.NoteEnvironment(l.Home))
	t.Setenv("PATH", path)
	require.Len(t, missing(try()), 1, "no worker runs: this shell's counts")

	lock, err := durable.TryLock(l.Home.WorkerLock())
	require.NoError(t, err)
	defer lock.Close()
	f := try()
	assert.Empty(t, missing(f))
	require.NotNil(t, f.Baseline)
	assert.Equal(t, "7", f.Baseline.String())
	require.NotEmpty(t, f.Notes)
	assert.Contains(t, f.Notes[0], "the worker on this host was started with another PATH than this shell has", "it explains what follows")
	assert.Contains(t, f.Notes[0], "restart `pawl up` here")
	if sandbox.Probe().Lacks(sandbox.Filtered, []int{1}) == "" {
		assert.Contains(t, f.Protections, "agent and commands may write "+bin, "what the spec grants is said with what holds")
	}
}

// TestValidateWarnsAsTheLoopWould warns about a holdout that the agent can read, before anything runs.
func TestValidateWarnsAsTheLoopWould(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	s := l.Spec
	off := false
	s.Validation.Canary = &off
	s.Verify.Holdout.Command = "sh work/b"
	f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
	require.NoError(t, err)
	assert.Contains(t, strings.Join(f.Notes, "\n"), "the agent can read these files, which hold or name the holdout: work/b")
}

// TestAGuardThatFailsSaysWhichTestsFail, and not the end of the output: with `go test -json` that is events of tests
// that pass.
func TestAGuardThatFailsSaysWhichTestsFail(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	event := func(action, test, output string) string {
		return fmt.Sprintf("{\"Action\":%q,\"Package\":\"x\",\"Test\":%q,\"Output\":%q}\n", action, test, output)
	}
	events := event("run", "TestHill", "") + event("output", "TestHill", "    hill_test.go:7: too steep\n") + event("fail", "TestHill", "")
	for i := range 30 {
		name := fmt.Sprint("TestFlat", i)
		events += event("run", name, "") + event("pass", name, "")
	}
	gittest.Write(t, l.User+"/events", events)
	gittest.Git(t, l.User, "add", "-f", ".")
	gittest.Git(t, l.User, "commit", "-qm", "events")
	s := l.Spec
	s.Verify.Command, s.Guard.Command = "echo 1", "cat events; exit 1"
	f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
	require.NoError(t, err)
	require.Len(t, f.Problems, 1, "%v", f.Problems)
	require.Contains(t, f.Problems[0].What, "1 failed, 30 passed")
	require.Contains(t, f.Problems[0].What, "hill_test.go:7: too steep")
	require.NotContains(t, f.Problems[0].What, `"Action"`)
	s.Test.Report = []string{"*.xml"}
	s.Guard.Command = `echo '<testsuite tests="1" failures="1"><testcase name="climbs"><failure>far too steep</failure></testcase></testsuite>' >r.xml; exit 1`
	f, err = preflight.DryRun(t.Context(), l.Home, "reported", s, func(string) {})
	require.NoError(t, err)
	require.Len(t, f.Problems, 1, "%v", f.Problems)
	require.Contains(t, f.Problems[0].What, "1 failed")
	s.Guard.Command = `echo "too steep: $PWD/work/a:7"; exit 1`
	f, err = preflight.DryRun(t.Context(), l.Home, "placed", s, func(string) {})
	require.NoError(t, err)
	require.Contains(t, f.Problems[0].What, "too steep: work/a:7", "the clone is gone when somebody reads this")
}

// TestWhatTargetsAndScriptsCallIsLookedFor checks programs that make and npm call, on the PATH and among the
// repository's own programs.
func TestWhatTargetsAndScriptsCallIsLookedFor(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	gittest.Write(t, l.User+"/Makefile", "lint:\n\tno-such-tidy work/a\n")
	gittest.Write(t, l.User+"/package.json", `{"scripts": {"test": "own-runner && no-such-runner"}}`)
	gittest.Write(t, l.User+"/node_modules/.bin/own-runner", "#!/bin/sh\n")
	gittest.Git(t, l.User, "add", "-f", ".")
	gittest.Git(t, l.User, "commit", "-qm", "tools")
	s := l.Spec
	s.Verify.Command, s.Guard.Command = "make lint", "npm test"
	missing := func() (notes []string) {
		f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
		require.NoError(t, err)
		for _, p := range f.Problems {
			if p.Check != "setup" {
				notes = append(notes, "problem: "+p.What)
			}
		}
		return append(notes, slices.DeleteFunc(f.Notes, func(note string) bool { return !strings.Contains(note, "which does not exist") })...)
	}
	require.Equal(t, []string{"problem: verify.command (`make lint`) calls no-such-tidy, which does not exist", "guard.command (`npm test`) calls no-such-runner, which does not exist"}, missing())
	s.Setup.Command = "exit 1"
	require.Empty(t, missing(), "setup may bring them")
}

// TestReadyLooksForProgramsWhereTheLoopHasThem: a program on the PATH here may be a link to a folder that the sandbox
// hides.
func TestReadyLooksForProgramsWhereTheLoopHasThem(t *testing.T) {
	if sandbox.Probe().Lacks(sandbox.Filtered, []int{1}) != "" {
		t.Skip("this machine lacks a sandbox")
	}
	l := actest.Begin(t, spec.Deny)
	dir := t.TempDir() // below /tmp, which is empty in the sandbox
	bin, hidden := filepath.Join(dir, "own"), filepath.Join(dir, "hidden")
	for _, name := range []string{"measure-it", "guard-it", "tidy-it", "agent-it"} {
		gittest.Write(t, filepath.Join(hidden, name), "#!/bin/sh\necho 7\n")
		require.NoError(t, os.Chmod(filepath.Join(hidden, name), 0o755))
		require.NoError(t, os.MkdirAll(bin, 0o755))
		require.NoError(t, os.Symlink(filepath.Join(hidden, name), filepath.Join(bin, name)))
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", "/nothing-there:"+bin+":"+path)
	gittest.Write(t, l.User+"/Makefile", "lint:\n\ttidy-it work/a\n")
	gittest.Git(t, l.User, "add", "-f", ".")
	gittest.Git(t, l.User, "commit", "-qm", "tools")
	s := l.Spec
	off := false
	s.Validation.Canary = &off
	s.Verify.Command, s.Guard.Command, s.Check.Command = "measure-it", "guard-it && true", "make lint"
	s.Agent.Use, s.Agent.Command = spec.UseCommand, spec.Argv{List: []string{"agent-it", "--fast"}}
	try := func() (all []string) {
		t.Helper()
		f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
		require.NoError(t, err)
		for _, p := range f.Problems {
			all = append(all, p.Check+": "+p.What)
		}
		for _, note := range f.Notes {
			if strings.Contains(note, "tidy-it") {
				all = append(all, "note: "+note)
			}
		}
		return all
	}
	at := func(name string) string {
		return filepath.Join(bin, name) + " on this machine and is not in the loop's sandbox"
	}
	said := try()
	require.Subset(t, said, []string{
		"verify: verify.command needs measure-it, which is " + at("measure-it") + ": `measure-it`",
		"guard: guard.command needs guard-it, which is " + at("guard-it") + ": `guard-it && true`",
		"agent: the agent's program agent-it is " + at("agent-it"),
	}, "%q", said)
	require.Len(t, slices.DeleteFunc(slices.Clone(said), func(one string) bool {
		return !strings.Contains(one, "measure-it") && !strings.Contains(one, "guard-it")
	}), 2, "each once: a command that lacks its program is not tried as well: %q", said)
	require.Contains(t, strings.Join(said, "\n"), "note: check.command (`make lint`) calls tidy-it, which is "+at("tidy-it"))
	s.Sandbox.Allow = []string{hidden}
	require.Empty(t, try())
}

// TestE6_AnAgentsVersionIsAskedForInItsSandbox: validate starts the agent's program in the loop's sandbox, where it
// finds only what it would find in a loop.
func TestE6_AnAgentsVersionIsAskedForInItsSandbox(t *testing.T) {
	if sandbox.Probe().Lacks(sandbox.Filtered, []int{1}) != "" {
		t.Skip("this machine lacks a sandbox")
	}
	l := actest.Begin(t, spec.Deny)
	bin, outside := filepath.Join(t.TempDir(), "bin"), filepath.Join(t.TempDir(), "said")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "codex"), []byte("#!/bin/sh\necho x >'"+outside+"' || ls '"+l.Home.Dir+"/loops' || echo it is kept in >&2\nexit 9\n"), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s := l.Spec
	s.Agent.Use, s.Agent.Command = "codex", spec.Argv{}
	off := false
	s.Validation.Canary = &off
	f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
	require.NoError(t, err)
	var said []string
	for _, p := range f.Problems {
		if p.Check == "agent" {
			said = append(said, p.What)
		}
	}
	require.Equal(t, []string{"the agent's program can't be started: `" + bin + "/codex --version` fails (exit 9): it is kept in"}, said)
	require.NoFileExists(t, outside)
}

// TestE6_ValidateKnowsThePersonsOwnHome, although its loop has a home of its own inside: nothing opens it to a command,
// and the prices in it count.
func TestE6_ValidateKnowsThePersonsOwnHome(t *testing.T) {
	l := actest.Begin(t, spec.Deny)
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "codex"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("CODEX_API_KEY", "a-key")
	s, off := l.Spec, false
	s.Validation.Canary = &off
	s.Agent.Use, s.Agent.Command, s.Agent.Model = "codex", spec.Argv{}, "of-our-own"
	cost := metric.MustDecimal("1")
	s.Limits.CostUSD = &cost
	s.Sandbox.Allow = []string{l.Home.Dir}
	try := func() (priced string, f preflight.Findings) {
		f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
		require.NoError(t, err)
		for _, p := range f.Problems {
			if p.Check == "limits.costUSD" {
				priced += p.What + " " + p.Do
			}
		}
		return priced, f
	}
	prices := filepath.Join(l.Home.Dir, "prices.json")
	priced, f := try()
	require.Contains(t, priced, " to "+prices+",")
	require.NoError(t, os.WriteFile(prices, []byte(`[{"model": "of-our-own", "input": 1, "output": 2}]`), 0o600))
	priced, _ = try()
	require.Empty(t, priced)
	if sandbox.Probe().Files != sandbox.ByNothing {
		require.Contains(t, f.Protections, "agent and commands do not reach "+l.Home.Dir+", although sandbox.allow names it")
	}
}

// TestACheckThatRewritesFilesIsNoted, because what the check changes becomes part of each change.
func TestACheckThatRewritesFilesIsNoted(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	for command, want := range map[string]string{
		"echo x >>work/a; touch left": "the check command rewrites files of the unchanged code (work/a). ",
		"touch left; test -f work/a":  "",
	} {
		s := l.Spec
		off := false
		s.Validation.Canary = &off
		s.Check.Command = command
		f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
		require.NoError(t, err)
		notes := strings.Join(f.Notes, "\n")
		require.Equal(t, want != "", strings.Contains(notes, "rewrites files"), notes)
		require.Contains(t, notes, want)
	}
}

// TestValidateTriesPathsThatAreAsLongAsTheLoops, because programs bind sockets below their folder.
func TestValidateTriesPathsThatAreAsLongAsTheLoops(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	off := false
	s := l.Spec
	s.Validation.Canary = &off
	s.Verify.Command = `printf %s "$PWD" | wc -c`
	f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
	require.NoError(t, err)
	require.NotNil(t, f.Baseline)
	require.Equal(t, strconv.Itoa(len(l.Opened.Desk)), f.Baseline.String())
}

// TestP0_ACommandThatChangesTheCodeItJudgesIsRefused, and only one that does.
func TestP0_ACommandThatChangesTheCodeItJudgesIsRefused(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	off := false
	try := func(verify, guard string) []preflight.Problem {
		t.Helper()
		s := l.Spec
		s.Validation.Canary = &off
		s.Verify.Command, s.Guard.Command = verify, guard
		f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
		require.NoError(t, err)
		return f.Problems
	}
	require.Empty(t, try("echo 1; touch work/a", "touch left"))
	problems := try("echo x >>work/a; echo 1", "rm work/b")
	require.Len(t, problems, 2)
	require.Contains(t, problems[0].What, "the verify command changes files of the unchanged code (work/a): `echo x >>work/a; echo 1`")
	require.Contains(t, problems[1].What, "the guard command changes files of the unchanged code (work/b)")
	require.Contains(t, problems[1].Do, "eslint without --fix")
}

// TestValidateMeasuresTheNoiseOfALoopThatWouldStart, as the loop does, after everything else has passed. A failing
// guard is reported after one measurement.
func TestValidateMeasuresTheNoiseOfALoopThatWouldStart(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	s := l.Spec
	auto := "auto"
	s.Verify.Command, s.Verify.Evidence = "echo 1", &auto
	target := metric.MustDecimal("1")
	s.Verify.Target = &target
	var f preflight.Findings
	try := func(guard string) (told []string) {
		t.Helper()
		s.Guard.Command = guard
		var err error
		f, err = preflight.DryRun(t.Context(), l.Home, "validated", s, func(step string) { told = append(told, step) })
		require.NoError(t, err)
		return told
	}
	assert.Equal(t, []string{"repository", "programs", "verify", "guard", "guard", "canary"}, try("exit 3"), "a guard that failed is run again")
	assert.Equal(t, []string{"repository", "programs", "verify", "guard", "canary", "verify again", "verify again"}, try("true"))
	assert.Contains(t, f.Notes, "the unchanged code, with 1, meets verify.target (1) already, so the loop would end at once")
}

// TestP0_WhatTheUnchangedCodePrintsHasToFitTheSpec: no change could be kept else.
func TestP0_WhatTheUnchangedCodePrintsHasToFitTheSpec(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	off, auto := false, "auto"
	s := l.Spec
	s.Validation.Canary, s.Verify.Evidence, s.Guard.Command = &off, &auto, ""
	s.Metrics = []metric.Bound{{Name: "mem", Direction: "lower", AtWorst: &metric.Threshold{Value: metric.MustDecimal("5")}}}
	state := t.TempDir()
	flips := "test -e " + state + "/seen && echo %s || { touch " + state + "/seen; echo %s; }"
	s.Sandbox.Use = "off"
	for says, command := range map[string]string{
		"verify prints no METRIC mem=<number>, which metrics declares": "echo METRIC ms=1",
		"mem is 7 on the unchanged code, and metrics allows 5":         "echo METRIC mem=7; echo METRIC ms=1",
		"disagree about where the number is: in run 2, no line":        "echo METRIC mem=4; " + fmt.Sprintf(flips, "1 warning", "METRIC ms=1"),
	} {
		s.Verify.Command = command
		f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
		require.NoError(t, err)
		require.Len(t, f.Problems, 1, command)
		require.Contains(t, f.Problems[0].What, says)
	}
	s.Verify.Command = "echo METRIC mem=5; echo METRIC ms=1"
	f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
	require.NoError(t, err)
	require.Empty(t, f.Problems)
}

// TestAMissingRunnerIsNoKnownFailure: a delivery may be there to mend failing tests, but not a program that is missing.
func TestAMissingRunnerIsNoKnownFailure(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	off := false
	for command, problems := range map[string]int{"sh -c 'exit 127'": 1, "sh -c 'exit 126'": 1, "sh -c 'exit 1'": 0} {
		s := l.Spec
		s.Kind, s.Verify.Command, s.Test.Command, s.Validation.Canary = "deliver", "", command, &off
		f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
		require.NoError(t, err)
		require.Len(t, f.Problems, problems, "%s: %v", command, f.Problems)
		if problems > 0 {
			require.Equal(t, "test", f.Problems[0].Check)
		}
	}
}

// TestP0_WhatAnAgentNeedsIsLookedForBeforeItsFirstCall: by whatever path, interpreter, wrapper or shell its command
// comes to it.
func TestP0_WhatAnAgentNeedsIsLookedForBeforeItsFirstCall(t *testing.T) {
	l := actest.Begin(t, spec.Deny)
	gittest.Write(t, l.User+"/plain.sh", "echo\n")
	gittest.Write(t, l.User+"/pkg/__main__.py", "")
	gittest.Write(t, l.User+"/Makefile", "agent:\n\tno-such-agent\nfine:\n\techo\n")
	gittest.Git(t, l.User, "add", "-f", ".")
	gittest.Git(t, l.User, "commit", "-qm", "agents")
	shell := func(text string) spec.Argv { return spec.Argv{Shell: text} }
	argv := func(words ...string) spec.Argv { return spec.Argv{List: words} }
	for _, c := range []struct {
		command spec.Argv
		problem string
	}{
		{shell("~/no-such-agent -p"), "the agent's command needs ~/no-such-agent, which is no program on this machine"},
		{shell(`"$HOME/no-such-agent"`), "the agent's command needs $HOME/no-such-agent, which is no program on this machine"},
		{shell("sh no-such.sh"), "the agent's command needs no-such.sh, which is not in the repository's commit"},
		{shell("sh ~/no-such.sh"), "the agent's command needs ~/no-such.sh, which does not exist on this machine"},
		{shell("python3 -u no-such.py"), "the agent's command needs no-such.py, which is not in the repository's commit"},
		{shell("bash -c './no-such'"), "the agent's command needs ./no-such, which is not in the repository's commit"},
		{shell("sh -c 'no-such-agent'"), "the agent's program no-such-agent is not on the PATH"},
		{shell("cat {promptFile} | ./no-such"), "the agent's command needs ./no-such, which is not in the repository's commit"},
		{shell("python3 -m no_such_module"), "the agent's command needs the Python module no_such_module"},
		{shell("make agent"), "the agent's command (`make agent`) calls no-such-agent, which does not exist"},
		{argv("~/no-such-agent"), "the agent's program ~/no-such-agent begins with ~"},
		{argv("env", "X=1", "no-such-agent"), "the agent's program no-such-agent is not on the PATH"},
		{argv("python3", "no-such.py"), "the agent's command needs no-such.py, which is not in the repository's commit"},
		{shell("sh plain.sh"), ""},
		{shell("bash -c 'sh plain.sh'"), ""},
		{shell("python3 pkg"), ""},
		{shell("no-such-agent || cat"), ""},
		{shell("echo exit >gen.sh; sh gen.sh"), ""},
		{shell("make fine"), ""},
		{argv("sh", "-c", "cat \"$0\"", "{promptFile}"), ""},
	} {
		s := l.Spec
		s.Agent.Use, s.Agent.Command = spec.UseCommand, c.command
		given := slices.Clone(c.command.List)
		f, err := preflight.Start(t.Context(), l.Home, "validated", s)
		require.NoError(t, err)
		require.Equal(t, given, c.command.List)
		if c.problem == "" {
			require.Empty(t, f.Problems, "%v", c.command)
			continue
		}
		require.Len(t, f.Problems, 1, "%v: %v", c.command, f.Problems)
		require.Equal(t, "agent", f.Problems[0].Check)
		require.Contains(t, f.Problems[0].What, c.problem)
	}
}

// TestP0_ASetupThatFailsOnceIsTriedOnceMore: a network that is gone for a moment refuses nothing.
func TestP0_ASetupThatFailsOnceIsTriedOnceMore(t *testing.T) {
	l := actest.Begin(t, spec.Deny)
	shared := t.TempDir()
	s, off := l.Spec, false
	s.Sandbox.Allow, s.Validation.Canary, s.Verify.Command = []string{shared}, &off, "echo 1"
	count := filepath.Join(shared, "count")
	for last, problems := range map[int]int{1: 0, 2: 1} {
		gittest.Write(t, count, "")
		s.Setup.Command = fmt.Sprintf("echo run >>%s; test $(wc -l <%[1]s) -gt %d", count, last)
		f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
		require.NoError(t, err)
		require.Len(t, f.Problems, problems, "%v", f.Problems)
		require.Equal(t, 2, strings.Count(gittest.Read(t, count), "run"))
	}
}

// TestP55_ValidateRunsAGuardThatFailedAgain, as the loop does: a flaky one refuses nothing.
func TestP55_ValidateRunsAGuardThatFailedAgain(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	shared := t.TempDir()
	s, off, zero := l.Spec, false, 0
	s.Sandbox.Allow, s.Validation.Canary, s.Verify.Command = []string{shared}, &off, "echo 1"
	count := filepath.Join(shared, "count")
	for name, c := range map[string]struct {
		ends     string // how the runs end
		retries  *int
		runs     int
		problems int
		flaky    string
	}{
		"once":                  {ends: "1 0 0", runs: 3, flaky: "flaky: it failed on the unchanged code (a failure that names no test), then passed twice"},
		"every time":            {ends: "1 1 1", runs: 2, problems: 1},
		"once more":             {ends: "1 0 1", runs: 3, problems: 1},
		"as the source has it":  {ends: "1 0 0", retries: &zero, runs: 1, problems: 1},
		"a program that is not": {ends: "127 0 0", runs: 1, problems: 1},
	} {
		gittest.Write(t, count, "")
		s.Guard.Retries = c.retries
		s.Guard.Command = fmt.Sprintf("echo run >>%s; set -- %s; shift $(($(wc -l <%[1]s)-1)); echo ok 1 - a; echo 1..1; exit $1", count, c.ends)
		f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
		require.NoError(t, err)
		require.Len(t, f.Problems, c.problems, "%s: %v", name, f.Problems)
		require.Equal(t, c.runs, strings.Count(gittest.Read(t, count), "run"), name)
		require.NotNil(t, f.Guard)
		require.Contains(t, f.Guard.Tested.String(), c.flaky, name)
		require.Equal(t, c.flaky != "", strings.Contains(f.Guard.Tested.String(), "flaky"), name)
	}
}

func TestACommandThatWaitsForChangesIsSaidToWatch(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	s := l.Spec
	s.Verify.Command = "echo 'Found 0 errors. Watching for file changes.'; exec tail -f /dev/null"
	s.Verify.Timeout = spec.Duration(time.Second)
	f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(string) {})
	require.NoError(t, err)
	require.Len(t, f.Problems, 1)
	require.Contains(t, f.Problems[0].Do, "It waits for changes (watch mode) and never ends.")
	require.NotContains(t, f.Problems[0].Do, "raise")
}
