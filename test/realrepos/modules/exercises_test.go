package modules_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// exercise is a place in a public package where a small mutation breaks a function, and a wrong first attempt to fix
// it. The package's own tests notice both.
type exercise struct {
	module, version, dir, file, function string
	right, broken, half                  string
}

// exercises are in packages without dependencies. Others wrote the packages and their tests.
var exercises = []exercise{
	{"github.com/google/uuid", "v1.6.0", ".", "util.go", "xtob", "return (b1 << 4) | b2, b1 != 255 && b2 != 255", "return (b2 << 4) | b1, b1 != 255 && b2 != 255", "return (b1 << 4) | b2, true"},
	{"github.com/shopspring/decimal", "v1.4.0", ".", "decimal.go", "Cmp", "return rd.value.Cmp(rd2.value)", "return rd2.value.Cmp(rd.value)", "return rd.value.CmpAbs(rd2.value) + 1"},
	{"golang.org/x/mod", "v0.41.0", "semver", "semver.go", "Compare", "compareInt(pv.patch, pw.patch)", "compareInt(pv.patch, pv.patch)", "compareInt(pw.patch, pv.patch)"},
	{"github.com/kr/text", "v0.2.0", ".", "indent.go", "IndentBytes", "if bol && c != '\\n' {", "if c != '\\n' {", "if bol {"},
	{"github.com/kr/text", "v0.2.0", ".", "wrap.go", "WrapWords", "length[i][j-1] + spc + len(words[j])", "length[i][j-1] + len(words[j])", "length[i][j-1] - spc + len(words[j])"},
	{"github.com/iancoleman/strcase", "v0.3.0", ".", "camel.go", "toCamelInitCase", "capNext = v == '_' || v == ' ' || v == '-' || v == '.'", "capNext = v == '_'", "capNext = v == '_' || v == ' ' || v == '-'"},
	{"github.com/hashicorp/go-version", "v1.9.0", ".", "version.go", "Compare", "if preSelf == \"\" {\n\t\t\treturn 1", "if preSelf == \"\" {\n\t\t\treturn -1", "if preSelf == \"\" {\n\t\t\treturn 0"},
	{"github.com/huandu/xstrings", "v1.5.0", ".", "count.go", "WordCount", `case inWord && (r == '\'' || r == '-'):`, `case inWord && r == '.':`, `case inWord && r == '-':`},
	{"github.com/huandu/xstrings", "v1.5.0", ".", "format.go", "ExpandTabs", "expand = tabSize - column%tabSize", "expand = tabSize", "expand = tabSize - column"},
	{"github.com/guptarohit/asciigraph", "v0.10.0", ".", "utils.go", "round", "return rounded * sign", "return sign", "return rounded"},
	{"github.com/pmezard/go-difflib", "v1.0.1-0.20181226105442-5d4384ee4fb2", "difflib", "difflib.go", "calculateRatio", "return 2.0 * float64(matches) / float64(length)", "return float64(matches) / float64(length)", "return 3.0 * float64(matches) / float64(length)"},
	{"github.com/Masterminds/goutils", "v1.1.1", ".", "wordutils.go", "CapitalizeFully", "str = strings.ToLower(str)\n\treturn Capitalize(", "return Capitalize(", "str = strings.ToUpper(str)\n\treturn Capitalize("},
}

// slow are tests that take seconds and do not test what is broken.
const slow = "Tan|Exp[^a]|Exp$|Pow|Large|Ln|Sqrt|Extreme|Round2|Rem2"

// TestL_BrokenFunctionsOfPublicModulesAreRestored breaks functions of public modules from the module cache, with one
// loop each. A scripted writer fixes each of them wrongly, the fixer restores it, and the packages' own sealed tests
// judge. Nothing of the modules is kept.
func TestL_BrokenFunctionsOfPublicModulesAreRestored(t *testing.T) {
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	cache := strings.TrimSpace(string(out))
	for _, e := range world.Sample(1, exercises) {
		t.Run(path.Base(e.module)+"."+e.function, func(t *testing.T) {
			w := world.New(t, `case $PAWL_ROLE in
writer) cp "$WORLD/half" "$FILE"; echo "mend $FUNCTION";;
fixer) cp "$WORLD/right" "$FILE"; echo "restore $FUNCTION";;
esac`)
			breaks(w, t, cache, e)
			w.Set(doc{
				"kind": "deliver", "goal": "mend " + e.function, "scope": []string{"**/*.go"}, "protect": []string{"**/*_test.go", "go.mod"},
				"agent": doc{"env": doc{"WORLD": w.Dir, "FILE": e.file, "FUNCTION": e.function}},
				"test":  doc{"command": fmt.Sprintf("go test -json -vet=off -skip '%s' .", slow), "timeout": "5m"},
			})
			delete(w.Spec, "verify")
			r := w.Run(0)
			require.Equal(t, "completed", r.Result.ExitStatus)
			require.Equal(t, 1, r.Result.Iterations)
			require.Equal(t, "open", r.Result.Proposal.State, "nobody has approved it")
			require.Equal(t, w.Read("right"), w.Git("show", r.Result.Head+":"+e.file)+"\n")

			s := w.Pawl("log", w.Loop)
			require.Equal(t, 0, s.Code, s.Err)
			runs := 0
			for line := range strings.SplitSeq(s.Out, "\n") {
				if strings.Contains(line, "tests: ") {
					runs++
				}
			}
			require.Equal(t, 3, runs, "the unchanged code and the first change fail, its fix passes:\n%s", s.Out)
			assert.Contains(t, s.Out, "; failing: ", "the tests that fail are named")
			assert.Contains(t, s.Out, "; fixed: ")
		})
	}
}

// breaks makes the world's repository a package with a broken function.
func breaks(w *world.World, t *testing.T, cache string, e exercise) {
	t.Helper()
	escaped := regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(e.module, func(c string) string { return "!" + strings.ToLower(c) })
	source := filepath.Join(cache, filepath.FromSlash(escaped)+"@"+e.version, e.dir)
	if _, err := os.Stat(source); err != nil {
		world.Slow(t, "it downloads "+e.module)
		get := exec.Command("go", "mod", "download", e.module+"@"+e.version)
		out, err := get.CombinedOutput()
		require.NoError(t, err, "downloading %s %s: %s", e.module, e.version, out)
	}
	require.NoError(t, os.RemoveAll(w.Repo))
	require.NoError(t, os.Mkdir(w.Repo, 0o755))
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		w.Write("repo/"+filepath.Base(file), world.ReadFile(file))
	}
	w.Write("repo/go.mod", "module "+path.Join(e.module, e.dir)+"\n\ngo 1.24\n")
	right := world.ReadFile(filepath.Join(source, e.file))
	require.Equal(t, 1, strings.Count(right, e.right), "%s has the place once", e.file)
	w.Write("right", right)
	w.Write("half", strings.Replace(right, e.right, e.half, 1))
	w.Write("repo/"+e.file, strings.Replace(right, e.right, e.broken, 1))
	w.Init()
	w.Commit("a package that others wrote, and a bug")

	cmd := exec.Command("go", "test", "-vet=off", "-skip", slow, ".")
	cmd.Dir = w.Repo
	require.Error(t, cmd.Run(), "the package's tests notice the bug")
}
