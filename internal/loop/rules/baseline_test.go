package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
)

func TestP0_ABoundHasToHoldOnTheUnchangedCode(t *testing.T) {
	percent := &metric.Threshold{Value: metric.MustDecimal("5"), Percent: true}
	five := &metric.Threshold{Value: metric.MustDecimal("5")}
	for name, c := range map[string]struct {
		bound  metric.Bound
		values map[string]string
		says   string
	}{
		"not printed":                {metric.Bound{Name: "mem", Direction: "lower", AtWorst: percent}, map[string]string{"ms": "1"}, "prints no METRIC mem="},
		"only recorded, not printed": {metric.Bound{Name: "mem"}, nil, "prints no METRIC mem="},
		"only recorded":              {metric.Bound{Name: "mem"}, map[string]string{"mem": "7"}, ""},
		"relative":                   {metric.Bound{Name: "mem", Direction: "lower", AtWorst: percent}, map[string]string{"mem": "7"}, ""},
		"relative to a negative one": {metric.Bound{Name: "mem", Direction: "lower", AtWorst: percent}, map[string]string{"mem": "-7"}, ""},
		"relative to 0":              {metric.Bound{Name: "mem", Direction: "higher", AtWorst: percent}, map[string]string{"mem": "0"}, ""},
		"at the bound":               {metric.Bound{Name: "mem", Direction: "lower", AtWorst: five}, map[string]string{"mem": "5"}, ""},
		"beyond it":                  {metric.Bound{Name: "mem", Direction: "lower", AtWorst: five}, map[string]string{"mem": "5.1"}, "mem is 5.1 on the unchanged code, and metrics allows 5 at worst"},
		"below it":                   {metric.Bound{Name: "mem", Direction: "higher", AtWorst: five}, map[string]string{"mem": "4"}, "at worst"},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]metric.Decimal{}
			for name, value := range c.values {
				values[name] = metric.MustDecimal(value)
			}
			law := protocol
			law.Bounds = []metric.Bound{c.bound}
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
	require.Empty(t, rules.Disagreeing(1, reason.NoNumber, "nothing"), "there is none to agree with")
	require.Empty(t, rules.Disagreeing(2, reason.VerifyFailed, ""))
	unfit := rules.Disagreeing(2, reason.NoNumber, "the output is empty")
	require.Contains(t, unfit.What, "in run 2, the output is empty")
	require.Contains(t, unfit.Do, "METRIC name=number")
}
