package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
)

// TestE6_ALinkThatACommandPlantsOpensNothing has links to keys in folders that commands can write. pawl follows many
// paths, and earlier commands could have put links there.
func TestE6_ALinkThatACommandPlantsOpensNothing(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("HOME", home)
	at := func(path string) string { return filepath.Join(home, path) }
	for _, dir := range []string{"keys/proj", "own/desk", "work/tools", "users"} {
		require.NoError(t, os.MkdirAll(at(dir), 0o700))
	}
	require.NoError(t, os.WriteFile(at("keys/key"), nil, 0o600))
	for _, link := range []string{"work/bin", "work/cache", "work/lib", "work/part", "work/project", "work/nvm", "own/desk/bin"} {
		require.NoError(t, os.Symlink(at("keys"), at(link)))
	}
	require.NoError(t, os.Symlink(at("work/tools"), at("users/tools"))) // the user's own link
	policy := sandbox.Make(sandbox.Request{
		Policy: sandbox.Policy{Machine: sandbox.Machine{Files: sandbox.ByNamespace}}, Home: t.TempDir(),
		Allow: []string{at("work"), at("work/part")}, Own: []string{at("own/desk")}, Repo: at("work/project"), Layers: []string{t.TempDir()},
		Named: []string{at("work/lib"), at("users/tools"), at("work/lib/key")}, Argv: []string{at("work/bin/key")},
		Env: []string{"PATH=/usr/bin:" + at("work/bin") + ":" + at("own/desk/bin"), "GOCACHE=" + at("work/cache"), "TMPDIR=" + at("work/part"), "NVM_DIR=" + at("work/nvm")},
	})
	names := map[string]sandbox.Access{}
	for _, p := range policy.Places {
		names[p.Path] = p.Access
		require.NotContains(t, p.Path, at("keys"))
		require.NotContains(t, p.Lower, at("keys"))
	}
	require.Equal(t, sandbox.Write, names[at("work")])
	require.Equal(t, sandbox.Link, names[at("users/tools")], "it leads to the allowed folder")
}
