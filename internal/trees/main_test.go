package trees_test

import (
	"context"
	"testing"

	"pawl/internal/gittest"
	"pawl/internal/trees"
)

func TestMain(m *testing.M) { gittest.Main(m) }

var ctx = context.Background()

var judge = trees.RestoreOptions{Judge: true}
