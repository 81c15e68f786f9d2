package activities_test

import (
	"os"
	"testing"

	"pawl/internal/proc"
)

func TestMain(m *testing.M) {
	proc.Main()
	os.Exit(m.Run())
}
