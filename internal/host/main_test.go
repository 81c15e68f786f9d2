package host_test

import (
	"os"
	"testing"

	"pawl/internal/proc"
	"pawl/test/testdir"
)

func TestMain(m *testing.M) {
	proc.Main()
	testdir.InMemory()
	os.Exit(m.Run())
}
