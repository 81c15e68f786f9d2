package start_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// validation is the output of `pawl validate --json`, as far as tests read it.
type validation struct {
	OK       bool
	Hash     string
	Branch   string
	Baseline *json.Number
	InScope  int
	Contract *struct{ Sealed []struct{ Path string } }
	Problems []struct {
		Check, Key, What, Do, File string
		Line                       int
	}
	Notes []string
}

func validate(w *world.World, code int, args ...string) validation {
	w.T.Helper()
	s := w.Pawl(append([]string{"validate", "--json", w.SpecFile()}, args...)...)
	require.Equal(w.T, code, s.Code, s.Err)
	var v validation
	require.NoError(w.T, json.Unmarshal([]byte(s.Out), &v), s.Out)
	require.Equal(w.T, code == 0, v.OK)
	left, _ := filepath.Glob(filepath.Join(w.Home, "validate", "*"))
	require.Empty(w.T, left, "the clone is gone")
	return v
}

func TestP0_ValidateShowsTheContractThatRunAsksFor(t *testing.T) {
	w := world.New(t, world.Raises).Set(doc{"guard": doc{"command": "sh guard.sh"}})
	v := validate(w, 0)
	require.Equal(t, "10", v.Baseline.String())
	require.Equal(t, 2, v.InScope)
	require.Equal(t, "pawl/"+w.Loop, v.Branch)
	refs, _ := w.TryGit("for-each-ref")
	require.NotContains(t, refs, "pawl")

	set := w.Pawl("validate", w.SpecFile(), "--set", "goal=Raise the number")
	require.Contains(t, set.Err, " --set 'goal=Raise the number'`", "it starts what was validated")
	people := w.Pawl("validate", w.SpecFile())
	require.Equal(t, 0, people.Code, people.Err)
	require.Contains(t, people.Err, "ready; start it with `pawl run ")
	world.Plain(t, people.Err)

	run := w.Pawl("run", w.SpecFile())
	require.Equal(t, 4, run.Code, run.Err)
	_, contract, _ := strings.Cut(people.Out, "\n") // the first line says how to see all of it
	const age = ", measured by pawl validate just now"
	require.Equal(t, 1, strings.Count(run.Err, age), "the loop takes over what validate measured, and says so")
	require.Contains(t, strings.Replace(run.Err, age, "", 1), contract, "word for word")
	st := w.Show()
	require.Equal(t, st.Gate.Hash, v.Hash)
	require.Len(t, v.Contract.Sealed, 2)
	require.Equal(t, st.Contract.Sealed, v.Contract.Sealed)
	require.Equal(t, 0, w.Pawl("halt", w.Loop).Code)
	w.Waits("halted")
}

func TestP0_ValidateNamesAllProblemsAtOnce(t *testing.T) {
	w := world.Alone(t, world.Raises).Set(doc{
		"scope": []string{"nothing"}, "verify": doc{"command": "echo none"}, "guard": doc{"command": "echo broken; exit 3"},
	})
	w.Write("repo/loop-results.tsv.lock", "")
	w.Write("repo/work/n", "11\n")
	w.Git("branch", "pawl")
	w.Before = w.Snapshot()
	var checks []string
	for _, p := range validate(w, 2).Problems {
		checks = append(checks, p.Check)
		require.NotEmpty(t, p.What)
		require.NotEmpty(t, p.Do)
	}
	require.Equal(t, []string{"repository", "repository", "repository", "scope", "verify", "guard"}, checks)

	s := w.Pawl("validate", w.SpecFile())
	require.Equal(t, 2, s.Code)
	for _, text := range []string{
		"6 problems would keep this loop from starting (PRECONDITION_FAILED)", "git branch -m pawl", "loop-results.tsv.lock exists", "not clean: work/n",
		"the scope matches no file", "prints no number", "exit 3", "broken",
	} {
		require.Contains(t, s.Err, text)
	}
	world.Plain(t, s.Err)
	atOnce, _, _ := strings.Cut(s.Err, "6 problems would")
	require.Contains(t, atOnce, "not clean: work/n; the commands run on the commit", "it says so before it measures")

	s = w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 2, s.Code)
	for _, text := range []string{"the branch pawl is in the way", "loop-results.tsv.lock exists", "not clean"} {
		require.Contains(t, s.Err, text, "A1: run names all that is wrong with the repository too")
	}
}

func TestP0_ValidateReportsProblemsOfTheSpecAsData(t *testing.T) {
	w := world.Alone(t, world.Raises).Set(doc{"goal": ""})
	v := validate(w, 2, "--set", "limits.iterations=many")
	require.Len(t, v.Problems, 2)
	require.Equal(t, "goal", v.Problems[0].Key)
	require.Equal(t, w.SpecFile(), v.Problems[0].File)
	require.Positive(t, v.Problems[0].Line)
	require.Equal(t, "--set", v.Problems[1].File)
}

func TestP0_ValidateTriesSetupFirst(t *testing.T) {
	w := world.Alone(t, world.Raises)
	require.Equal(t, "10", validate(w, 0, "--set", "setup.command=echo 1 >made", "--set", "verify.command=test -e made && cat work/n").Baseline.String())
	v := validate(w, 2, "--set", "setup.command=echo offline; exit 7")
	require.Len(t, v.Problems, 1)
	require.Equal(t, "setup", v.Problems[0].Check)
	require.Contains(t, v.Problems[0].What, "exit 7")
	require.Contains(t, v.Problems[0].What, "offline")
}

func TestValidateNotesWhatIsWorthAThought(t *testing.T) {
	w := world.Alone(t, world.Raises).Set(doc{"guard": doc{"command": "grep -r . work/ work/n"}})
	v := validate(w, 0)
	require.Len(t, v.Notes, 3)
	require.Contains(t, v.Notes[0], "match the scope but are sealed, since they judge the work: work/n")
	require.Contains(t, v.Notes[0], "that the guard command names, put the command into a script")
	require.Contains(t, v.Notes[1], "folders in which the agent may change files: work")
	require.Contains(t, v.Notes[2], "verify.direction is not set")
}

// TestReadyMeansReady: one answer names everything that is missing, and why an existing program does not start.
func TestReadyMeansReady(t *testing.T) {
	w := world.Alone(t, world.Raises)
	bin := filepath.Join(w.Dir, "tools")
	require.NoError(t, os.MkdirAll(bin, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "codex"), []byte("#!/bin/sh\necho libfoo.so is missing >&2\nexit 127\n"), 0o700))
	w.Env = append(w.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	w.Set(doc{
		"mode": "plan", "agent": doc{"use": "command", "command": "no-such-agent -p", "roles": doc{"reviewer": doc{"use": "codex"}}},
		"guard": doc{"command": "cd . && no-such-guard ."}, "check": doc{"command": "no-such-linter"},
	})
	v := validate(w, 2)
	var checks, whats []string
	for _, p := range v.Problems {
		checks, whats = append(checks, p.Check), append(whats, p.What)
		require.NotEmpty(t, p.Do)
	}
	require.Equal(t, []string{"spec", "guard", "check", "agent", "agent"}, checks, "what lacks its program is not tried as well")
	for i, want := range []string{
		"the mode is plan", "guard.command needs no-such-guard, which is not on the PATH", "check.command needs no-such-linter", "the agent's program no-such-agent is not on the PATH",
		"codex --version` fails (exit 127)",
	} {
		require.Contains(t, whats[i], want)
	}
	w.Set(doc{"mode": "mission", "agent": doc{"use": "command", "command": "true", "roles": doc{}}, "guard": doc{"command": "true"}, "check": doc{"command": "true"}})
	validate(w, 0)
	v = validate(w, 2, "--set", "setup.command=no-such-manager install")
	require.Equal(t, "setup.command needs no-such-manager, which is not on the PATH: `no-such-manager install`", v.Problems[0].What)

	w.Write("repo/Makefile", "lint:\n\tno-such-tidy work/n\n")
	w.Commit("a linter that nobody has")
	v = validate(w, 2, "--set", "check.command=make lint")
	require.Equal(t, "check.command (`make lint`) calls no-such-tidy, which does not exist", v.Problems[0].What)
}

func TestValidateSweepsUpAfterTheDead(t *testing.T) {
	w := world.Alone(t, world.Raises)
	dead := filepath.Join(w.Home, "validate", "dead")
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "loops"), 0o700))
	require.NoError(t, os.WriteFile(dead+".lock", nil, 0o600))
	validate(w, 0)
}

func TestValidatePrintsTheSchema(t *testing.T) {
	s := world.Alone(t, world.Raises).Pawl("validate", "--schema")
	require.Equal(t, 0, s.Code)
	require.Equal(t, world.ReadFile("schema/pawl.schema.json"), s.Out)
}

// TestL2_ValidateRunsTheTestsOfADeliverSpec: the loop may be there to fix failing tests, so they are a note and no
// problem.
func TestL2_ValidateRunsTheTestsOfADeliverSpec(t *testing.T) {
	w := world.Alone(t, world.Raises)
	t.Parallel()
	w.Set(doc{"kind": "deliver", "test": doc{"command": "echo 'not ok 1 - climbs'; echo 1..1; exit 1"}, "guard": doc{"command": "false"}})
	delete(w.Spec, "verify")
	v := validate(w, 0)
	require.Len(t, v.Notes, 2)
	require.Contains(t, v.Notes[0], "guard fails on the unchanged code (exit 1)")
	require.Contains(t, v.Notes[1], "tests fail on the unchanged code: 1 failed, 0 passed (climbs)")
	require.Contains(t, v.Notes[1], "If they have to pass, let verify.command run them")
	require.Contains(t, w.Pawl("validate", w.SpecFile()).Err, "ready")

	w.Set(doc{"setup": doc{"command": "exit 3"}})
	require.Equal(t, "setup", validate(w, 2).Problems[0].Check)
}

// TestP0_AGuardThatDoesNotSeeTheCodeIsAProblem, for validate and for the loop.
func TestP0_AGuardThatDoesNotSeeTheCodeIsAProblem(t *testing.T) {
	w := world.Alone(t, world.Raises)
	w.Write("repo/work/a.c", "int a(void) { return 1; }\n")
	w.Commit("code")
	w.Set(doc{"guard": doc{"command": "true"}, "validate": doc{"canary": true}})
	v := validate(w, 2)
	require.Len(t, v.Problems, 1)
	require.Contains(t, v.Problems[0].What, "the guard does not see your code: pawl put a syntax error into 1 file in scope (work/a.c), but this still passed: `true`")
	require.Equal(t, "PRECONDITION_FAILED", w.Run(2).Result.ErrorCode)
	require.Empty(t, validate(w, 0, "--set", "guard.command=! grep -rq broken work").Problems)
	require.Empty(t, validate(w, 0, "--set", "validate.canary=false").Problems)
}
