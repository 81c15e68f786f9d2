package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
)

// TestE6_WhatNpmInstalledStarts has a program in a home, called through a link. It needs its packages, and gets
// nothing else of the home.
func TestE6_WhatNpmInstalledStarts(t *testing.T) {
	pawl := t.TempDir()
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("HOME", home)
	packages, bin := filepath.Join(home, "npm/lib/node_modules"), filepath.Join(home, "npm/bin")
	require.NoError(t, os.MkdirAll(filepath.Join(packages, "@x/agent"), 0o700))
	require.NoError(t, os.MkdirAll(bin, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(packages, "@x/agent/cli.js"), nil, 0o700))
	require.NoError(t, os.Symlink("../lib/node_modules/@x/agent/cli.js", filepath.Join(bin, "agent")))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "own"), nil, 0o700))
	for name, c := range map[string]struct {
		argv, env []string
		opens     bool
	}{
		"by its path":            {[]string{filepath.Join(bin, "agent"), "-p"}, nil, true},
		"by its name":            {[]string{"agent"}, []string{"PATH=/usr/bin:" + bin}, true},
		"nobody's package":       {[]string{filepath.Join(bin, "own")}, nil, false},
		"not there":              {[]string{filepath.Join(bin, "nobody")}, nil, false},
		"nothing":                {nil, nil, false},
		"a name without a place": {[]string{"agent"}, []string{"PATH=."}, false},
	} {
		t.Run(name, func(t *testing.T) {
			policy := sandbox.Make(sandbox.Request{Policy: sandbox.Policy{Machine: sandbox.Machine{Files: sandbox.ByNamespace}}, Home: pawl, Argv: c.argv, Env: c.env})
			require.Equal(t, c.opens, contains(policy.Places, packages))
			require.False(t, contains(policy.Places, filepath.Join(home, "npm")))
		})
	}
}

// TestE6_SettingsComeWithoutCredentials has all settings of a user that lead to a server, name a program or contain a
// secret.
func TestE6_SettingsComeWithoutCredentials(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("HOME", home)
	for name, text := range map[string]string{
		".gitconfig": `# mine
[user]
	name = Ann Author   ; a comment
	email = ann@example.com
	signingKey = sesame
[core] autocrlf = input
	sshCommand = ssh -i sesame
	editor = sesame \
	name = sesame
	quotePath
[url "https://ann:sesame@example.com/"]
	insteadOf = https://example.com/
[http]
	extraHeader = Authorization: sesame
[credential "https://example.com"]
	helper = store --file sesame
[user "other"]
	name = sesame
[github]
	token = sesame
[INIT]
	defaultBranch = main
`,
		".config/pip/pip.conf": "[global]\nindex-url = https://ann:sesame@pypi.example.com/simple\n",
		".config/go/env":       "GOPROXY=https://proxy.golang.org\n",
		".cargo/config.toml":   "[registries.x]\ntoken = \"sesame\"\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
	}
	policy := sandbox.Make(sandbox.Request{Policy: sandbox.Policy{Machine: sandbox.Machine{Files: sandbox.ByNamespace}}, Home: t.TempDir()})
	require.True(t, contains(policy.Places, filepath.Join(home, ".config/go/env")))
	require.False(t, contains(policy.Places, filepath.Join(home, ".config/pip/pip.conf")))
	require.False(t, contains(policy.Places, filepath.Join(home, ".cargo/config.toml")))
	var git string
	for _, p := range policy.Places {
		if p.Path == filepath.Join(home, ".gitconfig") {
			require.Equal(t, sandbox.Copy, p.Access)
			git = p.Text
		}
	}
	require.Equal(t, "[user]\n\tname = Ann Author   ; a comment\n[user]\n\temail = ann@example.com\n[core]\n\tautocrlf = input\n[core]\n\tquotePath\n[init]\n\tdefaultBranch = main\n", git)
}

func contains(places []sandbox.Place, path string) bool {
	for _, p := range places {
		if p.Path == path && p.Access == sandbox.Read {
			return true
		}
	}
	return false
}
