package trees_test

import (
	"context"
	"testing"

	"pawl/internal/trees"
	"pawl/test/gittest"
)

// They stay on the disk: they are about the times of files there.
func TestMain(m *testing.M) { gittest.Main(m) }

var ctx = context.Background()

var judge = trees.RestoreOptions{Judge: true}
