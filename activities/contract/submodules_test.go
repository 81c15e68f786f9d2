package contract_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/contract"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

func TestSubmodulesAreNotedAndNoScopeOfTheirOwn(t *testing.T) {
	l := actest.BeginWith(t, spec.Deny, func(user string, _ map[string]any) {
		require.NoError(t, os.Mkdir(filepath.Join(user, "lib"), 0o755))
		head := gittest.Git(t, user, "rev-parse", "HEAD")
		gittest.Git(t, user, "update-index", "--add", "--cacheinfo", "160000,"+head+",lib")
		gittest.Git(t, user, "commit", "-qm", "a submodule")
	})
	ws, err := l.Workspace(t.Context(), l.Opened.Ref)
	require.NoError(t, err)

	for _, c := range []struct {
		scope   []string
		inScope int
		refused string
	}{
		{[]string{"lib/**"}, 0, "nothing but submodules, which can't change: lib"},
		{[]string{"./lib/"}, 0, "nothing but submodules, which can't change: lib"},
		{[]string{"lib/src/**"}, 0, "nothing but submodules, which can't change: lib"},
		{[]string{"lib/**", "nothing/**"}, 0, "the scope matches no file"},
		{[]string{"lib/**", "work/**"}, 2, ""},
	} {
		s := l.Spec
		s.Scope = c.scope
		d, err := contract.Draw(t.Context(), ws, s, l.Opened.Base)
		require.NoError(t, err)
		require.Equal(t, c.inScope, d.InScope, c.scope)
		require.Contains(t, d.Warnings, "what is in submodules can't change, and a loop's trees have it only if setup.command fetches it (git submodule update --init): lib")
		if closed := d.Closed(ws, s); c.refused == "" {
			require.Nil(t, closed)
		} else {
			require.ErrorContains(t, closed, c.refused, c.scope)
		}
	}
}

func TestAScopeThatCanNeverMatchIsRefused(t *testing.T) {
	l := actest.BeginWith(t, spec.Deny, func(user string, _ map[string]any) {
		head := gittest.Git(t, user, "rev-parse", "HEAD")
		require.NoError(t, os.Mkdir(filepath.Join(user, "lib"), 0o755))
		gittest.Git(t, user, "update-index", "--add", "--cacheinfo", "160000,"+head+",lib")
		require.NoError(t, os.Symlink("work", filepath.Join(user, "link")))
		gittest.Git(t, user, "add", "link")
		gittest.Git(t, user, "commit", "-qm", "a submodule and a link")
	})
	ws, err := l.Workspace(t.Context(), l.Opened.Ref)
	require.NoError(t, err)
	for _, never := range []string{".git/**", "./.git/", ".git", "sub/.git/hooks/*", "**/.git/**", ".GIT/config", "link/a/b"} {
		for _, scope := range [][]string{{never}, {never, "lib/**"}} {
			s := l.Spec
			s.Kind, s.NewFiles, s.Scope = "deliver", spec.Allow, scope
			d, err := contract.Draw(t.Context(), ws, s, l.Opened.Base)
			require.NoError(t, err)
			require.ErrorContains(t, d.Closed(ws, s), "the scope can never match a file: "+never)
		}
	}
	for _, may := range []string{"new/**", ".github/**", ".gitignore", "*", "linked/**", "lib2/x"} {
		s := l.Spec
		s.Kind, s.NewFiles, s.Scope = "deliver", spec.Allow, []string{".git/**", may}
		d, err := contract.Draw(t.Context(), ws, s, l.Opened.Base)
		require.NoError(t, err)
		require.Nil(t, d.Closed(ws, s), may)
	}
}
