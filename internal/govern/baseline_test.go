package govern_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/evidence"
	"pawl/internal/govern"
	"pawl/internal/reason"
)

func TestP0_ABoundHasToHoldOnTheUnchangedCode(t *testing.T) {
	percent := &evidence.Threshold{Value: evidence.MustDecimal("5"), Percent: true}
	five := &evidence.Threshold{Value: evidence.MustDecimal("5")}
	for name, c := range map[string]struct {
		bound  evidence.Bound
		values map[string]string
		says   string
	}{
		"not printed":                {evidence.Bound{Name: "mem", Direction: "lower", AtWorst: percent}, map[string]string{"ms": "1"}, "prints no METRIC mem="},
		"only recorded, not printed": {evidence.Bound{Name: "mem"}, nil, "prints no METRIC mem="},
		"only recorded":              {evidence.Bound{Name: "mem"}, map[string]string{"mem": "7"}, ""},
		"relative":                   {evidence.Bound{Name: "mem", Direction: "lower", AtWorst: percent}, map[string]string{"mem": "7"}, ""},
		"relative to a negative one": {evidence.Bound{Name: "mem", Direction: "lower", AtWorst: percent}, map[string]string{"mem": "-7"}, ""},
		"relative to 0":              {evidence.Bound{Name: "mem", Direction: "higher", AtWorst: percent}, map[string]string{"mem": "0"}, ""},
		"at the bound":               {evidence.Bound{Name: "mem", Direction: "lower", AtWorst: five}, map[string]string{"mem": "5"}, ""},
		"beyond it":                  {evidence.Bound{Name: "mem", Direction: "lower", AtWorst: five}, map[string]string{"mem": "5.1"}, "mem is 5.1 on the unchanged code, and metrics allows 5 at worst"},
		"below it":                   {evidence.Bound{Name: "mem", Direction: "higher", AtWorst: five}, map[string]string{"mem": "4"}, "at worst"},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]evidence.Decimal{}
			for name, value := range c.values {
				values[name] = evidence.MustDecimal(value)
			}
			law := protocol
			law.Bounds = []evidence.Bound{c.bound}
			unfit := law.WithoutMetric(values)
			if c.says == "" {
				require.Empty(t, unfit)
				return
			}
			require.Contains(t, unfit.What, c.says)
			require.Contains(t, unfit.Do, "mem")
		})
	}
}

func TestP0_MeasurementsOfTheUnchangedCodeHaveToAgree(t *testing.T) {
	require.Empty(t, govern.Disagreeing(1, reason.NoNumber, "nothing"), "there is none to agree with")
	require.Empty(t, govern.Disagreeing(2, reason.VerifyFailed, ""))
	unfit := govern.Disagreeing(2, reason.NoNumber, "the output is empty")
	require.Contains(t, unfit.What, "in run 2, the output is empty")
	require.Contains(t, unfit.Do, "METRIC name=number")
}
