package store_test

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
)

// TestAFullDiskIsNoDamage mends a store where there is no room for a second one.
func TestAFullDiskIsNoDamage(t *testing.T) {
	disk := t.TempDir()
	err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1500k")
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("only root can mount a small disk: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	s, err := store.Open(ctx, filepath.Join(disk, "s.git"))
	require.NoError(t, err)
	content := make([]byte, 900<<10)
	rand.Read(content)
	blob, err := s.Git().Command("hash-object", "-w", "--stdin").Input(string(content)).Run(ctx)
	require.NoError(t, err)
	tree, err := s.Git().Command("mktree").Input("100644 blob " + string(blob[:len(git.NoHash)]) + "\ta\n").Run(ctx)
	require.NoError(t, err)
	id, err := s.Make(ctx, store.NewCommit{Tree: string(tree[:len(git.NoHash)]), Message: "a", Time: time.Unix(1, 0)})
	require.NoError(t, err)
	require.NoError(t, s.SetRef(ctx, "refs/heads/a", id, ""))
	require.NoError(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT, "size=4000k"))
	_, err = s.Git().Run(ctx, "repack", "-a", "-d", "-q")
	require.NoError(t, err)
	require.NoError(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT, "size=1500k"))

	nowhere := func(context.Context, *store.Store) error { return nil }
	_, err = s.Mend(ctx, nil, nil, nowhere)
	require.ErrorContains(t, err, "No space left on device")
	at, err := s.Ref(ctx, "refs/heads/a")
	require.NoError(t, err)
	require.Equal(t, id, at)

	require.NoError(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT, "size=4000k"))
	m, err := s.Mend(ctx, nil, nil, nowhere)
	require.NoError(t, err)
	require.Empty(t, m)
}
