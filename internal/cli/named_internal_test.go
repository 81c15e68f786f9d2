package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"pawl/internal/lib/list"
)

// TestEveryCommandThatPawlNamesIsThere: what a person is told to type works.
func TestEveryCommandThatPawlNamesIsThere(t *testing.T) {
	known := list.Map(newApp(nil, &bytes.Buffer{}, &bytes.Buffer{}, Deps{}).root().Commands(), (*cobra.Command).Name)
	named := regexp.MustCompile("`pawl ([a-z]+)[ `]")
	for _, root := range []string{"../../activities", "../../config", "../../internal", "../../workflows"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range named.FindAllSubmatch(text, -1) {
				if string(match[1]) != "runs" { // a sentence about pawl
					require.Contains(t, known, string(match[1]), path)
				}
			}
			return err
		})
		require.NoError(t, err)
	}
}
