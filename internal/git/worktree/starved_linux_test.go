package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/internal/git"
	"pawl/internal/git/worktree"
	"pawl/test/harness/gittest"
)

// TestAProcessWithoutFilesLeftDamagesNothing: what can't be looked at is not lost. A tree stays as it is, and a store does
// not lack its commits. No other test runs meanwhile.
func TestAProcessWithoutFilesLeftDamagesNothing(t *testing.T) {
	user, head := gittest.UserRepo(t, map[string]string{"a": "a\n"})
	b := gittest.BedFor(t, user, head)
	desk := b.Fresh(head)
	require.NoError(t, desk.Pristine(t.Context()))
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	all := func(limit uint64) {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: before.Max}))
	}
	defer all(before.Cur)
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	refused := 0
	for limit := range uint64(24) {
		require.NoError(t, os.WriteFile(filepath.Join(desk.Dir, "a"), []byte("changed\n"), 0o644))
		all(uint64(len(open)) - 4 + limit)
		recreated, err := desk.Restore(t.Context(), head, worktree.RestoreOptions{})
		is, unknown := b.Store.Holds(t.Context(), head)
		all(before.Cur)
		require.False(t, recreated || desk.Lost, "%d: %s", limit, desk.Why)
		if err != nil {
			require.True(t, git.Starved(err), "%v", err)
			refused++
		}
		require.True(t, is || unknown != nil, "%d", limit)
		all(uint64(len(open)) - 4 + limit)
		change, err := desk.Stage(t.Context(), head)
		all(before.Cur)
		require.Empty(t, change.Violations, "%d", limit)
		require.True(t, err == nil || git.Starved(err), "%v", err)
	}
	require.Positive(t, refused)
}
