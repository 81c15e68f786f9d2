// Package actest has what the tests of activities share: a loop or a steward that has begun on this host, without
// Temporal. Tests call its activities as a workflow would.
package actest

import (
	"os"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"pawl/activities"
	"pawl/internal/exec/supervisor"
	"pawl/test/harness/testdir"
)

// When is the time at which each of them began.
var When = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Main runs the tests of a package. The test binary is the supervisor of its loops, too.
func Main(m *testing.M) {
	supervisor.Main()
	testdir.InMemory()
	os.Exit(m.Run())
}

// Environment runs activities with the interceptors of a worker, and with those that the test adds.
func Environment(a *activities.Activities, added ...interceptor.WorkerInterceptor) *testsuite.TestActivityEnvironment {
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	return env.SetWorkerOptions(worker.Options{Interceptors: append(a.Interceptors(), added...)})
}
