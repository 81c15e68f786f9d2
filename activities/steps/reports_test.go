package steps_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/steps"
)

func TestReportsOfARunBeforeAreForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept, left := filepath.Join(dir, "target", "other.xml"), filepath.Join(dir, "target", "TEST-a.xml")
	require.NoError(t, os.Mkdir(filepath.Dir(kept), 0o700))
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	require.NoError(t, steps.ForgetReports(dir, []string{"**/TEST-*.xml"}))
	require.FileExists(t, kept)
	require.NoFileExists(t, left)
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
		require.NoError(t, steps.ForgetReports(dir, []string{glob}))
		require.NoError(t, steps.KeepReports(dir, []string{glob}, kept))
		content, err := os.ReadFile(kept)
		require.NoError(t, err)
		require.Empty(t, content)
	}
	require.FileExists(t, report)
}
