package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/workspace"
	"pawl/internal/lib/fsutil/remove"
)

// TestE6_NothingIsHiddenFromTheLimitOfADesk has a file below more folders than a path can name.
func TestE6_NothingIsHiddenFromTheLimitOfADesk(t *testing.T) {
	t.Parallel()
	desk := filepath.Join(t.TempDir(), "desk")
	require.NoError(t, os.Mkdir(desk, 0o700))
	t.Cleanup(func() { require.NoError(t, remove.All(desk)) })
	root, err := os.OpenRoot(desk)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, root.WriteFile("small", []byte("x"), 0o600))
	require.Empty(t, workspace.RoomIn(desk, 1<<20).Ended(t.Context()))
	deep := strings.Repeat(strings.Repeat("d", 250)+"/", 20)
	require.NoError(t, root.MkdirAll(deep, 0o700))
	require.NoError(t, root.WriteFile(deep+"large", make([]byte, 8<<20), 0o600))
	require.Contains(t, workspace.RoomIn(desk, 1<<20).Ended(t.Context()), "folders so deep")
	require.NoError(t, root.WriteFile("large", make([]byte, 8<<20), 0o600))
	require.Contains(t, workspace.RoomIn(desk, 1<<20).Ended(t.Context()), "used up")
}
