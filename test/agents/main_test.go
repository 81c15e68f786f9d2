package agents_test

import (
	"os"
	"testing"

	"pawl/test/harness/world"
)

func TestMain(m *testing.M) {
	stop := startProxy()
	code := world.Main(m)
	stop()
	os.Exit(code)
}

type (
	doc = world.Doc
	row = world.Row
)
