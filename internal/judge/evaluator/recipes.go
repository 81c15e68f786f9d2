package evaluator

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/shell"
)

// recipe is a target: its prerequisites, and its commands.
type recipe struct {
	before   []string
	commands []string
}

// recipes are the targets of a file, and the target that runs if none is named.
type recipes struct {
	targets map[string]*recipe
	first   string
	include []string
	unknown bool // there may be targets that could not be read
	// phony are the targets that run although a file of their name exists; nil if such a file never matters.
	phony map[string]bool
}

func (rs *recipes) add(name string) *recipe {
	if rs.targets[name] == nil {
		rs.targets[name] = &recipe{}
	}
	if rs.first == "" && !strings.HasPrefix(name, ".") && !strings.Contains(name, "%") {
		rs.first = name
	}
	return rs.targets[name]
}

// readRecipes has a reader for each program whose file is read. For other programs only the file is sealed.
var readRecipes = map[string]func(text string) recipes{
	"make": makeRecipes, "gmake": makeRecipes, "just": justRecipes,
	"npm": packageScripts, "pnpm": packageScripts, "yarn": packageScripts, "bun": packageScripts, "composer": packageScripts,
}

// targets follows the targets of a file that a command names. If it can't tell what they run, it adds the file to
// unread.
func (r *refs) targets(program, file, dir string, args []shell.Word, depth int) {
	read := readRecipes[program]
	if read == nil {
		r.unread[file] = true
		return
	}
	text := r.text(file)
	if text == "" {
		return
	}
	found := read(text)
	for _, name := range found.include { // includes are followed one level deep
		path := r.relative(shell.Resolve(dir, name))
		if contains("make gmake", program) && !strings.Contains(name, "$") {
			r.remade(path)
		}
		if strings.ContainsAny(name, "*?[") && !strings.Contains(name, "$") {
			r.group(dir, name, Group{There: true, New: true})
		} else if !strings.Contains(name, "$") {
			r.group("", shell.EscapeGlob(path), Group{New: true})
		}
		if strings.Contains(name, "$") || !r.exists[path] {
			r.unread[file+": include "+shortened(name)] = true
			continue
		}
		r.mark(path)
		included := read(r.text(path))
		for name, item := range included.targets {
			have := found.add(name)
			have.before, have.commands = slices.Concat(have.before, item.before), slices.Concat(have.commands, item.commands)
		}
		maps.Copy(found.phony, included.phony)
		found.unknown = found.unknown || included.unknown || len(included.include) > 0
	}
	var names []string
	for _, w := range args {
		switch {
		case w.Unknown || w.Glob:
			r.unread[file+": "+shortened(w.Text)] = true
		case contains("run run-script exec", w.Text) && len(names) == 0 && contains("npm pnpm yarn bun composer", program):
			args = args[1:]
		default:
			names = append(names, w.Text)
		}
	}
	switch {
	case contains("npm pnpm yarn bun composer", program) && len(names) > 0: // the rest are arguments of the script
		names = stages(program, names[0])
	case len(names) == 0:
		names = []string{found.first}
	}
	ok := false
	for _, name := range names {
		ok = r.target(found, file, dir, name, depth) || ok
	}
	if !ok && contains("pnpm yarn", program) { // the name is a program of a package
		r.within(func() { r.run(shell.Command{Dir: dir, Words: args, All: args}, args, depth+1) })
		return
	}
	if !ok && len(args) > 0 {
		r.unread[file+": "+shortened(strings.TrimPrefix(names[0], "pre"))] = true
	}
}

// stages returns the scripts of package.json that a program runs for one of them.
func stages(program, script string) []string {
	if program != "yarn" && contains("t tst", script) {
		script = "test"
	}
	return []string{"pre" + script, script, "post" + script}
}

// workspaces seals the manifests of the packages below a folder, and follows those of their scripts that words name.
func (r *refs) workspaces(dir string, words []shell.Word, depth int) {
	dir = path.Clean(dir)
	for _, file := range r.files {
		place := path.Dir(file)
		if path.Base(file) != "package.json" || place == dir || dir != "." && !strings.HasPrefix(place, dir+"/") || slices.Contains(strings.Split(place, "/"), "node_modules") {
			continue
		}
		r.mark(file)
		found := packageScripts(r.text(file))
		for _, w := range words {
			for _, name := range []string{"pre" + w.Text, w.Text, "post" + w.Text} {
				r.target(found, file, place, name, depth)
			}
		}
	}
}

// target follows one target and its prerequisites. It reports whether the target exists.
func (r *refs) target(found recipes, file, dir, name string, depth int) bool {
	item := found.targets[name]
	key := "target " + file + "\x00" + name
	if item == nil || r.looked[key] {
		return item != nil
	}
	r.looked[key] = true
	if depth > maxNesting {
		r.unread[file+": "+shortened(name)] = true
		return true
	}
	if found.phony != nil && !found.phony[name] {
		r.made(dir, name)
	}
	for _, dependency := range item.before {
		if found.phony != nil && found.targets[dependency] == nil {
			r.made(dir, dependency)
		}
		if !r.target(found, file, dir, dependency, depth+1) && found.unknown && !r.exists[r.relative(shell.Resolve(dir, dependency))] {
			r.unread[file+": "+shortened(dependency)] = true
		}
	}
	r.within(func() {
		for _, command := range item.commands {
			for _, c := range shell.Read(command, dir, nil) {
				if c.Loose || len(c.Words) > 0 && (c.Words[0].Unknown || c.Words[0].Glob) {
					r.unread[file+": "+shortened(command)] = true
				}
				if !c.Loose {
					r.run(c, c.Words, depth+1)
				}
			}
		}
	})
	return true
}

var (
	makeRule     = lazyregexp.New(`^([^\s:#=][^:#=]*?)\s*::?(?:\s*([^=].*))?$`)
	makeVariable = lazyregexp.New(`^(?:export\s+|override\s+)*([A-Za-z_][A-Za-z0-9_]*)\s*(:::?|::|:|\?|\+)?=\s*(.*)$`)
	makeInclude  = lazyregexp.New(`^(?:-|s)?include\s+(.+)$`)
	makeUse      = lazyregexp.New(`\$[({]([A-Za-z_][A-Za-z0-9_]*)[)}]`)
)

// makeRecipes reads a Makefile: its rules, and the variables that are plain text.
func makeRecipes(text string) recipes {
	found := recipes{targets: map[string]*recipe{}, phony: map[string]bool{}}
	value := map[string]string{"MAKE": "make", "CC": "cc", "CXX": "c++", "AR": "ar", "RM": "rm -f", "SHELL": "sh"}
	expand := func(s string) string {
		for range 5 { // a variable may contain others
			s = makeUse().ReplaceAllStringFunc(s, func(use string) string {
				if v, ok := value[use[2:len(use)-1]]; ok && len(s) < shell.MaxCommand {
					return v
				}
				return use
			})
		}
		return s
	}
	var inside []*recipe
	lines := strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n")
	type command struct {
		to   []*recipe
		text string
	}
	var commands []command
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "\t"); ok {
			commands = append(commands, command{inside, text})
			continue
		}
		line = strings.TrimSpace(strings.Split(line+" ", " #")[0])
		if m := makeInclude().FindStringSubmatch(line); m != nil {
			found.include = append(found.include, strings.Fields(expand(m[1]))...)
		} else if m := makeVariable().FindStringSubmatch(line); m != nil {
			if m[2] == "+" && value[m[1]] != "" {
				m[3] = value[m[1]] + " " + m[3]
			}
			value[m[1]] = m[3]
		} else if m := makeRule().FindStringSubmatch(line); m != nil {
			inside = nil
			prerequisites, inline, _ := strings.Cut(expand(m[2]), ";")
			for name := range strings.FieldsSeq(expand(m[1])) {
				if name == ".PHONY" {
					for target := range strings.FieldsSeq(prerequisites) {
						found.phony[target] = true
					}
					continue
				}
				found.unknown = found.unknown || strings.ContainsAny(name, "%$")
				item := found.add(name)
				item.before = append(item.before, strings.Fields(prerequisites)...)
				inside = append(inside, item)
			}
			if inline != "" {
				commands = append(commands, command{inside, inline})
			}
		} else if strings.HasPrefix(line, "$(") || strings.HasPrefix(line, "define") {
			found.unknown = true
		}
	}
	for _, c := range commands { // variables have the values that they have at the end of the file
		command := strings.TrimLeft(strings.TrimSpace(c.text), "@-+ ")
		command = strings.ReplaceAll(makeFunctions(expand(command)), "$$", "$")
		for _, item := range c.to {
			item.commands = append(item.commands, command)
		}
	}
	return found
}

// makeFunctions replaces what only make knows by a variable that the shell does not know, and $(shell x) by $(x).
func makeFunctions(command string) string {
	var out strings.Builder
	for i := 0; i < len(command); i++ {
		switch {
		case command[i] != '$' || i+1 == len(command):
			out.WriteByte(command[i])
		case command[i+1] == '$':
			out.WriteString("$$")
			i++
		case strings.HasPrefix(command[i+1:], "(shell "):
			out.WriteString("$$(")
			i += len("(shell ")
		case command[i+1] == '(' || command[i+1] == '{':
			depth := 0
			for i++; i < len(command); i++ {
				if strings.IndexByte("({", command[i]) >= 0 {
					depth++
				} else if strings.IndexByte(")}", command[i]) >= 0 {
					if depth--; depth == 0 {
						break
					}
				}
			}
			out.WriteString("$$_make")
		default: // $@ $<
			out.WriteString("$$_make")
			i++
		}
	}
	return out.String()
}

var (
	justRule     = lazyregexp.New(`^@?([A-Za-z_][A-Za-z0-9_-]*)(?:\s+[^:]+)?\s*:(?:([^=].*))?$`)
	justVariable = lazyregexp.New(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_-]*)\s*:=\s*["']([^"']*)["']\s*$`)
	justInclude  = lazyregexp.New(`^import\??\s+["']([^"']+)["']`)
	justUse      = lazyregexp.New(`\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}`)
	justAny      = lazyregexp.New(`\{\{.*?\}\}`)
)

func justRecipes(text string) recipes {
	found := recipes{targets: map[string]*recipe{}}
	value := map[string]string{}
	var current *recipe
	for _, line := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			if current != nil {
				current.commands = append(current.commands, strings.TrimLeft(strings.TrimSpace(line), "@-"))
			}
			continue
		}
		if m := justVariable().FindStringSubmatch(line); m != nil {
			value[m[1]] = m[2]
		} else if m := justInclude().FindStringSubmatch(line); m != nil {
			found.include = append(found.include, m[1])
		} else if m := justRule().FindStringSubmatch(line); m != nil {
			current = found.add(m[1])
			for word := range strings.FieldsSeq(m[2]) {
				current.before = append(current.before, strings.Trim(word, "()&"))
			}
		}
	}
	for _, item := range found.targets {
		for i, command := range item.commands {
			command = justUse().ReplaceAllStringFunc(command, func(use string) string {
				if v, ok := value[strings.Trim(use, "{} ")]; ok {
					return v
				}
				return use
			})
			item.commands[i] = justAny().ReplaceAllString(command, "$$_just")
		}
		if len(item.commands) > 0 && strings.HasPrefix(item.commands[0], "#!") { // a single script, in any language
			lang := language("", "", item.commands[0])
			item.commands = []string{strings.Join(item.commands[1:], "\n")}
			if !shells[lang] {
				item.commands = []string{"$_" + lang}
			}
		}
	}
	return found
}

// packageScripts reads the scripts of package.json and composer.json.
func packageScripts(text string) recipes {
	found := recipes{targets: map[string]*recipe{}}
	var manifest struct {
		Scripts map[string]json.RawMessage `json:"scripts"`
	}
	_ = json.Unmarshal([]byte(text), &manifest) // a file that is not JSON has no scripts
	for name, script := range manifest.Scripts {
		item := found.add(name)
		var command string
		if json.Unmarshal(script, &command) == nil {
			item.commands = []string{command}
			continue
		}
		_ = json.Unmarshal(script, &item.commands) // composer allows lists
		for i, command := range item.commands {
			if bare, ok := strings.CutPrefix(command, "@"); ok && path.Base(bare) == bare {
				item.before, item.commands[i] = append(item.before, bare), ":"
			}
		}
	}
	return found
}
