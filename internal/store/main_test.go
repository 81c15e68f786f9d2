package store_test

import (
	"context"
	"testing"

	"pawl/test/gittest"
	"pawl/test/testdir"
)

func TestMain(m *testing.M) {
	testdir.InMemory()
	gittest.Main(m)
}

var ctx = context.Background()
