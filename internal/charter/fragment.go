package charter

import (
	"encoding/json"

	"pawl/internal/spec"
)

// Fragment returns the defaults of a spec with the charter's defaults over them. It is not a whole spec.
func (c Charter) Fragment() spec.Spec {
	s := spec.Defaults()
	if len(c.Defaults) > 0 && json.Unmarshal(c.Defaults, &s) != nil {
		s = spec.Defaults() // Parse refuses such defaults
		s.Sandbox.Use = spec.Required
	}
	return s
}

// Sandbox returns the sandbox of the planner, which is that of its loops unless they change it.
func (c Charter) Sandbox() spec.Sandbox { return c.Fragment().Sandbox }
