package evaluator_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/judge/evaluator"
	"pawl/internal/spec"
)

func TestP3_LinesOfAManifestAreComparedByWhatTheySay(t *testing.T) {
	const base = "module n\n\ngo 1.26\n\nrequire x v1\n\nreplace x => ./x\n"
	for change, want := range map[string]string{
		"":                                         "",
		"require y v1\n":                           "",
		"require (\n\ty v1 // ignore\n)\n":         "",
		"// ignore ./pkg\n":                        "",
		"ignore ./pkg\n":                           "ignore",
		"ignore(\n./pkg\n)\n":                      "ignore",
		"require ()\nignore ./pkg\n":               "ignore",
		"require (\n) // x\nignore ./pkg":          "ignore",
		"\tignore ( // x\r\n./pkg\r\n)":            "ignore",
		"replace y => ./y\n":                       "replace",
		"replace (\n\ty => ./y\n)\nignore ./pkg\n": "ignore replace",
	} {
		require.Equal(t, want, strings.Join(evaluator.Changed(base, base+change, []string{"ignore", "replace"}), " "), "%q", change)
	}
	require.Equal(t, []string{"replace"}, evaluator.Changed(base, "", []string{"ignore", "replace"}), "it is removed")
	require.Empty(t, evaluator.Changed(base, strings.ReplaceAll(base, "replace x => ./x", "replace (\n\tx   =>  ./x\n)"), []string{"replace"}), "the same directive in another form is not a change")
}

func TestP3_LinesOfGoModAreSealedWhereGoJudges(t *testing.T) {
	lines := map[string]string{}
	for _, g := range evaluator.Find(spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: "cd parser && go test ./..."}}, project, nil).Groups {
		if g.Lines != "" {
			lines[g.Glob] = g.Lines
		}
	}
	mod, work := "ignore replace tool", "replace use"
	require.Equal(t, map[string]string{"parser/**/go.mod": mod, "go.mod": mod, "parser/**/go.work": work, "go.work": work}, lines)
}

func TestP3_CodeOfOthersInTheRepositoryIsSealed(t *testing.T) {
	files := []string{"main.go", "vendor/modules.txt", "vendor/example.com/assert/a.go", "sub/vendor/x/x.go", "node_modules/jest/index.js", ".venv/bin/pytest", "vendored.go", "src/vendor.go"}
	for command, want := range map[string]string{
		"go test ./...":         "vendor/modules.txt vendor/example.com/assert/a.go sub/vendor/x/x.go",
		"go test ./sub/...":     "vendor/modules.txt vendor/example.com/assert/a.go sub/vendor/x/x.go",
		"npx jest":              "node_modules/jest/index.js",
		"python3 -m pytest src": ".venv/bin/pytest",
		"sh x.sh":               "",
	} {
		var sealed []string
		seals := evaluator.Find(spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: command}}, files, nil)
		for _, file := range files {
			if seals.Has(file) {
				sealed = append(sealed, file)
			}
		}
		require.Equal(t, want, strings.Join(sealed, " "), command)
	}
	require.False(t, evaluator.Find(spec.Spec{Scope: []string{"**", "vendor/**"}, Guard: spec.Guard{Command: "go test ./..."}}, files, nil).Has("vendor/modules.txt"), "the scope names it")
}
