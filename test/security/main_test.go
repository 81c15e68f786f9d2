package security_test

import (
	"os"
	"testing"

	"pawl/test/harness/world"
)

func TestMain(m *testing.M) {
	hostile()
	os.Exit(world.Main(m))
}

type (
	doc  = world.Doc
	deed = world.Deed
	row  = world.Row
)
