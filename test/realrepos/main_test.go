package realrepos_test

import (
	"os"
	"path/filepath"
	"testing"

	"pawl/test/harness/world"
)

func TestMain(m *testing.M) {
	// rustup looks for its toolchains below $HOME, and each test has a $HOME of its own.
	if home, err := os.UserHomeDir(); err == nil && os.Getenv("RUSTUP_HOME") == "" {
		there := filepath.Join(home, ".rustup")
		if _, err := os.Stat(there); err == nil {
			os.Setenv("RUSTUP_HOME", there)
		}
	}
	os.Exit(world.Main(m))
}
