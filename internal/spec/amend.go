package spec

import (
	"slices"
	"strings"
)

// The keys that a running loop's contract may be amended in, by what is amended. A goal never
// changes and a scope never widens (A10).
var (
	// Extendable are the budgets.
	Extendable = []string{
		"limits.iterations", "limits.activeTime", "limits.toolCalls", "limits.costUSD", "limits.tokens", "limits.wallClock",
	}
	// Amendable are the commands that may have been at fault.
	Amendable = []string{
		"verify.command", "verify.timeout", "verify.pattern", "guard.command", "guard.timeout", "test.command", "test.timeout", "check.command",
	}
)

// Amend returns the spec with a fragment, one JSON object in the spec's own keys, written over it.
// Problems say what is wrong with the fragment: a key that is not among those allowed, or a spec
// that would not be valid.
func (s Spec) Amend(fragment []byte, allowed []string) (Spec, error) {
	var problems Problems
	tree, _, err := read(fragment, &problems)
	doc, isObject := tree.(map[string]any)
	if err != nil || !isObject || len(doc) == 0 {
		return Spec{}, Problems{{What: "not a fragment of a spec", Want: "one JSON object with some of " + strings.Join(allowed, ", ")}}
	}
	for _, key := range keysOf(doc, "") {
		if !slices.Contains(allowed, key) {
			problems.Add(key, "can't be changed here", "some of "+strings.Join(allowed, ", "))
		}
	}
	Decode(doc, &s, &problems)
	for _, p := range s.check() {
		if !problems.Covers(p.Key) {
			problems.Add(p.Key, p.What, p.Want)
		}
	}
	return s, problems.Err()
}

// keysOf lists the keys of a document, dotted and sorted.
func keysOf(doc map[string]any, parent string) []string {
	var keys []string
	for name, v := range doc {
		key := join(parent, name)
		if inner, ok := v.(map[string]any); ok {
			keys = append(keys, keysOf(inner, key)...)
		} else {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
