package metric

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
)

// Shape is the extent of a change, according to its diff.
type Shape struct {
	Areas int `json:"areas,omitempty"` // folders with changed files
	Files int `json:"files,omitempty"`
	Hunks int `json:"hunks,omitempty"` // changed places in files, 0 if nobody counted them
}

// ShapeOf returns the shape of a change of these files. A rename counts as two files.
func ShapeOf(files []string, hunks int) Shape {
	return Shape{Areas: len(list.Set(list.Map(files, path.Dir))), Files: len(files), Hunks: hunks}
}

// A change of this size is large, whatever its description.
const (
	manyAreas = 4
	manyFiles = 20
	manyHunks = 60
)

// Several returns why a change is more than one (P2), "" if it is one. The description has to name several changes,
// and the diff has to show them. It does if a clause with its own verb follows the "and" ("improve X and remove Y")
// and the diff is in more than one place, or, for an "and" anywhere, if the diff is in more than one folder. "Swap
// prepare_auth and prepare_body" in one file is one change.
func Several(description string, s Shape) string {
	start, end := conjunction(description)
	if start < 0 {
		return ""
	}
	switch {
	case s.Areas > 1:
		return "the description names several changes, and the diff is in " + Counted(s.Areas, "folder")
	case clause(description[end:]) && (s.Files > 1 || s.Hunks > 1):
		return "the description names several changes, and the diff is in " + places(s)
	case clause(description[end:]) && s.Hunks == 0 && s.Files == 1: // nobody counted
		return "the description names several changes"
	}
	return ""
}

// Large returns why a change is larger than one idea usually is, "" if it is not. This is only worth a note, because
// a rename may touch many files.
func Large(s Shape) string {
	if s.Areas < manyAreas && s.Files < manyFiles && s.Hunks < manyHunks {
		return ""
	}
	return fmt.Sprintf("a large change: %s in %s", places(s), Counted(s.Areas, "folder"))
}

// places returns in how many files a change is, or in how many places of one file.
func places(s Shape) string {
	if s.Files > 1 || s.Hunks == 0 {
		return Counted(s.Files, "file")
	}
	return Counted(s.Hunks, "place")
}

// clause reports whether a text begins with a verb, like the second half of "improve X and remove Y". A word that may
// also be a noun or an adjective counts only before an article: "and lower case" is no clause, "and lower the limit"
// is one.
func clause(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == ';' })
	for len(words) > 0 && slices.Contains([]string{"then", "also", "to"}, words[0]) {
		words = words[1:]
	}
	return len(words) > 1 && (verbs().MatchString(words[0]) || nouns().MatchString(words[0]) && articles().MatchString(words[1]))
}

// How the second half of a description may begin: "add", "adds", "added", "adding".
var (
	verbs = words("add", "adjust", "align", "allow", "apply", "avoid", "begin", "bump", "clean", "clear", "collapse", "combine", "compute",
		"convert", "correct", "delete", "disable", "drop", "enable", "ensure", "expose", "extend", "extract", "fix", "fold", "handle", "hoist", "ignore",
		"implement", "improve", "increase", "inline", "introduce", "join", "keep", "make", "merge", "move", "optimi[sz]e", "polish", "prefer", "prevent",
		"raise", "reduce", "refactor", "reject", "remove", "rename", "reorder", "replace", "restore", "reuse", "revert", "rewrite", "shorten",
		"simplify", "skip", "swap", "tidy", "tighten", "trim", "tweak", "unroll", "update", "upgrade", "use", "validate", "write")
	nouns = words("batch", "cache", "call", "change", "check", "copy", "count", "cut", "document", "format", "limit", "log", "lower", "report", "reset",
		"return", "scan", "set", "sort", "speed", "split", "start", "stop", "store", "support", "switch", "test", "turn")
	articles = lazyregexp.New(`^(?:the|an?|all|its?|their|them|this|that|these|those|each|every|no|one|up|off)$`)
)

// words matches each of these words, with the endings of a verb.
func words(names ...string) lazyregexp.Regexp {
	return lazyregexp.New(`^(?:` + strings.Join(names, "|") + `)(?:e?s|e?d|ing)?$`)
}
