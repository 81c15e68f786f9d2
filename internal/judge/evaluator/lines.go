package evaluator

import (
	"slices"
	"strings"

	"pawl/internal/lib/list"
)

// Changed returns those of the directives that differ between the two texts of a file such as go.mod.
func Changed(previous, next string, directives []string) (changed []string) {
	old, current := statements(previous), statements(next)
	return list.Filter(directives, func(d string) bool { return !slices.Equal(old[d], current[d]) })
}

// statements returns the arguments of each directive, in order: the rest of its line, or each line of its block.
func statements(text string) map[string][]string {
	said := map[string][]string{}
	block := ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(strings.ReplaceAll(line, "(", " ( "))
		switch {
		case len(words) == 0:
		case block != "" && words[0] == ")":
			block = ""
		case block != "":
			said[block] = append(said[block], strings.Join(words, " "))
		case len(words) == 2 && words[1] == "(":
			block = words[0]
		default:
			said[words[0]] = append(said[words[0]], strings.Join(words[1:], " "))
		}
	}
	return said
}
