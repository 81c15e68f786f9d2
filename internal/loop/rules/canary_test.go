package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/judge/canary"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// Broken code may hang the command that runs it.
func TestACanaryHasAFewTimesAsLongAsItsCommandTook(t *testing.T) {
	s := spec.Spec{Guard: spec.Guard{Command: "guard", Timeout: spec.Duration(5 * time.Minute)}, Test: spec.Test{Command: "test", Timeout: spec.Duration(time.Minute)}}
	c := rules.CanaryOf(s, &api.Outcome{ElapsedMs: 12_000}, &api.Outcome{ElapsedMs: 40_000})
	require.Equal(t, []string{"guard", "test"}, []string{c.Guard, c.Test})
	require.Equal(t, time.Minute, c.Spec.Guard.Timeout.D())
	require.Equal(t, time.Minute, c.Spec.Test.Timeout.D(), "its own limit holds")
	require.Equal(t, int64(120_000), c.LimitMs)

	c = rules.CanaryOf(s, &api.Outcome{ElapsedMs: 100}, &api.Outcome{ExitCode: 1})
	require.Equal(t, 30*time.Second, c.Spec.Guard.Timeout.D(), "a machine may be busy")
	require.Empty(t, c.Test, "it fails as it is")
	require.Zero(t, rules.CanaryOf(s, nil, nil).LimitMs)
}

// The guard runs once for each part, for at most two minutes and twelve runs.
func TestPartsAreTriedWhileThatTakesNotTooLong(t *testing.T) {
	require.True(t, rules.TriesPart(0, 0, 2*time.Minute))
	require.False(t, rules.TriesPart(0, 0, 2*time.Minute+1))
	require.True(t, rules.TriesPart(11, time.Minute, time.Minute))
	require.False(t, rules.TriesPart(3, time.Minute+1, time.Minute))
	require.False(t, rules.TriesPart(12, 0, 0))
	var parts []canary.Part
	for i := range 15 {
		parts = append(parts, canary.Part{Name: fmt.Sprint("p", i), Files: []string{"a.go"}})
	}
	require.Equal(t, "it was not tried whether `npm test` sees each part of the code, since that takes long. Not tried: p0, p1", rules.PartsLeft(parts[:2], "", "npm test"))
	require.Contains(t, rules.PartsLeft(parts, "npm test"), "p11, 3 more")
}
