package store_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/internal/git/store"
)

// TestMendCompletesWhatAKillCutOff mends a store as a kill in the middle of mending leaves it.
func TestMendCompletesWhatAKillCutOff(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]func(t *testing.T, dir string){
		"while it salvaged":           func(*testing.T, string) {},
		"with the objects aside":      func(t *testing.T, dir string) { require.NoError(t, os.Rename(dir+"/objects", dir+"/objects.damaged")) },
		"with the refs aside":         func(t *testing.T, dir string) { require.NoError(t, os.Rename(dir+"/refs", dir+"/refs.damaged")) },
		"before the old refs went":    func(t *testing.T, dir string) { require.NoError(t, os.Mkdir(dir+"/refs.damaged", 0o700)) },
		"before the old objects went": func(t *testing.T, dir string) { require.NoError(t, os.MkdirAll(dir+"/objects.damaged/pack", 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s.git")
			s, err := store.Open(ctx, dir)
			require.NoError(t, err)
			tree, err := s.Git().Command("mktree").Run(ctx)
			require.NoError(t, err)
			id, err := s.Make(ctx, store.NewCommit{Tree: string(tree[:len(git.NoHash)]), Message: "a", Time: time.Unix(1, 0)})
			require.NoError(t, err)
			for _, ref := range []string{"refs/heads/a", "refs/pawl/base/a"} {
				require.NoError(t, s.SetRef(ctx, ref, id, ""))
			}
			require.NoError(t, os.MkdirAll(dir+".mend/objects", 0o700))
			killed(t, dir)
			for range 2 {
				m, err := s.Mend(ctx, nil, nil, func(context.Context, *store.Store) error { return nil })
				require.NoError(t, err)
				require.Empty(t, m)
				for _, ref := range []string{"refs/heads/a", "refs/pawl/base/a"} {
					at, err := s.Ref(ctx, ref)
					require.NoError(t, err)
					require.Equal(t, id, at)
				}
				what, err := s.Sound(ctx, true, []string{"refs/heads/a"}, nil)
				require.NoError(t, err)
				require.Empty(t, what)
			}
			for _, left := range []string{dir + ".mend", dir + "/objects.damaged", dir + "/refs.damaged"} {
				require.NoFileExists(t, left)
				require.NoDirExists(t, left)
			}
		})
	}
}

// TestASizeThatCannotBeIsDamage mends a pack over which git runs out of memory, wherever it is mended.
func TestASizeThatCannotBeIsDamage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s.git")
	s, err := store.Open(ctx, dir)
	require.NoError(t, err)
	tree, err := s.Git().Command("mktree").Run(ctx)
	require.NoError(t, err)
	id, err := s.Make(ctx, store.NewCommit{Tree: string(tree[:len(git.NoHash)]), Message: "a", Time: time.Unix(1, 0)})
	require.NoError(t, err)
	require.NoError(t, s.SetRef(ctx, "refs/heads/a", id, ""))
	_, err = s.Git().Run(ctx, "repack", "-a", "-d", "-q")
	require.NoError(t, err)
	packs, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
	require.NoError(t, err)
	require.Len(t, packs, 1)
	pack, err := os.ReadFile(packs[0])
	require.NoError(t, err)
	copy(pack[12:], "\x9f\xff\xff\xff\xff\xff\x7f") // the first object is a commit of 70 TB
	require.NoError(t, os.Remove(packs[0]))         // it is read-only
	require.NoError(t, os.WriteFile(packs[0], pack, 0o400))

	m, err := s.Mend(ctx, nil, nil, func(context.Context, *store.Store) error { return nil })
	require.NoError(t, err)
	require.Equal(t, []string{"refs/heads/a"}, m.Lost)
	require.NotEmpty(t, m.Aside)
}
