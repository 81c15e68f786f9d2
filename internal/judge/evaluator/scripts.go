package evaluator

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
)

// interpreter describes a program that runs a file it gets.
type interpreter struct {
	inline  string   // options after which there is program text instead of a file: "-c -e"
	loads   string   // options whose value is a file that is executed too: "-r --require"
	program bool     // the first argument is program text unless loads gave a file: awk, sed
	skip    []string // words before the script: deno run x
	entry   string   // the file that runs if the argument is a folder
}

// interpreters by name, without the version: python3.12 is python.
var interpreters = map[string]interpreter{
	"sh": {inline: "-c"}, "bash": {inline: "-c", loads: "--rcfile --init-file"}, "dash": {inline: "-c"}, "zsh": {inline: "-c"},
	"ksh": {inline: "-c"}, "ash": {inline: "-c"}, "fish": {inline: "-c --command"},
	"python": {inline: "-c", entry: "__main__.py"}, "pypy": {inline: "-c", entry: "__main__.py"},
	"node":   {inline: "-e --eval -p --print", loads: nodeLoads, entry: "index.js"},
	"nodejs": {inline: "-e --eval -p --print", loads: nodeLoads, entry: "index.js"},
	"deno":   {inline: "eval", skip: []string{"run"}}, "bun": {inline: "-e --eval -p", loads: "-r --preload", skip: []string{"run"}},
	"coverage": {skip: []string{"run"}},
	"ts-node":  {inline: "-e"}, "tsx": {inline: "-e"},
	"ruby": {inline: "-e", loads: "-r"}, "perl": {inline: "-e -E"}, "php": {inline: "-r"}, "lua": {inline: "-e"},
	"luajit": {inline: "-e"}, "Rscript": {inline: "-e"}, "julia": {inline: "-e -E"}, "tclsh": {}, "expect": {inline: "-c"},
	"octave": {inline: "--eval"}, "gnuplot": {inline: "-e"}, "bc": {}, "source": {}, ".": {},
	"awk": {loads: "-f --file", program: true}, "gawk": {loads: "-f --file -i --include", program: true},
	"mawk": {loads: "-f", program: true}, "nawk": {loads: "-f", program: true},
	"sed": {loads: "-f --file", program: true}, "jq": {loads: "-f --from-file", program: true},
}

// A file of environment variables may set NODE_OPTIONS.
const nodeLoads = "-r --require --import --loader --experimental-loader --env-file --env-file-if-exists"

// shells read a pipe or a here-document as commands, and the argument of -c as a command line.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "ash": true, "fish": true}

// wrappers are programs that run the command in their arguments. The value lists the options that have an argument of
// their own.
var wrappers = map[string]string{
	"env": "-u --unset -C --chdir", "time": "-f --format -o --output", "timeout": "-s --signal -k --kill-after", "gtimeout": "-s -k",
	"nice": "-n --adjustment", "ionice": "-c -n", "nohup": "", "setsid": "", "exec": "-a", "command": "", "builtin": "",
	"sudo": "-u -g -C -D -h -p -U", "doas": "-u -C", "xargs": "-n -P -I -L -d -a -s -E", "stdbuf": "-i -o -e", "unbuffer": "",
	"c8": c8Options, "nyc": c8Options, "cross-env": "", "chronic": "", "taskset": "-c", "chrt": "", "perf": "-e -r -o", "strace": "-o -e", "valgrind": "", "npx": "-p --package",
	"pnpx": "", "bunx": "", "watch": "-n", "parallel": "-j", "caffeinate": "", "xvfb-run": "-s", "flock": "-w", "dotenv": "-e", "busybox": "",
}

const c8Options = "-r --reporter -n --include -x --exclude -o --reports-dir --report-dir --temp-directory -c --config"

// runners are programs that run the words after one of these subcommands as a command.
var runners = map[string]string{
	"poetry": "run", "uv": "run", "pipenv": "run", "pdm": "run", "hatch": "run", "rye": "run", "conda": "run", "bundle": "exec", "direnv": "exec",
	"pnpm": "exec dlx", "yarn": "exec dlx", "npm": "exec x", "mise": "exec x", "asdf": "exec",
}

// tasks are programs that find what to do in a file with a fixed name. The first of the names that exists is sealed.
// file lists the options that name another file, dir the options that change the folder.
var tasks = map[string]struct {
	names, file, dir string
	only             string // subcommands that run something of the file; "" is any
}{
	"make":     {names: "GNUmakefile makefile Makefile", file: "-f --file --makefile", dir: "-C --directory"},
	"gmake":    {names: "GNUmakefile makefile Makefile", file: "-f --file --makefile", dir: "-C --directory"},
	"just":     {names: "justfile Justfile .justfile", file: "-f --justfile", dir: "-d --working-directory"},
	"task":     {names: "Taskfile.yml taskfile.yml Taskfile.yaml taskfile.yaml Taskfile.dist.yml Taskfile.dist.yaml", file: "-t --taskfile", dir: "-d --dir"},
	"go-task":  {names: "Taskfile.yml taskfile.yml Taskfile.yaml taskfile.yaml", file: "-t --taskfile", dir: "-d --dir"},
	"rake":     {names: "rakefile Rakefile rakefile.rb Rakefile.rb", file: "-f --rakefile"},
	"mage":     {names: "magefile.go", dir: "-d"},
	"npm":      {names: "package.json", dir: "--prefix -C", only: "test t tst run run-script start"},
	"pnpm":     {names: "package.json", dir: "--dir -C", only: "*"},
	"yarn":     {names: "package.json", dir: "--cwd", only: "*"},
	"bun":      {names: "package.json", dir: "--cwd", only: "run"},
	"composer": {names: "composer.json", dir: "-d --working-dir", only: "test run run-script exec"},
	"tox":      {names: "tox.ini", file: "-c --conf"},
	"nox":      {names: "noxfile.py", file: "-f --noxfile"},
	"invoke":   {names: "tasks.py"},
	"inv":      {names: "tasks.py"},
	"ant":      {names: "build.xml", file: "-f -file -buildfile"},
	"gradle":   {names: "build.gradle build.gradle.kts", file: "-b", dir: "-p --project-dir"},
	"gradlew":  {names: "build.gradle build.gradle.kts", file: "-b", dir: "-p --project-dir"},
}

// ownCommands are the subcommands of yarn and pnpm themselves; any other word may be a script. Without a word they
// install.
const ownCommands = "add approve-builds audit autoclean bin cache check config constraints create dedupe deploy dlx doctor env exec explain fetch generate-lock-entry " +
	"global help i import info init install install-test it licenses link list ln login logout ls node npm outdated owner pack patch patch-commit plugin policies prune publish " +
	"rb rebuild remove rm root search self-update set setup stage store tag team un uninstall unlink unplug up update upgrade upgrade-interactive version versions why workspace workspaces"

// spread matches an option or a word that makes a script run in the packages of a workspace.
var spread = lazyregexp.New(`^(-w|-ws|-r|-F|--workspaces?(=.*)?|--recursive|--filter(=.*)?|workspaces?)$`)

// scripts seals the files that a command executes.
func (r *refs) scripts(command, dir string, env map[string]shell.Word, depth int) {
	if depth > maxNesting {
		return
	}
	for _, c := range shell.Read(command, dir, env) {
		if c.Loose {
			r.anywhere(c.All)
		}
		r.run(c, c.Words, depth)
	}
}

// run seals what one simple command executes. words are those of the command, or of the part that a wrapper runs.
func (r *refs) run(c shell.Command, words []shell.Word, depth int) {
	if len(words) == 0 || depth > maxNesting {
		return
	}
	first, args := words[0], words[1:]
	program := r.program
	r.program = called(first)
	defer func() { r.program = program }()
	if strings.Contains(first.Path, "/") {
		if !r.reads(c.Dir, first, "", depth) {
			if r.judges {
				r.built(first)
			}
			r.free(c.Dir, first)
		}
	} else if !first.Unknown && !first.Glob && first.Path != "" {
		r.outside[first.Path] = true // the shell looks it up in PATH
		for _, dir := range r.searched(c, "PATH") {
			w := shell.Word{Path: path.Join(shell.Root, dir, first.Path)}
			if r.reads(c.Dir, w, "", depth) {
				break
			}
			r.free("", w)
		}
	}
	name := called(first)
	if contains("python pypy pytest py.test coverage", name) {
		for _, dir := range r.searched(c, "PYTHONPATH") {
			r.first(dir, pythonRuns)
		}
	}
	if r.judges {
		r.testFolders(c.Dir, args)
	}
	r.evaluator(c, name, args)
	if options, ok := wrappers[name]; ok {
		r.run(c, unwrap(args, options), depth+1)
		return
	}
	if sub, ok := runners[name]; ok && len(args) > 0 && contains(sub, args[0].Text) {
		r.run(c, unwrap(args[1:], ""), depth+1)
		return
	}
	if _, ok := tasks[name]; ok {
		r.task(c.Dir, name, args, depth)
	}
	switch name {
	case "eval":
		text := list.Map(args, func(w shell.Word) string { return w.Text })
		r.scripts(strings.Join(text, " "), c.Dir, c.Env, depth+1)
		return
	case "hyperfine":
		for _, w := range args {
			r.scripts(w.Text, c.Dir, c.Env, depth+1)
		}
		return
	case "find":
		for n := 0; n < len(args); n++ {
			if !contains("-exec -execdir -ok -okdir", args[n].Text) {
				continue
			}
			start := n + 1
			for n = start; n < len(args) && args[n].Text != ";" && args[n].Text != "+"; {
				n++
			}
			r.run(c, args[min(start, n):n], depth+1)
		}
		return
	case "go":
		r.goRun(c.Dir, args)
		return
	case "lerna", "turbo", "nx":
		r.workspaces(c.Dir, args, depth)
		return
	}
	if interp, ok := interpreters[name]; ok || first.Unknown { // $(RUNNER) tools/check.sh
		r.interpret(c, name, interp, args, depth)
	}
}

// built seals the source of a test program that a command builds before it runs it: for ./xmltest it is xmltest.cpp,
// in any folder.
func (r *refs) built(program shell.Word) {
	name := path.Base(program.Path)
	if program.Unknown || program.Glob || !strings.Contains(strings.ToLower(name), "test") {
		return
	}
	for _, file := range r.files {
		if source, ok := strings.CutPrefix(path.Base(file), name+"."); ok && contains("c cc cpp cxx c++ m rs", source) {
			r.mark(file)
		}
	}
}

// interpret seals what an interpreter runs.
func (r *refs) interpret(c shell.Command, name string, interp interpreter, args []shell.Word, depth int) {
	for n := 0; n < len(args); n++ {
		w := args[n]
		option, value, joined := strings.Cut(w.Path, "=")
		switch {
		case n == 0 && len(interp.skip) > 0 && w.Text == interp.skip[0]:
		case contains(interp.loads, option):
			if joined {
				w.Path = value
			} else if n++; n < len(args) {
				w = args[n]
			}
			if r.file(c.Dir, w) == nil {
				r.free(c.Dir, w)
			}
		case contains(interp.inline, w.Text) || shells[name] && commandOption().MatchString(w.Text):
			if n+1 < len(args) && shells[name] {
				r.scripts(args[n+1].Text, c.Dir, c.Env, depth+1)
			} else if n+1 < len(args) && r.judges {
				r.testsIn(c.Dir, args[n+1].Text)
			}
			return
		case w.Text == "-m" && contains("python pypy coverage", name) && n+1 < len(args):
			module := strings.ReplaceAll(args[n+1].Path, ".", "/")
			r.first(c.Dir, pythonRuns)
			for _, name := range []string{".py", "/__init__.py", "/__main__.py"} { // these come before an installed module
				r.group(c.Dir, shell.EscapeGlob(module)+name, Group{New: true})
			}
			r.evaluator(c, module, args[n+2:])
			if module == "coverage" {
				r.interpret(c, module, interpreters[module], args[n+2:], depth+1)
			}
			for _, file := range []string{module + ".py", module + "/__main__.py"} {
				if r.seal(c.Dir, file) {
					r.imports(r.relative(shell.Resolve(c.Dir, file)), c.Dir, depth)
				}
			}
			return
		case strings.HasPrefix(w.Text, "-") && w.Text != "-":
		case interp.program:
			return // program text, or data if the program was loaded from a file
		case r.reads(c.Dir, w, name, depth):
			return // the rest are arguments of the script
		case name == "source" || name == ".":
			r.free(c.Dir, w)
			return
		case interp.entry != "" && !w.Unknown && r.reads(c.Dir, shell.Word{Path: path.Join(w.Path, interp.entry)}, name, depth):
			if interp.entry == "index.js" { // a manifest may name another file
				r.group(shell.Resolve(c.Dir, w.Path), "package.json", Group{There: true, New: true})
			}
			return
		}
	}
	if interp.program {
		return
	}
	for _, w := range c.Stdin { // sh <x
		r.reads(c.Dir, w, name, depth)
	}
	if !shells[name] {
		return
	}
	if c.Here != "" {
		r.scripts(c.Here, c.Dir, c.Env, depth+1)
	}
	r.fed(c, 0)
}

// fed seals the files whose text a shell may get as commands from other programs: cat x | sh.
func (r *refs) fed(c shell.Command, depth int) {
	for _, feed := range c.Feeds[:min(len(c.Feeds), maxNesting)] {
		for _, w := range feed.Words {
			r.file(feed.Dir, w)
		}
		if feed.Here != "" {
			r.scripts(feed.Here, feed.Dir, feed.Env, depth+1)
		}
		if depth < maxNesting {
			r.fed(feed, depth+1)
		}
	}
}

// commandOption matches -c, also together with other options: -euc, -lc.
var commandOption = lazyregexp.New(`^-[a-zA-Z]*c$`)

// task seals the file from which make and similar programs take their instructions.
func (r *refs) task(dir, name string, args []shell.Word, depth int) {
	t := tasks[name]
	names, sub := strings.Fields(t.names), ""
	var plain []shell.Word
	for n := 0; n < len(args); n++ {
		option, value, joined := strings.Cut(args[n].Path, "=")
		takesFile, takesDir := contains(t.file, option), contains(t.dir, option)
		if text := args[n].Path; !takesFile && !takesDir && len(text) > 2 { // make -fx
			takesFile, takesDir = contains(t.file, text[:2]), contains(t.dir, text[:2])
			if takesFile || takesDir {
				value, joined = text[2:], true
			}
		}
		if (takesFile || takesDir) && !joined {
			if n++; n == len(args) {
				break
			}
			value = args[n].Path
		}
		switch {
		case takesFile:
			names = []string{value}
		case takesDir:
			dir = shell.Resolve(dir, value)
		case !strings.HasPrefix(option, "-") && !assignment().MatchString(args[n].Text):
			plain = append(plain, args[n])
		}
	}
	if len(plain) > 0 {
		sub = plain[0].Text
	} else if t.only == "*" {
		sub = "install"
	}
	if contains("npm pnpm yarn bun", name) && slices.ContainsFunc(args, func(w shell.Word) bool { return spread().MatchString(w.Text) }) {
		r.workspaces(dir, plain, depth)
	}
	if t.only == "*" && contains(ownCommands, sub) || t.only != "" && t.only != "*" && !contains(t.only, sub) {
		return
	}
	for _, file := range names {
		if contains("make gmake", name) {
			r.remade(r.relative(shell.Resolve(dir, file)))
		}
		if r.seal(dir, file) {
			r.targets(name, r.relative(shell.Resolve(dir, file)), dir, plain, depth)
			return
		}
		r.group(dir, shell.EscapeGlob(file), Group{New: true}) // the program would find it first
	}
}

// goRun seals the files of go run x.go y.go. A package is a folder, and is not sealed.
func (r *refs) goRun(dir string, args []shell.Word) {
	for len(args) > 1 && args[0].Text == "-C" {
		dir, args = shell.Resolve(dir, args[1].Path), args[2:]
	}
	if len(args) == 0 || args[0].Text != "run" {
		return
	}
	for _, w := range args[1:] {
		switch {
		case strings.HasPrefix(w.Text, "-"):
		case strings.HasSuffix(w.Path, ".go"):
			r.file(dir, w)
		default:
			if r.dirs != nil && strings.Contains(w.Path, "/") {
				r.seal(dir, w.Path)
			}
			return
		}
	}
}

// unwrap returns the command within the arguments of a wrapper: it skips options with their arguments, assignments,
// and numbers such as timeout's.
func unwrap(args []shell.Word, options string) []shell.Word {
	for len(args) > 0 {
		text := args[0].Text
		switch {
		case text == "--":
			return args[1:]
		case contains(options, text):
			args = args[min(2, len(args)):]
		case strings.HasPrefix(text, "-"), assignment().MatchString(text), quantity().MatchString(text), text == "stat", text == "record":
			args = args[1:]
		default:
			return args
		}
	}
	return nil
}

var (
	assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=`)
	quantity   = lazyregexp.New(`^[0-9.]+[smhd]?$`)
	versions   = lazyregexp.New(`[0-9.]+$`)
)

// called returns the name of a command without its folder and version, "" if it is unknown.
func called(w shell.Word) string {
	if w.Text == "." {
		return "."
	}
	name := path.Base(w.Path)
	if name == "." { // a path that nobody knows is empty
		return ""
	}
	if trimmed := versions().ReplaceAllString(name, ""); len(trimmed) > 1 { // c8 is no version of c
		return trimmed
	}
	return name
}

func contains(list, name string) bool { return slices.Contains(strings.Fields(list), name) }
