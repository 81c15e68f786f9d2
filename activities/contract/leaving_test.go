package contract_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/contract"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// A loop's trees are not beside the user's repository, so what leads out of it finds nothing there.
func TestWhatLeadsOutOfTheRepositoryIsNamedOnce(t *testing.T) {
	warnings := func(files, links map[string]string, change func(*spec.Spec)) string {
		t.Helper()
		l := actest.BeginWith(t, spec.Deny, func(user string, _ map[string]any) {
			for name, content := range files {
				gittest.Write(t, filepath.Join(user, name), content)
			}
			for name, target := range links {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(user, name)), 0o755))
				require.NoError(t, os.Symlink(target, filepath.Join(user, name)))
			}
			gittest.Git(t, user, "add", "-A")
			gittest.Git(t, user, "commit", "-qm", "more", "--allow-empty")
		})
		s := l.Spec
		change(&s)
		ws, err := l.Workspace(t.Context(), l.Opened.Ref)
		require.NoError(t, err)
		d, err := contract.Draw(t.Context(), ws, s, l.Opened.Base)
		require.NoError(t, err)
		return strings.Join(d.Warnings, "\n")
	}

	text := warnings(nil, map[string]string{
		"data": "../shared/data", "a/up": "../../x", "a/in": "../work", "abs": "/srv/models/x", "system": "/usr/share/dict/words", "allowed": "/var/models/y",
	}, func(s *spec.Spec) { s.Sandbox.Allow = []string{"/var/models"} })
	require.Equal(t, 1, strings.Count(text, "links lead out"))
	require.Contains(t, text, "a/up -> ../../x, abs -> /srv/models/x, data -> ../shared/data.")
	require.NotContains(t, text, "these paths")

	text = warnings(map[string]string{
		"go.mod": "module x\n\nreplace y => ../y\n", "web/package.json": `{"dependencies": {"a": "file:../../a", "b": "file:../b"}}`, "crates/c/Cargo.toml": `d = { path = "../d" }`,
	}, nil, func(s *spec.Spec) {
		s.Guard.Command, s.Verify.Command = "cd work && cat ../README.md ../../other/x", "sh measure.sh --config=../conf/a.ini"
	})
	require.Equal(t, 1, strings.Count(text, "leave the repository"))
	require.Contains(t, text, "../../a in web/package.json, ../../other/x, ../conf/a.ini, ../y in go.mod.")
	require.NotContains(t, text, "links")

	require.Empty(t, warnings(map[string]string{"a/b.sh": "cd ..\n", "web/package.json": `{"x": "../README.md"}`}, map[string]string{"a/link": "../work"},
		func(s *spec.Spec) { s.Guard.Command = "cd a && ls .." }))
}

// A command that names the user's repository judges the user's files, whatever the change does.
func TestACommandThatNamesTheUsersRepositoryIsNoted(t *testing.T) {
	var repo string
	l := actest.BeginWith(t, spec.Deny, func(user string, _ map[string]any) {
		repo = user
		gittest.Write(t, filepath.Join(user, "bench.sh"), "cd '"+user+"' && ./measure\n")
		gittest.Git(t, user, "add", "-A")
		gittest.Git(t, user, "commit", "-qm", "more")
	})
	ws, err := l.Workspace(t.Context(), l.Opened.Ref)
	require.NoError(t, err)
	for command, named := range map[string]string{
		"cd " + repo + " && python3 run.py":       ": guard.command.",
		"python3 " + repo + "/run.py":             ": guard.command.",
		"sh bench.sh":                             ": bench.sh.",
		"cd " + repo + "-other && python3 run.py": "",
		"python3 run.py":                          "",
	} {
		s := l.Spec
		s.Guard.Command = command
		d, err := contract.Draw(t.Context(), ws, s, l.Opened.Base)
		require.NoError(t, err)
		text := strings.Join(d.Warnings, "\n")
		if named == "" {
			require.NotContains(t, text, "name your repository", command)
			continue
		}
		require.Contains(t, text, "see your files and not the change"+named, command)
	}
}
