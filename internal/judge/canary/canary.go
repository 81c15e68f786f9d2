// Package canary breaks source files on purpose, with a syntax error or with functions that only fail, to show
// whether a guard command notices. It is pure: it reads no file and runs nothing. It parses no language; it
// recognises functions by their form, which is enough to break them. Start at Breakable.
package canary

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// language says how the files of a language are broken. Languages that are built together share a name.
type language struct {
	name string
	// function matches the head of a function up to where its body begins: up to the opening brace, or, in a language
	// with indented bodies, up to the end of the line. If it is nil, functions are not changed.
	function lazyregexp.Regexp
	fails    string // the new body: a statement that always fails
	indented bool   // indentation marks the bodies
	after    string // what comes before the first code in a file, "" for nothing
}

var (
	goFunction   = lazyregexp.New(`(?m)^func\s+(?:\([^)\n]*\)\s*)?\w+(?:\[[^\]\n]*\])?\([^{}]*\)[^{};\n]*\{`)
	jsFunction   = lazyregexp.New(`(?m)^[ \t]*(?:export\s+)?(?:default\s+)?(?:async\s+)?function\s*\*?\s*\w*\s*(?:<[^>\n]*>)?\([^{}()]*\)[^{};\n]*\{`)
	rustFunction = lazyregexp.New(`(?m)^[ \t]*(?:pub(?:\([^)\n]*\))?\s+)?(?:async\s+|unsafe\s+)*fn\s+\w+[^{};]*\{`)
	javaFunction = lazyregexp.New(`(?m)^[ \t]+(?:public|protected|private|static)[\w\s<>\[\],.?]*\s\w+\s*\([^(){};]*\)[^(){};=]*\{`)
	cFunction    = lazyregexp.New(`(?m)^[A-Za-z_][\w\s*]*\b\w+\s*\([^(){};]*\)\s*\{`)
	pyFunction   = lazyregexp.New(`(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+\w+[^\n]*:[ \t]*(?:#[^\n]*)?$`)
)

var (
	js  = language{name: "JavaScript", function: jsFunction, fails: `throw new Error("broken by pawl on purpose");`}
	cpp = language{name: "C"}
)

// languages has the languages by file name extension.
var languages = map[string]language{
	".go": {name: "Go", function: goFunction, fails: `panic("broken by pawl on purpose")`},
	".js": js, ".mjs": js, ".cjs": js, ".jsx": js, ".ts": js, ".mts": js, ".cts": js, ".tsx": js,
	".py":   {name: "Python", function: pyFunction, fails: `raise RuntimeError("broken by pawl on purpose")`, indented: true},
	".rs":   {name: "Rust", function: rustFunction, fails: `panic!("broken by pawl on purpose");`},
	".java": {name: "Java", function: javaFunction, fails: `throw new RuntimeException("broken by pawl on purpose");`},
	".c":    {name: "C", function: cFunction, fails: `__builtin_trap();`}, ".h": cpp, ".cc": cpp, ".cpp": cpp, ".cxx": cpp, ".hpp": cpp, ".hh": cpp,
	".kt": {name: "Java"}, ".scala": {name: "Java"}, ".cs": {name: "C#"}, ".swift": {name: "Swift"}, ".rb": {name: "Ruby"},
	".ex": {name: "Elixir"}, ".exs": {name: "Elixir"}, ".lua": {name: "Lua"}, ".zig": {name: "Zig"}, ".dart": {name: "Dart"},
	".php": {name: "PHP", after: "<?php"},
}

// aside lists folders with files that a guard does not have to protect.
var aside = []string{
	"test", "tests", "testing", "testdata", "__tests__", "spec", "specs", "t", "e2e", "fixtures", "mocks", "bench", "benches", "benchmark", "benchmarks",
	"example", "examples", "doc", "docs", "script", "scripts", "tools", "vendor", "node_modules", "third_party", "dist", "build", "target",
}

// settings matches files in a source language that configure a program.
var settings = lazyregexp.New(`^(?:setup\.py|conftest\.py|noxfile\.py|tasks\.py|build\.rs|[^/]*\.config\.[cm]?[jt]s|\.[^/]*)$`)

// tests matches the names of files with tests.
var tests = lazyregexp.New(`(?:^test_|_test\.|\.test\.|\.spec\.|_spec\.|Tests?\.|TestCase\.)`)

// Breakable reports whether a file is source code in a known language, and not a test, an example or a setting.
func Breakable(file string) bool {
	base := path.Base(file)
	if _, ok := languages[path.Ext(base)]; !ok || settings().MatchString(base) || tests().MatchString(base) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(path.Dir(file), "/"), func(dir string) bool { return slices.Contains(aside, dir) })
}

// garbage is a line that is invalid in every language of the table.
const garbage = ")]} broken by pawl on purpose ;{[(\n"

// Break returns the file with a syntax error in it.
func Break(file string, content []byte) []byte {
	if suffix := languages[path.Ext(file)].after; suffix != "" {
		if i := bytes.Index(content, []byte(suffix)); i >= 0 {
			i += len(suffix)
			return slices.Concat(content[:i], []byte("\n"+garbage), content[i:])
		}
	}
	return append([]byte(garbage), content...)
}

// Empty returns the file with the bodies of its functions replaced by a statement that fails, and the number of
// replaced bodies; 0 if it finds none.
func Empty(file string, content []byte) ([]byte, int) {
	l := languages[path.Ext(file)]
	if l.function == nil {
		return content, 0
	}
	var out []byte
	n, start := 0, 0
	for _, match := range l.function().FindAllIndex(content, -1) {
		if match[0] < start { // inside a body that is already replaced
			continue
		}
		var end int
		body := ""
		if l.indented {
			end, body = block(content, match[0], match[1])
		} else if end = closing(content, match[1]); end >= 0 {
			body = " " + l.fails + " "
		}
		if end < 0 || body == "" && l.indented {
			continue
		}
		if l.indented {
			body = "\n" + body + l.fails + "\n"
		}
		out = append(append(out, content[start:match[1]]...), body...)
		start = end
		n++
	}
	return append(out, content[start:]...), n
}

// closing returns the position of the brace that closes the one before from, -1 if there is none. It also counts
// braces in strings and comments. If that goes wrong the file does not compile, so it is broken too.
func closing(content []byte, start int) int {
	depth := 1
	for i, c := range content[start:] {
		switch c {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return start + i
			}
		}
	}
	return -1
}

// block returns where the indented block after a head ends, and its indentation; "" if there is no block.
func block(content []byte, head, start int) (end int, indent string) {
	outer := leading(content[head:])
	end = start
	if end < len(content) {
		end++ // skips the head's line feed
	}
	for end < len(content) {
		line, _, _ := bytes.Cut(content[end:], []byte("\n"))
		if len(bytes.TrimSpace(line)) > 0 {
			own := leading(line)
			if len(own) <= len(outer) {
				break
			}
			indent = cmp.Or(indent, own)
		}
		end = min(end+len(line)+1, len(content))
	}
	return end, indent
}

func leading(line []byte) string {
	line = bytes.TrimLeft(line, "\n")
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}
