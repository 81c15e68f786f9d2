package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
	"pawl/internal/spec/agents"
)

// TestE6_AnAgentByNameHasAHomeOfTheLoopsOwn has a user's settings of a program with everything that may be in them.
// The loop's agent gets the sign-in, and what it plants appears in no session of the user.
func TestE6_AnAgentByNameHasAHomeOfTheLoopsOwn(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			for name, text := range map[string]string{
				".gemini/settings.json": `{"security":{"auth":{"selectedType":"oauth"}},"hooks":{"SessionStart":["touch"]}}`, ".gemini/oauth_creds.json": "sesame\n",
				".gemini/history": "secrets of another project\n", ".gemini/extensions/x/run.sh": "x\n",
			} {
				path := filepath.Join(p.home, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			p.request.Argv, p.request.Agents = []string{"/usr/bin/gemini"}, []string{"gemini"}
			for _, c := range []struct {
				name, script string
				works        bool
			}{
				{"sign in", `grep -q sesame ~/.gemini/oauth_creds.json`, true},
				{"renew its sign-in", `echo anew >~/.gemini/oauth_creds.json`, true},
				{"read what the user did elsewhere", `cat ~/.gemini/history`, false},
				{"run the user's extensions", `sh ~/.gemini/extensions/x/run.sh`, false},
				{"find the user's hooks", `grep -q hooks ~/.gemini/settings.json`, false},
				// bubblewrap can't show a part of a file.
				{"know how it signs in", `grep -q selectedType ~/.gemini/settings.json`, m.Files != sandbox.ByBwrap},
				{"keep a session", `mkdir -p ~/.gemini/tmp && echo 1 >~/.gemini/tmp/session`, true},
				{"find its session", `grep -q 1 ~/.gemini/tmp/session`, true},
				{"plant a hook", `echo '{"hooks":1}' >~/.gemini/settings.json && echo 1 >~/.gemini/planted`, true},
			} {
				code, out := p.sh(c.script)
				require.Equal(t, c.works, code == 0, "%s: %s", c.name, out)
			}
			require.NoFileExists(t, filepath.Join(p.home, ".gemini", "planted"))
			text, err := os.ReadFile(filepath.Join(p.home, ".gemini", "settings.json"))
			require.NoError(t, err)
			require.Contains(t, string(text), "SessionStart", "the user's own settings are what they were")
		})
	}
}

// TestE6_ARepositorysPluginsAreHiddenFromTheAgentThatWouldRunThem has folders whose content opencode, and Codex when
// called by ACP, always run. Other programs see these folders.
func TestE6_ARepositorysPluginsAreHiddenFromTheAgentThatWouldRunThem(t *testing.T) {
	for name, m := range machines(t) {
		for agent, folder := range map[string]string{"opencode": ".opencode", "codex": ".codex"} {
			t.Run(name+", "+agent, func(t *testing.T) {
				p := newPlace(t, m)
				plugin := filepath.Join(p.desk, folder, "plugin", "x.js")
				require.NoError(t, os.MkdirAll(filepath.Dir(plugin), 0o755))
				require.NoError(t, os.WriteFile(plugin, []byte("x\n"), 0o644))
				code, out := p.sh("cat " + folder + "/plugin/x.js")
				require.Zero(t, code, out)
				p.request.Agents = []string{agent}
				code, out = p.sh(fmt.Sprintf("test -d %[1]s && test ! -e %[1]s/plugin && echo 1 >%[1]s/package.json", folder))
				require.Zero(t, code, out)
				require.FileExists(t, plugin)
				require.NoFileExists(t, filepath.Join(p.desk, folder, "package.json"))
			})
		}
	}
}

// TestE6_EveryAgentByNameGetsItsSignInAlone has, for every program whose sign-in is known, everything that a user may
// have of it.
func TestE6_EveryAgentByNameGetsItsSignInAlone(t *testing.T) {
	for name, m := range machines(t) {
		for _, agent := range agents.Signing() {
			t.Run(name+"/"+agent, func(t *testing.T) {
				own, _ := agents.Lookup(agent)
				p := newPlace(t, m)
				put := func(name, text string) {
					path := filepath.Join(p.home, name)
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
					require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				}
				var checks []string
				for _, folder := range own.Writes {
					put(filepath.Join(folder, "history"), "of another project\n")
					checks = append(checks, "! cat ~/"+folder+"/history", "mkdir -p ~/"+folder, "echo 1 >~/"+folder+"/planted", "echo 2 >~/"+folder+"/history")
				}
				for _, s := range own.Settings {
					put(s.File, `{"hooks":"planted before","mcpServers":{"x":{}}}`)
					checks = append(checks, "! grep -q hooks ~/"+s.File)
				}
				for _, file := range own.SignIn {
					put(file, "sesame\n")
					checks = append(checks, "grep -q sesame ~/"+file, "echo anew >~/"+file)
				}
				p.request.Argv, p.request.Agents = []string{"sh", "-c", agent + " -p hello"}, []string{agent} // as if sandbox.agents named it
				for i, check := range checks {
					checks[i] = "( " + check + " ) || { echo 'this fails: " + check + "'; exit 1; }"
				}
				code, out := p.sh(strings.Join(checks, "\n"))
				require.Zero(t, code, out)
				for _, folder := range own.Writes {
					require.NoFileExists(t, filepath.Join(p.home, folder, "planted"))
					text, err := os.ReadFile(filepath.Join(p.home, folder, "history"))
					require.NoError(t, err)
					require.Equal(t, "of another project\n", string(text))
				}
				for _, file := range own.SignIn {
					text, err := os.ReadFile(filepath.Join(p.home, file))
					require.NoError(t, err)
					require.Equal(t, "anew\n", string(text), "a sign-in that is renewed is the user's, too")
				}

				checks = nil
				for _, file := range own.SignIn {
					checks = append(checks, "! grep anew ~/"+file)
				}
				for _, s := range own.Settings {
					put(s.File, `{"primaryApiKey":"sesame","env":{"KEY":"sesame"},"model":"m","provider":{"p":{"options":{"apiKey":"sesame"}}},"providers":{"p":{"apiKey":"sesame"}}}`)
					checks = append(checks, "! grep sesame ~/"+s.File)
				}
				p.request.Metered = true
				code, out = p.sh(strings.Join(checks, " && "))
				require.Zero(t, code, "pawl's meter signs in, and the program gets nothing to do it with: %s", out)
			})
		}
	}
}

// TestE6_WhatAnAgentLinksIsNotFollowed: an agent puts links where its next sandbox has something of the user. The
// process that makes that sandbox still sees the whole machine.
func TestE6_WhatAnAgentLinksIsNotFollowed(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			theirs := filepath.Join(p.dir, "theirs")
			for name, text := range map[string]string{
				"user/.pi/agent/auth.json": "sesame\n", "user/.pi/agent/models.json": `{"providers":{"x":{}}}`, "user/.pi/agent/settings.json": `{"defaultModel":"x"}`,
				"theirs/file": "theirs\n",
			} {
				path := filepath.Join(p.dir, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			p.request.Argv, p.request.Agents = []string{"/usr/bin/pi"}, []string{"pi"}
			s, err := supervisor.Start(t.Name(), m.Files)
			require.NoError(t, err)
			defer s.Close()
			for i, c := range []struct{ planted, to string }{
				{"agent", theirs}, {"agent/models.json", theirs + "/file"}, {"agent/settings.json", "/oldroot" + theirs + "/new"}, {"agent/auth.json", "/oldroot" + theirs + "/file"},
			} {
				p.request.Fresh = strconv.Itoa(i)
				code, out := p.in(s, `cd ~/.pi && mv agent "gone$RANDOM" && mkdir agent && rm -rf `+c.planted+` && ln -s `+c.to+` `+c.planted)
				require.Zero(t, code, out)
				p.request.Fresh += " again"
				code, out = p.in(s, `grep -q sesame ~/.pi/agent/auth.json`)
				require.Zero(t, code, "%s to %s: it gets its sign-in nevertheless: %s", c.planted, c.to, out)
			}
			names, err := os.ReadDir(theirs)
			require.NoError(t, err)
			require.Len(t, names, 1, "nothing was made there: %v", names)
			text, err := os.ReadFile(filepath.Join(theirs, "file"))
			require.NoError(t, err)
			require.Equal(t, "theirs\n", string(text))
		})
	}
}
