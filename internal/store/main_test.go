package store_test

import (
	"context"
	"testing"

	"pawl/internal/gittest"
	"pawl/internal/testdir"
)

func TestMain(m *testing.M) {
	testdir.InMemory()
	gittest.Main(m)
}

var ctx = context.Background()
