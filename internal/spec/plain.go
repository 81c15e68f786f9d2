package spec

import (
	"encoding/json"
	"regexp"
	"strings"

	"pawl/internal/evidence"
)

// The bounds of what is read as a spec, or as a part of one, stand beside Fill: MaxDepth and MaxValues. Here is which
// values of YAML it may have, for every reader of YAML: spec files and the front matter of plans.

// plainTags are the tags of YAML's own schemas that stand for values of a spec.
var plainTags = map[string]bool{"!!null": true, "!!bool": true, "!!int": true, "!!float": true, "!!str": true, "!!timestamp": true, "!!seq": true, "!!map": true}

// PlainTag reports whether a value of that YAML tag can stand in a spec.
func PlainTag(tag string) bool { return plainTags[tag] }

// octal is what YAML reads as an octal number: 0644 is 420.
var octal = regexp.MustCompile(`^[-+]?0[0-9]+$`)

// PlainNumber returns a number as it was written, with its decimals. ok is false for what only YAML takes for a number:
// octal, with a base or with underscores.
func PlainNumber(text string) (n json.Number, ok bool) {
	if _, err := evidence.ParseDecimal(text); err != nil || strings.Contains(text, "_") || octal.MatchString(text) {
		return "", false
	}
	return json.Number(text), true
}
