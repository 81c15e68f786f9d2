package spec

import (
	"slices"
	"strings"

	"pawl/internal/spec/kind"
)

// The keys of a running loop's contract that may be amended. A goal never changes, and a scope never widens (A10).
var (
	// Extendable are the budgets.
	Extendable = []string{
		"limits.iterations", "limits.activeTime", "limits.toolCalls", "limits.costUSD", "limits.tokens", "limits.wallClock",
	}
	// Amendable are the commands that may be wrong.
	Amendable = []string{
		"verify.command", "verify.timeout", "verify.pattern", "guard.command", "guard.timeout", "test.command", "test.timeout", "check.command",
	}
	// Approvable are the approvals of tools.
	Approvable = []string{"approvals.tools", "approvals.onDenied"}
)

// Amend returns the spec with the values of a fragment: one JSON object with keys of the spec. It returns Problems
// for a key that is not allowed, and if the resulting spec is not valid.
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
	if len(problems) > 0 {
		return Spec{}, problems.Err()
	}
	Decode(doc, &s, &problems)
	for _, p := range s.check() {
		if !problems.Covers(p.Key) {
			problems.Add(p.Key, p.What, p.Want)
		}
	}
	return s, problems.Err()
}

// Fragment adds a problem if fragment is not a valid part of a loop's spec, for example the values that all loops of
// a steward have. It may set every key except those of starters. Required keys may be missing. If it names no kind,
// it has to be valid for at least one kind.
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

// keysOf returns the keys of a document, dotted and sorted.
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
