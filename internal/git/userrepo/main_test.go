package userrepo_test

import (
	"context"
	"testing"

	"pawl/test/harness/gittest"
	"pawl/test/harness/testdir"
)

func TestMain(m *testing.M) {
	testdir.InMemory()
	gittest.Main(m)
}

var ctx = context.Background()
