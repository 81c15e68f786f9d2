package config

import (
	"encoding/json"
	"fmt"

	"pawl/internal/spec"
)

// Fragment returns the JSON object of a list of "key=value", in the syntax of Open's sets. Problems name the flag
// with which they came. The caller checks the meaning of the keys.
func Fragment(flag string, sets []string) (json.RawMessage, error) {
	doc := &document{values: map[string]any{}, at: map[string]position{"": {source: flag}}}
	for _, set := range sets {
		key, value, found := path(set)
		if !found {
			doc.wrong = append(doc.wrong, spec.Problem{File: flag, What: fmt.Sprintf("%q is not of the form key=value", set), Want: flag + " key=value"})
			continue
		}
		doc.put(key, text(value[1:]), flag)
	}
	if problems := doc.problems(nil); len(problems) > 0 {
		return nil, problems
	}
	return json.Marshal(doc.values)
}
