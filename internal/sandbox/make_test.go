package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/sandbox"
)

// TestE6_WhatNpmInstalledStarts has a program in a home, called by a link: it needs its packages,
// and gets no more of the home.
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
			policy := sandbox.Make(sandbox.Request{Machine: sandbox.Machine{Files: sandbox.ByNamespace}, Home: pawl, Argv: c.argv, Env: c.env})
			require.Equal(t, c.opens, contains(policy.Places, packages))
			require.False(t, contains(policy.Places, filepath.Join(home, "npm")))
		})
	}
}

func contains(places []sandbox.Place, path string) bool {
	for _, p := range places {
		if p.Path == path && p.Access == sandbox.Read {
			return true
		}
	}
	return false
}
