package evaluator

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/shell"
)

// own says how a program can get names for its tests that differ from the usual ones: by options, or in its settings.
type own struct {
	options string
	files   string // its settings files, in the folder in which it runs or at the root
	setting lazyregexp.Regexp
}

var (
	pythonFiles = own{"", "pytest.ini .pytest.ini pyproject.toml tox.ini setup.cfg", lazyregexp.New(`(?m)^[ \t]*python_files[ \t]*=[ \t]*(\[[^\]]*\]|.*(?:\n[ \t]+[^\n=\[]+$)*)`)}
	testMatch   = own{"--testMatch", "package.json jest.config.js jest.config.cjs jest.config.mjs jest.config.ts jest.config.json", lazyregexp.New(`"?\btestMatch"?\s*:\s*(\[[^\]]*\])`)}
	cargoPaths  = own{"", "Cargo.toml", lazyregexp.New(`(?m)^\[\[(?:test|bench)\]\](?:\n[^\[\n]*)*?\npath[ \t]*=[ \t]*("[^"]*")`)}

	owns = map[string]own{
		"unittest": {options: "-p --pattern"}, "pytest": pythonFiles, "py.test": pythonFiles, "tox": pythonFiles, "nox": pythonFiles, "jest": testMatch, "cargo": cargoPaths,
	}

	// pattern matches one name of a list, with or without quotes.
	pattern = lazyregexp.New(`[^\s,"'\[\]]+`)
	// override matches the option that sets python_files for pytest.
	override = lazyregexp.New(`^(?:-o|--override-ini=)?python_files=(.*)$`)
)

// patterns returns the globs by which a program finds its tests, besides those of the table. A glob that matches
// every file is left out, because then nothing could change.
func (r *refs) patterns(dir, name string, args []shell.Word) (globs []string) {
	o, ok := owns[name]
	if !ok {
		return nil
	}
	var extra []string
	for i, w := range args {
		option, value, joined := strings.Cut(w.Text, "=")
		switch {
		case joined && contains(o.options, option):
			extra = append(extra, value)
		case i > 0 && contains(o.options, args[i-1].Text):
			extra = append(extra, w.Text)
		case o.files == pythonFiles.files:
			if m := override().FindStringSubmatch(w.Text); m != nil {
				extra = append(extra, m[1])
			}
		}
	}
	for _, file := range strings.Fields(o.files) {
		for _, path := range []string{r.relative(shell.Resolve(dir, file)), file} {
			if !r.exists[path] {
				continue
			}
			for _, m := range o.setting().FindAllStringSubmatch(r.text(path), -1) {
				extra = append(extra, m[1])
			}
			break
		}
	}
	for _, list := range extra {
		for _, glob := range pattern().FindAllString(list, -1) {
			glob = strings.TrimPrefix(strings.TrimPrefix(glob, "<rootDir>/"), "**/")
			anyName := strings.Trim(strings.TrimSuffix(path.Base(glob), path.Ext(glob)), "*") == ""
			if strings.ContainsAny(glob, "()!\\") || anyName && !testFolder().MatchString(path.Dir(glob)) || !doublestar.ValidatePattern(glob) {
				continue
			}
			globs = append(globs, glob)
		}
	}
	return globs
}
