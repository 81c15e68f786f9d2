package charter

import (
	"encoding/json"

	"pawl/internal/spec"
)

// Fragment is what the charter gives all loops, laid over the defaults of a spec. It is no whole spec.
func (c Charter) Fragment() spec.Spec {
	s := spec.Defaults()
	if len(c.Defaults) > 0 && json.Unmarshal(c.Defaults, &s) != nil {
		s = spec.Defaults() // Parse refuses such defaults
		s.Sandbox.Use = spec.Required
	}
	return s
}

// Sandbox is what keeps the planner from the rest of the machine: what its loops have unless they say
// otherwise.
func (c Charter) Sandbox() spec.Sandbox { return c.Fragment().Sandbox }
