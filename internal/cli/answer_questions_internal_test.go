package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
)

func TestARejectionOfTheLastIterationPromisesNoOther(t *testing.T) {
	three := metric.MustDecimal("3")
	left := loop.NewBudget(map[loop.Resource]metric.Decimal{loop.Iterations: three})
	spent := left.Spend(loop.Iterations, three)
	gate := loop.Gate{Kind: loop.GateDiff}
	require.Contains(t, questionAt(kind.Deliver, gate, left), "n: reject (another iteration)")
	require.Equal(t, "Why? (the agent reads it; Enter: no reason) ", whyAt(kind.Deliver, gate, left, true))
	require.Contains(t, questionAt(kind.Deliver, gate, spent), "n: reject (no iteration is left)")
	require.Equal(t, "Why? (for the record; Enter: no reason) ", whyAt(kind.Deliver, gate, spent, true))
	require.Equal(t, "The loop ends. Why? (for the record; Enter: no reason) ", whyAt(kind.Improve, loop.Gate{Kind: loop.GateContract}, left, false))
	require.Equal(t, "The loop ends. Why? (for the record; Enter: no reason) ", whyAt(kind.Improve, loop.Gate{Kind: loop.GateBudget}, left, true))
	require.Equal(t, "The change is undone. Why? (the agent reads it; Enter: no reason) ", whyAt(kind.Improve, loop.Gate{Kind: loop.GateNewFiles}, left, true))
	require.Equal(t, "The change is undone. Why? (for the record; Enter: no reason) ", whyAt(kind.Improve, loop.Gate{Kind: loop.GateNewFiles}, spent, true))
	require.Contains(t, questionAt(kind.Improve, gate, spent), "n: reject (ends the loop)")
}
