package workflows

import "pawl/internal/spec"

// ImproveRules are the decisions of the metric protocol, for a test that has some of its own.
type ImproveRules = improveRules

// AddImproveRules makes a next version of the rules, until it is called off.
func AddImproveRules(next func(spec.Spec) ImproveRules) (callOff func()) {
	before := improveVersions
	improveVersions = append(before[:len(before):len(before)], next)
	return func() { improveVersions = before }
}
