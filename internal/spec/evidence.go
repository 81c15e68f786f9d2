package spec

import (
	"fmt"

	"pawl/internal/evidence"
	"pawl/internal/evidence/sampling"
	"pawl/internal/lazyregexp"
)

// How a metric loop comes to its verdicts (`verify.evidence`), beside Auto: which of the two is right, the
// baseline shows.
const (
	Single     = "single"     // one measurement of each change: the source's protocol
	Sequential = "sequential" // reference and change in turn, until one of them is shown
)

// Holdout is measured for the claim alone. The agent is never told of it.
type Holdout struct {
	Command string `json:"command,omitempty"`
}

// Judging says how a metric loop comes to its verdicts: Auto, Single or Sequential.
func (v Verify) Judging() string {
	if v.Evidence == nil {
		return Auto
	}
	return *v.Evidence
}

// Calibrations is how many evaluations of the base tell what its noise is.
func (v Verify) Calibrations() int {
	if v.Calibration == nil {
		return sampling.DefaultCalibration
	}
	return *v.Calibration
}

// MostSamples is how many evaluations of one change there are at most.
func (v Verify) MostSamples() int {
	if v.MaxSamples == nil {
		return sampling.DefaultMaxSamples
	}
	return *v.MaxSamples
}

// Shares says whether other loops of the host may measure at the same time.
func (v Verify) Shares() bool { return v.ParallelSafe != nil && *v.ParallelSafe }

var metricName = lazyregexp.New(`^[^\s=]{1,80}$`)

// evidence checks how verdicts are come by, and the further metrics.
func (s Spec) evidence(c *Checker) {
	v := s.Verify
	c.OneOf("verify.evidence", v.Judging(), words["verify.evidence"])
	for _, n := range []struct {
		key   string
		value *int
		most  int
	}{{"verify.calibration", v.Calibration, sampling.MostCalibration}, {"verify.maxSamples", v.MaxSamples, sampling.MostSamples}} {
		if n.value == nil {
			continue
		}
		c.Least(n.key, *n.value, leasts[n.key])
		if *n.value > n.most {
			c.Add(n.key, fmt.Sprintf("is %d", *n.value), fmt.Sprintf("at most %d", n.most))
		}
	}
	c.Command("verify.holdout.command", v.Holdout.Command)
	if len(s.Metrics) > evidence.MostNames {
		c.Add("metrics", fmt.Sprintf("are %d", len(s.Metrics)), fmt.Sprintf("at most %d", evidence.MostNames))
	}
	seen := map[string]bool{}
	for i, m := range s.Metrics {
		key := fmt.Sprintf("metrics[%d]", i)
		switch {
		case m.Name == "":
			c.Add(key+".name", missingKey, "the name that verify prints in a line METRIC name=number")
		case !metricName.MatchString(m.Name):
			c.Add(key+".name", "is "+Show(m.Name), "a name of up to 80 characters, without spaces and =")
		case seen[m.Name]:
			c.Add(key+".name", "is given twice", "each metric once")
		}
		seen[m.Name] = true
		if m.Direction != "" { // as with the metric itself, higher is better where nothing is said
			c.OneOf(key+".direction", m.Direction, words["metrics[].direction"])
		}
		if m.AtWorst != nil && m.AtWorst.Percent && m.AtWorst.Sign() < 0 {
			c.Add(key+".atWorst", "is "+m.AtWorst.String(), `0% or more: by how much it may be worse than the baseline`)
		}
	}
}
