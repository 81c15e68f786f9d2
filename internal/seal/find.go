package seal

import (
	"maps"
	"path"
	"slices"
	"strings"

	"pawl/internal/shell"
	"pawl/internal/spec"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/internal/lazyregexp"
)

// Set is what an agent must never change (P3), whatever the scope says, and what it must never add.
type Set struct {
	Files  []string // of the base commit, sorted
	Groups []Group  // sorted by glob
	// Open are globs of the scope that name tests or settings of the evaluator: what they match is in no
	// group.
	Open []string
	// Outside are programs and files outside of the repository, as commands name them: absolute, from ~/ on,
	// or a program's name without a folder. Sorted.
	Outside []string
	// Unread are scripts, and targets of make and its like, of which could not be told what they run. Sorted.
	Unread []string
	// Listings are commands that print the files of the tests that the guard and test commands find.
	Listings []Listing

	needs []string // by group: what every file has in its name that the group matches
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

// literal is the longest piece of a glob that stands in every name that it matches. A repository may have
// a hundred thousand names, and most match nothing.
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

// Find returns what the contract of a spec seals. files are all files of the base commit, relative to the
// root. Sealed by their names are:
//
//   - what the globs of protect match;
//   - existing files that are words of the guard command, also as ./x, as $PWD/x, as a part of
//     an argument such as --config=x, x::test or a,b, as an unquoted glob, after cd, and within
//     sh -c '…';
//   - scripts that verify, test, check and guard execute: a path in the place of a command, what
//     an interpreter is given to run (sh x, python -m x, node -r y x, awk -f x, sh <x), and the
//     file in which make, npm, just and their like find what to do. Not their data: in
//     "sh score.sh data.txt" the script is sealed and data.txt is not.
//
// Sealed in groups are, by the table of evaluators: tests that guard and test commands name or
// discover; settings of whatever runs; names that would outrank a sealed file, while there is none
// (GNUmakefile before Makefile). A scope that names them opens them, since then they are what is to
// change. A scope never opens what is sealed by its name.
//
// Other directories are not sealed: "go vet ./..." and "eslint src" name what is under change. They are for
// protect, and Unsealed says which directories to think about.
//
// What scripts and targets run in turn is found by reading them (recipes.go, imports.go). It is sealed as
// well, unless the scope names the folder or the file that it is in. read returns the text of a file of the base commit,
// "" where that can't be had; where read is nil, nothing is read.
func Find(s spec.Spec, files []string, read func(file string) string) Set {
	r := newRefs(s, files)
	r.text = read
	for _, file := range files {
		if spec.MatchAny(s.Protect, file) {
			r.sealed[file] = true
		}
	}
	r.words(s.Guard.Command, "", nil, 0)
	for _, command := range []string{s.Verify.Command, s.Verify.Holdout.Command, s.Test.Command, s.Check.Command, s.Guard.Command} {
		r.judges = command == s.Guard.Command || command == s.Test.Command
		r.scripts(command, "", nil, 0)
	}
	for file := range r.found {
		if !named(s.Scope, file) {
			r.sealed[file] = true
		}
	}
	seals := Set{
		Unread: slices.Sorted(maps.Keys(r.unread)), Files: slices.Sorted(maps.Keys(r.sealed)), Outside: slices.Sorted(maps.Keys(r.outside)), Open: opened(s.Scope, r.groups),
		Groups:   slices.SortedFunc(maps.Values(r.groups), func(a, b Group) int { return strings.Compare(a.Glob, b.Glob) }),
		Listings: r.listings,
	}
	for _, g := range seals.Groups {
		seals.needs = append(seals.needs, literal(g.Glob))
	}
	return seals
}

// named reports whether a scope names a file, or a folder that it is in: by a glob that begins with a name.
func named(scope []string, file string) bool {
	return slices.ContainsFunc(scope, func(glob string) bool {
		first, _, _ := strings.Cut(spec.Tidy(glob), "/")
		return !strings.ContainsAny(first, `*?[{`) && spec.MatchAny([]string{glob}, file)
	})
}

// Unsealed are the directories that the guard command refers to, or that any of the commands
// runs as a program, and that have files which are not sealed: whoever writes the spec should
// know that the agent may change those where the scope allows it. The root is not among them.
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

// maxNesting bounds commands within the arguments of commands.
const maxNesting = 8

// refs collects what commands refer to.
type refs struct {
	root     string // repo.path, for absolute names
	files    []string
	exists   map[string]bool
	folders  map[string]bool // of the files; nil until somebody asks
	judges   bool            // the command is one whose tests judge the work
	listings []Listing       // Set.Listings
	named    bool            // what is looked at is only named, and perhaps not run
	out      bool            // and it is written to
	sealed   map[string]bool
	groups   map[string]Group // by glob
	outside  map[string]bool
	dirs     map[string]bool // directories referred to; nil when nobody asks
	follower                 // of what the commands run
}

func newRefs(s spec.Spec, files []string) *refs {
	r := &refs{files: files, exists: make(map[string]bool, len(files)), sealed: map[string]bool{}, groups: map[string]Group{}, outside: map[string]bool{}, follower: newFollower()}
	if path.IsAbs(s.Repo.Path) {
		r.root = path.Clean(s.Repo.Path)
	}
	for _, file := range files {
		r.exists[file] = true
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
		if w := c.Words; len(w) == 2 && (w[0].Text == "cd" || w[0].Text == "pushd") { // what counts in that folder, the next command says
			continue
		}
		for _, w := range c.All {
			r.named, r.out = true, w.Out
			r.refer(c.Dir, w)
			r.named, r.out = false, false
			if strings.ContainsAny(w.Text, " \t\n;") { // sh -c 'diff a b', hyperfine './x y'
				r.words(w.Text, c.Dir, c.Env, depth+1)
			}
		}
		if c.Here != "" {
			r.words(c.Here, c.Dir, c.Env, depth+1)
		}
	}
}

// anywhere seals each file that a word names as seen from any directory. It is for a command that is
// not understood: too much is sealed then, rather than too little.
func (r *refs) anywhere(words []shell.Word) {
	for _, w := range words {
		name := path.Clean("/" + strings.TrimPrefix(w.Path, shell.Root))
		for _, file := range r.files {
			if file == name[1:] || strings.HasSuffix(file, name) {
				r.sealed[file] = true
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
	if w.Glob {
		r.match(dir, w.Path)
		if _, value, ok := strings.Cut(w.Path, "="); ok {
			r.match(dir, value)
		}
		return
	}
	r.seal(dir, w.Path)
	for _, part := range strings.FieldsFunc(w.Path, func(c rune) bool { return strings.ContainsRune("=,:;@", c) }) {
		r.seal(dir, part)
	}
}

// seal seals a file by its name, and says whether there is one.
func (r *refs) seal(dir, name string) bool {
	file := r.relative(shell.Resolve(dir, name))
	if r.exists[file] {
		r.mark(file)
		return true
	}
	if path.IsAbs(file) && !r.out && !(r.named && scratch.MatchString(file)) {
		r.outside[file] = true
	}
	if r.dirs != nil && file != "." {
		r.dirs[strings.TrimSuffix(file, "/...")] = true
	}
	return false
}

func (r *refs) match(dir, pattern string) (found bool) {
	pattern = r.relative(shell.Resolve(shell.EscapeGlob(dir), pattern))
	if !doublestar.ValidatePattern(pattern) {
		return false
	}
	for _, file := range r.files {
		if doublestar.MatchUnvalidated(pattern, file) {
			r.mark(file)
			found = true
		}
	}
	return found
}

// relative takes the path of the user's repository off an absolute name: what a command means
// by it is the same file, though the judge has it elsewhere.
func (r *refs) relative(name string) string {
	if r.root != "" && r.root != "/" {
		if rest, ok := strings.CutPrefix(name, r.root+"/"); ok {
			return rest
		}
	}
	return name
}

// scratch is where commands write what they need for a moment.
var scratch = lazyregexp.New(`^/(tmp|var/tmp|dev|proc|run)(/|$)`)

// file seals what a word names in the place of a script, and says whether there is such a file.
func (r *refs) file(dir string, w shell.Word) bool {
	switch {
	case w.Unknown:
		r.atHome(w)
		return false
	case w.Glob:
		return r.match(dir, w.Path)
	}
	return r.seal(dir, w.Path)
}

// atHome notes what a word names in the home of whoever runs the loop, as far as no more is unknown in it.
func (r *refs) atHome(w shell.Word) {
	for _, home := range []string{"~/", "$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(w.Text, home); ok && !strings.ContainsAny(rest, "$`") {
			r.outside["~/"+path.Clean(rest)] = true
		}
	}
}
