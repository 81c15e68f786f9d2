package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// validation is what `pawl validate --json` prints, as far as tests look at it.
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

func (w *world) validate(code int, args ...string) validation {
	w.t.Helper()
	s := w.pawl(append([]string{"validate", "--json", w.specFile()}, args...)...)
	require.Equal(w.t, code, s.code, s.err)
	var v validation
	require.NoError(w.t, json.Unmarshal([]byte(s.out), &v), s.out)
	require.Equal(w.t, code == 0, v.OK)
	left, _ := filepath.Glob(filepath.Join(w.home, "validate", "*"))
	require.Empty(w.t, left, "the clone is gone")
	return v
}

func TestP0_ValidateShowsTheContractThatRunAsksFor(t *testing.T) {
	w := newWorld(t, raises).set(doc{"guard": doc{"command": "sh guard.sh"}})
	v := w.validate(0)
	require.Equal(t, "10", v.Baseline.String())
	require.Equal(t, 2, v.InScope)
	require.Equal(t, "pawl/"+w.loop, v.Branch)
	refs, _ := w.tryGit("for-each-ref")
	require.NotContains(t, refs, "pawl")

	people := w.pawl("validate", w.specFile())
	require.Equal(t, 0, people.code, people.err)
	require.Contains(t, people.err, "ready; start it with `pawl run ")
	plain(t, people.err)

	run := w.pawl("run", w.specFile())
	require.Equal(t, 4, run.code, run.err)
	require.Contains(t, run.err, people.out, "word for word")
	st := w.show()
	require.Equal(t, st.Gate.Hash, v.Hash)
	require.Len(t, v.Contract.Sealed, 2)
	require.Equal(t, st.Contract.Sealed, v.Contract.Sealed)
	require.Equal(t, 0, w.pawl("halt", w.loop).code)
	w.waits("halted")
}

func TestP0_ValidateNamesAllProblemsAtOnce(t *testing.T) {
	w := newWorldOfItsOwn(t, raises).set(doc{
		"scope": []string{"nothing"}, "verify": doc{"command": "echo none"}, "guard": doc{"command": "echo broken; exit 3"},
	})
	w.write("repo/loop-results.tsv.lock", "")
	w.write("repo/work/n", "11\n")
	w.git("branch", "pawl")
	w.before = w.snapshot()
	var checks []string
	for _, p := range w.validate(2).Problems {
		checks = append(checks, p.Check)
		require.NotEmpty(t, p.What)
		require.NotEmpty(t, p.Do)
	}
	require.Equal(t, []string{"repository", "repository", "repository", "scope", "verify", "guard"}, checks)

	s := w.pawl("validate", w.specFile())
	require.Equal(t, 2, s.code)
	for _, text := range []string{
		"6 problems would keep this loop from starting (PRECONDITION_FAILED)", "git branch -m pawl", "loop-results.tsv.lock exists", "not clean: work/n",
		"the scope matches no file", "prints no number", "exit 3", "broken",
	} {
		require.Contains(t, s.err, text)
	}
	plain(t, s.err)

	s = w.pawl("run", "--yes", w.specFile())
	require.Equal(t, 2, s.code)
	for _, text := range []string{"the branch pawl is in the way", "loop-results.tsv.lock exists", "not clean"} {
		require.Contains(t, s.err, text, "A1: run names all that is wrong with the repository too")
	}
}

func TestP0_ValidateReportsProblemsOfTheSpecAsData(t *testing.T) {
	w := newWorldOfItsOwn(t, raises).set(doc{"goal": ""})
	v := w.validate(2, "--set", "limits.iterations=many")
	require.Len(t, v.Problems, 2)
	require.Equal(t, "goal", v.Problems[0].Key)
	require.Equal(t, w.specFile(), v.Problems[0].File)
	require.Positive(t, v.Problems[0].Line)
	require.Equal(t, "--set", v.Problems[1].File)
}

func TestP0_ValidateTriesSetupFirst(t *testing.T) {
	w := newWorldOfItsOwn(t, raises)
	require.Equal(t, "10", w.validate(0, "--set", "setup.command=echo 1 >made", "--set", "verify.command=test -e made && cat work/n").Baseline.String())
	v := w.validate(2, "--set", "setup.command=echo offline; exit 7")
	require.Len(t, v.Problems, 1)
	require.Equal(t, "setup", v.Problems[0].Check)
	require.Contains(t, v.Problems[0].What, "exit 7")
	require.Contains(t, v.Problems[0].What, "offline")
}

func TestValidateNotesWhatIsWorthAThought(t *testing.T) {
	w := newWorldOfItsOwn(t, raises).set(doc{
		"guard": doc{"command": "grep -r . work/ work/n"}, "agent": doc{"command": []string{"no-such-agent"}}, "check": doc{"command": "false"},
	})
	v := w.validate(0)
	require.Len(t, v.Notes, 4)
	require.Contains(t, v.Notes[0], "although the scope matches them: work/n")
	require.Contains(t, v.Notes[1], "folders in which the agent may change files: work")
	require.Contains(t, v.Notes[2], "no-such-agent is not on this PATH")
	require.Contains(t, v.Notes[3], "check fails on the unchanged code (exit 1)")
}

func TestValidateSweepsUpAfterTheDead(t *testing.T) {
	w := newWorldOfItsOwn(t, raises)
	dead := filepath.Join(w.home, "validate", "dead")
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "loops"), 0o700))
	require.NoError(t, os.WriteFile(dead+".lock", nil, 0o600))
	w.validate(0)
}

func TestValidatePrintsTheSchema(t *testing.T) {
	s := newWorldOfItsOwn(t, raises).pawl("validate", "--schema")
	require.Equal(t, 0, s.code)
	require.Equal(t, readFile("schema/pawl.schema.json"), s.out)
}

// TestL2_ValidateRunsTheTestsOfADeliverSpec: the loop may be there to mend what fails, so that is a note
// and no problem.
func TestL2_ValidateRunsTheTestsOfADeliverSpec(t *testing.T) {
	w := newWorldOfItsOwn(t, raises)
	t.Parallel()
	w.set(doc{"kind": "deliver", "test": doc{"command": "echo 'not ok 1 - climbs'; echo 1..1; exit 1"}, "guard": doc{"command": "false"}})
	delete(w.spec, "verify")
	v := w.validate(0)
	require.Len(t, v.Notes, 2)
	require.Contains(t, v.Notes[0], "guard fails on the unchanged code (exit 1)")
	require.Contains(t, v.Notes[1], "tests fail on the unchanged code: 1 failed, 0 passed (climbs)")
	require.Contains(t, w.pawl("validate", w.specFile()).err, "ready")

	w.set(doc{"setup": doc{"command": "exit 3"}})
	require.Equal(t, "setup", w.validate(2).Problems[0].Check)
}
