package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/config"
	"pawl/internal/spec/issue"
)

func TestTheGoalIsReadFromAnIssue(t *testing.T) {
	file := write(t, "pawl.yaml", yamlSpec)
	md := write(t, "issue.md", "# Crash on empty input\n<!-- a template -->\nIt crashes.\n\n## Acceptance criteria\n\n- [ ] no crash\n- [ ] a test\n")
	s, err := config.LoadSpec(file, nil, config.GoalFile(md))
	require.NoError(t, err)
	require.Equal(t, "# Crash on empty input\n\nIt crashes.\n\n## Acceptance criteria\n\n- [ ] no crash\n- [ ] a test", s.Goal)
	require.Equal(t, []string{"no crash", "a test"}, issue.Parse([]byte(s.Goal)).Criteria, "whoever has the goal has its criteria")

	t.Run("a quoted text that begins with an @ is the goal itself", func(t *testing.T) {
		s, err := config.LoadSpec(file, []string{`goal="@ada wants it"`})
		require.NoError(t, err)
		require.Equal(t, "@ada wants it", s.Goal)
	})
	t.Run("only --set reads files", func(t *testing.T) {
		t.Setenv("PAWL_SPEC_GOAL", "@"+md)
		s, err := config.LoadSpec(file, nil)
		require.NoError(t, err)
		require.Equal(t, "@"+md, s.Goal)
	})
	t.Run("a problem names the flag that was typed", func(t *testing.T) {
		_, err := config.LoadSpec(file, nil, config.GoalFile("no-such-issue.md"))
		require.ErrorContains(t, err, "--goal-file: goal: there is no file no-such-issue.md")
		require.NotContains(t, err.Error(), "--set")
	})
	for name, c := range map[string]struct{ set, want string }{
		"no name":        {"goal=@", "names no file"},
		"no such file":   {"goal=@" + filepath.Join(t.TempDir(), "no.md"), "there is no file"},
		"a folder":       {"goal=@" + t.TempDir(), "can't be read"},
		"too large":      {"goal=@" + write(t, "large.md", strings.Repeat("x", issue.MaxSource+1)), "larger than"},
		"no text":        {"goal=@" + write(t, "binary.md", "a\x00b"), "is not a text file"},
		"an empty issue": {"goal=@" + write(t, "empty.md", "<!-- nothing -->\n"), "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.LoadSpec(file, []string{c.set})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "goal")
		})
	}
}
