package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/spec/phase"
)

func TestANewApproachForgetsTheFailuresOfTheOneBefore(t *testing.T) {
	c := loop.Course{Iteration: 1, Reworks: 1, Opinions: 1, Fixes: 2, Signature: "x", Same: 2, Worse: 1, LastWorse: true}
	require.Equal(t, loop.Course{Iteration: 1, Fixes: 2}, c.Enter(phase.Write))
	require.Equal(t, loop.Course{Iteration: 1, Fixes: 3, Signature: "x", Same: 2, Worse: 1, LastWorse: true}, c.Enter(phase.Fix))
	require.Equal(t, loop.Course{Iteration: 2}, c.Begin(2))
}
