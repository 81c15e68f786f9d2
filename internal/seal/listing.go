package seal

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/lazyregexp"
	"pawl/internal/shell"
)

// Listing is a command that prints the names of the files in which a runner finds tests, and a folder, relative to the root,
// in which it runs.
type Listing struct{ Dir, Command string }

// asItStands is a glob that a shell may expand as it stands.
var asItStands = lazyregexp.New(`^[\w./@*?-]+$`)

// listing notes how a runner lists its tests, where its command is all told.
func (r *refs) listing(c simple, name, lists string) {
	at := slices.IndexFunc(c.words, func(w word) bool { return called(w) == name })
	if lists == "" || at < 0 || path.IsAbs(c.dir) || strings.HasPrefix(c.dir, "..") {
		return
	}
	var words []string
	for _, w := range c.words {
		switch {
		case w.unknown || w.glob && !asItStands.MatchString(w.path):
			return
		case w.glob:
			words = append(words, w.path)
		default:
			words = append(words, shell.Quote(w.path))
		}
	}
	if strings.HasPrefix(lists, "-") {
		words = append(words, lists)
	} else {
		rest := slices.DeleteFunc(slices.Clone(words[at+1:]), func(word string) bool { return contains("run watch dev", word) })
		words = slices.Concat(words[:at+1], []string{lists}, rest)
	}
	// npm has the programs of its packages on the PATH.
	l := Listing{c.dir, `PATH="$PWD/node_modules/.bin:$PATH" ` + strings.Join(words, " ")}
	if !slices.Contains(r.listings, l) {
		r.listings = append(r.listings, l)
	}
}
