package seal

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/lazyregexp"
	"pawl/internal/shell"
)

// Needed is a program or a script that a shell command names by a path, and that has to exist before the command runs.
type Needed struct {
	Path   string // relative to the tree's root; absolute, or ~/…, if it is outside of the tree
	Name   string // as the command names it
	Script bool   // an interpreter reads it, so that it need not be executable
}

// Outside reports whether it is outside of the tree.
func (n Needed) Outside() bool { return path.IsAbs(n.Path) || strings.HasPrefix(n.Path, "~/") }

// Needs returns the programs and scripts that a command names by a path and needs in any case. It leaves out what an
// earlier part of the command may have made. It follows cd with a fixed argument.
func Needs(command string) []Needed {
	f := finder{dir: "."}
	f.read(command, 0)
	return f.found
}

// finder reads a command for what it needs.
type finder struct {
	found []Needed
	dir   string // the folder that the command is in, relative to the tree's root
	made  bool   // something has run that may have made files, or the folder is unknown
}

// harmless are commands that make no files but those to which they are redirected.
const harmless = "export set unset readonly true : umask ulimit shopt trap echo printf cat head tail test [ [[ sleep date pwd read " +
	"grep wc tr cut jq exec command exit"

func (f *finder) read(command string, depth int) {
	if depth > maxNesting {
		return
	}
	commands, _ := shell.Sure(command)
	writes := redirected().MatchString(discarding().ReplaceAllString(command, ""))
	for _, words := range commands {
		if f.made {
			return
		}
		f.call(unwrapped(words), depth)
		f.made = f.made || writes
	}
}

var (
	discarding = lazyregexp.New(`[0-9]*>>?\s*(/dev/(null|stderr|stdout)\b|&[0-9-])`)
	redirected = lazyregexp.New(`>`)
)

// call finds what a simple command needs.
func (f *finder) call(words []shell.Word, depth int) {
	if len(words) == 0 {
		return
	}
	first := words[0]
	name := first.Text
	switch {
	case name == "cd":
		f.enter(words[1:])
		return
	case contains("source .", name):
		f.made = true
		if len(words) > 1 && strings.Contains(words[1].Text, "/") { // others are looked up in PATH
			f.need(words[1], true)
		}
		return
	case contains(harmless, name):
		return
	}

	if strings.Contains(name, "/") {
		f.need(first, false)
	}
	if first.Unknown || first.Glob {
		f.made = true
		return
	}
	script, inline, ok := scriptOf(words)
	switch {
	case inline:
		f.read(script.Text, depth+1)
	case ok:
		f.need(script, true)
	}
	f.made = true
}

// enter follows cd.
func (f *finder) enter(args []shell.Word) {
	if len(args) != 1 || args[0].Unknown || args[0].Glob || path.IsAbs(args[0].Text) {
		f.made = true
		return
	}
	f.dir = path.Join(f.dir, args[0].Text)
}

// atHome matches a path in the home folder, which the reader of commands does not know.
var atHome = lazyregexp.New("^(?:~|\\$HOME|\\$\\{HOME\\})/([^$`*?{\\[]+)$")

// need adds a word that names a file.
func (f *finder) need(word shell.Word, script bool) {
	home := atHome().FindStringSubmatch(word.Text)
	switch {
	case home != nil && word.Unknown:
		f.add(Needed{Path: "~/" + home[1], Name: word.Text, Script: script})
	case word.Unknown, word.Glob, strings.ContainsAny(word.Text, "{~"):
	case path.IsAbs(word.Text):
		f.add(Needed{Path: word.Text, Name: word.Text, Script: script})
	default:
		within := path.Join(f.dir, word.Text)
		if !strings.HasPrefix(within, "../") {
			f.add(Needed{Path: within, Name: word.Text, Script: script})
		}
	}
}

func (f *finder) add(n Needed) {
	if !slices.Contains(f.found, n) {
		f.found = append(f.found, n)
	}
}

// plainOptions lists, for interpreters by name, the options before a script that take no value. After any other option
// it is not clear which word is the script.
var plainOptions = map[string]string{
	"sh": shellOptions, "bash": shellOptions, "dash": shellOptions, "zsh": shellOptions, "ksh": shellOptions, "ash": shellOptions,
	"python": "-u -B -b -bb -E -I -s -S -O -OO -q -v -P -d -x -uB -Bu", "pypy": "-u -B -E -I -s -S -O -OO -q -v",
	"node": nodeOptions, "nodejs": nodeOptions, "tsx": "", "ts-node": "-T --transpile-only",
	"perl": "-w -W -T -t", "ruby": "-w -W", "php": "-n -q", "lua": "-E", "Rscript": "--vanilla",
}

const (
	shellOptions = "-e -u -x -v -f -l -eu -ex -eux -ux -xe -xeu -xue -ue --login --norc --noprofile --posix"
	nodeOptions  = "--no-warnings --experimental-strip-types --enable-source-maps --trace-warnings --use-strict"
)

// scriptOf returns the script that an interpreter reads, or the text that a shell runs (-c). ok is false if there is
// none, or if it is not clear.
func scriptOf(words []shell.Word) (script shell.Word, inline, ok bool) {
	name := called(words[0])
	options, known := plainOptions[name]
	if !known {
		return shell.Word{}, false, false
	}
	args := words[1:]
	for len(args) > 0 && contains(options, args[0].Text) {
		args = args[1:]
	}
	if len(args) == 0 || args[0].Unknown && atHome().FindStringSubmatch(args[0].Text) == nil {
		return shell.Word{}, false, false
	}
	if shells[name] && commandOption().MatchString(args[0].Text) {
		sure := len(args) > 1 && !args[1].Unknown
		return args[min(1, len(args)-1)], sure, sure
	}
	extended := strings.HasPrefix(name, "node") || strings.HasPrefix(name, "ts")
	if extended && !strings.Contains(path.Ext(args[0].Text), "s") { // node completes other names
		return shell.Word{}, false, false
	}
	return args[0], false, !strings.HasPrefix(args[0].Text, "-")
}

// Inner returns the texts that a command gives to a shell to run (sh -c '…'), also those within such texts.
func Inner(command string) []string {
	return inner(command, 0)
}

func inner(command string, depth int) (texts []string) {
	if depth > maxNesting {
		return nil
	}
	commands, _ := shell.Sure(command)
	for _, words := range commands {
		words = unwrapped(words)
		if len(words) == 0 || words[0].Unknown {
			continue
		}
		if text, inline, _ := scriptOf(words); inline {
			texts = append(texts, text.Text)
			texts = append(texts, inner(text.Text, depth+1)...)
		}
	}
	return texts
}

// Module is a module that an interpreter of Python is asked to run (python -m pytest).
type Module struct{ Interpreter, Name string }

// Modules returns the modules of Python that a command runs in any case.
func Modules(command string) (modules []Module) {
	commands, _ := shell.Sure(command)
	for _, words := range commands {
		words = unwrapped(words)
		if len(words) < 3 || words[0].Unknown {
			continue
		}
		if !strings.HasPrefix(path.Base(words[0].Text), "python") {
			continue
		}
		for i := 1; i+1 < len(words) && strings.HasPrefix(words[i].Text, "-"); i++ {
			if words[i].Text == "-m" && !words[i+1].Unknown {
				name, _, _ := strings.Cut(words[i+1].Text, ".")
				modules = append(modules, Module{words[0].Text, name})
				break
			}
		}
	}
	return modules
}

// unwrapped returns the command that a wrapper such as env or timeout runs.
func unwrapped(words []shell.Word) []shell.Word {
	for len(words) > 0 {
		options, wraps := wrappers[words[0].Text]
		if !wraps || contains("npx pnpx bunx busybox command", words[0].Text) {
			return words
		}
		words = unwrap(words[1:], options)
	}
	return words
}
