package agents

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Renewed reports whether a program has only renewed the sign-ins in its file, from before to after. No sign-in may
// be added, removed or changed in its kind, and no value may be one that the program runs as a command. opencode
// fetches settings for a sign-in of the kind wellknown, and pi runs a key that begins with "!".
func Renewed(before, after []byte) bool {
	var was, is map[string]map[string]any
	if len(after) == 0 || json.Unmarshal(after, &is) != nil || len(before) > 0 && json.Unmarshal(before, &was) != nil {
		return string(before) == string(after)
	}
	for provider := range was {
		if _, there := is[provider]; !there {
			return false
		}
	}
	for provider, now := range is {
		then, had := was[provider]
		if !had || !reflect.DeepEqual(then["type"], now["type"]) || now["type"] == "wellknown" && !reflect.DeepEqual(then, now) {
			return false
		}
		for name, value := range now {
			if text, _ := value.(string); strings.HasPrefix(text, "!") && then[name] != value {
				return false
			}
		}
	}
	return true
}
