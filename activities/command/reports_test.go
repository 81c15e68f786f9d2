package command_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/command"
)

func TestReportsOfARunBeforeAreForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept, left := filepath.Join(dir, "target", "other.xml"), filepath.Join(dir, "target", "TEST-a.xml")
	require.NoError(t, os.Mkdir(filepath.Dir(kept), 0o700))
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	committed := filepath.Join(dir, "TEST-b.xml")
	require.NoError(t, os.WriteFile(committed, []byte("<testsuite/>"), 0o600))
	tracked := func() (map[string]bool, error) { return map[string]bool{"TEST-b.xml": true}, nil }
	globs := []string{"**/TEST-*.xml"}
	before, err := command.ForgetReports(dir, globs, tracked)
	require.NoError(t, err)
	require.FileExists(t, kept)
	require.NoFileExists(t, left)
	require.FileExists(t, committed, "the command finds the commit as it is")

	copied := filepath.Join(t.TempDir(), "copied")
	content := func() string {
		t.Helper()
		require.NoError(t, command.KeepReports(dir, globs, before, copied))
		b, err := os.ReadFile(copied)
		require.NoError(t, err)
		return string(b)
	}
	require.Empty(t, content(), "the command has not written it")
	require.NoError(t, os.WriteFile(committed, []byte("<testsuites/>"), 0o600))
	require.Equal(t, "<testsuites/>\n", content())
}

// TestAReportBehindALinkOutOfTheTreeIsNone: a command may leave such a link in a folder of judge.keep.
func TestAReportBehindALinkOutOfTheTreeIsNone(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	report := filepath.Join(outside, "a.xml")
	require.NoError(t, os.WriteFile(report, []byte("<testsuite/>"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "build")))
	kept := filepath.Join(t.TempDir(), "kept")
	for _, glob := range []string{"build/*.xml", "*/*.xml", "**/*.xml"} {
		before, err := command.ForgetReports(dir, []string{glob}, func() (map[string]bool, error) { return map[string]bool{}, nil })
		require.NoError(t, err)
		require.NoError(t, command.KeepReports(dir, []string{glob}, before, kept))
		content, err := os.ReadFile(kept)
		require.NoError(t, err)
		require.Empty(t, content)
	}
	require.FileExists(t, report)
}
