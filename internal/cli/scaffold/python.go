package scaffold

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/list"
)

func python(t tree) Repository {
	config := t.read("pyproject.toml") + t.read("setup.cfg") + t.read("requirements.txt") + t.read("requirements-dev.txt") + t.read("tox.ini") + t.read("Pipfile")
	tests := slices.DeleteFunc(slices.Clone(t.files), func(name string) bool {
		base := path.Base(name)
		return !(strings.HasPrefix(base, "test_") && strings.HasSuffix(base, ".py") || strings.HasSuffix(base, "_test.py"))
	})
	configures := func(text string) bool {
		return slices.ContainsFunc(tests, func(name string) bool { return strings.Contains("\n"+t.read(name), text) })
	}
	bare := configures("\ndef test_") // outside of classes unittest finds no tests
	pytest := t.has["pytest.ini"] || strings.Contains(config, "pytest") || t.has["conftest.py"] || t.has["tests/conftest.py"] || configures("import pytest") || bare
	run, setup := t.either("python", "python3"), ""
	var keep []string
	brought, built := true, false // setup installs what the tests need; and the project, from the tree that it runs in
	requirements := t.present("requirements.txt", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt", "test-requirements.txt")
	switch {
	case t.has["uv.lock"] && t.program("uv"):
		run, setup, keep, built = "uv run python", "uv sync --quiet", []string{".venv/**"}, true
	case t.has["poetry.lock"] && t.program("poetry"):
		run, setup, built = "poetry run python", "poetry install --quiet", true
	case t.has["pdm.lock"] && t.program("pdm"):
		run, setup, keep, built = "pdm run python", "pdm sync --quiet", []string{".venv/**"}, true
	case t.has["Pipfile.lock"] && t.program("pipenv"):
		run, setup = "pipenv run python", "pipenv sync --dev"
	case len(requirements) > 0:
		setup, keep = run+" -m venv .venv && .venv/bin/python -m pip install --quiet -r "+strings.Join(requirements, " -r "), []string{".venv/**"}
		run = ".venv/bin/python"
		if pytest && !strings.Contains(config+t.read("requirements-test.txt")+t.read("dev-requirements.txt")+t.read("test-requirements.txt"), "pytest") {
			setup += " pytest"
		}
	default:
		brought = false
		for _, lock := range []struct{ file, manager string }{{"uv.lock", "uv"}, {"poetry.lock", "poetry"}, {"pdm.lock", "pdm"}, {"Pipfile.lock", "pipenv"}} {
			if t.has[lock.file] {
				t.miss(lock.manager + " is not on the PATH, so nothing installs what " + lock.file + " lists")
			}
		}
	}
	r := Repository{Setup: setup, Keep: keep, Protect: append(t.present("pyproject.toml", "setup.py", "setup.cfg", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "conftest.py"), t.under("test", "tests")...)}
	r.Protect = append(r.Protect, requirements...)
	for glob, ends := range map[string]string{"**/test_*.py": ".py", "**/*_test.py": "_test.py"} {
		if slices.ContainsFunc(tests, func(name string) bool { return strings.HasSuffix(name, ends) }) {
			r.Protect = append(r.Protect, glob)
		}
	}
	installed := brought || t.program(run+" -m pytest")
	// What is tested has to be the code of the tree, and not what is installed under its name.
	environment, prefix := "", "PYTHONPATH=. "
	if len(t.under("src")) > 0 && !built {
		environment, prefix = "PYTHONPATH=src ", "PYTHONPATH=src "
	}
	venv, prepared := "", false // an environment of the user's own that has pytest, and is not active
	if pytest && !installed {
		venv, prepared = list.First([]string{".venv", "venv"}, func(dir string) bool { return t.program(dir + "/bin/python -m pytest") })
	}
	switch {
	case prepared:
		t.miss("pytest is in " + venv + ", which is not active: activate it (. " + venv + "/bin/activate) before pawl validate and pawl run")
		r.Test = environment + run + " -m pytest -q"
	case pytest && !installed && configures("unittest") && !configures("import pytest"):
		t.miss(run + " has no pytest, so the tests are those that unittest finds")
		r.Test = t.unittest(run, tests)
	case pytest && !installed && t.has["tox.ini"] && t.program("tox"):
		t.miss(run + " has no pytest, so tox runs the tests")
		r.Test, r.Keep = "tox -q -e py", append(r.Keep, ".tox/**")
	case pytest && !installed && t.program("pytest"):
		t.miss(run + " has no pytest, so the tests are run by the pytest that is on the PATH, which may lack the libraries of " + run)
		r.Test = prefix + "pytest -q"
	case pytest && !installed:
		t.miss(run + " has no pytest, which the tests need: pawl validate fails until it is installed")
		r.Test = environment + run + " -m pytest -q"
	case pytest:
		r.Test = environment + run + " -m pytest -q"
	case len(tests) > 0:
		r.Test = t.unittest(run, tests)
	}
	if r.Scope = t.under("src"); len(r.Scope) == 0 {
		for _, name := range t.files {
			dir, file, nested := strings.Cut(name, "/")
			if nested && file == "__init__.py" && dir != "tests" && dir != "test" {
				r.Scope = append(r.Scope, dir+"/**")
			}
		}
	}
	r.Scope = or(r.Scope, "**/*.py")
	switch {
	case (t.has["ruff.toml"] || strings.Contains(config, "ruff")) && strings.HasSuffix(run, " run python"):
		r.Check = strings.TrimSuffix(run, "python") + "ruff check ."
	case (t.has["ruff.toml"] || strings.Contains(config, "ruff")) && t.program("ruff"):
		r.Check = "ruff check ."
	default:
		r.Check = run + " -m compileall -q " + t.sources(r.Scope)
	}
	return r
}

// reportFile is what a test command writes that names each test.
const reportFile = "junit.xml"

// reporting makes a test command name each test in a report file, if its runner can do that by itself and its output
// does not name them: those of pytest, vitest and jest name only tests that fail.
func (t tree) reporting(test string) (command, report string) {
	if options, file := t.nodeReports(test); options != "" {
		return test + options, file
	}
	if t.has[reportFile] || !strings.HasSuffix(test, "pytest -q") {
		return test, ""
	}
	for _, name := range []string{"pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini"} {
		if strings.Contains(t.read(name), "no:junitxml") {
			return test, ""
		}
	}
	return test + " --junit-xml=" + reportFile, reportFile
}

// unittest returns the command that runs the tests which Python's own runner finds: those in the tests folder if
// there is one, else those beside the code, by whichever kind of name most tests have.
func (t tree) unittest(run string, tests []string) string {
	if len(t.under("src")) > 0 {
		run = "PYTHONPATH=src " + run
	}
	for _, dir := range []string{"tests", "test"} {
		if t.has[dir+"/__init__.py"] {
			return run + " -m unittest discover -s " + dir + " -t ."
		}
		if len(t.under(dir)) > 0 {
			return run + " -m unittest discover -s " + dir
		}
	}
	suffixed := slices.DeleteFunc(slices.Clone(tests), func(name string) bool { return !strings.HasSuffix(name, "_test.py") })
	if 2*len(suffixed) <= len(tests) {
		return run + " -m unittest discover"
	}
	shallowest := slices.MinFunc(suffixed, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	start := path.Dir(shallowest)
	top := start
	for t.has[path.Join(top, "__init__.py")] && top != "." {
		top = path.Dir(top)
	}
	return run + " -m unittest discover -s " + start + " -t " + top + " -p '*_test.py'"
}

// sources returns the folders of a scope, "." if the scope has other globs too.
func (t tree) sources(scope []string) string {
	var dirs []string
	for _, glob := range scope {
		dir, whole := strings.CutSuffix(glob, "/**")
		if !whole || !folder().MatchString(dir) {
			return "."
		}
		dirs = append(dirs, dir)
	}
	return strings.Join(dirs, " ")
}
