package worktree_test

import (
	"context"
	"testing"

	"pawl/internal/git/worktree"
	"pawl/test/harness/gittest"
)

// They stay on the disk: they are about the times of files there.
func TestMain(m *testing.M) { gittest.Main(m) }

var ctx = context.Background()

var judge = worktree.RestoreOptions{Judge: true}
