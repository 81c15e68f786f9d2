package evaluator

import (
	"path"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/shell"
)

// MaxScript is the largest size in bytes of a file that is read to find what it runs.
const MaxScript = 256 << 10

// maxRead is how many files are read for one contract.
const maxRead = 200

// mark seals a file of the repository: by its name, or as found if another file that was read refers to it.
func (r *refs) mark(file string) {
	r.because(file)
	if r.depth > 0 {
		r.found[file] = true
		return
	}
	r.sealed[file] = true
}

// because notes the first command that seals a file or a glob.
func (r *refs) because(text string) {
	if r.by == nil {
		r.by = map[string]string{}
	}
	switch {
	case r.key == "" || r.by[text] != "":
	case r.program == "":
		r.by[text] = r.key
	default:
		r.by[text] = r.program + " in " + r.key
	}
}

// once returns the text of a file, which is to be read in the way how. ok is false if the file was already read in
// this way, or can't be read.
func (r *refs) once(file, lang string, depth int) (text string, ok bool) {
	key := lang + "\x00" + file
	if r.looked[key] {
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

// within calls do while it counts what do finds as found in a file.
func (r *refs) within(do func()) {
	r.depth++
	do()
	r.depth--
}

var shebang = lazyregexp.New(`^#!\s*(?:\S*/)?([A-Za-z]+)[0-9.]*(?:\s+(?:-\S+\s+)*([A-Za-z]+))?`)

// language returns the program that runs a text: the one that it was passed to, else the one that the text names
// itself.
func language(author, file, text string) string {
	if _, ok := interpreters[author]; ok {
		return author
	}
	if m := shebang().FindStringSubmatch(text); m != nil {
		if m[1] == "env" {
			return m[2]
		}
		return m[1]
	}
	return map[string]string{".sh": "sh", ".bash": "bash", ".py": "python", ".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "node"}[path.Ext(file)]
}

// reads seals the files that a word names as scripts, and follows what they run or import. by is the program that they
// are passed to; "" if they are run directly. It reports whether there are any.
func (r *refs) reads(dir string, w shell.Word, author string, depth int) bool {
	files := r.file(dir, w)
	for _, file := range files {
		r.script(file, dir, author, depth)
	}
	return len(files) > 0
}

// script follows what a script that runs in dir runs or imports.
func (r *refs) script(file, dir, author string, depth int) {
	text := r.text(file)
	switch lang := language(author, file, text); {
	case text == "" || interpreters[lang].program: // programs for awk, sed and jq run nothing else
	case shells[lang] || lang == "source" || lang == ".":
		if text, ok := r.once(file, "shell in "+dir, depth); ok {
			r.within(func() { r.shellScript(file, text, dir, depth+1) })
		}
	case lang == "python" || lang == "pypy":
		r.imports(file, path.Dir(file), depth)
	case contains("node nodejs deno bun tsx ts-node", lang):
		r.requires(file, depth)
	default:
		r.unread[file] = true
	}
}

// shellScript follows the commands of a script that runs in dir.
func (r *refs) shellScript(file, text, dir string, depth int) {
	for _, c := range shell.Read(text, dir, map[string]shell.Word{shell.Script: {Path: shell.Root + "/" + file}}) {
		if c.Loose {
			r.unread[file] = true
			return
		}
		if len(c.Words) > 0 && (c.Words[0].Unknown || c.Words[0].Glob && c.Words[0].Text != "[") { // [ is a command
			r.unread[file+": "+shortened(c.Words[0].Text)] = true
		}
		r.run(c, c.Words, depth)
	}
}

// shortened returns a text at the length that lists show.
func shortened(text string) string {
	const most = 60
	text = strings.NewReplacer("$_make", "…", "$_just", "…").Replace(text) // variables that only make or just know
	if text = strings.Join(strings.Fields(text), " "); len(text) > most {
		return text[:most] + "…"
	}
	return text
}
