package agents

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Renewed reports whether a program has only renewed the sign-ins in its file, from before to after. No sign-in may
// be added, removed or changed in its kind, and no value may be one that the program runs as a command. opencode
// fetches settings for a sign-in of the kind wellknown, and pi runs a key that begins with "!".
func Renewed(prefix, suffix []byte) bool {
	var earlier, current map[string]map[string]any
	if len(suffix) == 0 || json.Unmarshal(suffix, &current) != nil || len(prefix) > 0 && json.Unmarshal(prefix, &earlier) != nil {
		return string(prefix) == string(suffix)
	}
	for provider := range earlier {
		if _, ok := current[provider]; !ok {
			return false
		}
	}
	for provider, now := range current {
		old, ok := earlier[provider]
		if !ok || !reflect.DeepEqual(old["type"], now["type"]) || now["type"] == "wellknown" && !reflect.DeepEqual(old, now) {
			return false
		}
		for name, value := range now {
			if text, _ := value.(string); strings.HasPrefix(text, "!") && old[name] != value {
				return false
			}
		}
	}
	return true
}
