// Package actest has what tests of activities share: a loop or a steward that has begun on this host, without Temporal.
// Its activities are called as a workflow calls them.
package actest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"pawl/activities"
	"pawl/internal/proc"
)

// When is the time at which all of them began.
var When = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Main runs the tests of a package. The test binary is the supervisor of its loops, too.
func Main(m *testing.M) {
	proc.Main()
	os.Exit(m.Run())
}

// Git runs git as a user, and returns what it prints.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@u"}, args...)...)
	cmd.Dir = dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %q: %s", args, out)
	return strings.TrimSuffix(string(out), "\n")
}

// Write writes a file, and makes the folders above it.
func Write(t testing.TB, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// Read returns what a file has.
func Read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// Environment runs activities inside of what surrounds them in a worker, and of what the test adds.
func Environment(a *activities.Activities, added ...interceptor.WorkerInterceptor) *testsuite.TestActivityEnvironment {
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	return env.SetWorkerOptions(worker.Options{Interceptors: append(a.Interceptors(), added...)})
}
