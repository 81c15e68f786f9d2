package agents

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Renewed reports whether a program has only renewed the sign-ins in its file, from original to renewed. No sign-in may
// be added, removed or changed in its kind, and no value may be one that the program runs as a command. opencode
// fetches settings for a sign-in of the kind wellknown, and pi runs a key that begins with "!".
func Renewed(original, renewed []byte) bool {
	var earlier, current map[string]map[string]any
	if len(renewed) == 0 || json.Unmarshal(renewed, &current) != nil || len(original) > 0 && json.Unmarshal(original, &earlier) != nil {
		return string(original) == string(renewed)
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
