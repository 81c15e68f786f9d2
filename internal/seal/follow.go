package seal

import (
	"path"
	"strings"

	"pawl/internal/lazyregexp"
	"pawl/internal/shell"
)

// follower finds what scripts, and targets of make and its like, run in turn. It takes the text of files of the
// base commit, and runs nothing.
type follower struct {
	text   func(file string) string // nil where nothing is read
	depth  int                      // how many files are being read, one from within another
	found  map[string]bool          // files that the ones that were read run or import
	unread map[string]bool          // Set.Unread
	looked map[string]bool          // what was read already, with how
}

func newFollower() follower {
	return follower{found: map[string]bool{}, unread: map[string]bool{}, looked: map[string]bool{}}
}

// MaxScript is the size in bytes up to which a file is read for what it runs.
const MaxScript = 256 << 10

// maxRead is how many files are read for one contract.
const maxRead = 200

// mark seals a file of the repository: by its name, or as found where it stands in one that was read.
func (r *refs) mark(file string) {
	if r.depth > 0 {
		r.found[file] = true
		return
	}
	r.sealed[file] = true
}

// once reads a file in one way, and returns its text; ok is false where it was read so before, or can't be.
func (r *refs) once(file, how string, depth int) (text string, ok bool) {
	key := how + "\x00" + file
	if r.text == nil || r.looked[key] {
		return "", false
	}
	if depth > maxNesting || len(r.looked) >= maxRead {
		r.unread[file] = true
		return "", false
	}
	r.looked[key] = true
	text = r.text(file)
	if len(text) > MaxScript || strings.ContainsRune(text, 0) {
		r.unread[file] = true
		return "", false
	}
	return text, text != ""
}

// within does something for what stands in a file that was read.
func (r *refs) within(do func()) {
	r.depth++
	do()
	r.depth--
}

var shebang = lazyregexp.New(`^#!\s*(?:\S*/)?([A-Za-z]+)[0-9.]*(?:\s+(?:-\S+\s+)*([A-Za-z]+))?`)

// language is the program that runs a text: the one that it was given to, else the one that it names itself.
func language(by, file, text string) string {
	if _, known := interpreters[by]; known {
		return by
	}
	if m := shebang.FindStringSubmatch(text); m != nil {
		if m[1] == "env" {
			return m[2]
		}
		return m[1]
	}
	return map[string]string{".sh": "sh", ".bash": "bash", ".py": "python", ".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "node"}[path.Ext(file)]
}

// reads follows what a script runs or imports. by is the program that it is given to, "" where it is run itself.
func (r *refs) reads(dir string, w shell.Word, by string, depth int) {
	file := r.relative(shell.Resolve(dir, w.Path))
	if w.Unknown || w.Glob || !r.exists[file] || r.text == nil {
		return
	}
	text := r.text(file)
	switch how := language(by, file, text); {
	case text == "" || interpreters[how].program: // awk, sed and jq run nothing else
	case shells[how] || how == "source" || how == ".":
		if text, ok := r.once(file, "shell in "+dir, depth); ok {
			r.within(func() { r.shellScript(file, text, dir, depth+1) })
		}
	case how == "python" || how == "pypy":
		r.imports(file, path.Dir(file), depth)
	case contains("node nodejs deno bun tsx ts-node", how):
		r.requires(file, depth)
	default:
		r.unread[file] = true
	}
}

// shellScript follows the commands of a script, which run in dir.
func (r *refs) shellScript(file, text, dir string, depth int) {
	for _, c := range shell.Read(text, dir, map[string]shell.Word{shell.Script: {Path: shell.Root + "/" + file}}) {
		if c.Loose {
			r.unread[file] = true
			return
		}
		if len(c.Words) > 0 && (c.Words[0].Unknown || c.Words[0].Glob && c.Words[0].Text != "[") { // which is a command
			r.unread[file+": "+shortened(c.Words[0].Text)] = true
		}
		r.run(c, c.Words, depth)
	}
}

// shortened is a text as it is shown in a list.
func shortened(text string) string {
	const most = 60
	text = strings.NewReplacer("$_make", "…", "$_just", "…").Replace(text) // what only they know
	if text = strings.Join(strings.Fields(text), " "); len(text) > most {
		return text[:most] + "…"
	}
	return text
}
