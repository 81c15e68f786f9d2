package service_test

import (
	"os"
	"testing"

	"pawl/test/harness/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m)) }

type (
	doc = world.Doc
	row = world.Row
)
