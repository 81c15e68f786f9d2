package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/workspace"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
)

// What the sandbox knows about Temporal: service and UI are closed, and an engine requires a token if its own file
// says so.
func TestE6_WhatLoopsAreToldOfTemporal(t *testing.T) {
	const own, other = "127.0.0.1:7233", "temporal.example:7233"
	for name, c := range map[string]struct {
		engine   string
		services []string
		closed   []string
		asks     bool
		repo     string
	}{
		"no engine":                      {"", []string{own}, []string{"127.0.0.1"}, false, ""},
		"an engine that asks nobody":     {`{"address":"` + own + `"}`, []string{own}, []string{"127.0.0.1"}, false, ""},
		"an engine that asks":            {`{"address":"` + own + `","auth":true}`, []string{own}, []string{"127.0.0.1"}, true, ""},
		"another Temporal":               {`{"address":"` + own + `","auth":true}`, []string{other}, []string{"temporal.example"}, false, ""},
		"another Temporal with its UI":   {"", []string{other, "ui.example:443"}, []string{"temporal.example", "ui.example"}, false, ""},
		"a repository by its URL":        {"", []string{own}, []string{"127.0.0.1", "git.example:443"}, false, "https://git.example/x.git"},
		"a repository by ssh":            {"", []string{own}, []string{"127.0.0.1", "git.example:22"}, false, "git@git.example:x.git"},
		"a repository by a file's URL":   {"", []string{own}, []string{"127.0.0.1"}, false, "file:///x.git"},
		"nobody is there, as for a look": {`{"address":"` + own + `","auth":true}`, nil, nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := home.Home{Dir: t.TempDir()}
			if c.engine != "" {
				require.NoError(t, os.Mkdir(h.Engine(), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(h.Engine(), "engine.json"), []byte(c.engine), 0o600))
			}
			a := workspace.New(h, "host", "pawl", "default", false)
			a.Services, a.Keys = c.services, []string{"/etc/pawl/key"}
			closed, secrets, asks := workspace.Surrounded(a, hostrecord.Record{Remote: c.repo != "", Repo: c.repo})
			require.Equal(t, a.Keys, secrets)
			require.Equal(t, c.closed, closed)
			require.Equal(t, c.asks, asks)
		})
	}
}
