package scaffold

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

func c(t tree) Repository {
	r := Repository{Protect: append(t.present("CMakeLists.txt", "meson.build", "configure", "configure.ac", "configure.in"), t.under("test", "tests")...)}
	for _, glob := range []string{"test*.c", "*_test.c", "test*.cc", "*_test.cc", "test*.cpp", "*_test.cpp"} {
		if slices.ContainsFunc(t.files, func(name string) bool { ok, _ := path.Match(glob, path.Base(name)); return ok }) {
			r.Protect = append(r.Protect, "**/"+glob)
		}
	}
	if r.Scope = t.under("src", "lib"); len(r.Scope) > 0 {
		r.Scope = append(r.Scope, t.under("include")...)
	} else {
		r.Scope = []string{"**/*.{c,h,cc,cpp,cxx,hpp}"}
	}
	switch {
	case t.has["CMakeLists.txt"]:
		r.Test, r.Keep = "cmake -S . -B build >/dev/null && cmake --build build >/dev/null && ctest --test-dir build --output-on-failure", []string{"build/**"}
	case t.has["meson.build"]:
		r.Test, r.Keep = "meson setup build >/dev/null && meson test -C build", []string{"build/**"}
	default:
		r.Setup, r.Test = t.autotools()
	}
	return r
}

var makeTests = lazyregexp.New(`(?m)^(check|test)[ \t]*:([^=]|$)`)

// includesMade matches the line of a GNUmakefile, such as gnulib's, that reads the Makefile that configure makes.
var includesMade = lazyregexp.New(`(?m)^include Makefile$`)

// autotools returns the command that makes the Makefile of a repository without one, and its target that runs tests.
func (t tree) autotools() (setup, test string) {
	if made, text := t.makes(); made != "" && !includesMade().MatchString(text) {
		return "", ""
	}
	if t.has["Makefile.am"] {
		test = "make check"
	} else if m := makeTests().FindStringSubmatch(t.read("Makefile.in")); m != nil {
		test = "make " + m[1]
	}
	switch {
	case test == "":
	case t.has["configure"]:
		setup = "./configure --quiet"
		if t.has["Makefile.am"] {
			test = t.aged() + " && " + test
		}
	case t.has["configure.ac"], t.has["configure.in"]:
		setup = "autoreconf --install && ./configure --quiet"
	default:
		test = ""
	}
	return setup, test
}

// aged returns a command that gives an old time to what automake, flex and bison read. The files of a clone have times in any order, and make would run the
// very version of automake again if what automake made is older. What flex and bison read keeps its time if they are installed.
func (t tree) aged() string {
	names := []string{"*.ac", "*.am", "*.m4"}
	if !t.program("flex") {
		names = append(names, "*.l", "*.ll")
	}
	if !t.program("bison") {
		names = append(names, "*.y", "*.yy")
	}
	return `find . \( -name '` + strings.Join(names, `' -o -name '`) + `' \) -exec touch -t 200001010000 {} +`
}
