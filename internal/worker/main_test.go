package worker_test

import (
	"os"
	"testing"

	"pawl/internal/exec/supervisor"
	"pawl/test/harness/testdir"
)

func TestMain(m *testing.M) {
	supervisor.Main()
	testdir.InMemory()
	os.Exit(m.Run())
}
