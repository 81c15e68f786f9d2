package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var requirement = regexp.MustCompile(`\b([LPASE][0-9]{1,2}(?:\.[0-9])?)\b`)

// requirements returns the IDs that docs/reference/requirements.md defines: those that begin a row of a table.
func requirements(t *testing.T) map[string]bool {
	defined := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([LPASE][0-9.]+) \|`).FindAllStringSubmatch(page(t, "reference/requirements.md"), -1) {
		require.False(t, defined[row[1]], "docs/reference/requirements.md defines %s twice", row[1])
		defined[row[1]] = true
	}
	return defined
}

// inTestName matches the requirement in a test's name. TestP5_5_… and TestP55_… are both P5.5.
var inTestName = regexp.MustCompile(`\bTest([LPASE])([0-9]+?)(?:_?(5))?(?:_|[A-Z])`)

// requirementOf returns the ID of a match of inTestName.
func requirementOf(match []string, defined map[string]bool) string {
	id := match[1] + match[2]
	if match[3] != "" && defined[id+"."+match[3]] {
		return id + "." + match[3]
	}
	return id
}

// TestEveryRequirementThatIsNamedIsDefined searches code, tests, scripts and documents.
func TestEveryRequirementThatIsNamedIsDefined(t *testing.T) {
	defined := requirements(t)
	sources(t, func(path, text string) {
		for _, m := range requirement.FindAllStringSubmatch(text, -1) {
			require.True(t, defined[m[1]], "%s names %s, which docs/reference/requirements.md does not define", path, m[1])
		}
		for _, m := range inTestName.FindAllStringSubmatch(text, -1) {
			id := requirementOf(m, defined)
			require.True(t, defined[id], "%s: %s names no requirement of docs/reference/requirements.md", path, m[0])
		}
		for _, invariant := range regexp.MustCompile(`INV-[A-Z]+-[0-9]+`).FindAllString(text, -1) {
			require.Contains(t, page(t, "reference/requirements.md"), invariant, path)
		}
	})
}

// page returns the text of a page under docs/.
func page(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	return string(text)
}

// sources calls see with every file of the repository that people write: code, scripts, settings and documents, but no
// test data.
func sources(t *testing.T, see func(path, text string)) {
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.Contains(" .go .md .sh .yaml .yml ", " "+filepath.Ext(path)+" "):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			name, _ := filepath.Rel(root, path)
			see(name, string(text))
		}
		return err
	}))
}
