package repo_test

import (
	"context"
	"testing"

	"pawl/internal/gittest"
	"pawl/internal/repo"
)

func TestMain(m *testing.M) { gittest.Main(m) }

var ctx = context.Background()

var judge = repo.RestoreOptions{Judge: true}
