package workflows_test

import (
	"os"
	"syscall"
	"testing"
)

// TestMain runs the tests again, with the variable by which the SDK detects no deadlocks. It takes a workflow that does not
// yield for a second for one, which a replay on a busy machine does not always do; the replayer has no option for it, and
// the SDK reads the variable before main begins.
func TestMain(m *testing.M) {
	const variable = "TEMPORAL_DEBUG"
	if os.Getenv(variable) != "" {
		os.Exit(m.Run())
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Setenv(variable, "true")
	}
	if err == nil {
		err = syscall.Exec(self, os.Args, os.Environ())
	}
	panic(err)
}
