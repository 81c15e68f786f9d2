package govern_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/govern"
	"pawl/internal/spec"
)

// Code that was broken on purpose may hang what runs it.
func TestACanaryHasAFewTimesAsLongAsItsCommandTook(t *testing.T) {
	s := spec.Spec{Guard: spec.Guard{Command: "guard", Timeout: spec.Duration(5 * time.Minute)}, Test: spec.Test{Command: "test", Timeout: spec.Duration(time.Minute)}}
	c := govern.CanaryOf(s, &act.Outcome{ElapsedMs: 12_000}, &act.Outcome{ElapsedMs: 40_000})
	require.Equal(t, []string{"guard", "test"}, []string{c.Guard, c.Test})
	require.Equal(t, time.Minute, c.Spec.Guard.Timeout.D())
	require.Equal(t, time.Minute, c.Spec.Test.Timeout.D(), "its own limit holds")
	require.Equal(t, int64(120_000), c.LimitMs)

	c = govern.CanaryOf(s, &act.Outcome{ElapsedMs: 100}, &act.Outcome{ExitCode: 1})
	require.Equal(t, 30*time.Second, c.Spec.Guard.Timeout.D(), "a machine may be busy")
	require.Empty(t, c.Test, "it fails as it is")
	require.Zero(t, govern.CanaryOf(s, nil, nil).LimitMs)
}
