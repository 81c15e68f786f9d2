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

// TestRecipesNameTheFiles compares the recipes of CONTRIBUTING.md with the code: the files of a recipe are those in which
// its example stands.
func TestRecipesNameTheFiles(t *testing.T) {
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Recipes\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")

	recipes := regexp.MustCompile("(?m)^\\| (an? [^|]+) \\| `(\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(section, -1)
	require.Len(t, recipes, 9, "a spec key, a default, a budget, a gate, an event, a policy rule, an agent, a command, an error code")
	for _, recipe := range recipes {
		t.Run(recipe[1], func(t *testing.T) {
			var listed []string
			for _, file := range strings.Fields(recipe[3]) {
				listed = append(listed, strings.Trim(file, "`"))
			}
			require.ElementsMatch(t, filesWith(t, recipe[2]), listed, "the files with %s have changed", recipe[2])
		})
	}
}

// filesWith returns the Go files of the program, without tests, in which a name stands.
func filesWith(t *testing.T, name string) []string {
	const root = "../.."
	word := regexp.MustCompile(`\b` + name + `\b`)
	var files []string
	for _, room := range []string{"activities", "config", "internal", "workflows"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil && word.Match(text) {
				relative, err := filepath.Rel(root, path)
				require.NoError(t, err)
				files = append(files, filepath.ToSlash(relative))
			}
			return err
		})
		require.NoError(t, err)
	}
	return files
}
