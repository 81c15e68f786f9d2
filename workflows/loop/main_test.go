package loop_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// TestMain runs the tests again with the variable that switches off the SDK's deadlock detection. The SDK reports a
// workflow that does not yield within a second as a deadlock, and a replay on a busy machine sometimes needs longer.
// The replayer has no option for that, and the SDK reads the variable before main begins.
func TestMain(m *testing.M) {
	const variable = "TEMPORAL_DEBUG"
	if os.Getenv(variable) != "" {
		os.Exit(m.Run())
	}
	self, err := os.Executable()
	err = errors.Join(err, os.Setenv(variable, "true"), os.Setenv("GOGC", "400")) // it does not live long
	if err == nil {
		err = syscall.Exec(self, os.Args, os.Environ())
	}
	panic(err)
}
