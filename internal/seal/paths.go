package seal

import (
	"path"
	"strings"

	"pawl/internal/shell"
)

// Needed is what a shell command needs of the tree that it runs in before anything else has run there.
type Needed struct {
	Path string // the program, relative to the tree's root
	Name string // as the command names it
}

// FirstPath returns the program that a command starts first if the command names it by a path in the tree, ok=false
// otherwise. Programs that start later may be made by an earlier one. It follows cd with a fixed argument.
func FirstPath(command string) (needed Needed, ok bool) {
	needed, ok = firstPath(command)
	return needed, ok && !path.IsAbs(needed.Name) && !strings.HasPrefix(needed.Path, "../")
}

// FirstOutside returns the program that a command starts first if the command names it by an absolute path, ok=false
// otherwise.
func FirstOutside(command string) (name string, ok bool) {
	needed, ok := firstPath(command)
	return needed.Name, ok && path.IsAbs(needed.Name)
}

// firstPath returns the program that a command starts first if the command names it by a path of any kind.
func firstPath(command string) (needed Needed, ok bool) {
	commands, _ := shell.Sure(command)
	dir := "."
	for _, words := range commands {
		words = unwrapped(words)
		if len(words) == 0 {
			continue
		}
		first := words[0]
		if first.Unknown || first.Glob {
			return Needed{}, false
		}
		switch {
		case first.Text == "cd":
			if len(words) != 2 || words[1].Unknown || words[1].Glob || path.IsAbs(words[1].Text) {
				return Needed{}, false
			}
			dir = path.Join(dir, words[1].Text)
		case contains("export set true : umask ulimit", first.Text):
		case strings.Contains(first.Text, "/"):
			home := strings.HasPrefix(first.Text, "~")
			return Needed{Path: path.Join(dir, first.Text), Name: first.Text}, !home
		default:
			return Needed{}, false
		}
	}
	return Needed{}, false
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
