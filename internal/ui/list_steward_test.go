package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/launch"
)

func TestAStewardIsListedWithoutAnIteration(t *testing.T) {
	lines := strings.Split(Style{}.List([]launch.Row{{Loop: "shop", Kind: "steward", Status: "running"}, {Loop: "fast", Kind: "improve", Status: "running"}}, time.Now()), "\n")
	require.NotContains(t, lines[1], "0")
	require.Contains(t, lines[2], "0")
}
