package agents

import (
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// What people may write into programs' settings besides JSON: comments, and a comma after the last item. Both
// expressions also match texts, in which the same characters mean nothing.
var (
	comment = lazyregexp.New(`(?s)"(?:\\.|[^"\\])*"?|//[^\n]*|/\*.*?(?:\*/|$)`)
	comma   = lazyregexp.New(`(?s)"(?:\\.|[^"\\])*"?|,[ \t\r\n]*[}\]]`)
)

// uncommented returns JSON without such comments and commas.
func uncommented(text []byte) []byte {
	json := comment().ReplaceAllStringFunc(string(text), func(found string) string {
		if found[0] == '"' {
			return found
		}
		return ""
	})
	return []byte(comma().ReplaceAllStringFunc(json, func(found string) string { return strings.TrimPrefix(found, ",") }))
}
