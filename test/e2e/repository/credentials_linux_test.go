package repository_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/test/harness/world"
)

// hunts looks for the repository's password in everything that a command of a loop finds, and tries to use it. It
// prints what it has found. It names no file of the home, because files that a spec names can be read.
const hunts = `{
	secret='ann:hus[h]|Token: hus[h]'
	env | grep -aE "$secret"
	(cd && grep -raE "$secret" .)
	grep -raE "$secret" .git /tmp /var/tmp /run
	git config --list --show-origin | grep -aE "$secret"
	cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\0' '\n' | grep -aE "$secret"
	printf 'url=%s\n\n' "$URL" | GIT_TERMINAL_PROMPT=0 git credential fill | grep -a ^password=
	GIT_TERMINAL_PROMPT=0 git ls-remote "$URL" HEAD && echo by ls-remote
	GIT_TERMINAL_PROMPT=0 git push "$URL" HEAD:refs/heads/mine && echo by push
} 2>/dev/null`

// TestE6_CredentialsOfARepositoryByItsURLAreThatOfPawlsGitAlone has the worker's user reach a repository by a
// credential helper and a header in git's settings. Agent and verify find neither, and neither is in what pawl stores,
// prints or runs.
func TestE6_CredentialsOfARepositoryByItsURLAreThatOfPawlsGitAlone(t *testing.T) {
	world.Slow(t, "TestP0_ARepositoryByItsURL clones one")
	if lacks := sandbox.Probe().Lacks(sandbox.Filtered, []int{1}); lacks != "" {
		world.Lacks(t, "this machine lacks "+lacks)
	}
	t.Parallel()
	w := world.Alone(t, "")
	w.Shares()
	behind, err := url.Parse(web(w))
	require.NoError(t, err)
	var seen sync.Map // programs that were started with the password, while git talks to the server
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, line := range lines {
			if text, _ := os.ReadFile(line); strings.Contains(string(text), "ann:hush") {
				seen.Store(strings.ReplaceAll(string(text), "\x00", " "), true)
			}
		}
		_ = http.NewResponseController(rw).EnableFullDuplex() // else an early answer is cut off
		forward.ServeHTTP(rw, r)
	}))
	t.Cleanup(s.Close)
	w.Write("user/.git-credentials", strings.Replace(s.URL, "://", "://ann:hush@", 1)+"\n")
	w.Configures("[credential]\nhelper = store\n[http]\nextraHeader = \"X-Token: hush\"\n")
	hunt := "URL='" + s.URL + "/project.git'; export URL; " + hunts
	w.Set(doc{
		"repo": doc{"url": s.URL + "/project.git"}, "newFiles": "allow", "sandbox": doc{"use": "required", "allow": []string{}},
		"agent":  doc{"command": []string{"sh", "-c", hunt + " >work/found; touch work/found; git config user.name >work/name; " + world.Raises}, "env": doc{}},
		"verify": doc{"command": hunt + " | sed 's/^/found: /'; cat work/n", "timeout": "2m"},
	})
	said := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, said.Code, said.Err)
	require.Equal(t, "11", w.Has("refs/heads/pawl/"+w.Loop, "work/n"), "pawl's own git reaches it, and pushes")
	require.Empty(t, w.Has("refs/heads/pawl/"+w.Loop, "work/found"))
	if sandbox.Probe().Files != sandbox.ByBwrap {
		require.Equal(t, "Ann", w.Has("refs/heads/pawl/"+w.Loop, "work/name"), "git's harmless settings are there")
	}
	stdout, err := filepath.Glob(filepath.Join(w.Home, "loops", w.Loop, "steps", "0001.*verify*", "stdout"))
	require.NoError(t, err)
	require.NotEmpty(t, stdout)
	for _, name := range stdout {
		require.NotContains(t, world.ReadFile(name), "found:")
	}
	require.NotContains(t, w.There("for-each-ref"), "refs/heads/mine")
	seen.Range(func(line, _ any) bool { return assert.Fail(t, "a program was started with the password", line) })

	const password = "ann:hush" // the word hush alone is in the commands of this test
	require.NotContains(t, said.Out+said.Err+w.Pawl("show", "--json", w.Loop).Out+w.Pawl("log", "--all", "--json", w.Loop).Out, password)
	require.NotContains(t, w.There("log", "--all", "-p"), password)
	for _, text := range []string{password, "X-Token: hush"} {
		found, _ := exec.Command("grep", "-rlaF", text, w.Home).Output()
		require.Empty(t, string(found), text)
	}
}
