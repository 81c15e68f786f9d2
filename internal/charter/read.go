package charter

import (
	"encoding/json"

	"pawl/internal/spec"
	"pawl/internal/task"
)

// Parse reads a charter from one JSON object, the form of a workflow's input. It is spec.Parse for a steward.
func Parse(doc []byte) (Charter, error) {
	c := Defaults()
	if err := spec.Fill(doc, &c, func() spec.Problems {
		var given map[string]any
		if json.Unmarshal(doc, &given) == nil {
			c.vacant(given)
		}
		return c.check()
	}); err != nil {
		return Charter{}, err
	}
	return c, nil
}

// ParseEarly reads a charter for a run with older rules, which took an empty plan for none.
func ParseEarly(doc []byte) (Charter, error) {
	c := Defaults()
	if err := spec.Fill(doc, &c, func() spec.Problems { return c.check() }); err != nil {
		return Charter{}, err
	}
	return c, nil
}

// FromMap reads a charter from a document that is already parsed. It is spec.FromMap for a steward. If there are
// problems it also returns what it could read, so that the caller can check more.
func FromMap(doc map[string]any) (Charter, error) {
	c := Defaults()
	if problems := spec.FillMap(doc, &c, nil, func() spec.Problems { c.vacant(doc); return c.check() }); len(problems) > 0 {
		return c, problems
	}
	return c, nil
}

// vacant gives the tasks of schedules and triggers the empty plans that the document has. An empty list decodes to nil,
// which would mean that there is no plan.
func (c *Charter) vacant(doc map[string]any) {
	empty := func(list string, i int) bool {
		all, _ := doc[list].([]any)
		if i >= len(all) {
			return false
		}
		entry, _ := all[i].(map[string]any)
		of, _ := entry["task"].(map[string]any)
		plan, given := of["plan"].([]any)
		return given && len(plan) == 0
	}
	for i := range c.Schedules {
		if empty("schedules", i) {
			c.Schedules[i].Task.Plan = []task.Step{}
		}
	}
	for i := range c.Triggers {
		if empty("triggers", i) {
			c.Triggers[i].Task.Plan = []task.Step{}
		}
	}
}

// Keys returns all keys of the contract, dotted, in the order of its table.
func Keys() []string { return spec.KeysOf(Charter{}) }
