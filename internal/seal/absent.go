package seal

import (
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/internal/lazyregexp"
	"pawl/internal/shell"
)

// free seals the name of a file that a command would run or read commands from, and that the base does not have: a build
// makes it, or it is one that may be missing.
func (r *refs) free(dir string, w shell.Word) {
	if at := r.relative(shell.Resolve(dir, w.Path)); !w.Unknown && !w.Glob && at != "." && !r.exists[at] && !r.folder(at) {
		r.group("", shell.EscapeGlob(at), Group{New: true})
	}
}

// searched yields the folders of the repository that a command has in a variable such as PATH.
func (r *refs) searched(c shell.Command, variable string) iter.Seq[string] {
	return func(yield func(string) bool) {
		value := c.Env[variable].Path
		for _, w := range c.All { // env PATH=…
			if rest, ok := strings.CutPrefix(w.Path, variable+"="); ok {
				value = rest
			}
		}
		if value == "" {
			return
		}
		for dir := range strings.SplitSeq(value, ":") {
			if at := r.relative(shell.Resolve(c.Dir, dir)); !strings.Contains(dir, "$") && !path.IsAbs(at) && !strings.HasPrefix(at, "..") && !yield(at) {
				return
			}
		}
	}
}

// made seals the name of a file that make would take for one that it has made, and do nothing: a target, or what stands
// before one.
func (r *refs) made(dir, name string) {
	at := r.relative(shell.Resolve(dir, name))
	if strings.ContainsAny(name, "$%*?[(:|") || at == "." || r.exists[at] || r.folder(at) {
		return
	}
	at = shell.EscapeGlob(at)
	r.group("", at, Group{New: true})
	r.group("", at+"/**", Group{New: true})
}

// remade seals the names of files from which make, by its own rules, would make the file that has its targets.
func (r *refs) remade(file string) {
	dir, name := path.Dir(file), shell.EscapeGlob(path.Base(file))
	r.group(dir, name+".{sh,o,c,cc,cpp,C,p,f,F,r,m,s,S,mod,y,l,w,web,ch}", Group{New: true})
	r.group(dir, "{RCS/,}"+name+",v", Group{New: true})
	r.group(dir, "{SCCS/,}s."+name, Group{New: true})
}

// pythonRuns are modules that Python's runners of tests import from the folder in which they run, if they are there.
const pythonRuns = "argparse ast bisect contextlib copy copyreg dataclasses datetime difflib dis enum fnmatch functools gettext glob heapq importlib inspect json keyword linecache locale " +
	"logging opcode operator pathlib platform pprint random re reprlib runpy shlex shutil signal string struct subprocess tempfile textwrap threading token tokenize traceback types typing unittest warnings weakref " +
	"pytest _pytest pluggy iniconfig packaging coverage"

// pythonStandard are further modules that come with Python, and that scripts which measure import.
const pythonStandard = pythonRuns + " array asyncio base64 binascii bz2 calendar cmath codecs collections concurrent configparser csv ctypes decimal doctest email errno faulthandler fractions gc getopt getpass gzip " +
	"hashlib hmac html http io ipaddress itertools lzma marshal math mmap multiprocessing numbers optparse os pickle profile cProfile pstats queue resource secrets select selectors socket socketserver sqlite3 ssl stat " +
	"statistics sys sysconfig tarfile time timeit tomllib trace tracemalloc unicodedata urllib uuid xml zipfile zlib numpy pandas scipy hypothesis pytest_benchmark"

// first seals the names of modules that Python would find in a folder before those that come with it.
func (r *refs) first(dir, modules string) {
	names := strings.Join(strings.Fields(modules), ",")
	if names == "" {
		return
	}
	r.group(dir, "{"+names+"}.py", Group{New: true})
	r.group(dir, "{"+names+"}/__init__.py", Group{New: true})
}

// standard seals the names of the modules that come with Python and that a script imports, in a folder in which Python
// looks first.
func (r *refs) standard(text, dir string) {
	var names []string
	for _, m := range pythonImport.FindAllStringSubmatch(text, -1) {
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
	// helper is a key of settings under which a runner finds files that it loads before tests, or in place of something.
	helper = lazyregexp.New(`["']?\b(?:setupFiles(?:AfterEnv)?|globalSetup|globalTeardown|testEnvironment|testRunner|testSequencer|runner|runtime|resolver|snapshotResolver|snapshotSerializers|reporters?|transform|` +
		`moduleNameMapper|presets?|plugins|extends|require|preload|import|loader|pytest_plugins|alias)\b["']?\s*[:=]\s*(\[[^\]]*\]|\{[^}]*\}|["'][^"'\n]*["']|[^\s\[{"'][^\n]*|(?:\n\s*-[^\n]*)+)`)
	// inSettings is a name in them.
	inSettings = lazyregexp.New(`[^\s,"'\[\]{}]+`)
)

// told seals the files that settings of the base name for a runner to load: jest's setupFiles, mocha's require, pytest's
// plugins.
func (r *refs) told(dir, settings string) {
	if r.text == nil || settings == "" {
		return
	}
	globs := strings.Fields(settings)
	for _, file := range r.files {
		at := path.Dir(file)
		if at != "." && at != path.Clean(r.relative(dir)) || !slices.ContainsFunc(globs, func(glob string) bool {
			return !strings.Contains(strings.TrimPrefix(glob, "/"), "/") && matches(strings.TrimPrefix(glob, "/"), path.Base(file))
		}) {
			continue
		}
		text, ok := r.once(file, "settings", 0)
		if !ok {
			continue
		}
		r.within(func() {
			for _, m := range helper.FindAllStringSubmatch(text, -1) {
				for _, name := range inSettings.FindAllString(m[1], -1) {
					r.helper(at, name)
				}
			}
			if strings.HasSuffix(file, ".py") {
				r.imports(file, at, 1)
			} else {
				r.requires(file, 1)
			}
		})
	}
}

// helper seals a file, which settings name as their program would find it.
func (r *refs) helper(dir, name string) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "<rootDir>/"), "./")
	if name == "" || strings.HasPrefix(name, "..") || path.IsAbs(name) {
		return
	}
	for _, base := range []string{name, strings.ReplaceAll(name, ".", "/")} {
		for _, end := range []string{"", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", "/index.js", "/index.ts", "/__init__.py"} {
			if at := path.Join(dir, base+end); r.exists[at] {
				r.mark(at)
				return
			}
		}
	}
}

func matches(glob, name string) bool { return doublestar.MatchUnvalidated(glob, name) }
