package command_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
	"pawl/internal/loop/api"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

func TestAStepWhoseResultAPowerCutToreRunsAgain(t *testing.T) {
	t.Parallel()
	l, env, log := actest.BeginLogged(t)
	in := api.Test{Step: l.Step(1), Command: "date +%s%N; exit 3"}
	first, printed := l.RunTest(env, in)
	require.Equal(t, 3, first.ExitCode)
	l.Stop()
	again, before := l.RunTest(env, in)
	require.Equal(t, first, again)
	require.Equal(t, printed, before, "the result is on disk")
	for _, content := range []string{"", "\x00\x00\x00", `{"exitCode": 0, "sig`} {
		gittest.Write(t, filepath.Join(first.Log, "result.json"), content)
		l.Stop()
		again, after := l.RunTest(env, in)
		require.Equal(t, 3, again.ExitCode)
		require.NotEqual(t, before, after)
		before = after
		require.Contains(t, log.String(), "the step runs again")
	}
	what := "the result of the step " + filepath.Base(first.Log) + " could not be read: the step runs again"
	require.Equal(t, []string{what, what, what}, repairlog.Untold(l.Home.Loop(l.Opened.Ref)))
}

func TestATornEnvironmentIsMadeAgain(t *testing.T) {
	t.Parallel()
	l, env, log := actest.BeginLogged(t)
	path := filepath.Join(hostrecord.Steps(l.Home, l.Opened.Ref), "..", "environment.json")
	gittest.Write(t, path, "")
	l.Stop()
	out, _ := l.RunTest(env, api.Test{Step: l.Step(1), Command: "test -n \"$PATH\""})
	require.Zero(t, out.ExitCode)
	require.Contains(t, log.String(), "environment could not be read")
	require.Len(t, repairlog.Untold(l.Home.Loop(l.Opened.Ref)), 1)
	require.Contains(t, gittest.Read(t, path), "PATH=")
}

func TestATornReportOfTheTestsBeforeIsReadAnewFromTheirOutput(t *testing.T) {
	t.Parallel()
	l, env, _ := actest.BeginLogged(t)
	run := func(n int, before string) api.Tested {
		out, _ := l.RunTest(env, api.Test{
			Step: l.Step(n), Before: before,
			Command: "printf -- '--- FAIL: TestA (0.00s)\\nFAIL\\nFAIL\\tpawl/x\\t0.1s\\n'; exit 1",
		})
		return out
	}
	first := run(1, "")
	require.Equal(t, 1, first.Tests.Failed)
	gittest.Write(t, filepath.Join(first.Log, "report.json"), "")
	second := run(2, first.Log)
	require.Len(t, second.Tests.Failing, 1)
	require.Empty(t, second.Tests.New, "it failed before")
}
