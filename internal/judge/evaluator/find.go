package evaluator

import (
	"maps"
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/spec"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/internal/lib/lazyregexp"
)

// Set lists what an agent must never change (P3), whatever the scope says, and what it must never add.
type Set struct {
	Files  []string // files of the base commit, sorted
	Groups []Group  // sorted by glob
	// Open are the globs of the scope that name tests or settings of the evaluator. No group seals what they match.
	Open []string
	// Outside are programs and files outside the repository, as commands name them: absolute, beginning with ~/, or
	// the name of a program without a folder. Sorted.
	Outside []string
	// Unread are scripts, and targets of make and similar programs, for which pawl can't tell what they run. Sorted.
	Unread []string
	// By says because of what a file or a group of files (by its glob) is sealed, such as "make in guard.command". It has
	// nothing about the holdout.
	By map[string]string
	// Listings are commands that print the files of the tests that the guard and test commands find.
	Listings []Listing

	needs []string // for each group, a text that every matching name contains
}

// Has reports whether a file of the base commit is sealed.
func (s Set) Has(file string) bool {
	if _, found := slices.BinarySearch(s.Files, file); found {
		return true
	}
	for i, g := range s.Groups {
		if g.There && strings.Contains(file, s.needs[i]) && doublestar.MatchUnvalidated(g.Glob, file) {
			return !spec.MatchAny(s.Open, file)
		}
	}
	return false
}

// literal returns the longest piece of a glob that every matching name contains. It makes matching fast: a repository
// may have a hundred thousand names, and most of them match nothing.
func literal(glob string) (longest string) {
	if strings.ContainsAny(glob, "{[") {
		return ""
	}
	for _, piece := range strings.FieldsFunc(glob, func(c rune) bool { return strings.ContainsRune(`*?\`, c) }) {
		if piece = strings.Trim(piece, "/"); len(piece) > len(longest) {
			longest = piece
		}
	}
	return longest
}

// Find returns what the contract of a spec seals. files are all files of the base commit, relative to the root.
// Sealed by name are:
//
//   - what the globs of protect match;
//   - existing files that the guard command names: as ./x, as $PWD/x, as a part of an argument such as --config=x,
//     x::test or a,b, as an unquoted glob, after cd, and within sh -c '…';
//   - scripts that verify, test, check and guard run: a path in the place of a command, what an interpreter gets to run
//     (sh x, python -m x, node -r y x, awk -f x, sh <x), and the file in which make, npm, just and similar programs
//     find what to do. Their data is not sealed: in "sh score.sh data.txt" the script is sealed and data.txt is not.
//
// The table of evaluators says what is sealed in groups: tests that guard and test commands name or discover;
// settings of every program that runs; and names of absent files that would take precedence over a sealed file
// (GNUmakefile before Makefile). A scope that names such files opens them, because then they are to be changed. A
// scope never opens what is sealed by name.
//
// Other folders are not sealed: "go vet ./..." and "eslint src" name the code under change. protect can seal them,
// and Unsealed lists the folders to think about.
//
// Find reads scripts and targets to find what they run in turn (recipes.go, imports.go). That is sealed too, unless
// the scope names the file or its folder. read returns the text of a file of the base commit, "" if it is not
// available. If read is nil, Find reads nothing.
func Find(s spec.Spec, files []string, read func(file string) string) Set {
	r := newRefs(s, files)
	if read != nil {
		r.text = read
	}
	for _, file := range files {
		if spec.MatchAny(s.Protect, file) {
			r.sealed[file] = true
		}
	}
	for _, c := range []struct{ key, command string }{
		{"verify.command", s.Verify.Command}, {"", s.Verify.Holdout.Command}, {"test.command", s.Test.Command}, {"check.command", s.Check.Command},
		{"guard.command", s.Guard.Command},
	} {
		r.key, r.judges = c.key, c.command == s.Guard.Command || c.command == s.Test.Command
		r.scripts(c.command, "", nil, 0)
	}
	r.words(s.Guard.Command, "", nil, 0)
	for file := range r.found {
		if !named(s.Scope, file) {
			r.sealed[file] = true
		}
	}
	seals := Set{
		Unread: slices.Sorted(maps.Keys(r.unread)), Files: slices.Sorted(maps.Keys(r.sealed)), Outside: slices.Sorted(maps.Keys(r.outside)), Open: opened(s.Scope, r.groups),
		Groups:   slices.SortedFunc(maps.Values(r.groups), func(a, b Group) int { return strings.Compare(a.Glob, b.Glob) }),
		Listings: r.listings, By: r.by,
	}
	seals.needs = list.Map(seals.Groups, func(g Group) string { return literal(g.Glob) })
	return seals
}

// named reports whether a scope names a file, or a folder that contains it: by a glob that begins with a name.
func named(scope []string, file string) bool {
	return slices.ContainsFunc(scope, func(glob string) bool {
		first, _, _ := strings.Cut(spec.Tidy(glob), "/")
		return !strings.ContainsAny(first, `*?[{`) && spec.MatchAny([]string{glob}, file)
	})
}

// Unsealed returns the folders that the guard command names, or that any of the commands runs as a program, and that
// contain files which are not sealed. The author of a spec should know that the agent may change those files if the
// scope allows it. Not in the result are the root, and folders that only a variable names: PYTHONPATH=src says where the
// code is.
func Unsealed(s spec.Spec, files []string, read func(file string) string) []string {
	r, seals := newRefs(s, files), Find(s, files, read)
	open := map[string]bool{}
	for _, file := range files {
		if !seals.Has(file) {
			for dir := path.Dir(file); dir != "." && !open[dir]; dir = path.Dir(dir) {
				open[dir] = true
			}
		}
	}
	r.dirs = map[string]bool{}
	r.words(s.Guard.Command, "", nil, 0)
	for _, command := range []string{s.Verify.Command, s.Verify.Holdout.Command, s.Test.Command, s.Check.Command} {
		r.scripts(command, "", nil, 0)
	}
	maps.DeleteFunc(r.dirs, func(dir string, _ bool) bool { return !open[dir] })
	return slices.Sorted(maps.Keys(r.dirs))
}

// maxNesting limits how deep commands within arguments of commands are read.
const maxNesting = 8

// refs collects what commands refer to.
type refs struct {
	root     string // repo.path, for absolute names
	files    []string
	exists   map[string]bool
	folders  map[string]bool   // the folders of the files; nil until the first use
	key      string            // of the command in the spec, "" for the holdout's
	program  string            // the program in it
	by       map[string]string // Set.By
	judges   bool              // the command's tests judge the work
	listings []Listing         // Set.Listings
	named    bool              // the current word is only named, and may not be run
	out      bool              // the current word is written to
	inner    bool              // the current word is in the text of a program for awk, sed or jq, where * is no glob
	sealed   map[string]bool
	groups   map[string]Group // by glob
	outside  map[string]bool
	dirs     map[string]bool // the folders that commands name; nil if nobody needs them

	// What scripts, and targets of make and similar programs, run in turn is found in the texts of files of the base commit.
	text   func(file string) string
	depth  int             // how many files are being read, each from within another
	found  map[string]bool // files that the files read so far run or import
	unread map[string]bool // Set.Unread
	looked map[string]bool // what was read already, and how
}

func newRefs(s spec.Spec, files []string) *refs {
	r := &refs{
		files: files, exists: list.Set(files), sealed: map[string]bool{}, groups: map[string]Group{}, outside: map[string]bool{},
		text: func(string) string { return "" }, found: map[string]bool{}, unread: map[string]bool{}, looked: map[string]bool{},
	}
	if path.IsAbs(s.Repo.Path) {
		r.root = path.Clean(s.Repo.Path)
	}
	return r
}

// words seals every file that is a word of the command.
func (r *refs) words(command, dir string, env map[string]shell.Word, depth int) {
	if depth > maxNesting {
		return
	}
	for _, c := range shell.Read(command, dir, env) {
		if c.Loose {
			r.anywhere(c.All)
			continue
		}
		if w := c.Words; len(w) == 2 && (w[0].Text == "cd" || w[0].Text == "pushd") { // only the next commands say what they use in that folder
			continue
		}
		for _, w := range c.All {
			r.named, r.out = true, w.Out
			r.refer(c.Dir, w)
			if strings.ContainsAny(w.Text, " \t\n;") { // sh -c 'diff a b', hyperfine './x y'
				outer := r.inner
				r.inner = outer || slices.ContainsFunc(c.Words, func(w shell.Word) bool { return interpreters[called(w)].program })
				r.words(w.Text, c.Dir, c.Env, depth+1)
				r.inner = outer
			}
		}
		if c.Here != "" {
			r.words(c.Here, c.Dir, c.Env, depth+1)
		}
	}
}

// anywhere seals each file that a word could name from any folder. It is used for a command that can't be parsed: it
// is better to seal too much than too little.
func (r *refs) anywhere(words []shell.Word) {
	for _, w := range words {
		name := path.Clean("/" + strings.TrimPrefix(w.Path, shell.Root))
		for _, file := range r.files {
			if file == name[1:] || strings.HasSuffix(file, name) {
				r.sealed[file] = true
				r.because(file)
			}
		}
	}
}

// refer seals the files that one word may name.
func (r *refs) refer(dir string, w shell.Word) {
	if w.Unknown {
		r.atHome(w)
		return
	}
	if w.Glob && r.inner { // awk 'BEGIN { exit 2 * 3 }'
		return
	}
	if w.Glob {
		r.match(dir, w.Path)
		if _, value, ok := strings.Cut(w.Path, "="); ok {
			r.match(dir, value)
		}
		return
	}
	if dirs := r.dirs; assignment().MatchString(w.Path) {
		r.dirs = nil
		defer func() { r.dirs = dirs }()
	}
	r.seal(dir, w.Path)
	for _, part := range strings.FieldsFunc(w.Path, func(c rune) bool { return strings.ContainsRune("=,:;@", c) }) {
		r.seal(dir, part)
	}
}

// seal seals a file by its name, and reports whether the file exists.
func (r *refs) seal(dir, name string) bool {
	file := r.relative(shell.Resolve(dir, name))
	if r.exists[file] {
		r.mark(file)
		return true
	}
	if path.IsAbs(file) && !r.out && !(r.named && scratch().MatchString(file)) {
		r.outside[file] = true
	}
	if r.dirs != nil && file != "." {
		r.dirs[strings.TrimSuffix(file, "/...")] = true
	}
	return false
}

// match seals the files that a pattern matches, and returns them.
func (r *refs) match(dir, pattern string) (found []string) {
	pattern = r.relative(shell.Resolve(shell.EscapeGlob(dir), pattern))
	if !doublestar.ValidatePattern(pattern) {
		return nil
	}
	for _, file := range r.files {
		if doublestar.MatchUnvalidated(pattern, file) {
			r.mark(file)
			found = append(found, file)
		}
	}
	return found
}

// relative removes the path of the user's repository from an absolute name. A command means the same file, although
// the judge has it in another place.
func (r *refs) relative(name string) string {
	if r.root != "" && r.root != "/" {
		if rest, ok := strings.CutPrefix(name, r.root+"/"); ok {
			return rest
		}
	}
	return name
}

// scratch matches the folders for temporary data of commands.
var scratch = lazyregexp.New(`^/(tmp|var/tmp|dev|proc|run)(/|$)`)

// file seals the files that a word names, and returns them.
func (r *refs) file(dir string, w shell.Word) []string {
	switch {
	case w.Unknown:
		r.atHome(w)
	case w.Glob:
		return r.match(dir, w.Path)
	case r.seal(dir, w.Path):
		return []string{r.relative(shell.Resolve(dir, w.Path))}
	}
	return nil
}

// atHome records a path in the home of the user who runs the loop, if the rest of the word is known.
func (r *refs) atHome(w shell.Word) {
	for _, home := range []string{"~/", "$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(w.Text, home); ok && !strings.ContainsAny(rest, "$`") {
			r.outside["~/"+path.Clean(rest)] = true
		}
	}
}
