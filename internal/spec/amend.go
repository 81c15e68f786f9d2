package spec

import (
	"slices"
	"strings"

	"pawl/internal/kind"
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
	// Approvable are what is approved of tools.
	Approvable = []string{"approvals.tools", "approvals.onDenied"}
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

// Fragment wants a fragment of a loop's spec, such as one that loops have unless they say otherwise. It
// may set any key but those that are the starter's. What is required of a whole spec may be missing
// from it, and where it names no kind it has to be right for one of them.
func (c *Checker) Fragment(key string, fragment []byte, starters ...string) {
	var problems Problems
	tree, _, err := read(fragment, &problems)
	doc, isObject := tree.(map[string]any)
	if err != nil || !isObject {
		c.Add(key, "is not a fragment of a spec", "an object with some of the keys of a loop's spec")
		return
	}
	for _, name := range starters {
		if _, given := doc[name]; given {
			problems.Add(name, "can't be set here", "a key of a loop's spec other than "+strings.Join(starters, ", "))
			delete(doc, name)
		}
	}
	given := keysOf(doc, "")
	var always Problems
	for i, k := range kind.Loops() {
		s, wrong := Defaults(), Problems{}
		s.Kind = k
		Decode(doc, &s, &wrong)
		for _, p := range s.check() {
			if !wrong.Covers(p.Key) && slices.ContainsFunc(given, func(g string) bool {
				return p.Key == g || strings.HasPrefix(p.Key, g+"[") || strings.HasPrefix(p.Key, g+".")
			}) {
				wrong.Add(p.Key, p.What, p.Want)
			}
		}
		if i == 0 {
			always = wrong
		}
		always = slices.DeleteFunc(always, func(p Problem) bool { return !wrong.Covers(p.Key) })
	}
	for _, p := range append(problems, always...) {
		c.Add(join(key, p.Key), p.What, p.Want)
	}
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
