package charter

import (
	"encoding/json"

	"pawl/internal/spec"
)

// Sandbox is what keeps the planner from the rest of the machine: the one that the steward's loops
// have unless they say otherwise.
func (c Charter) Sandbox() spec.Sandbox {
	part := struct {
		Sandbox spec.Sandbox `json:"sandbox"`
	}{spec.Defaults().Sandbox}
	if len(c.Defaults) > 0 && json.Unmarshal(c.Defaults, &part) != nil {
		return spec.Sandbox{Use: spec.Required} // Parse refuses such defaults
	}
	return part.Sandbox
}
