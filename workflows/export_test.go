package workflows

import "pawl/internal/spec"

// ImproveRules are the decisions of the metric protocol, for a test with rules of its own.
type ImproveRules = improveRules

// AddImproveRules adds a next version of the rules, until callOff is called.
func AddImproveRules(next func(spec.Spec) ImproveRules) (callOff func()) {
	before := improveVersions
	improveVersions = append(before[:len(before):len(before)], next)
	return func() { improveVersions = before }
}
