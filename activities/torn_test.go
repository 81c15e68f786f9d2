package activities_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/act"
	"pawl/internal/mending"
	"pawl/internal/spec"
	"pawl/internal/workspace"
)

// step is a step of a loop in one of its iterations.
func (l *opened) step(iteration int) act.Step {
	return act.Step{Ref: l.o.Ref, Key: act.Key{Iteration: iteration, Attempt: 1, Name: "test"}, Head: l.head, LimitMs: 60_000}
}

// run runs a command of a loop in its judge, as Temporal would, and returns what it has printed.
func (l *opened) run(env *testsuite.TestActivityEnvironment, in act.Test) (out act.Tested, printed string) {
	l.Helper()
	value, err := env.ExecuteActivity(l.a.Test, in)
	require.NoError(l, err)
	require.NoError(l, value.Get(&out))
	return out, string(must(os.ReadFile(filepath.Join(out.Log, "stdout"))))
}

// torn is a loop whose files a power cut may tear, with what its worker logs.
func torn(t *testing.T) (*opened, *testsuite.TestActivityEnvironment, *bytes.Buffer) {
	t.Helper()
	l := begun(t, spec.Deny)
	var log bytes.Buffer
	l.a.Logger = slog.New(slog.NewTextHandler(&log, nil))
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(l.a.Test)
	return l, env, &log
}

func TestAStepWhoseResultAPowerCutToreRunsAgain(t *testing.T) {
	l, env, log := torn(t)
	in := act.Test{Step: l.step(1), Command: "date +%s%N; exit 3"}
	first, printed := l.run(env, in)
	require.Equal(t, 3, first.ExitCode)
	l.a.Stop()
	again, before := l.run(env, in)
	require.Equal(t, first, again)
	require.Equal(t, printed, before, "the result is on disk")
	for _, content := range []string{"", "\x00\x00\x00", `{"exitCode": 0, "sig`} {
		write(t, filepath.Join(first.Log, "result.json"), content)
		l.a.Stop()
		again, after := l.run(env, in)
		require.Equal(t, 3, again.ExitCode)
		require.NotEqual(t, before, after)
		before = after
		require.Contains(t, log.String(), "the step runs again")
	}
	what := "the result of the step " + filepath.Base(first.Log) + " could not be read: the step runs again"
	require.Equal(t, []string{what, what, what}, mending.Untold(l.a.Home.Loop(l.o.Ref)))
}

func TestATornEnvironmentIsMadeAgain(t *testing.T) {
	l, env, log := torn(t)
	path := filepath.Join(workspace.Steps(l.a.Home, l.o.Ref), "..", "environment.json")
	write(t, path, "")
	l.a.Stop()
	out, _ := l.run(env, act.Test{Step: l.step(1), Command: "test -n \"$PATH\""})
	require.Zero(t, out.ExitCode)
	require.Contains(t, log.String(), "environment could not be read")
	require.Len(t, mending.Untold(l.a.Home.Loop(l.o.Ref)), 1)
	require.Contains(t, string(must(os.ReadFile(path))), "PATH=")
}

func TestATornReportOfTheTestsBeforeIsReadAnewFromTheirOutput(t *testing.T) {
	l, env, _ := torn(t)
	run := func(n int, before string) act.Tested {
		out, _ := l.run(env, act.Test{
			Step: l.step(n), Before: before,
			Command: "printf -- '--- FAIL: TestA (0.00s)\\nFAIL\\nFAIL\\tpawl/x\\t0.1s\\n'; exit 1",
		})
		return out
	}
	first := run(1, "")
	require.Equal(t, 1, first.Tests.Failed)
	write(t, filepath.Join(first.Log, "report.json"), "")
	second := run(2, first.Log)
	require.Len(t, second.Tests.Failing, 1)
	require.Empty(t, second.Tests.New, "it failed before")
}
