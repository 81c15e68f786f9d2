package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/config"
)

func TestTheWorkersSettingsAreDocumented(t *testing.T) {
	var rows strings.Builder
	for _, s := range config.WorkerSettings {
		value := s.Default
		if value == "" {
			value = "–"
		}
		fmt.Fprintf(&rows, "| `--%s` | `%s` | %s | %s |\n", s.Flag, s.Env(), value, s.Usage)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "settings.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), rows.String(), "docs/reference/settings.md is out of step")
}
