package evaluator

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/shell"
)

// free seals the name of a file that a command would run or read commands from, if the base does not have the file: a
// build makes it, or it is optional. Outside of the repository a loop makes no files.
func (r *refs) free(dir string, w shell.Word) {
	if file := r.relative(shell.Resolve(dir, w.Path)); !w.Unknown && !w.Glob && file != "" && file != "." && !path.IsAbs(file) && !r.exists[file] && !r.folder(file) {
		r.group("", shell.EscapeGlob(file), Group{New: true})
	}
}

// searched returns the folders of the repository that a variable such as PATH has for a command.
func (r *refs) searched(c shell.Command, variable string) (folders []string) {
	value := c.Env[variable].Path
	for _, w := range c.All { // env PATH=…
		if rest, ok := strings.CutPrefix(w.Path, variable+"="); ok {
			value = rest
		}
	}
	if value == "" {
		return nil
	}
	for dir := range strings.SplitSeq(value, ":") {
		if file := r.relative(shell.Resolve(c.Dir, dir)); !strings.Contains(dir, "$") && !path.IsAbs(file) && !strings.HasPrefix(file, "..") {
			folders = append(folders, file)
		}
	}
	return folders
}

// made seals the name of a target or of a prerequisite, if the base has no file of that name. If there were one, make
// could take the target for up to date and do nothing.
func (r *refs) made(dir, name string) {
	path := r.relative(shell.Resolve(dir, name))
	if strings.ContainsAny(name, "$%*?[(:|") || path == "." || r.exists[path] || r.folder(path) {
		return
	}
	r.group("", shell.EscapeGlob(path)+"/**", Group{New: true}) // this matches the name itself too
}

// remade seals the names of files from which make's built-in rules would make the Makefile itself.
func (r *refs) remade(file string) {
	dir, name := path.Dir(file), shell.EscapeGlob(path.Base(file))
	r.group(dir, name+".{sh,o,c,cc,cpp,C,p,f,F,r,m,s,S,mod,y,l,w,web,ch}", Group{New: true})
	r.group(dir, "{RCS/,}"+name+",v", Group{New: true})
	r.group(dir, "{SCCS/,}s."+name, Group{New: true})
}

// pythonRuns lists the modules that Python's test runners import. A file of such a name in the folder in which they
// run would be imported instead.
const pythonRuns = "argparse ast bisect contextlib copy copyreg dataclasses datetime difflib dis enum fnmatch functools gettext glob heapq importlib inspect json keyword linecache locale " +
	"logging opcode operator pathlib platform pprint random re reprlib runpy shlex shutil signal string struct subprocess tempfile textwrap threading token tokenize traceback types typing unittest warnings weakref " +
	"pytest _pytest pluggy iniconfig packaging coverage"

// pythonStandard adds further modules that scripts often import: Python's own ones and some of its packages.
const pythonStandard = pythonRuns + " array asyncio base64 binascii bz2 calendar cmath codecs collections concurrent configparser csv ctypes decimal doctest email errno faulthandler fractions gc getopt getpass gzip " +
	"hashlib hmac html http io ipaddress itertools lzma marshal math mmap multiprocessing numbers optparse os pickle profile cProfile pstats queue resource secrets select selectors socket socketserver sqlite3 ssl stat " +
	"statistics sys sysconfig tarfile time timeit tomllib trace tracemalloc unicodedata urllib uuid xml zipfile zlib numpy pandas scipy hypothesis pytest_benchmark"

// first seals the names of modules in a folder that Python searches before its own folders.
func (r *refs) first(dir, modules string) {
	names := strings.Join(strings.Fields(modules), ",")
	if names == "" {
		return
	}
	r.group(dir, "{"+names+"}.py", Group{New: true})
	r.group(dir, "{"+names+"}/__init__.py", Group{New: true})
}

// standard seals the names of those modules of pythonStandard that a script imports, in a folder that Python searches
// first.
func (r *refs) standard(text, dir string) {
	var names []string
	for _, m := range pythonImport().FindAllStringSubmatch(text, -1) {
		if m[2] != "" { // relative
			continue
		}
		for name := range strings.SplitSeq(m[1]+","+m[3], ",") {
			name, _, _ = strings.Cut(strings.TrimSpace(name), ".")
			name, _, _ = strings.Cut(name, " ")
			if contains(pythonStandard, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	r.first(dir, strings.Join(names, " "))
}

var (
	// helper matches a setting, with its value, that names files which a runner loads before the tests or in place of
	// something.
	helper = lazyregexp.New(`["']?\b(?:setupFiles(?:AfterEnv)?|globalSetup|globalTeardown|testEnvironment|testRunner|testSequencer|runner|runtime|resolver|snapshotResolver|snapshotSerializers|reporters?|transform|` +
		`moduleNameMapper|presets?|plugins|extends|require|preload|import|loader|pytest_plugins|alias)\b["']?\s*[:=]\s*(\[[^\]]*\]|\{[^}]*\}|["'][^"'\n]*["']|[^\s\[{"'][^\n]*|(?:\n\s*-[^\n]*)+)`)
	// inSettings matches a name in such a value.
	inSettings = lazyregexp.New(`[^\s,"'\[\]{}]+`)
)

// told seals the files that the settings of a folder, or of the root, tell a runner to load: jest's setupFiles, mocha's require,
// pytest's plugins. settings has the globs of the settings files.
func (r *refs) told(dir, settings string) {
	if settings == "" {
		return
	}
	globs := strings.Fields(settings)
	for _, file := range r.files {
		place := path.Dir(file)
		if place != "." && place != path.Clean(r.relative(dir)) || !slices.ContainsFunc(globs, func(glob string) bool {
			return !strings.Contains(strings.TrimPrefix(glob, "/"), "/") && doublestar.MatchUnvalidated(strings.TrimPrefix(glob, "/"), path.Base(file))
		}) {
			continue
		}
		text, ok := r.once(file, "settings", 0)
		if !ok {
			continue
		}
		r.within(func() {
			for _, m := range helper().FindAllStringSubmatch(text, -1) {
				for _, name := range inSettings().FindAllString(m[1], -1) {
					r.helper(place, name)
				}
			}
			if strings.HasSuffix(file, ".py") {
				r.imports(file, place, 1)
			} else {
				r.requires(file, 1)
			}
		})
	}
}

// helper seals a file that settings name in the form that their program uses.
func (r *refs) helper(dir, name string) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "<rootDir>/"), "./")
	if name == "" || strings.HasPrefix(name, "..") || path.IsAbs(name) {
		return
	}
	for _, base := range []string{name, strings.ReplaceAll(name, ".", "/")} {
		for _, end := range []string{"", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", "/index.js", "/index.ts", "/__init__.py"} {
			if file := path.Join(dir, base+end); r.exists[file] {
				r.mark(file)
				return
			}
		}
	}
}
