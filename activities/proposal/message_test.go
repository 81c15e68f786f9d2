package proposal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
)

func TestA7_TheMessageOfASquashSaysWhatWasDone(t *testing.T) {
	goal := "# Discounts\n\nA discount above 100 percent gives a negative total.\nThe total must never be negative."
	one := loop.State{Goal: goal, Kept: []loop.Kept{{Description: "stop a discount at the price"}}}
	require.Equal(t, "stop a discount at the price\n\n"+goal, message(one))

	two := one
	two.Kept = append(two.Kept, loop.Kept{Description: "test the largest discount"})
	require.Equal(t, "stop a discount at the price (and 1 more)\n\n"+goal+"\n\n* stop a discount at the price\n* test the largest discount\n", message(two))

	require.Equal(t, "Discounts\n\n"+goal, message(loop.State{Goal: goal}))

	two.Kept[0].Description = strings.Repeat("long ", 30)
	first, _, _ := strings.Cut(message(two), "\n")
	require.LessOrEqual(t, len(first), longestSubject)
	require.True(t, strings.HasSuffix(first, " (and 1 more)"), first)
}
