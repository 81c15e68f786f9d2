package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/rules"
)

func TestASetupThatFailedRunsAgain(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const said = "the setup command fails (exit 1): `npm ci`\nnpm error network\nnpm error ECONNRESET\n"
	for name, c := range map[string]struct {
		passed, asks bool
		times        int
		want         rules.AfterSetup
	}{
		"at the start, once more":           {times: 1, asks: true, want: rules.AfterSetup{Again: true}},
		"at the start, twice":               {times: 2, asks: true},
		"it passed before":                  {passed: true, asks: true, times: 1, want: rules.AfterSetup{Again: true, Until: now.Add(30 * time.Second)}},
		"a second time":                     {passed: true, asks: true, times: 2, want: rules.AfterSetup{Again: true, Until: now.Add(2 * time.Minute)}},
		"from scratch, a third time":        {passed: true, times: 3},
		"from scratch, it has time as well": {passed: true, times: 2, want: rules.AfterSetup{Again: true, Until: now.Add(2 * time.Minute)}},
		"a third time": {passed: true, asks: true, times: 3, want: rules.AfterSetup{
			Ask: "the setup command fails (exit 1): `npm ci` (npm error ECONNRESET), 3 times in a row, and it passed before: answer retry to run it again",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := rules.SetupFailure{Said: said, Passed: c.passed, Times: c.times, Asks: c.asks}
			require.Equal(t, c.want, f.After(now))
		})
	}
	require.Equal(t, "no output", rules.SetupFailure{Said: "no output"}.Brief())
}
