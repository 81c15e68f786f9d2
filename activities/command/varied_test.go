package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/api"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
)

// Where the unchanged code prints several numbers in the place of one, the reader is told which one counts: once, and
// for the further metrics too.
func TestP5_TheNumberThatCountsIsNamed(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	env := actest.Environment(l.Activities)
	env.RegisterActivity(l.Verify)
	measure := func(name, command string, form *metric.Form) api.Measured {
		step := api.Step{Ref: l.Opened.Ref, Key: api.Key{Attempt: 1, Name: name}, Head: l.Opened.Base, LimitMs: 10000}
		value, err := env.ExecuteActivity(l.Verify, api.Verify{Step: step, Command: command, Names: []string{"mem"}, Form: form})
		require.NoError(t, err)
		var out api.Measured
		require.NoError(t, value.Get(&out))
		require.NotNil(t, out.Metric, out.NoNumber)
		return out
	}
	for name, c := range map[string]struct{ command, want string }{
		"one each":         {"echo METRIC mem=5; echo METRIC ms=120", ""},
		"the same twice":   {"echo METRIC mem=5; echo METRIC mem=5; echo METRIC ms=120; echo METRIC ms=120", ""},
		"the metric":       {"echo METRIC mem=5; echo METRIC ms=120; echo METRIC ms=110", "METRIC ms is printed with 2 different numbers, the last one, 110, was taken; print it once"},
		"a further metric": {"echo METRIC mem=5; echo METRIC mem=7; echo METRIC ms=120", "METRIC mem is printed with 2 different numbers, the last one, 7, was taken; print it once"},
	} {
		first := measure(name, c.command, nil)
		require.Equal(t, c.want, first.Warning, name)
		require.Empty(t, measure(name+" again", c.command, first.Form).Warning, "%s: once is enough", name)
	}
}
