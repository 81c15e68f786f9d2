package charter

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"pawl/internal/kind"
	"pawl/internal/spec"
	"pawl/internal/task"
)

// JSONSchema returns the schema of the spec files that this version accepts, of loops and of stewards. The key kind
// says which of the two a file is. loop and steward have the descriptions of the keys, by dotted key.
func JSONSchema(loop, steward map[string]string) *spec.Schema {
	fragment, whole := spec.LoopSchema(loop)
	is := spec.SchemaOf(struct {
		Kind string `json:"kind"`
	}{}, spec.Tables{Words: map[string][]string{"kind": {kind.Steward.Name}}, Required: []string{"kind"}})
	is.Additional = nil
	return &spec.Schema{
		Schema: "http://json-schema.org/draft-07/schema#", Title: "The spec of a pawl loop or steward",
		If: is, Then: spec.SchemaOf(Defaults(), tables(steward)), Else: whole,
		Definitions: map[string]*spec.Schema{spec.Fragment: fragment},
	}
}

// tables returns the tables that check uses. The required keys are those that check reports as missing in an empty
// charter.
func tables(descriptions map[string]string) spec.Tables {
	by := spec.Tables{Descriptions: descriptions, Words: words, Leasts: leasts, Barred: map[string][]string{"defaults": partial}, Empty: []string{"agent.command"}}
	empty := Defaults()
	empty.Tiers, empty.Schedules, empty.Triggers = []Rule{{}}, []Schedule{{}}, []Trigger{{}}
	required := map[string]bool{"kind": true}
	for _, p := range empty.check() {
		if key := index.ReplaceAllString(p.Key, "[]"); !strings.HasSuffix(key, "]") {
			required[key] = true
		}
	}
	by.Required = slices.Sorted(maps.Keys(required))
	for _, key := range []string{"schedules[].task", "triggers[].task"} {
		by.Barred[key] = []string{"id", "source", "dedupe"}
		by.Barred[key+".spec"], by.Barred[key+".plan[].spec"] = starters, partial
		for _, p := range (task.Task{Plan: []task.Step{}}).Check(key) { // it may have no plan, but not an empty one
			by.Filled = append(by.Filled, p.Key)
		}
	}
	return by
}

var index = regexp.MustCompile(`\[[0-9]+\]`)
