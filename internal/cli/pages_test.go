package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/shell"
)

// Each pawl command in a sentence or a table of the docs must exist and accept its flags and arguments.
func TestCommandsInTheDocsAreCommands(t *testing.T) {
	root := filepath.Join("..", "..")
	all := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/*/*.md", "examples/*.md"}
	mentioned := regexp.MustCompile("`(pawl|starter|worker) ([^`\n]+)`")
	programs := map[string]Deps{"pawl": {Embedded: &Embedded{}}, "starter": {Program: "starter", Thin: true}}
	n := 0
	for _, pattern := range all {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range files {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, m := range mentioned.FindAllStringSubmatch(string(text), -1) {
				n++
				a := newApp(&bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}, programs[m[1]])
				cmd := a.root()
				words, err := shell.Fields(m[2], nil)
				require.NoError(t, err, "%s: %s", path, m[0])
				if m[1] == "worker" {
					cmd = a.workerCommand()
				}
				a.common(cmd)
				if m[1] != "worker" {
					cmd, words, err = cmd.Find(words)
					require.NoError(t, err, "%s: %s", path, m[0])
					require.True(t, cmd.HasParent() || strings.HasPrefix(m[2], "-"), "%s: there is no %s", path, m[0])
				}
				require.NoError(t, cmd.ParseFlags(words), "%s: %s", path, m[0])
				if given := cmd.Flags().Args(); len(given) > 0 { // without any it only names the command
					require.NoError(t, cmd.ValidateArgs(given), "%s: %s", path, m[0])
				}
			}
		}
	}
	require.Greater(t, n, 50)
}
