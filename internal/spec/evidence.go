package spec

import (
	"fmt"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
)

// How a metric loop decides on a change (`verify.evidence`). With Auto the baseline shows which of the two fits.
const (
	Single     = "single"     // one measurement of each change: the protocol of the source
	Sequential = "sequential" // measures reference and change in turn, until one is shown to be better
)

// Holdout is a command that is only measured for the claim. The agent never sees it.
type Holdout struct {
	Command string `json:"command,omitempty"`
}

// Judging returns how a metric loop decides: Auto, Single or Sequential.
func (v Verify) Judging() string { return or(v.Evidence, Auto) }

// Mark is the value of verify.suspicious that keeps and marks an improvement that is too good.
const Mark = "mark"

// OnSuspicious returns what happens to an improvement that is too good: Auto, Ask or Mark.
func (v Verify) OnSuspicious() string { return or(v.Suspicious, Auto) }

// Calibrations returns how many evaluations of the base measure its noise.
func (v Verify) Calibrations() int { return or(v.Calibration, stats.DefaultCalibration) }

// MostSamples returns the maximum number of evaluations of one change.
func (v Verify) MostSamples() int { return or(v.MaxSamples, stats.DefaultMaxSamples) }

// Shares reports whether other loops of the host may measure at the same time.
func (v Verify) Shares() bool { return or(v.ParallelSafe, false) }

var metricName = lazyregexp.New(`^[^\s=]{1,80}$`)

// metrics checks the further metrics.
func (s Spec) metrics(c *Checker) {
	if len(s.Metrics) > metric.MostNames {
		c.Add("metrics", fmt.Sprintf("are %d", len(s.Metrics)), fmt.Sprintf("at most %d", metric.MostNames))
	}
	seen := map[string]bool{}
	for i, m := range s.Metrics {
		key := fmt.Sprintf("metrics[%d]", i)
		switch {
		case m.Name == "":
			c.Add(key+".name", MissingKey, "the name that verify prints in a line METRIC name=number")
		case !metricName().MatchString(m.Name):
			c.Add(key+".name", "is "+Show(m.Name), "a name of up to 80 characters, without spaces and =")
		case seen[m.Name]:
			c.Add(key+".name", "is given twice", "each metric once")
		}
		seen[m.Name] = true
		if m.Direction != "" { // without a direction, higher is better, as with the metric itself
			c.OneOf(key+".direction", m.Direction, Words["metrics[].direction"])
		}
		if m.AtWorst != nil && m.AtWorst.Percent && m.AtWorst.Sign() < 0 {
			c.Add(key+".atWorst", "is "+m.AtWorst.String(), `0% or more: by how much it may be worse than the baseline`)
		}
	}
}
