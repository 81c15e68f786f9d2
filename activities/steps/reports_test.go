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
