package evaluator

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/shell"
)

// Listing is a command that prints the names of the files in which a runner finds tests. Dir is the folder in which
// it runs, relative to the root.
type Listing struct{ Dir, Command string }

// asItStands matches a glob that a shell may expand without quotes.
var asItStands = lazyregexp.New(`^[\w./@*?-]+$`)

// listing records how a runner lists its tests, if its command is completely known.
func (r *refs) listing(c shell.Command, name, lists string) {
	index := slices.IndexFunc(c.Words, func(w shell.Word) bool { return called(w) == name })
	if lists == "" || index < 0 || path.IsAbs(c.Dir) || strings.HasPrefix(c.Dir, "..") {
		return
	}
	var words []string
	for _, w := range c.Words {
		switch {
		case w.Unknown || w.Glob && !asItStands().MatchString(w.Path):
			return
		case w.Glob:
			words = append(words, w.Path)
		default:
			words = append(words, shell.Quote(w.Path))
		}
	}
	if strings.HasPrefix(lists, "-") {
		words = append(words, lists)
	} else {
		rest := slices.DeleteFunc(slices.Clone(words[index+1:]), func(word string) bool { return contains("run watch dev", word) })
		words = slices.Concat(words[:index+1], []string{lists}, rest)
	}
	// npm has the programs of its packages on the PATH.
	l := Listing{c.Dir, `PATH="$PWD/node_modules/.bin:$PATH" ` + strings.Join(words, " ")}
	if !slices.Contains(r.listings, l) {
		r.listings = append(r.listings, l)
	}
}
