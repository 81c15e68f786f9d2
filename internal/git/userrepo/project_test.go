package userrepo_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/git/userrepo"
	"pawl/test/harness/gittest"
)

func TestAProjectKnowsItsLoopsByPathAndByURL(t *testing.T) {
	for remote, names := range map[string]map[string]bool{
		"": {"": false, "https://example.com/a/b.git": false},
		"git@example.com:a/b.git": {
			"https://example.com/a/b": true, "https://example.com/a/b.git": true, "ssh://git@Example.com/a/b.git/": true, "example.com:a/b": true,
			"https://example.com/a/c.git": false, "https://example.org/a/b.git": false, "https://example.com/b.git": false, "": false,
		},
		"https://example.com/a/b":  {"git@example.com:a/b.git": true, "git://example.com/a/b.git": true},
		"/srv/git/b.git":           {"file:///srv/git/b.git": true, "file://localhost/srv/git/b": true, "/srv/git/c": false},
		"https://example.com:81/b": {"https://example.com:81/b.git": true, "https://example.com/b.git": false},
	} {
		t.Run(remote, func(t *testing.T) {
			dir := t.TempDir()
			gittest.Git(t, dir, "init", "-q", "-b", "main")
			if remote != "" {
				gittest.Git(t, dir, "remote", "add", "team", remote)
			}
			p, err := userrepo.ProjectOf(t.Context(), dir)
			require.NoError(t, err)
			require.True(t, p.Has(p.Root))
			require.False(t, p.Has(filepath.Dir(p.Root)))
			for name, has := range names {
				require.Equal(t, has, p.Has(name), name)
			}
		})
	}
}
