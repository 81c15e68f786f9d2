package command_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/command"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
)

// A guard or verify that leaves files of the commit changed has judged other code than what is kept.
func TestP55_ACommandThatChangesTheCommitHasNotPassed(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	env := actest.Environment(l.Activities)
	env.RegisterActivity(l.Guard)
	env.RegisterActivity(l.Verify)
	for name, c := range map[string]struct {
		command string
		altered []string
	}{
		"it changes a tracked file":      {"echo more >>work/a; echo 1", []string{"work/a"}},
		"it removes a tracked file":      {"rm work/a; echo 1", []string{"work/a"}},
		"it makes a file executable":     {"chmod +x work/a; echo 1", []string{"work/a"}},
		"it leaves a new file":           {"echo x >work/new; echo 1", nil},
		"it changes a file and restores": {"cp work/a x; echo more >>work/a; cat x >work/a; echo 1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			step := api.Step{Ref: l.Opened.Ref, Key: api.Key{Iteration: 1, Attempt: 1, Name: "guard " + name}, Head: l.Opened.Base, LimitMs: 10000, Intact: true}
			value, err := env.ExecuteActivity(l.Guard, api.Guard{Step: step, Command: c.command})
			require.NoError(t, err)
			var guarded api.Outcome
			require.NoError(t, value.Get(&guarded))
			require.Equal(t, c.altered, guarded.Altered)
			require.Equal(t, c.altered == nil, guarded.OK())

			step.Key.Name = "verify " + name
			value, err = env.ExecuteActivity(l.Verify, api.Verify{Step: step, Command: c.command})
			require.NoError(t, err)
			var measured api.Measured
			require.NoError(t, value.Get(&measured))
			require.Equal(t, c.altered, measured.Altered)
			require.Equal(t, c.altered == nil, measured.Metric != nil)
			if c.altered == nil {
				return
			}
			require.Contains(t, guarded.Ending(), "changes files of the commit, so it judged other code: work/a")
			require.Contains(t, command.EvidenceIn(guarded.Log), "work/a", "the agent is told")
			_, err = os.Stat(filepath.Join(guarded.Log, "stdout"))
			require.NoError(t, err)

			step.Key.Name, step.Intact = "as before "+name, false
			value, err = env.ExecuteActivity(l.Guard, api.Guard{Step: step, Command: c.command})
			require.NoError(t, err)
			var before api.Outcome
			require.NoError(t, value.Get(&before))
			require.True(t, before.OK(), "a loop that runs already keeps its rules")
		})
	}
}

// TestAReportInTheCommitIsNoChange: a committed report of an old run stays where it is, and does not count.
func TestAReportInTheCommitIsNoChange(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	env := actest.Environment(l.Activities)
	env.RegisterActivity(l.Guard)
	for name, c := range map[string]struct {
		command string
		ok      bool
		tested  string
	}{
		"left as it is": {"true", true, "its tests are not counted: no output that pawl reads"},
		"beside a new one": {
			`echo '<testsuite><testcase name="a"/></testsuite>' >new.xml`, true, "1 passed (junit)",
		},
		"removed": {"rm work/a", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			step := api.Step{Ref: l.Opened.Ref, Key: api.Key{Iteration: 1, Attempt: 1, Name: "guard " + name}, Head: l.Opened.Base, LimitMs: 10000, Intact: true}
			value, err := env.ExecuteActivity(l.Guard, api.Guard{Step: step, Command: c.command, Reports: []string{"work/*", "*.xml"}})
			require.NoError(t, err)
			var out api.Outcome
			require.NoError(t, value.Get(&out))
			require.Equal(t, c.ok, out.OK(), out.Failure)
			require.Equal(t, c.tested, out.Tested.String())
		})
	}
}
