package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
)

// pawl keeps a part of a long output. The metric is found in all of it, and never in pawl's own note about the rest.
func TestP5_TheMetricIsFoundInOutputThatIsNotKept(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	env := actest.Environment(l.Activities)
	env.RegisterActivity(l.Verify)
	const before, after = "yes x | head -n 2500000; ", "; yes ok | head -n 2500000"
	for name, c := range map[string]struct {
		command, pattern string
		metric, noNumber string
	}{
		"a METRIC":                       {command: before + "echo METRIC ms=120" + after, metric: "120"},
		"a pattern":                      {command: before + "echo took 3.5 s" + after, pattern: `took ([0-9.]+)`, metric: "3.5"},
		"a pattern of whole lines":       {command: before + "echo took 3.5" + after, pattern: `(?m)^took ([0-9.]+)$`, metric: "3.5"},
		"a number at the end":            {command: before + "echo 1" + after + "; echo 7", metric: "7"},
		"no number":                      {command: before + "echo none" + after, noNumber: "bytes of the output were left out"},
		"a pattern that spans two lines": {command: before + "echo took; echo 3.5" + after, pattern: `took\n([0-9.]+)`, noNumber: "matches in no line of it"},
	} {
		t.Run(name, func(t *testing.T) {
			step := api.Step{Ref: l.Opened.Ref, Key: api.Key{Iteration: 1, Attempt: 1, Name: "verify " + name}, Head: l.Opened.Base, LimitMs: 60000}
			value, err := env.ExecuteActivity(l.Verify, api.Verify{Step: step, Command: c.command, Pattern: c.pattern})
			require.NoError(t, err)
			var measured api.Measured
			require.NoError(t, value.Get(&measured))
			if c.noNumber != "" {
				require.Nil(t, measured.Metric)
				require.Contains(t, measured.NoNumber, c.noNumber)
				return
			}
			require.Empty(t, measured.NoNumber)
			require.Equal(t, c.metric, measured.Metric.String())
		})
	}
}
