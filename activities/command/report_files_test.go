package command_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/api"
	"pawl/test/harness/actest"
)

// TestL2_ReportFilesAreRead: JUnit XML that a command writes into its tree counts like its output. Files of an
// earlier run do not count.
func TestL2_ReportFilesAreRead(t *testing.T) {
	t.Parallel()
	l, env, _ := actest.BeginLogged(t)
	env.RegisterActivity(l.Guard)
	step := func(n int) api.Step {
		s := l.Step(0)
		s.Key.Attempt = n
		return s
	}
	suite := func(file, cases string, exit int) string {
		return fmt.Sprintf(`mkdir -p a/target b/target; echo '<?xml version="1.0"?><testsuite>%s</testsuite>' > %s; exit %d`, cases, file, exit)
	}
	globs := []string{"**/target/TEST-*.xml"}
	const good, bad = `<testcase classname="C" name="good"/>`, `<testcase classname="C" name="bad"><failure message="no"/></testcase>`

	out, _ := l.RunTest(env, api.Test{Step: step(1), Command: suite("a/target/TEST-x.xml", good+bad, 1), Reports: globs})
	require.Equal(t, []string{"C bad"}, out.Tests.Failing)
	require.Equal(t, 1, out.Tests.Passed)

	value, err := env.ExecuteActivity(l.Guard, api.Guard{Step: step(2), Command: suite("b/target/TEST-y.xml", good, 0), Reports: globs, Tests: 2})
	require.NoError(t, err)
	var guard api.Outcome
	require.NoError(t, value.Get(&guard))
	require.Equal(t, 1, guard.Tests)
	require.Contains(t, guard.Failure, "fewer tests pass than on the unchanged code: 1 instead of 2")

	for name, command := range map[string]string{
		"a link":    `mkdir -p target; echo "<testsuite>` + bad + `</testsuite>" > /tmp/x.xml; ln -s /tmp/x.xml target/TEST-x.xml`,
		"a FIFO":    "mkdir -p target; mkfifo target/TEST-x.xml",
		"a folder":  "mkdir -p target/TEST-x.xml",
		"elsewhere": suite("x.xml", bad, 0),
	} {
		out, _ := l.RunTest(env, api.Test{Step: step(10 + len(name)), Command: command, Reports: globs})
		require.Zero(t, out.Tests.Failed, name)
	}
}

// TestPathsInReportsBeginInTheTree: the same test has the same name in every tree.
func TestPathsInReportsBeginInTheTree(t *testing.T) {
	t.Parallel()
	l, env, _ := actest.BeginLogged(t)
	document := `{"numFailedTestSuites":1,"testResults":[{"name":"'"$PWD"'/src/a.test.js","assertionResults":[{"ancestorTitles":["sum"],"title":"adds","status":"failed"}]}]}`
	out, _ := l.RunTest(env, api.Test{Step: l.Step(0), Command: "echo '" + document + "' >jest.json; exit 1", Reports: []string{"jest.json"}})
	require.Equal(t, []string{"src/a.test.js sum › adds"}, out.Tests.Failing)
}

// TestAReportTooLargeToBeReadIsNoLossOfTests: its tests ran, so they are not missing.
func TestAReportTooLargeToBeReadIsNoLossOfTests(t *testing.T) {
	t.Parallel()
	l, env, _ := actest.BeginLogged(t)
	env.RegisterActivity(l.Guard)
	command := `echo '<testsuite><testcase name="a"/></testsuite>' > r.xml; head -c 5000000 /dev/zero | tr '\0' ' ' >> r.xml`
	value, err := env.ExecuteActivity(l.Guard, api.Guard{Step: l.Step(0), Command: command, Reports: []string{"r.xml"}, Tests: 2})
	require.NoError(t, err)
	var guard api.Outcome
	require.NoError(t, value.Get(&guard))
	require.Empty(t, guard.Failure)
	require.True(t, guard.Tested.Partial)
}
