package userrepo_test

import (
	"context"
	"testing"

	"pawl/internal/gittest"
)

func TestMain(m *testing.M) { gittest.Main(m) }

var ctx = context.Background()
