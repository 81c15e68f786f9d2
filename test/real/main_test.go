package real_test

import (
	"os"
	"testing"

	"pawl/test/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m)) }
