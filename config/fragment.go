package config

import "encoding/json"

// Fragment returns the JSON object of a list of "key=value", in the syntax of Open's sets. Problems name the flag
// with which they came. The caller checks the meaning of the keys.
func Fragment(flag string, sets []string) (json.RawMessage, error) {
	doc := newDocument(flag)
	for _, set := range sets {
		if key, value, ok := doc.pair(flag, set, "key=value"); ok {
			doc.put(key, text(value), flag)
		}
	}
	if problems := doc.problems(nil); len(problems) > 0 {
		return nil, problems
	}
	return json.Marshal(doc.values)
}
